// The attention inspector.
import {
  html,
  setUp,
  set,
  drawing,
  put,
  panel,
  choice,
  slider,
  check,
  text,
  tooltip,
  legend,
  onTheme,
} from "./kit.js";
import { chart } from "./chart.js";
import { unpack, received, shares, ofLayer, energy, hidden } from "./reading.js";
import { thumbnails, maps, strip } from "./attention_maps.js";

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

  const models = model.get("models");
  const names = models.map(({ name }) => name);
  const { layers, heads } = models[0];
  const [first, last] = model.get("special");
  const classes = [first, last, "final punctuation", "other tokens"].map((name, n) => [
    name,
    COLOURS[n],
  ]);
  const measure = html(
    "select",
    { "aria-label": "by token", onchange: () => drawer.ask() },
    Object.keys(MEASURES).map((name) => html("option", {}, name)),
  );
  const state = { token: null }; // the token under the pointer or the focus: [row, column] or [token, token]
  const point = (token) => {
    if (String(state.token) === String(token)) return;
    state.token = token;
    marked.forEach((mark) => mark(token));
  };
  let marked = [];
  let overview = null; // drawn again only where another map is in it

  const boxes = Object.fromEntries(
    ["overview", "maps", "strips", "tokens", "layers", "cosine"].map((name) => [
      name,
      html("div", { class: name }),
    ]),
  );
  const status = html("p", { class: "note", role: "status" });
  const pairs = [[model.get("sentence"), model.get("second")], ...model.get("pairs")];
  const pick = html(
    "select",
    {
      "aria-label": "pair of sentences",
      onchange: () => {
        const [one, other] = pairs[pick.selectedIndex];
        set(model, "sentence", one);
        set(model, "second", other);
      },
    },
    pairs.map(([a, b]) => html("option", {}, b ? `${a}  |  ${b}` : a)),
  );
  const typed = [text(model, "sentence", "sentence 1"), text(model, "second", "sentence 2")];
  const offline = html(
    "p",
    { class: "note", hidden: model.get("kernel") },
    "This page has no kernel, so nothing can be typed: pick one of its sentences.",
  );
  root.append(
    html(
      "div",
      { class: "bar" },
      pairs.length > 1 ? html("label", {}, html("span", {}, "pick"), pick) : null,
      ...typed,
    ),
    html(
      "div",
      { class: "bar" },
      choice(model, "model_a", "model A", names),
      choice(model, "model_b", "model B", names),
      choice(model, "show", "show", model.get("quantities")),
      choice(model, "shown_sentence", "maps of", [
        ["sentence 1", "first"],
        ["sentence 2", "second"],
        ["1 in A, 2 in B", "both"],
      ]),
    ),
    html(
      "div",
      { class: "bar" },
      slider(model, "layer", "layer", { min: 1, max: layers, step: 1 }),
      slider(
        model,
        "head",
        "head",
        { min: 0, max: heads, step: 1 },
        { format: (n) => (n ? String(n) : "mean") },
      ),
      check(
        model,
        "hide_special",
        `hide ${first} and ${last}`,
        "their rows and columns do not stretch the scale",
      ),
      check(
        model,
        "hide_punctuation",
        "hide final punctuation",
        "its row and column do not stretch the scale",
      ),
    ),
    offline,
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
    const view = Object.fromEntries(
      ["layer", "head", "show", "hide_special", "hide_punctuation"].map((name) => [
        name,
        model.get(name),
      ]),
    );
    const sentence = model.get("sentence").trim();
    const second = model.get("second").trim();
    const both = [sentence, second || sentence];
    const shown = { first: [0, 0], second: [1, 1], both: [0, 1] }[model.get("shown_sentence")];
    const texts = shown.map((n) => both[n]);
    const chosen = ["model_a", "model_b"].map((side, n) => {
      const { name, encoder, cael } = models[names.indexOf(model.get(side))];
      return {
        side: "AB"[n],
        name,
        encoder,
        cael,
        text: texts[n],
        reading: find("read", name, texts[n]),
        colour: `var(--c${n})`,
      };
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
    const drawnNow = [
      width,
      view.show,
      view.hide_special,
      view.hide_punctuation,
      ...sides.map((side) => side.reading),
    ];
    if (!overview || drawnNow.some((part, n) => part !== overview.of[n])) {
      overview = { ...thumbnails(width, sides, view, choose, tip), of: drawnNow };
      put(boxes.overview, overview.element);
    }
    overview.mark(view);
    const drawn = maps(width, sides, view, { point, tip, dark: root });
    put(boxes.maps, drawn.element);
    const read = [...new Set(texts)].map(
      (words) => sides.find((side) => side.text === words).reading,
    );
    const strips = read.map((reading) => strip(reading, point));
    put(
      boxes.strips,
      strips.map((one) => one.element),
    );
    marked = [...drawn.marks, ...strips.map((one) => one.mark)];
    if (state.token) marked.forEach((mark) => mark(state.token));
    drawTokens(width, sides, view);
    drawLayers(width, sides, view);
  };

  const drawTokens = (width, sides, view) => {
    const { label, of } = MEASURES[measure.value];
    const together = sides.every(
      ({ reading }) => reading.tokens.join(" ") === sides[0].reading.tokens.join(" "),
    );
    const groups = together ? [sides] : sides.map((side) => [side]);
    const figures = groups.map((group) => {
      const { tokens } = group[0].reading;
      const out = group.map(({ reading }) => hidden(reading, view));
      const series = group.map((side, n) => ({
        name: `${side.side}: ${side.name}`,
        colour: side.colour,
        kind: "bars",
        points: of(side.reading, view).flatMap((value, place) =>
          out[n][place] ? [] : [[place, value]],
        ),
      }));
      const wide = Math.max(width, 60 + 15 * tokens.length);
      const where =
        measure.value === "attention received" && view.head
          ? `layer ${view.layer}, head ${view.head}`
          : `layer ${view.layer}`;
      return html(
        "div",
        {},
        html("h4", {}, `${measure.value}, ${where}`),
        legend(series.map((one) => ({ ...one, symbol: "point" }))),
        html(
          "div",
          { class: "scroll" },
          chart({
            width: wide,
            height: 260,
            tip,
            series,
            label: `${measure.value} by token`,
            x: { names: tokens, domain: [-0.6, tokens.length - 0.4], label: "token" },
            y: { label, zero: true },
          }),
        ),
      );
    });
    put(boxes.tokens, figures);
  };

  const drawLayers = (width, sides, view) => {
    const half = width > 700 ? (width - 18) / 2 : width;
    const depth = Array.from({ length: layers }, (_, n) => n + 1);
    const x = { label: "layer", whole: true, domain: [0.7, layers + 0.3] };
    const lines = sides.flatMap(({ side, reading }, n) =>
      classes.map(([name, colour], number) => ({
        name: `${side}: ${name}`,
        colour,
        dash: n ? "6 4" : "",
        kind: "line",
        points: depth.map((layer) => [layer, shares(reading, layer)[number]]),
      })),
    );
    const energies = sides.map(({ side, name, reading, colour }, n) => ({
      name: `${side}: ${name}`,
      colour,
      dash: n ? "6 4" : "",
      kind: "line",
      points: depth.map((layer) => [layer, energy(reading, layer)]),
    }));
    const rules = [{ x: view.layer }];
    put(
      boxes.layers,
      html(
        "div",
        { class: "panels" },
        panel(
          "attention received by layer, mean of the heads (A solid, B dashed)",
          legend(classes.map(([name, colour]) => ({ name, colour }))),
          chart({
            width: half,
            label: "share of attention by token class and layer",
            tip,
            series: lines,
            rules,
            x,
            y: { label: "share", domain: [0, 1] },
          }),
        ),
        panel(
          `energy of ${first} by layer`,
          legend(energies),
          chart({
            width: half,
            label: `energy of ${first} by layer`,
            tip,
            series: energies,
            rules,
            x,
            y: { label: "‖h_cls‖ / ‖H of the others‖", zero: true },
          }),
        ),
      ),
    );
  };

  const drawCosine = (width, both, sides) => {
    if (!both) return put(boxes.cosine);
    const encoders = [...new Map(sides.map((side) => [side.encoder, side])).values()];
    const found = encoders.map((side) => ({
      ...side,
      compared: find("compare", side.encoder, ...both),
    }));
    const falls = found.flatMap(({ compared }) => compared?.falls?.flat() ?? []);
    const largest = Math.max(0.01, ...falls.map(Math.abs));
    const lines = found.map(({ encoder, name, compared }) => {
      const words = both.map((words) => find("read", name, words)?.tokens);
      if (compared?.error) return html("p", { class: "note" }, `${encoder}: ${compared.error}`);
      if (!compared || !words.every(Boolean)) return html("p", { class: "note" }, `${encoder}: …`);
      const chips = words.map((tokens, n) =>
        html(
          "div",
          { class: "chips", role: "list", "aria-label": `sentence ${n + 1}` },
          tokens.map((token, place) => chip(token, compared.falls[n][place], largest)),
        ),
      );
      return panel(`${encoder}: cosine ${compared.cosine.toFixed(3)}`, ...chips);
    });
    put(
      boxes.cosine,
      html(
        "p",
        { class: "note" },
        "Under each token: by how much the cosine falls where nothing can read that token. Blue: it makes the two sentences more alike; orange: less.",
      ),
      html("div", { class: "panels" }, lines),
    );
  };

  measure.value = "attention received";
  const drawer = drawing(
    model,
    root,
    [
      "sentence",
      "second",
      "model_a",
      "model_b",
      "layer",
      "head",
      "show",
      "shown_sentence",
      "hide_special",
      "hide_punctuation",
      "readings",
    ],
    draw,
  );
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
  return html(
    "span",
    { class: "chip", role: "listitem" },
    token,
    html("i", { style: bar }),
    html("small", {}, number),
  );
}

// What the maps show that the reader may not expect.
function remark(view, sides) {
  if (view.show !== "other lengths") return "";
  const without = sides.filter(({ cael }) => !cael.includes(view.layer));
  return without
    .map(
      ({ side, cael }) =>
        `${side}: no cross-attention in layer ${view.layer} (CAELs: ${cael.join(", ") || "none"}); its own values are shown.`,
    )
    .join(" ");
}
