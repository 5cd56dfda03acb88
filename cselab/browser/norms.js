// Norm explorer: lengths of sentence vectors, with and without the last LayerNorms.
import { check, choice, drawing, html, legend, PALETTE, put, setUp, short, slider, tooltip } from "./kit.js";
import { chart } from "./chart.js";

const VECTORS = [
  ["cls", "L", ": [CLS] of the last layer"],
  ["pooled", "P", ": the pooler's output"],
];

export function render({ model, el }) {
  const root = setUp(el, "norm explorer");
  const [names, depth] = [model.get("names"), model.get("depth")];
  const box = html("div", { class: "panels" });
  const key = html("div");
  const asked = new Set();
  root.append(
    html(
      "div",
      { class: "bar" },
      choice(model, "model_a", "model A", names),
      choice(model, "model_b", "model B", names),
      slider(model, "removed", "LayerNorms removed from the last layers", { min: 0, max: depth, step: 1 }, {
        format: (removed) => `${removed} of ${depth}`,
        title: "from a copy, without further training",
      }),
      check(model, "from_zero", "axis from 0", "Off: the lengths fill their axis, so that a small spread is seen"),
    ),
    key,
    box,
  );
  const tip = tooltip(root);

  // The models that are known; the kernel is asked for the others.
  function known() {
    const norms = model.get("norms");
    const models = [...new Set([model.get("model_a"), model.get("model_b")])];
    for (const name of models) {
      if (name in norms || asked.has(name)) continue;
      asked.add(name);
      model.send({ model: name });
    }
    return models.map((name, n) => ({
      name,
      label: `${"AB"[n]}: ${name}`,
      side: "AB"[n],
      colour: PALETTE[n],
      norms: norms[name],
    }));
  }

  function draw(width) {
    const removed = model.get("removed");
    const models = known();
    const columns = width >= 1500 ? 4 : width >= 660 ? 2 : 1;
    const panelWidth = Math.floor((width - 18 * (columns - 1)) / columns);
    box.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    put(
      key,
      legend(models.map(({ label, colour }) => ({ name: label, colour, symbol: "point" }))),
      models.filter((one) => !one.norms).map(({ name }) => html("p", { class: "note", role: "status" }, `measuring ${name} …`)),
    );
    const ready = models.filter((one) => one.norms);
    const shown = VECTORS.filter(([vector]) => ready.some((one) => one.norms[vector]));
    const lengths = shown.map(([vector, letter, words]) => {
      const having = ready.filter((one) => one.norms[vector]);
      const of = (one) => one.norms[vector].lengths[removed];
      const series = having.map((one, n) => ({
        name: one.label,
        colour: one.colour,
        kind: "violin",
        points: of(one).map((length) => [n, length]),
      }));
      const spreads = having.map((one) => `${one.side}: mean ${short(mean(of(one)))}, sd / mean ${percent(one.norms[vector].spread[removed])}`);
      return panel(
        [html("span", {}, "h", power(letter), words)],
        html("p", { class: "note" }, spreads.join("; ")),
        chart({
          width: panelWidth,
          label: `lengths of h^${letter}; ${spreads.join("; ")}`,
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
              points: one.norms[vector].spread.map((spread, r) => [r, 100 * spread]),
            })),
          tip,
        }),
      ),
    );
    put(box, lengths, spreads);
  }

  return drawing(model, root, ["model_a", "model_b", "removed", "from_zero", "norms"], draw).stop;
}

const power = (letter) => html("sup", { style: "line-height:0" }, letter);
const panel = (title, ...content) => html("div", { class: "panel" }, html("h4", {}, title), content);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const percent = (share) => `${short(100 * share)} %`;
