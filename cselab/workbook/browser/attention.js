// The attention inspector.
import {
  bar,
  check,
  choice,
  drawing,
  html,
  labelled,
  legend,
  menu,
  note,
  onTheme,
  panel,
  put,
  set,
  setUp,
  slider,
  text,
  tooltip,
} from "./kit.js";
import { chart } from "./chart.js";
import { unpack, received, shares, ofLayer, energy, hidden } from "./reading.js";
import { haveSameTokens, maps, strip, thumbnails } from "./attention_maps.js";

const CHOSEN = ["model_a", "model_b", "sentence", "second", "shown_sentence", "readings"];
const VIEW = ["layer", "head", "show", "hide_special", "hide_punctuation"];
const COLOURS = ["var(--c0)", "var(--c1)", "var(--c4)", "var(--edge)"]; // of the token classes
const MEASURES = {
  "attention received": {
    label: "share of attention",
    of: (reading, view) => received(reading, view.layer, view.head),
  },
  "length of the state": {
    label: "Euclidean length",
    of: (reading, view) => ofLayer(reading.states, reading, view.layer),
  },
  "share of the context's energy": {
    label: "share of all tokens' ‖h‖²",
    of: (reading, view) => {
      const squares = ofLayer(reading.context, reading, view.layer).map((x) => x * x);
      const total = squares.reduce((a, b) => a + b, 0);
      return squares.map((x) => x / total);
    },
  },
};

export function render({ model, el }) {
  const root = setUp(el, "Attention inspector");
  const tip = tooltip(root);
  const known = new Map(); // readings and cosines by their key
  const asked = new Set();
  const keep = ({ key, found }) =>
    known.set(JSON.stringify(key), key[0] === "read" ? unpack(found) : found);
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
    if (message.key) keep(message);
    if (message.failed) {
      // asked again with the next choice
      asked.delete(JSON.stringify(message.failed.ask));
      status.textContent = `The kernel could not read it: ${message.error}`;
    } else drawer.ask();
  };
  model.on("msg:custom", onMessage);
  model.on("change:readings", takeInitial);

  const [names, layers] = [model.get("names"), model.get("depth")];
  const [first, last] = model.get("special");
  const classes = [first, last, "final punctuation", "other tokens"].map((name, n) => [
    name,
    COLOURS[n],
  ]);
  const measure = menu("by token", Object.keys(MEASURES), () => drawer.ask());
  const state = { token: null }; // the token under the pointer or the focus: [row, column] or [token, token]
  const point = (token) => {
    if (String(state.token) === String(token)) return;
    state.token = token;
    marked.forEach((mark) => mark(token));
  };
  let marked = [];
  let overview = null; // drawn again only where another map is in it

  const parts = ["overview", "maps", "strips", "tokens", "layers", "cosine"];
  const boxes = Object.fromEntries(parts.map((name) => [name, html("div", { class: name })]));
  const status = note("", { role: "status" });
  const pairs = [[model.get("sentence"), model.get("second")], ...model.get("pairs")];
  const texts = pairs.map(([a, b]) => (b ? `${a}  |  ${b}` : a));
  const pick = menu("pair of sentences", texts, (index) => {
    set(model, "sentence", pairs[index][0]);
    set(model, "second", pairs[index][1]);
  });
  const offline = note(
    "This page has no kernel, so nothing can be typed: pick one of its sentences.",
    { hidden: model.get("kernel") },
  );
  const hide = (name, what) => check(model, name, `hide ${what}`, "out of the colour scale, too");
  root.append(
    bar(
      pairs.length > 1 ? labelled("pick", pick) : null,
      text(model, "sentence", "sentence 1"),
      text(model, "second", "sentence 2"),
    ),
    bar(
      choice(model, "model_a", "model A", names),
      choice(model, "model_b", "model B", names),
      choice(model, "show", "show", model.get("quantities")),
      choice(model, "shown_sentence", "maps of", [
        ["sentence 1", "first"],
        ["sentence 2", "second"],
        ["1 in A, 2 in B", "both"],
      ]),
    ),
    bar(
      slider(model, "layer", "layer", { min: 1, max: layers }),
      slider(model, "head", "head", { max: model.get("heads") }, { format: (n) => n || "mean" }),
      hide("hide_special", `${first} and ${last}`),
      hide("hide_punctuation", "final punctuation"),
    ),
    offline,
    status,
    boxes.cosine,
    boxes.overview,
    boxes.strips,
    boxes.maps,
    bar(labelled("by token", measure)),
    boxes.tokens,
    boxes.layers,
  );

  const draw = (width) => {
    const view = Object.fromEntries(VIEW.map((name) => [name, model.get(name)]));
    const sentence = model.get("sentence").trim();
    const second = model.get("second").trim();
    const both = [sentence, second || sentence];
    const shown = { first: [0, 0], second: [1, 1], both: [0, 1] }[model.get("shown_sentence")];
    const texts = shown.map((n) => both[n]);
    const chosen = ["model_a", "model_b"].map((side, n) => {
      const name = model.get(side);
      const [text, reading] = [texts[n], find("read", name, texts[n])];
      const looks = { side: "AB"[n], name, colour: `var(--c${n})`, dash: n ? "6 4" : "" };
      return { ...looks, ...model.get("models")[name], text, reading };
    });
    const alike = chosen[0].name === chosen[1].name && texts[0] === texts[1];
    const sides = alike ? chosen.slice(0, 1) : chosen;
    drawCosine(width, second ? both : null, sides);
    if (!sides.every((side) => side.reading)) {
      status.textContent = model.get("kernel")
        ? "reading the sentence …"
        : "this page has no kernel: pick one of its pairs of sentences";
      return;
    }
    status.textContent = remark(view, sides);
    const choose = (layer, head) => {
      set(model, "layer", layer);
      set(model, "head", head);
      if (width < 700) boxes.maps.scrollIntoView({ block: "nearest" }); // it is far below
    };
    const readings = sides.map((side) => side.reading);
    const drawnNow = [width, view.show, view.hide_special, view.hide_punctuation, ...readings];
    if (!overview || drawnNow.some((part, n) => part !== overview.of[n])) {
      overview = { ...thumbnails(width, sides, view, choose, tip), of: drawnNow };
      put(boxes.overview, overview.element);
    }
    overview.mark(view);
    const drawn = maps(width, sides, view, { point, tip, dark: root });
    put(boxes.maps, drawn.element);
    const reading = (words) => sides.find((side) => side.text === words).reading;
    const strips = [...new Set(texts)].map((words) => strip(reading(words), point));
    put(boxes.strips, ...strips.map((one) => one.element));
    marked = [...drawn.marks, ...strips.map((one) => one.mark)];
    if (state.token) marked.forEach((mark) => mark(state.token));
    drawTokens(width, sides, view);
    drawLayers(width, sides, view);
  };

  const drawTokens = (width, sides, view) => {
    const { label, of } = MEASURES[measure.value];
    const groups = haveSameTokens(sides) ? [sides] : sides.map((side) => [side]);
    const figures = groups.map((group) => {
      const { tokens } = group[0].reading;
      const out = group.map(({ reading }) => hidden(reading, view));
      const series = group.map(({ side, name, colour, reading }, n) => {
        const values = of(reading, view).map((value, place) => [place, value]);
        const points = values.filter(([place]) => !out[n][place]);
        return { name: `${side}: ${name}`, colour, kind: "bars", points };
      });
      const isOfHead = measure.value === "attention received" && view.head;
      const where = `layer ${view.layer}${isOfHead ? `, head ${view.head}` : ""}`;
      const bars = chart({
        width: Math.max(width, 60 + 15 * tokens.length),
        height: 260,
        tip,
        series,
        label: `${measure.value} by token`,
        x: { names: tokens, domain: [-0.6, tokens.length - 0.4], label: "token" },
        y: { label, zero: true },
      });
      const key = legend(series.map((one) => ({ ...one, symbol: "point" })));
      return panel(`${measure.value}, ${where}`, key, html("div", { class: "scroll" }, bars));
    });
    put(boxes.tokens, figures);
  };

  const drawLayers = (width, sides, view) => {
    const half = width > 700 ? (width - 18) / 2 : width;
    const depth = Array.from({ length: layers }, (_, n) => n + 1);
    const x = { label: "layer", whole: true, domain: [0.7, layers + 0.3] };
    const line = ({ side, dash }, name, colour, of) => ({
      name: `${side}: ${name}`,
      colour,
      dash,
      kind: "line",
      points: depth.map((layer) => [layer, of(layer)]),
    });
    const lines = sides.flatMap((side) =>
      classes.map(([name, colour], n) =>
        line(side, name, colour, (layer) => shares(side.reading, layer)[n]),
      ),
    );
    const energies = sides.map((side) =>
      line(side, side.name, side.colour, (layer) => energy(side.reading, layer)),
    );
    const common = { width: half, tip, rules: [{ x: view.layer }], x };
    const byLayer = (title, key, series, y) =>
      panel(title, legend(key), chart({ ...common, label: title, series, y }));
    const caption = "attention received by layer, mean of the heads (A solid, B dashed)";
    const key = classes.map(([name, colour]) => ({ name, colour }));
    const unit = "‖h_cls‖ / ‖H of the others‖";
    const panels = [
      byLayer(caption, key, lines, { label: "share", domain: [0, 1] }),
      byLayer(`energy of ${first} by layer`, energies, energies, { label: unit, zero: true }),
    ];
    put(boxes.layers, html("div", { class: "panels" }, panels));
  };

  const drawCosine = (width, both, sides) => {
    if (!both) return put(boxes.cosine);
    const encoders = [...new Map(sides.map((side) => [side.encoder, side])).values()];
    const compared = encoders.map(({ encoder }) => find("compare", encoder, ...both));
    const falls = compared.flatMap((one) => one?.falls?.flat() ?? []);
    const largest = Math.max(0.01, ...falls.map(Math.abs));
    const lines = encoders.map(({ encoder, name }, n) => {
      const words = both.map((words) => find("read", name, words)?.tokens);
      const { error, falls, cosine } = compared[n] ?? {};
      if (error || !falls || !words.every(Boolean)) return note(`${encoder}: ${error ?? "…"}`);
      const chips = words.map((tokens, n) => {
        const list = { class: "chips", role: "list", "aria-label": `sentence ${n + 1}` };
        const parts = tokens.map((token, place) => chip(token, falls[n][place], largest));
        return html("div", list, parts);
      });
      return panel(`${encoder}: cosine ${cosine.toFixed(3)}`, ...chips);
    });
    const words =
      "Under each token: by how much the cosine falls where nothing can read that token. " +
      "Blue: it makes the two sentences more alike; orange: less.";
    put(boxes.cosine, note(words), html("div", { class: "panels" }, lines));
  };

  measure.value = "attention received";
  const drawer = drawing(model, root, [...CHOSEN, ...VIEW], draw);
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
  const number =
    Math.abs(fall) < 0.005 ? "0.00" : `${fall < 0 ? "−" : "+"}${Math.abs(fall).toFixed(2)}`;
  const parts = [html("i", { style: bar }), html("small", {}, number)];
  return html("span", { class: "chip", role: "listitem" }, token, ...parts);
}

// What the maps show that the reader may not expect.
function remark(view, sides) {
  if (view.show !== "other lengths") return "";
  const without = sides.filter(({ cael }) => !cael.includes(view.layer));
  const words = ({ side, cael }) =>
    `${side}: no cross-attention in layer ${view.layer} (CAELs: ${cael.join(", ") || "none"}); ` +
    "its own values are shown.";
  return without.map(words).join(" ");
}
