// The attention inspector.
import { html, setUp, set, drawing, put, choice, slider, check, text, tooltip, legend, onTheme } from "./kit.js";
import { chart } from "./chart.js";
import { unpack, received, shares, energy, hidden } from "./reading.js";
import { thumbnails, maps, strip } from "./attention_maps.js";

const WEIGHTS = "attention weights";
const OTHERS = "weight × length of the other tower's value";
const CLASSES = [
  ["[CLS]", "var(--c0)"],
  ["[SEP]", "var(--c1)"],
  ["final punctuation", "var(--c4)"],
  ["other tokens", "var(--edge)"],
];
const MEASURES = {
  "attention received": { label: "share of attention", of: (reading, view) => received(reading, view.layer, view.head) },
  "length of the state": { label: "Euclidean length", of: (reading, view) => row(reading.states, reading, view.layer) },
  "share of the energy": {
    label: "share of ‖H‖²",
    of: (reading, view) => {
      const squares = row(reading.context, reading, view.layer);
      const total = squares.reduce((a, b) => a + b, 0);
      return squares.map((x) => x / total);
    },
  },
};
const row = (rows, reading, layer) => Array.from(rows.subarray((layer - 1) * reading.length, layer * reading.length));

export function render({ model, el }) {
  const root = setUp(el, "Attention inspector");
  const tip = tooltip(root);
  const known = new Map(); // readings and cosines by their key
  const asked = new Set();
  const keep = ({ key, found }) => known.set(JSON.stringify(key), key[0] === "read" ? unpack(found) : found);
  const takeInitial = () => model.get("readings").forEach(keep);
  takeInitial();

  // What the kernel or the page has of it; asks a kernel for what is missing.
  const find = (...key) => {
    const name = JSON.stringify(key);
    if (!known.has(name) && model.get("kernel") && !asked.has(name)) {
      asked.add(name);
      model.send({ ask: key });
    }
    return known.get(name);
  };
  const onMessage = (message) => {
    if (!message.key) return;
    keep(message);
    drawer.ask();
  };
  model.on("msg:custom", onMessage);
  model.on("change:readings", takeInitial);

  const models = model.get("models");
  const names = models.map(({ name }) => name);
  const { layers, heads } = models[0];
  const measure = html("select", { "aria-label": "by token", onchange: () => drawer.ask() }, Object.keys(MEASURES).map((name) => html("option", {}, name)));
  const state = { token: null }; // the token under the pointer or the focus: [row, column] or [token, token]
  const point = (token) => {
    if (String(state.token) === String(token)) return;
    state.token = token;
    marked.forEach((mark) => mark(token));
  };
  let marked = [];
  let overview = null; // drawn again only where another map is in it

  const boxes = Object.fromEntries(["overview", "maps", "strips", "tokens", "layers", "cosine"].map((name) => [name, html("div", { class: name })]));
  const status = html("p", { class: "note", role: "status" });
  const pairs = model.get("pairs");
  const pick = html(
    "select",
    {
      "aria-label": "pair of sentences",
      onchange: () => {
        const pair = pairs[pick.selectedIndex - 1];
        if (!pair) return;
        set(model, "sentence", pair[0]);
        set(model, "second", pair[1]);
      },
    },
    html("option", {}, "a pair of sentences …"),
    pairs.map(([a, b]) => html("option", {}, `${a}  |  ${b}`)),
  );
  const typed = [text(model, "sentence", "sentence 1"), text(model, "second", "sentence 2")];
  if (!model.get("kernel")) typed.forEach((label) => (label.querySelector("input").readOnly = true));
  root.append(
    html("div", { class: "bar" }, pairs.length ? html("label", {}, html("span", {}, "pick"), pick) : null, ...typed),
    html(
      "div",
      { class: "bar" },
      choice(model, "model_a", "model A", names),
      choice(model, "model_b", "model B", names),
      choice(model, "show", "show", [WEIGHTS, "weight × length of the value", OTHERS]),
      choice(model, "shown_sentence", "maps of", ["sentence 1", "sentence 2", "1 in A, 2 in B"]),
    ),
    html(
      "div",
      { class: "bar" },
      slider(model, "layer", "layer", { min: 1, max: layers, step: 1 }),
      slider(model, "head", "head", { min: 0, max: heads, step: 1 }, { format: (n) => (n ? String(n) : "mean") }),
      check(model, "hide_special", "hide [CLS] and [SEP]", "their rows and columns do not stretch the scale"),
      check(model, "hide_punctuation", "hide final punctuation", "its row and column do not stretch the scale"),
    ),
    status,
    boxes.cosine,
    boxes.overview,
    boxes.strips,
    boxes.maps,
    html("div", { class: "bar" }, html("label", {}, html("span", {}, "by token"), measure)),
    boxes.tokens,
    boxes.layers,
  );

  const draw = (width) => {
    const view = Object.fromEntries(["layer", "head", "show", "hide_special", "hide_punctuation"].map((name) => [name, model.get(name)]));
    const second = model.get("second").trim();
    const both = [model.get("sentence"), second || model.get("sentence")];
    const texts = { "sentence 1": [both[0], both[0]], "sentence 2": [both[1], both[1]], "1 in A, 2 in B": both }[model.get("shown_sentence")];
    const sides = ["model_a", "model_b"].map((side, n) => {
      const name = model.get(side);
      return { side: "AB"[n], name, cael: models[names.indexOf(name)].cael, reading: find("read", name, texts[n]), colour: `var(--c${n})` };
    });
    drawCosine(width, second ? both : null, sides);
    if (!sides.every((side) => side.reading)) {
      status.textContent = model.get("kernel") ? "reading the sentence …" : "this page has no kernel: pick one of its pairs of sentences";
      return;
    }
    status.textContent = remark(view, sides);
    const choose = (layer, head) => {
      set(model, "layer", layer);
      set(model, "head", head);
    };
    const drawnNow = [width, view.show, view.hide_special, view.hide_punctuation, ...sides.map((side) => side.reading)];
    if (!overview || drawnNow.some((part, n) => part !== overview.of[n])) {
      overview = { ...thumbnails(width, sides, view, choose, tip), of: drawnNow };
      put(boxes.overview, overview.element);
    }
    overview.mark(view);
    const drawn = maps(width, sides, view, { point, tip, dark: root });
    put(boxes.maps, drawn.element);
    const strips = [...new Set(texts)].map((words) => strip(sides[texts.indexOf(words)].reading, point));
    put(boxes.strips, strips.map((one) => one.element));
    marked = [...drawn.marks, ...strips.map((one) => one.mark)];
    if (state.token) marked.forEach((mark) => mark(state.token));
    drawTokens(width, sides, view);
    drawLayers(width, sides, view);
  };

  const drawTokens = (width, sides, view) => {
    const { label, of } = MEASURES[measure.value];
    const groups = sides[0].reading.tokens.join(" ") === sides[1].reading.tokens.join(" ") ? [sides] : sides.map((side) => [side]);
    const figures = groups.map((group) => {
      const { tokens } = group[0].reading;
      const out = group.map(({ reading }) => hidden(reading, view));
      const series = group.map((side, n) => ({
        name: `${side.side}: ${side.name}`,
        colour: side.colour,
        kind: "bars",
        points: of(side.reading, view).flatMap((value, place) => (out[n][place] ? [] : [[place, value]])),
      }));
      const wide = Math.max(width, 60 + 15 * tokens.length);
      const where = measure.value === "attention received" && view.head ? `layer ${view.layer}, head ${view.head}` : `layer ${view.layer}`;
      return html(
        "div",
        {},
        html("h4", {}, `${measure.value}, ${where}`),
        legend(series.map((one) => ({ ...one, symbol: "dot" }))),
        html("div", { class: "scroll" }, chart({
          width: wide, height: 260, tip, series, label: `${measure.value} by token`,
          x: { names: tokens, domain: [-0.6, tokens.length - 0.4], label: "token" }, y: { label, zero: true },
        })),
      );
    });
    put(boxes.tokens, figures);
  };

  const drawLayers = (width, sides, view) => {
    const half = width > 700 ? (width - 18) / 2 : width;
    const depth = Array.from({ length: layers }, (_, n) => n + 1);
    const x = { label: "layer", whole: true, domain: [0.7, layers + 0.3] };
    const lines = sides.flatMap(({ side, reading }, n) =>
      CLASSES.map(([name, colour], number) => ({
        name: `${side}: ${name}`, colour, dash: n ? "6 4" : "", kind: "line",
        points: depth.map((layer) => [layer, shares(reading, layer)[number]]),
      })),
    );
    const energies = sides.map(({ side, name, reading, colour }, n) => ({
      name: `${side}: ${name}`, colour, dash: n ? "6 4" : "", kind: "line",
      points: depth.map((layer) => [layer, energy(reading, layer)]),
    }));
    const rules = [{ x: view.layer }];
    put(boxes.layers, html("div", { class: "panels" },
      html("div", { class: "panel" },
        html("h4", {}, "attention received by layer, mean of the heads (A solid, B dashed)"),
        legend(CLASSES.map(([name, colour]) => ({ name, colour }))),
        chart({ width: half, label: "share of attention by token class and layer", tip, series: lines, rules, x, y: { label: "share", domain: [0, 1] } })),
      html("div", { class: "panel" },
        html("h4", {}, "energy of [CLS] by layer"),
        legend(energies),
        chart({ width: half, label: "energy of [CLS] by layer", tip, series: energies, rules, x, y: { label: "‖h_cls‖ / ‖H‖", zero: true } })),
    ));
  };

  const drawCosine = (width, both, sides) => {
    if (!both) return put(boxes.cosine);
    const found = sides.map((side) => ({ ...side, compared: find("compare", side.name, ...both) }));
    const all = found.flatMap(({ compared }) => compared?.falls.flat() ?? []);
    const largest = Math.max(0.01, ...all.map(Math.abs));
    const lines = found.map(({ side, name, reading, compared }) => {
      if (!compared) return html("p", { class: "note" }, `${side}: …`);
      const words = both.map((words) => find("read", name, words)?.tokens);
      if (!words.every(Boolean)) return html("p", { class: "note" }, `${side}: …`);
      return html("div", { class: "panel" },
        html("h4", {}, `${side}: ${name}: cosine ${compared.cosine.toFixed(3)}`),
        words.map((tokens, n) => html("div", { class: "chips", role: "list", "aria-label": `sentence ${n + 1}` },
          tokens.map((token, place) => chip(token, compared.falls[n][place], largest)))),
      );
    });
    put(boxes.cosine,
      html("p", { class: "note" }, "Under each token: by how much the cosine falls where nothing can read that token. Blue: it makes the two sentences more alike; orange: less."),
      html("div", { class: "panels" }, lines));
  };

  measure.value = "attention received";
  const drawer = drawing(model, root, ["sentence", "second", "model_a", "model_b", "layer", "head", "show", "shown_sentence", "hide_special", "hide_punctuation", "readings"], draw);
  const stopTheme = onTheme(drawer.ask);
  return () => {
    drawer.stop();
    stopTheme();
    model.off("msg:custom", onMessage);
  };
}

function chip(token, fall, largest) {
  if (fall === null) return html("span", { class: "chip", role: "listitem" }, token);
  const opacity = 0.12 + 0.88 * Math.min(1, Math.abs(fall) / largest);
  const bar = `height:5px;opacity:${opacity};background:var(--c${fall < 0 ? 1 : 0})`;
  const number = Math.abs(fall) < 0.005 ? "0.00" : `${fall < 0 ? "−" : "+"}${Math.abs(fall).toFixed(2)}`;
  return html("span", { class: "chip", role: "listitem" }, token, html("i", { style: bar }), html("small", {}, number));
}

// What the maps show that the reader may not expect.
function remark(view, sides) {
  if (view.show !== OTHERS) return "";
  const without = sides.filter(({ cael }) => !cael.includes(view.layer));
  return without
    .map(({ side, cael }) => `${side}: no cross-attention in layer ${view.layer} (CAELs: ${cael.join(", ") || "none"}); its own values are shown.`)
    .join(" ");
}
