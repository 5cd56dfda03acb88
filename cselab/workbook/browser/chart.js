// Charts in SVG: lines, points, intervals, bars and violins over two axes.
import { html, svg, short, even } from "./kit.js";

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
// series: [{ name, colour, dash, width, size, kind, points }], kind "line", "points", "bars" or "violin", where
//     points are [x, y] or [x, y, low, high] (an interval).
// rules: [{ x } or { y }]: dotted lines.
export function chart({
  width,
  height = 240,
  label,
  x,
  y,
  series,
  rules = [],
  tip,
  numbers = true,
}) {
  const shown = series.filter((one) => one.points.length);
  const all = shown.flatMap((one) => one.points);
  const xs =
    x.domain ??
    extent(
      all.map((point) => point[0]),
      { margin: 0.02 },
    );
  const ys =
    y.domain ??
    extent(
      all.flatMap((point) => point.slice(1)),
      { zero: y.zero },
    );
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

  const picture = svg("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": label,
  });
  const round = ticks(...xs, Math.min(8, width / 90)).filter(
    (t) => !x.whole || Number.isInteger(t),
  );
  const xTicks = x.names ? x.names.map((_, n) => n) : round;
  const xWords = x.names ?? even(round);
  const yTicks = ticks(...ys, Math.min(6, height / 45));
  const yWords = even(yTicks);
  for (const [n, value] of yTicks.entries()) {
    picture.append(
      svg("line", { class: "grid", x1: MARGIN.left, x2: right, y1: atY(value), y2: atY(value) }),
      svg("text", { x: MARGIN.left - 6, y: atY(value) + 4, "text-anchor": "end" }, yWords[n]),
    );
  }
  for (const [n, value] of xTicks.entries()) {
    const place = atX(value);
    picture.append(svg("line", { class: "axis", x1: place, x2: place, y1: floor, y2: floor + 4 }));
    const turned = `rotate(${(-180 * tilt) / Math.PI} ${place} ${floor + 12})`;
    picture.append(
      tilted
        ? svg(
            "text",
            { x: place, y: floor + 12, "text-anchor": "end", transform: turned },
            cut(xWords[n], 24),
          )
        : svg("text", { x: place, y: floor + 18, "text-anchor": "middle" }, xWords[n]),
    );
  }
  const middle = (MARGIN.top + floor) / 2;
  picture.append(
    svg("line", { class: "axis", x1: MARGIN.left, x2: right, y1: floor, y2: floor }),
    svg("line", { class: "axis", x1: MARGIN.left, x2: MARGIN.left, y1: MARGIN.top, y2: floor }),
    svg(
      "text",
      {
        x: 13,
        y: middle,
        "text-anchor": "middle",
        transform: `rotate(-90 13 ${middle})`,
        class: "soft",
      },
      y.label,
    ),
  );
  if (x.label) {
    picture.append(
      svg(
        "text",
        { x: (MARGIN.left + right) / 2, y: height - 6, "text-anchor": "middle", class: "soft" },
        x.label,
      ),
    );
  }
  for (const rule of rules) {
    const across = "y" in rule;
    if (across && (rule.y < ys[0] || rule.y > ys[1])) continue;
    picture.append(
      svg("line", {
        class: "axis",
        "stroke-dasharray": "2 4",
        x1: across ? MARGIN.left : atX(rule.x),
        x2: across ? right : atX(rule.x),
        y1: across ? atY(rule.y) : MARGIN.top,
        y2: across ? atY(rule.y) : floor,
      }),
    );
  }
  const bars = shown.filter((one) => one.kind === "bars");
  for (const one of shown) {
    picture.append(
      marks(one, { atX, atY, ys, step: (right - MARGIN.left) / (xs[1] - xs[0]), bars }),
    );
  }
  if (tip) listen(picture, shown, x, { atX, atY }, tip);
  const box = html("div", {}, picture);
  if (numbers && all.length && all.length <= 3000) box.append(table(shown, x, y, label));
  return box;
}

function marks(one, { atX, atY, ys, step, bars }) {
  const style = (part) => `${part}:${one.colour}`;
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
          style: style("fill"),
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
    group.append(
      svg("path", {
        d,
        fill: "none",
        "stroke-width": one.width ?? 2,
        "stroke-dasharray": one.dash,
        style: style("stroke"),
      }),
    );
  }
  for (const [px, py, low, high] of one.points) {
    if (!Number.isFinite(py)) continue;
    if (Number.isFinite(low)) {
      group.append(
        svg("line", {
          x1: atX(px),
          x2: atX(px),
          y1: atY(low),
          y2: atY(high),
          "stroke-width": 2,
          style: style("stroke"),
        }),
      );
    }
    if (one.kind === "points" || one.points.length <= 20) {
      group.append(
        svg("circle", {
          cx: atX(px),
          cy: atY(py),
          r: one.size ?? (one.kind === "points" ? 5 : 3),
          style: style("fill"),
        }),
      );
    }
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
    group.append(
      svg("path", {
        d,
        "fill-opacity": 0.25,
        "stroke-width": 1.5,
        style: `fill:${one.colour};stroke:${one.colour}`,
      }),
    );
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
    const [vx, vy, low, high] = best.point;
    const where = x.names ? x.names[Math.round(vx)] : `${x.label} ${short(vx)}`;
    const interval = !Number.isFinite(low) ? "" : ` [${short(low)}, ${short(high)}]`;
    tip.show(event, best.point.text ?? `${best.one.name}\n${where}: ${short(vy)}${interval}`);
  });
  picture.addEventListener("pointerleave", tip.hide);
}

function table(series, x, y, label) {
  const rows = series.flatMap((one) =>
    one.points.map(([px, py, low, high]) => [
      one.name,
      x.names ? x.names[Math.round(px)] : short(px),
      !Number.isFinite(low) ? short(py) : `${short(py)} [${short(low)}, ${short(high)}]`,
    ]),
  );
  const head = html(
    "tr",
    {},
    ["", x.label ?? "", y.label ?? ""].map((words) => html("th", { scope: "col" }, words)),
  );
  const box = html("div", {
    class: "numbers",
    tabindex: 0,
    role: "region",
    "aria-label": "numbers of the chart",
  });
  const fold = html("details", { "data-fold": label }, html("summary", {}, "numbers"), box);
  fold.addEventListener("toggle", () => {
    // built when it is opened: a moving chart draws often
    if (fold.open && !box.childElementCount) {
      const body = rows.map(([first, ...rest]) =>
        html(
          "tr",
          {},
          html("th", { scope: "row" }, first),
          rest.map((words) => html("td", {}, words)),
        ),
      );
      box.append(html("table", {}, html("thead", {}, head), html("tbody", {}, body)));
    }
  });
  return fold;
}

const longest = (words) => Math.max(...words.map((word) => word.length));
const cut = (words, length) => (words.length > length ? `${words.slice(0, length - 1)}…` : words);
