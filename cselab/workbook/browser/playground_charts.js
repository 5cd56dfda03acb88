// The charts beside the playground's points: loss terms, geometry, lengths, the modulus surface.
import { DASHES, PALETTE, cividis, html, legend, note, panel, put, short } from "./kit.js";
import { chart } from "./chart.js";

const MOST_ROWS = 300;
const MODULUS = ["ictm", "modulus"];

// Panels of charts over the steps of some runs; a second run is dashed.
export function chartPanels({ spaces, looks, tip }) {
  const [terms, geometry, lengths, surface] = [
    "weighted terms",
    "alignment (mean squared distance) and uniformity (log)",
    "mean length",
    "modulus ratio of the pairs",
  ].map((title) => {
    const [key, body] = [html("div"), html("div")];
    return { panel: panel(title, key, body), key, body };
  });
  const panels = [terms, geometry, lengths, surface].map((one) => one.panel);
  const box = html("div", { class: "panels", style: "--panel:280px" }, panels);

  function lines({ target, runs, names, look, label, y, width, zero = false }) {
    const thin = runs.map(({ rows }) =>
      rows.filter((_, n) => n === rows.length - 1 || n % Math.ceil(rows.length / MOST_ROWS) === 0),
    );
    const series = runs.flatMap((_, r) =>
      names(r).map((name, n) => ({
        name: runs.length > 1 ? `${name}, ${r ? "second" : "first"} loss` : name,
        kind: "line",
        colour: look(name, n).colour,
        dash: r ? "5 4" : look(name, n).dash,
        points: thin[r].map((row) => [row.step, row[name] ?? NaN]),
      })),
    );
    const shown = [...new Set(runs.flatMap((_, r) => names(r)))];
    const entries = shown.map((name, n) => ({ name, ...look(name, n) }));
    put(target.key, legend(entries));
    if (runs.length > 1)
      target.key.firstChild.append(html("span", {}, "solid: first loss, dashed: second"));
    const last = Math.max(1, ...runs.map((run) => run.step));
    put(
      target.body,
      chart({
        width,
        height: 210,
        label,
        x: { label: "step", domain: [thin[0][0]?.step ?? 0, last], whole: true },
        y: { label: y, zero },
        series,
        tip,
        numbers: false,
      }),
    );
  }

  return {
    element: box,
    draw(width, runs) {
      const pairs = runs.filter((run) =>
        run.active().some((name) => MODULUS.includes(run.state.term(name).known)),
      );
      surface.panel.hidden = !pairs.length;
      const count = pairs.length ? 4 : 3;
      const fitting = Math.max(1, Math.min(count, Math.floor((width + 18) / 298)));
      const columns = count === 4 && fitting === 3 ? 2 : fitting;
      const each = Math.floor((width - 18 * (columns - 1)) / columns);
      box.style.setProperty("--panel", `${each - 1}px`);
      const plain = (name, n) => ({ colour: PALETTE[n], dash: DASHES[0] });
      const common = { runs, width: each, look: plain };
      lines({
        ...common,
        target: terms,
        names: (r) => runs[r].active(),
        look: (name) => looks[name],
        label: "weighted loss terms over the steps",
        y: "weight × term",
        zero: true,
      });
      lines({
        ...common,
        target: geometry,
        names: () => ["alignment", "uniformity"],
        label: "alignment and uniformity over the steps",
        y: "value",
      });
      lines({
        ...common,
        target: lengths,
        names: () => spaces.map((space) => `‖${space}‖`),
        label: "mean length of the vectors over the steps",
        y: "mean length",
        zero: true,
      });
      if (pairs.length) {
        const words = "pairs of a sentence: first tower or view a, second tower or view b; ";
        put(surface.key, note(`${words}l_TN is from 0 (dark) to 1 (light)`, { style: "margin:0" }));
        put(surface.body, modulusSurface(each, pairs[0].points, tip));
      }
    },
  };
}

// The pairs that a modulus term compares: [ratio of lengths, cosine] a sentence.
export function modulusPairs(points) {
  const [p, q] = [points[0][0], points.at(-1)[1]];
  return p.map((row, n) => {
    const [a, b] = [Math.hypot(...row), Math.hypot(...q[n])];
    const dot = row.reduce((sum, x, c) => sum + x * q[n][c], 0);
    return [b / a, dot / (a * b)];
  });
}

const surfaceAt = (k, t) => Math.sqrt(Math.max(0, 1 + k * k - 2 * k * t)) / (1 + k);

let surfacePicture = null; // the same for all: painted once

function paintedSurface() {
  if (surfacePicture) return surfacePicture;
  const canvas = html("canvas", { width: 120, height: 80 });
  const context = canvas.getContext("2d");
  const image = context.createImageData(120, 80);
  for (let y = 0; y < 80; y++) {
    for (let x = 0; x < 120; x++) {
      const color = cividis(surfaceAt((3 * (x + 0.5)) / 120, 1 - (2 * (y + 0.5)) / 80));
      image.data.set([...color, 255], 4 * (120 * y + x));
    }
  }
  context.putImageData(image, 0, 0);
  surfacePicture = canvas.toDataURL();
  return surfacePicture;
}

function modulusSurface(width, points, tip) {
  const pairs = modulusPairs(points).map(([k, t], n) => {
    const numbers = `ratio ${short(k)}, cosine ${short(t)}, l_TN ${short(surfaceAt(k, t))}`;
    const style = `fill:${PALETTE[n]};stroke:#fff;stroke-width:1.8`;
    const text = `sentence ${n + 1}\n${numbers}`;
    return Object.assign([Math.min(k, 3), t], { text, style });
  });
  return chart({
    width,
    height: 210,
    label: "modulus ratio over the ratio of lengths and the cosine, with the pairs",
    x: { label: "ratio of lengths (more than 3: at 3)", domain: [0, 3], whole: true },
    y: { label: "cosine", domain: [-1, 1] },
    series: [{ name: "pairs", kind: "points", size: 6, points: pairs }],
    background: paintedSurface(),
    tip,
    numbers: false,
  });
}
