// CAEL explorer: which layers of a twin are cross-attention layers, what they read, and the cost.
import {
  bar,
  choice,
  drawing,
  html,
  labelled,
  legend,
  menu,
  note,
  PALETTE,
  panel,
  picture,
  put,
  set,
  setUp,
  short,
  stroke,
  svg,
  tooltip,
  write,
} from "./kit.js";
import { chart } from "./chart.js";

const TOWERS = [PALETTE[0], PALETTE[1]];
const BOX = 26; // height of a layer's box
const PITCH = 52; // from layer to layer
const HEAD = 26; // of the columns' names
const FOOT = 42; // of the embeddings
const LOOKS = `
  .cselab g.layer, .cselab g.layer:focus-visible { cursor: pointer; outline: none; }
  .cselab .layer > .ground { fill: var(--ink); fill-opacity: 0; }
  .cselab .layer:hover > .ground { fill-opacity: 0.06; }
  .cselab .layer:focus-visible > .ground { stroke: var(--focus); stroke-width: 2; }`;

export function render({ model, el }) {
  const root = setUp(el, "CAEL explorer");
  const presets = model.get("presets");
  const layers = html("div", { class: "panel" });
  const numbers = html("div");
  const box = html("div", { class: "panels" }, layers, numbers);
  const texts = ["your choice", ...presets.map(([name]) => name)];
  const preset = menu("placement of the CAELs", texts, (index) => {
    if (index > 0) set(model, "cael", presets[index - 1][1]);
    else choosePreset();
  });
  function choosePreset() {
    preset.selectedIndex =
      1 + presets.findIndex(([, cael]) => String(cael) === String(model.get("cael")));
  }
  root.append(
    html("style", {}, LOOKS),
    bar(
      labelled("CAELs", preset, "the placements of JTCSE"),
      choice(model, "cross_stream", "cross stream", model.get("cross_streams")),
    ),
    box,
  );
  const tip = tooltip(root);

  function toggle(layer) {
    const cael = model.get("cael");
    const chosen = cael.includes(layer) ? cael.filter((one) => one !== layer) : [...cael, layer];
    const rising = chosen.sort((a, b) => a - b);
    set(model, "cael", rising);
  }

  function draw(width) {
    const [cael, stream] = [model.get("cael"), model.get("cross_stream")];
    const columns = width >= 760 ? 2 : 1;
    const panelWidth = Math.floor((width - 18 * (columns - 1)) / columns);
    const focused = layers.contains(document.activeElement) && document.activeElement.dataset.layer;
    choosePreset();
    box.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    const size = { width: Math.min(panelWidth, 620), depth: model.get("depth") };
    put(
      layers,
      html("h4", {}, `CAELs at ${cael.join(", ") || "no layer"}`),
      note("Click a layer, or press Space on it, to add or remove its CAEL."),
      diagram({ ...size, cael, stream, toggle }),
      lineLegend(stream),
    );
    if (focused) layers.querySelector(`[data-layer="${focused}"]`)?.focus();
    put(numbers, costs(model, panelWidth, tip), scores(model, panelWidth, tip));
  }

  return drawing(model, root, ["cael", "cross_stream"], draw).stop;
}

// What the lines of the diagram are.
function lineLegend(stream) {
  const entries = [
    { name: "states of tower I", colour: TOWERS[0] },
    { name: "states of tower II", colour: TOWERS[1] },
  ];
  const words = {
    parallel:
      "Solid lines: values of a CAEL. Dotted lines: its queries and keys, and the residual of the first CAEL. Between CAELs, the cross stream runs through ordinary layers.",
    last_only:
      "Solid lines: values of the CAEL. Dotted lines: its queries, keys and residual. Only the last CAEL is computed.",
    fused:
      "Each tower adds the context of the other tower's values to its own, with its own queries and keys.",
  };
  return html("div", {}, legend(entries), note(words[stream]));
}

// Tower I, its cross stream, the cross stream of tower II and tower II, from the first layer up.
function diagram({ width, depth, cael, stream, toggle }) {
  const fused = stream === "fused";
  const last = cael.at(-1) ?? 0;
  const first = stream === "parallel" ? (cael[0] ?? 0) : last;
  const runs = (layer) => !fused && cael.length > 0 && layer >= first && layer <= last;
  const crosses = (layer) => cael.includes(layer) && (fused || runs(layer));
  const places = fused ? [0.24, 0.24, 0.76, 0.76] : [0.125, 0.375, 0.625, 0.875];
  const [at, beside] = [[0, 3], [1, 2]].map((pair) => pair.map((n) => places[n] * width));
  const half = Math.min(fused ? 64 : 48, 0.1 * width * (fused ? 2 : 1));
  const height = HEAD + depth * PITCH + FOOT - (PITCH - BOX);
  const top = (layer) => HEAD + (depth - layer) * PITCH;
  const foot = (layer) => top(layer) + BOX;
  const lines = svg("g", { "pointer-events": "none" });
  const boxes = svg("g");

  const words = (x, y, content, kind) =>
    write(x, y, content, { class: kind, "pointer-events": "none" });
  const line = (d, colour, dash) =>
    lines.append(stroke(d, colour, 1.6, { "stroke-dasharray": dash }));
  const arrow = (x, from, to, colour, dash) => {
    line(`M${x} ${from}V${to + 5}`, colour, dash);
    lines.append(svg("path", { d: `M${x} ${to}l-4 7h8Z`, style: `fill:${colour}` }));
  };
  const frame = (x, layer, name, { colour, filled, dash }) => {
    const place = { x: x - half, y: top(layer), width: 2 * half, height: BOX, rx: 4 };
    const outline = { "stroke-width": filled ? 2 : 1.5, "stroke-dasharray": dash };
    const style = `stroke:${colour};fill:${colour};fill-opacity:${filled ? 0.18 : 0}`;
    return [
      svg("rect", { ...place, style: "fill:var(--paper)" }),
      svg("rect", { ...place, ...outline, style }),
      words(x, top(layer) + 17, name),
    ];
  };

  const cross = width < 350 ? "cross" : "cross stream";
  for (const side of [0, 1]) {
    const number = ["I", "II"][side];
    boxes.append(words(at[side], 15, `tower ${number}`, "soft"));
    if (!fused && cael.length) boxes.append(words(beside[side], 15, `${cross} ${number}`, "soft"));
    boxes.append(words(at[side], height - 4, "embeddings", "soft"));
    for (let layer = 1; layer <= depth; layer++) {
      const from = layer > 1 ? top(layer - 1) : height - 17;
      arrow(at[side], from, foot(layer), TOWERS[side]);
      if (runs(layer) && layer > first) arrow(beside[side], from, foot(layer), "var(--edge)");
      if (!crosses(layer)) continue;
      // the states before the layer: values for the other side, queries and keys for its own
      const sign = 1 - 2 * side;
      const level = foot(layer) + (side ? 20 : 13);
      const values = beside[1 - side] - 0.55 * half * sign;
      line(`M${at[side]} ${level}H${values}`, TOWERS[side]);
      arrow(values, level, foot(layer), TOWERS[side]);
      if (!fused) arrow(beside[side] - 0.55 * half * sign, level, foot(layer), TOWERS[side], "2 3");
    }
  }
  for (let layer = depth; layer >= 1; layer--) {
    const chosen = cael.includes(layer);
    const inside = [0, 1].flatMap((side) => {
      const name = fused && chosen ? `layer ${layer} + CAEL` : `layer ${layer}`;
      const tower = frame(at[side], layer, name, { colour: TOWERS[side], filled: fused && chosen });
      if (!runs(layer)) return tower;
      const looks = chosen
        ? { colour: TOWERS[side], filled: true }
        : { colour: "var(--edge)", dash: "4 3" };
      return [
        ...tower,
        ...frame(beside[side], layer, `${crosses(layer) ? "CAEL" : "layer"} ${layer}`, looks),
      ];
    });
    const ground = { x: 1, y: top(layer) - 3, width: width - 2, height: BOX + 6, rx: 5 };
    const control = {
      class: "layer",
      role: "button",
      tabindex: 0,
      "data-layer": layer,
      "aria-pressed": String(chosen),
      "aria-label": `CAEL at layer ${layer}`,
      onclick: () => toggle(layer),
      onkeydown: (event) => {
        if (event.key !== " " && event.key !== "Enter") return;
        event.preventDefault();
        toggle(layer);
      },
    };
    boxes.append(svg("g", control, svg("rect", { class: "ground", ...ground }), inside));
  }
  const label = "layers of both towers and of their cross streams";
  return picture(width, height, { role: "group", "aria-label": label }, lines, boxes);
}

// GMACs of a placement: `CaelExplorer.cost`.
export function gmacs([towers, first, further], stream, cael) {
  if (!cael.length) return towers;
  const layers = { parallel: cael.at(-1) - cael[0] + 1, last_only: 1, fused: cael.length };
  return towers + first + (layers[stream] - 1) * further;
}

function costs(model, width, tip) {
  const stream = model.get("cross_stream");
  const per = model.get("costs")[stream];
  const [towers, all] = [[], model.get("cael")].map((cael) => gmacs(per, stream, cael));
  const unit = `GMACs per sentence of ${model.get("length")} tokens`;
  const more = 100 * (all / towers - 1);
  const at = (cost, place) => [place, cost];
  return panel(
    "forward pass in training",
    note(`${short(towers)} GMACs for the towers, ${short(all)} with CAELs: ${short(more)} % more`, {
      role: "status",
    }),
    chart({
      width,
      height: 200,
      label: `cost of the towers and with CAELs, ${unit}`,
      x: { names: ["towers", "with CAELs"], domain: [-0.5, 1.5] },
      y: { label: "GMACs per sentence", zero: true },
      series: [{ name: unit, colour: TOWERS[0], kind: "bars", points: [towers, all].map(at) }],
      tip,
    }),
    note(`A sentence has ${model.get("length")} tokens. A GMAC is 10⁹ multiply-adds.`),
  );
}

function scores(model, width, tip) {
  const rows = model.get("scores");
  if (!rows.length) return [];
  const [cael, stream] = [model.get("cael"), model.get("cross_stream")];
  const point = (row) =>
    Object.assign([row.cael.length, row.score], {
      text: `${row.cross_stream}, CAELs at ${row.cael.join(", ") || "no layer"}: ${short(row.score)}`,
    });
  const isShown = (row) => String(row.cael) === String(cael) && row.cross_stream === stream;
  const present = { name: "the placement shown", colour: "var(--ink)", kind: "points", size: 8.5 };
  present.points = rows.filter(isShown).map(point);
  const streams = model.get("cross_streams").map((name, n) => {
    const points = rows.filter((row) => row.cross_stream === name).map(point);
    return { name, colour: PALETTE[n + 2], kind: "points", size: 6, points };
  });
  const series = [present, ...streams].filter(({ points }) => points.length);
  const symbol = (one) => (one === present ? "ring" : "point");
  const counts = rows.map((row) => row.cael.length);
  const domain = [Math.min(...counts) - 0.5, Math.max(...counts) + 0.5];
  return panel(
    "scores of trained twins",
    legend(series.map((one) => ({ ...one, symbol: symbol(one) }))),
    chart({
      width,
      height: 220,
      label: "score by number of CAELs",
      x: { label: "number of CAELs", whole: true, domain },
      y: { label: "Spearman × 100" },
      series,
      tip,
    }),
    present.points.length ? null : note("The placement shown has no score."),
  );
}
