// Charts in SVG: lines, points, bars and violins over two axes.
import { even, html, picture, short, stroke, svg, write } from "./kit.js";

const MARGIN = { top: 8, right: 12, left: 58 };

// Round numbers from low to high, about `count` of them.
export function ticks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) {
    found.push(Number((n * step).toPrecision(12)));
  }
  return found;
}

// The range of values with a margin, never empty. `zero`: includes 0.
export function extent(values, { zero = false, margin = 0.06 } = {}) {
  const known = values.filter((x) => Number.isFinite(x));
  if (zero) known.push(0);
  let low = known.length ? Math.min(...known) : 0;
  let high = known.length ? Math.max(...known) : 1;
  if (high - low <= 1e-4 * Math.max(Math.abs(low), Math.abs(high)))
    [low, high] = [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
  const more = margin * (high - low);
  return [zero && low === 0 ? 0 : low - more, zero && high === 0 ? 0 : high + more];
}

// A chart with its numbers as a table.
//
// width, height: pixels. label: what it shows, for screen readers. tip: from `tooltip`.
// x, y: { label, domain: [low, high], names: texts at 0, 1, 2 ..., whole: ticks at whole numbers }.
// series: [{ name, colour, dash, width, size, kind, points }], kind "line", "points", "bars" or
//     "violin", where points are [x, y], perhaps with a `text` of their own for the tip and a colour.
// rules: [{ x }]: dotted lines. background: the address of an image that fills the axes.
export function chart({
  width,
  height = 240,
  label,
  x,
  y,
  series,
  rules = [],
  background,
  tip,
  numbers = true,
}) {
  const shown = series.filter((one) => one.points.length);
  const all = shown.flatMap((one) => one.points);
  const values = [all.map((point) => point[0]), all.flatMap((point) => point.slice(1))];
  const xs = x.domain ?? extent(values[0], { margin: 0.02 });
  const ys = y.domain ?? extent(values[1], { zero: y.zero });
  const tilted = x.names && longest(x.names) * 7 > (width - MARGIN.left) / x.names.length;
  const right = width - MARGIN.right;
  const atX = (value) => MARGIN.left + ((value - xs[0]) / (xs[1] - xs[0])) * (right - MARGIN.left);
  // steep enough that no tilted name reaches over the left edge
  const widths = (x.names ?? []).map((name) => 6.4 * Math.min(name.length, 24));
  const slopes = widths.map((long, n) => Math.acos(Math.min(1, (atX(n) - 4) / long)));
  const tilt = Math.max(0.66, ...slopes);
  const below = x.label ? 18 : 0;
  const bottom = tilted ? 20 + Math.max(...widths) * Math.sin(tilt) + below : 26 + below;
  const floor = height - bottom;
  const atY = (value) => floor - ((value - ys[0]) / (ys[1] - ys[0])) * (floor - MARGIN.top);

  const figure = picture(width, height, { role: "img", "aria-label": label });
  const line = (kind, x1, x2, y1, y2, more = {}) =>
    figure.append(svg("line", { class: kind, x1, x2, y1, y2, ...more }));
  const round = ticks(...xs, Math.min(8, width / 90)).filter(
    (t) => !x.whole || Number.isInteger(t),
  );
  const xTicks = x.names ? x.names.map((_, n) => n) : round;
  const xWords = x.names ?? even(round);
  const yTicks = ticks(...ys, Math.min(6, height / 45));
  const yWords = even(yTicks);
  if (background) {
    const [x0, y0] = [MARGIN.left, MARGIN.top];
    const size = { x: x0, y: y0, width: right - x0, height: floor - y0 };
    figure.append(svg("image", { href: background, preserveAspectRatio: "none", ...size }));
  }
  for (const [n, value] of yTicks.entries()) {
    if (!background) line("grid", MARGIN.left, right, atY(value), atY(value));
    figure.append(write(MARGIN.left - 6, atY(value) + 4, yWords[n], { anchor: "end" }));
  }
  for (const [n, value] of xTicks.entries()) {
    const place = atX(value);
    line("axis", place, place, floor, floor + 4);
    const turned = { anchor: "end", turn: (-180 * tilt) / Math.PI };
    if (tilted) figure.append(write(place, floor + 12, cut(xWords[n], 24), turned));
    else figure.append(write(place, floor + 18, xWords[n]));
  }
  line("axis", MARGIN.left, right, floor, floor);
  line("axis", MARGIN.left, MARGIN.left, MARGIN.top, floor);
  figure.append(write(13, (MARGIN.top + floor) / 2, y.label, { turn: -90, class: "soft" }));
  if (x.label)
    figure.append(write((MARGIN.left + right) / 2, height - 6, x.label, { class: "soft" }));
  for (const rule of rules)
    line("axis", atX(rule.x), atX(rule.x), MARGIN.top, floor, { "stroke-dasharray": "2 4" });
  const bars = shown.filter((one) => one.kind === "bars");
  const step = (right - MARGIN.left) / (xs[1] - xs[0]);
  for (const one of shown) figure.append(marks(one, { atX, atY, ys, step, bars }));
  if (tip) listen(figure, shown, x, { atX, atY }, tip);
  const box = html("div", {}, figure);
  if (numbers && all.length && all.length <= 3000) box.append(table(shown, x, y, label));
  return box;
}

function marks(one, { atX, atY, ys, step, bars }) {
  const group = svg("g", { "data-series": one.name });
  if (one.kind === "bars") {
    const broad = Math.min(60, (0.8 * step) / bars.length);
    const shift = (bars.indexOf(one) - (bars.length - 1) / 2) * broad;
    const base = atY(Math.min(Math.max(0, ys[0]), ys[1]));
    for (const [px, py] of one.points) {
      const top = Math.min(atY(py), base);
      group.append(
        svg("rect", {
          x: atX(px) + shift - broad / 2 + 1,
          y: top,
          width: Math.max(1, broad - 2),
          height: Math.max(1, Math.abs(atY(py) - base)),
          style: `fill:${one.colour}`,
        }),
      );
    }
    return group;
  }
  if (one.kind === "violin") return violin(one, atX, atY, group);
  if (one.kind === "line") {
    const known = one.points.filter((point) => Number.isFinite(point[1]));
    const d = known
      .map(([px, py], n) => `${n ? "L" : "M"}${atX(px).toFixed(1)} ${atY(py).toFixed(1)}`)
      .join("");
    group.append(stroke(d, one.colour, one.width ?? 2, { "stroke-dasharray": one.dash }));
  }
  const r = one.size ?? (one.kind === "points" ? 5 : 3);
  for (const point of one.kind === "points" || one.points.length <= 20 ? one.points : []) {
    if (!Number.isFinite(point[1])) continue;
    const style = point.style ?? `fill:${one.colour}`;
    group.append(svg("circle", { cx: atX(point[0]), cy: atY(point[1]), r, style }));
  }
  return group;
}

// The shape is a kernel density estimate; points are spread over its middle to be told apart.
function violin(one, atX, atY, group) {
  const values = one.points.map((point) => point[1]);
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const sd = Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const spread = (1.06 * sd) / values.length ** 0.2; // Silverman's rule
  const place = atX(one.points[0][0]);
  const half = 0.4 * (atX(one.points[0][0] + 1) - place);
  if (spread > 0) {
    const heights = Array.from({ length: 41 }, (_, n) => low + ((high - low) * n) / 40);
    const density = heights.map((y) =>
      values.reduce((sum, v) => sum + Math.exp(-0.5 * ((y - v) / spread) ** 2), 0),
    );
    const most = Math.max(...density);
    const side = (sign) =>
      heights.map(
        (y, n) => `${(place + (sign * half * density[n]) / most).toFixed(1)} ${atY(y).toFixed(1)}`,
      );
    const d = `M${side(1).join("L")}L${side(-1).reverse().join("L")}Z`;
    const style = `fill:${one.colour};stroke:${one.colour}`;
    group.append(svg("path", { d, "fill-opacity": 0.25, "stroke-width": 1.5, style }));
  }
  values.forEach((value, n) => {
    const shift = (((n * 0.618034) % 1) - 0.5) * 0.5 * half;
    group.append(
      svg("circle", { cx: place + shift, cy: atY(value), r: 1.8, style: `fill:${one.colour}` }),
    );
  });
  return group;
}

// The nearest point within 24 pixels, in words beside the pointer.
function listen(picture, series, x, { atX, atY }, tip) {
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    for (const one of series) {
      for (const point of one.points) {
        const away = Math.hypot(atX(point[0]) - px, atY(point[1]) - py);
        if (away < (best?.away ?? 24)) best = { away, one, point };
      }
    }
    if (!best) return tip.hide();
    const [vx, vy] = best.point;
    const where = x.names ? x.names[Math.round(vx)] : `${x.label} ${short(vx)}`;
    tip.show(event, best.point.text ?? `${best.one.name}\n${where}: ${short(vy)}`);
  });
  picture.addEventListener("pointerleave", tip.hide);
}

function table(series, x, y, label) {
  const at = (px) => (x.names ? x.names[Math.round(px)] : short(px));
  const rows = () =>
    series.flatMap((one) => one.points.map(([px, py]) => [one.name, at(px), short(py)]));
  return numbersFold(label, () => ["", x.label ?? "", y.label ?? ""], rows).element;
}

// A fold with a table, which is filled when it is open: a moving chart draws often. Gives its
// element, and what fills it again.
export function numbersFold(label, names, rows) {
  const about = { class: "numbers", tabindex: 0, role: "region", "aria-label": label };
  const box = html("div", about);
  const heading = (scope) => (words) => html("th", { scope }, words);
  const draw = () => {
    if (!element.open) return;
    const lines = rows().map(([first, ...cells]) =>
      html("tr", {}, heading("row")(first), ...cells.map((words) => html("td", {}, words))),
    );
    const head = html("tr", {}, names().map(heading("col")));
    box.replaceChildren(html("table", {}, html("thead", {}, head), html("tbody", {}, lines)));
  };
  const open = { "data-fold": label, ontoggle: draw };
  const element = html("details", open, html("summary", {}, "numbers"), box);
  return { element, draw };
}

const longest = (words) => Math.max(...words.map((word) => word.length));
const cut = (words, length) => (words.length > length ? `${words.slice(0, length - 1)}…` : words);
