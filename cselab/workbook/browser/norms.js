// Norm explorer: lengths of sentence vectors, with and without the last LayerNorms.
import {
  bar,
  check,
  choice,
  drawing,
  html,
  legend,
  note,
  PALETTE,
  panel,
  put,
  setUp,
  short,
  slider,
  tooltip,
} from "./kit.js";
import { chart } from "./chart.js";

const VECTORS = [
  ["cls", "L", ": [CLS] of the last layer"],
  ["pooled", "P", ": the pooler's output"],
];

const CHOICES = ["model_a", "model_b"];

export function render({ model, el }) {
  const root = setUp(el, "Norm explorer");
  const [names, depth] = [model.get("names"), model.get("depth")];
  const box = html("div", { class: "panels" });
  const key = html("div");
  const removal = {
    format: (removed) => `${removed} of ${depth}`,
    title: "from a copy, without further training",
  };
  const asked = new Set();
  const failed = new Map(); // errors, by model
  root.append(
    bar(
      choice(model, "model_a", "model A", names),
      choice(model, "model_b", "model B", names),
      slider(model, "removed", "LayerNorms removed from the last layers", { max: depth }, removal),
      check(model, "from_zero", "axis from 0", "Off: a small spread fills the axis of the lengths"),
    ),
    key,
    box,
  );
  const tip = tooltip(root);

  // What could not be measured is asked for again at the next choice of a model.
  const hear = ({ failed: { model: name }, error }) => {
    failed.set(name, error);
    drawn.ask();
  };
  const retry = () => {
    for (const name of failed.keys()) asked.delete(name);
    failed.clear();
  };
  model.on("msg:custom", hear);
  for (const name of CHOICES) model.on(`change:${name}`, retry);

  // The models that are chosen, with their norms; the kernel is asked for those that are missing.
  function chosen() {
    const norms = model.get("norms");
    const models = [...new Set(CHOICES.map((name) => model.get(name)))];
    for (const name of models) {
      if (name in norms || asked.has(name)) continue;
      asked.add(name);
      model.send({ model: name });
    }
    return models.map((name, n) => {
      const [side, colour] = ["AB"[n], PALETTE[n]];
      return { name, side, colour, label: `${side}: ${name}`, norms: norms[name] };
    });
  }

  function lacking(name) {
    if (!failed.has(name)) return note(`measuring ${name} …`, { role: "status" });
    const words = `${name} could not be measured: ${failed.get(name)}. It is tried again when you choose a model.`;
    return note(words, { class: "note warning", role: "status" });
  }

  function draw(width) {
    const removed = model.get("removed");
    const models = chosen();
    const columns = width >= 1500 ? 4 : width >= 660 ? 2 : 1;
    const panelWidth = Math.floor((width - 18 * (columns - 1)) / columns);
    box.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    put(
      key,
      legend(models.map(({ label, colour }) => ({ name: label, colour, symbol: "point" }))),
      models.filter((one) => !one.norms).map(({ name }) => lacking(name)),
    );
    const ready = models.filter((one) => one.norms);
    const shown = VECTORS.filter(([vector]) => ready.some((one) => one.norms[vector]));
    const lengths = shown.map(([vector, letter, words]) => {
      const having = ready.filter((one) => one.norms[vector]);
      const of = (one) => one.norms[vector].lengths[removed].filter((length) => length !== null);
      const series = having.map((one, n) => ({
        name: one.label,
        colour: one.colour,
        kind: "violin",
        points: of(one).map((length) => [n, length]),
      }));
      const spreads = having.map(
        (one) =>
          `${one.side}: mean ${short(mean(of(one)))}, sd / mean ${percent(one.norms[vector].spread[removed])}`,
      );
      return panel(
        [html("span", {}, "h", power(letter), words)],
        note(spreads.join("; ")),
        chart({
          width: panelWidth,
          label: `lengths of h^${letter}`,
          x: { names: having.map((one) => one.side), domain: [-0.5, having.length - 0.5] },
          y: { label: "length (Euclidean norm)", zero: model.get("from_zero") },
          series,
          tip,
        }),
      );
    });
    const spreads = shown.map(([vector, letter]) =>
      panel(
        ["spread of h", power(letter), ": sd / mean"],
        chart({
          width: panelWidth,
          label: `sd / mean of the lengths of h^${letter}, by number of layers without LayerNorm`,
          x: { label: "last layers without LayerNorm", domain: [-0.2, depth + 0.2], whole: true },
          y: { label: "sd / mean, %", zero: true },
          rules: [{ x: removed }],
          series: ready
            .filter((one) => one.norms[vector])
            .map((one, n) => ({
              name: one.label,
              colour: one.colour,
              dash: n ? "7 4" : "",
              kind: "line",
              points: one.norms[vector].spread.map((x, r) => [r, x === null ? NaN : 100 * x]),
            })),
          tip,
        }),
      ),
    );
    put(box, lengths, spreads);
  }

  const drawn = drawing(model, root, [...CHOICES, "removed", "from_zero", "norms"], draw);
  return () => {
    drawn.stop();
    model.off("msg:custom", hear);
    for (const name of CHOICES) model.off(`change:${name}`, retry);
  };
}

const power = (letter) => html("sup", { style: "line-height:0" }, letter);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const percent = (share) => (share === null ? "–" : `${short(100 * share)} %`);
