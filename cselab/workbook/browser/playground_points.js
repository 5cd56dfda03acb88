// The playground's points in a plane or in space, which can be dragged.
import { PALETTE, picture, setAll, short, stroke, svg, write } from "./kit.js";
import { ticks } from "./chart.js";

const EDGE = { top: 6, right: 6, bottom: 40, left: 46 };
const LONGEST = 0.16; // of the picture: the longest arrow

// What all panels of points show: the direction they are seen from, and a range that follows the
// points, in leaps that are drawn as a slow change. It is at most 1.5 times as far as the farthest.
export class Look {
  constructor() {
    this.yaw = 0.6;
    this.pitch = 0.45;
    this.reach = null;
  }

  // Gives whether the range is still on its way.
  follow(points) {
    const farthest = Math.max(0, ...points.flat(3).filter(Number.isFinite).map(Math.abs)) || 1;
    const fits = this.target >= 1.05 * farthest && this.target <= 1.45 * farthest;
    if (!fits) this.target = 1.25 * farthest;
    const still = this.reach === null || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const away = this.target - (still ? this.target : this.reach);
    this.reach = Math.abs(away) < 0.004 * this.target ? this.target : this.reach + 0.2 * away;
    return this.reach !== this.target;
  }

  // Directions of the picture: right, up, and away from the reader.
  axes(size) {
    if (size === 2)
      return [
        [1, 0],
        [0, 1],
        [0, 0],
      ];
    const [c, s] = [Math.cos(this.yaw), Math.sin(this.yaw)];
    const [cp, sp] = [Math.cos(this.pitch), Math.sin(this.pitch)];
    return [
      [c, s, 0],
      [-s * sp, c * sp, cp],
      [-s * cp, c * cp, -sp],
    ];
  }

  turn(right, up) {
    this.yaw -= right;
    this.pitch = Math.min(Math.max(this.pitch + up, -1.5), 1.5);
  }
}

// A panel of the points of one run.
//
// names: of the spaces. settings(): { shape, arrows, rays, trails, colours: by term }. on: { move(s, v,
// n, row), moved(), turned() }. tip: from `tooltip`.
export function pointsPanel({ label, run, look, names, settings, on, tip }) {
  const layers = ["guide", "rays", "trails", "ties", "arrows", "marks"].map((name) =>
    svg("g", { "data-layer": name }),
  );
  const [guide, rays, trails, ties, arrows, marks] = layers;
  const plane = picture(0, 0, { role: "group", "aria-label": label }, layers);
  let [size, scale, middle, box] = [2, 1, [0, 0], [0, 0]];
  let words = []; // places of what is written: no text is written on another
  let known = "";

  const flat = (row) =>
    look.axes(size).map((axis) => axis.reduce((sum, x, c) => sum + x * row[c], 0));
  const place = (row) => {
    const [x, y] = flat(row);
    return [middle[0] + scale * x, middle[1] - scale * y];
  };
  const at = (row, digits) =>
    place(row)
      .map((x) => x.toFixed(digits))
      .join(" ");
  const path = (rows) => {
    const known = rows.filter((row) => row.every(Number.isFinite));
    return known.map((row, n) => `${n ? "L" : "M"}${at(row, 1)}`).join("");
  };

  // A point that is `right` and `up` of another in the picture, in the same depth.
  function beside(row, right, up) {
    const [toRight, toTop, away] = look.axes(size);
    if (settings().shape !== "sphere") {
      return row.map((x, c) => x + right * toRight[c] + up * toTop[c]);
    }
    let [x, y, depth] = flat(row);
    [x, y] = [x + right, y + up];
    const length = Math.hypot(x, y);
    if (length >= 1) [x, y, depth] = [x / length, y / length, 0];
    else depth = (depth > 0 ? 1 : -1) * Math.sqrt(1 - x * x - y * y);
    return row.map((_, c) => x * toRight[c] + y * toTop[c] + depth * away[c]);
  }

  function pressed(event) {
    const mark = event.target.closest("[data-point]");
    if (event.button || (!mark && size === 2)) return;
    event.preventDefault();
    plane.setPointerCapture(event.pointerId);
    const [s, v, n] = mark ? mark.dataset.point.split(",").map(Number) : [];
    mark?.focus({ focusVisible: false });
    let last = [event.clientX, event.clientY];
    const start = mark && run.points[s][v][n];
    const first = last;
    const moved = (now) => {
      if (mark) {
        const [right, up] = [now.clientX - first[0], first[1] - now.clientY];
        on.move(s, v, n, beside(start, right / scale, up / scale));
        tip.hide();
      } else {
        look.turn((now.clientX - last[0]) / 120, (now.clientY - last[1]) / 120);
        on.turned();
      }
      last = [now.clientX, now.clientY];
    };
    const done = () => {
      dragging.abort();
      if (mark) on.moved();
    };
    const dragging = new AbortController();
    const until = { signal: dragging.signal };
    plane.addEventListener("pointermove", moved, until);
    plane.addEventListener("pointerup", done, until);
    plane.addEventListener("lostpointercapture", done, until);
  }

  function keyed(event) {
    const direction = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
    }[event.key];
    const mark = event.target.closest("[data-point]");
    const factor = { "+": 1.05, "=": 1.05, "-": 1 / 1.05, "−": 1 / 1.05 }[event.key];
    if (mark && (direction || (factor && settings().shape !== "sphere"))) {
      const [s, v, n] = mark.dataset.point.split(",").map(Number);
      const row = run.points[s][v][n];
      const step = (look.reach / 40) * (event.shiftKey ? 5 : 1);
      const [right, up] = direction ?? [];
      const grown = () => row.map((x) => x * factor);
      on.move(s, v, n, direction ? beside(row, step * right, step * up) : grown());
      on.moved();
    } else if (!mark && direction && size === 3) {
      look.turn(-0.1 * direction[0], 0.1 * direction[1]);
      on.turned();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  plane.addEventListener("pointerdown", pressed);
  // A finger on a point moves it. Chromium reads no touch-action of parts of a plane.
  plane.addEventListener(
    "touchstart",
    (event) => event.target.closest("[data-point]") && event.preventDefault(),
    { passive: false },
  );
  plane.addEventListener("keydown", keyed);
  plane.addEventListener("pointerover", (event) => {
    const mark = event.target.closest("[data-point]");
    if (mark && !event.buttons)
      tip.show(event, mark.getAttribute("aria-label").split(". ")[0].replace(": ", "\n"));
  });
  plane.addEventListener("pointerout", tip.hide);

  function isFree([x, y], half) {
    if (words.some((one) => Math.abs(one.x - x) < one.half + half && Math.abs(one.y - y) < 15))
      return false;
    words.push({ x, y, half });
    return true;
  }

  // Marks stay while the points move: the reader may hold one.
  function build() {
    const [spaces, sentences] = [run.points.length, run.points[0][0].length];
    const wanted = `${spaces} ${sentences}`;
    if (wanted === known) return;
    known = wanted;
    marks.replaceChildren();
    for (let s = 0; s < spaces; s++) {
      for (let v = 1; v >= 0; v--) {
        for (let n = 0; n < sentences; n++) {
          const fill = v ? "var(--paper)" : "var(--mark)";
          const style = `stroke:var(--mark);fill:${fill};stroke-width:2.5`;
          const shape = s % 2 ? "M0 -10L10 0L0 10L-10 0Z" : "M-8 0a8 8 0 1 0 16 0a8 8 0 1 0 -16 0";
          const small = { "aria-hidden": "true", style: "font-size:11px" };
          const point = {
            "data-point": `${s},${v},${n}`,
            tabindex: 0,
            role: "button",
            "aria-roledescription": "point that can be moved",
            style: "cursor:grab",
          };
          const number = v ? write(0, 4, String(n + 1), small) : null;
          marks.append(svg("g", point, svg("path", { d: shape, style }), number));
        }
      }
    }
  }

  function drawMarks(quiet) {
    const depth = (row) => (size === 3 ? flat(row)[2] / look.reach : -1);
    for (const mark of marks.children) {
      const [s, v, n] = mark.dataset.point.split(",").map(Number);
      const row = run.points[s][v][n];
      mark.style.display = row.every(Number.isFinite) ? "" : "none"; // a descent of Python diverged
      if (mark.style.display) continue;
      mark.setAttribute("transform", `translate(${at(row, 2)})`);
      // Mixed with the paper, not transparent: lines end at a point.
      const share = Math.round(72 - 28 * Math.min(1, Math.max(-1, depth(row))));
      mark.style.setProperty("--mark", `color-mix(in srgb, ${PALETTE[n]} ${share}%, var(--paper))`);
      if (v) mark.lastChild.style.display = isFree(place(row), 5) ? "" : "none";
      if (quiet) continue;
      const where = `(${row.map(short).join(", ")}), length ${short(Math.hypot(...row))}`;
      const more = settings().shape === "sphere" ? "" : ", plus and minus change its length";
      const name = `${names[s]}, view ${"ab"[v]}, sentence ${n + 1}`;
      mark.setAttribute("aria-label", `${name}: ${where}. Arrow keys move it${more}`);
    }
  }

  function drawTies() {
    const parts = run.points.flatMap(([a, b]) => a.map((row, n) => path([row, b[n]])));
    ties.replaceChildren(stroke(parts.join(""), "var(--edge)", 1.2));
  }

  // From the origin to each point: losses read directions and lengths. Those of view b are dashed.
  function drawRays() {
    rays.replaceChildren();
    if (!settings().rays) return;
    const origin = Array(size).fill(0);
    run.points[0][0].forEach((_, n) => {
      for (const v of [0, 1]) {
        const d = run.points.map((views) => path([origin, views[v][n]])).join("");
        const dash = v ? "5 4" : null;
        rays.append(
          stroke(d, PALETTE[n], 1.4, { "stroke-opacity": 0.5, "stroke-dasharray": dash }),
        );
      }
    });
  }

  function drawTrails() {
    trails.replaceChildren();
    if (!settings().trails || run.trail.length + (run.trail.at(-1) !== run.points) < 2) return;
    const ways = run.trail.at(-1) === run.points ? run.trail : [...run.trail, run.points];
    run.points[0][0].forEach((_, n) => {
      const d = run.points.flatMap((_, s) =>
        [0, 1].map((v) => path(ways.map((points) => points[s][v][n]))),
      );
      trails.append(stroke(d.join(""), PALETTE[n], 1.3, { "stroke-opacity": 0.55 }));
    });
  }

  // Downhill at each point: of the whole loss, or of each weighted term.
  function drawArrows() {
    arrows.replaceChildren();
    const { arrows: kind, colours } = settings();
    if (kind === "none" || !run.found) return;
    const weights = run.state.weights();
    const names = run.active().filter((name) => run.found[name]);
    const groups =
      kind === "sum"
        ? [["var(--ink)", names]]
        : names.map((name) => [colours[name].colour, [name]]);
    const slope = (of, s, v, n, c) =>
      of.reduce((sum, name) => sum + weights[name] * run.found[name].gradients[s][v][n][c], 0);
    const ofView = (of, rows, s, v) =>
      rows.map((row, n) => [row, row.map((_, c) => -slope(of, s, v, n, c))]);
    const lines = groups.map(([colour, of]) => [
      colour,
      run.points.flatMap((views, s) => views.flatMap((rows, v) => ofView(of, rows, s, v))),
    ]);
    const lengths = lines.flatMap(([, all]) => all.map(([, down]) => Math.hypot(...down)));
    const longest = Math.max(...lengths);
    if (!(longest > 1e-9)) return;
    const factor = (LONGEST * 2 * look.reach) / longest;
    for (const [colour, all] of lines) {
      const d = all.map(([row, down]) =>
        arrow(place(row), place(row.map((x, c) => x + factor * down[c]))),
      );
      arrows.append(stroke(d.join(""), colour, 1.8));
    }
  }

  function drawGuide() {
    guide.replaceChildren();
    words = [];
    const { shape } = settings();
    if (size === 2) return drawPlane();
    plane.setAttribute("tabindex", 0);
    for (let c = 0; c < 3; c++) {
      const end = [0, 0, 0].map((_, k) => (k === c ? 0.93 * look.reach : 0));
      const [x, y] = place(end.map((value) => value * 1.05));
      guide.append(svg("path", { d: path([end.map((value) => -value), end]), class: "axis" }));
      if (isFree([x, y], 20)) guide.append(write(x, y + 4, `dim. ${c + 1}`, { class: "soft" }));
    }
    if (shape === "sphere") drawSphere();
  }

  function drawPlane() {
    plane.removeAttribute("tabindex");
    const { left, top } = EDGE;
    const [right, bottom] = [box[0] - EDGE.right, box[1] - EDGE.bottom];
    const [wide, high] = [(right - left) / 2 / scale, (bottom - top) / 2 / scale];
    for (const value of ticks(-wide, wide, Math.min(8, (right - left) / 60))) {
      const x = middle[0] + scale * value;
      guide.append(svg("line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom }));
      guide.append(write(x, bottom + 16, short(value)));
    }
    for (const value of ticks(-high, high, Math.min(8, (bottom - top) / 50))) {
      const y = middle[1] - scale * value;
      guide.append(svg("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }));
      guide.append(write(left - 6, y + 4, short(value), { anchor: "end" }));
    }
    guide.append(
      circle({ "stroke-dasharray": "2 4" }),
      write((left + right) / 2, box[1] - 6, "dimension 1 (dotted: length 1)", { class: "soft" }),
      write(12, (top + bottom) / 2, "dimension 2", { class: "soft", turn: -90 }),
    );
  }

  const circle = (more = {}) =>
    svg("circle", { cx: middle[0], cy: middle[1], r: scale, fill: "none", class: "axis", ...more });

  // Its outline, and circles of latitude and longitude: nothing is drawn over the points.
  function drawSphere() {
    guide.append(circle());
    const turns = Array.from({ length: 49 }, (_, k) => (k * Math.PI) / 24);
    const circles = [-1, 0, 1].map((k) =>
      turns.map((t) => [Math.cos(k) * Math.cos(t), Math.cos(k) * Math.sin(t), Math.sin(k)]),
    );
    for (let k = 0; k < 4; k++) {
      const [c, s] = [Math.cos((k * Math.PI) / 4), Math.sin((k * Math.PI) / 4)];
      circles.push(turns.map((t) => [c * Math.cos(t), s * Math.cos(t), Math.sin(t)]));
    }
    guide.append(svg("path", { d: circles.map(path).join(""), fill: "none", class: "grid" }));
  }

  return {
    element: plane,
    // quiet: while the points are moving, screen readers need no new numbers.
    draw(width, quiet = false) {
      size = run.points[0][0][0].length;
      // Elsewhere in a plane, a finger scrolls the page.
      plane.style.touchAction = size === 2 ? "" : "none";
      width = Math.min(width, 520); // a square: both axes have one range
      const height = width - (size === 2 ? EDGE.left + EDGE.right - EDGE.top - EDGE.bottom : 0);
      if (box[0] !== width || box[1] !== height) {
        box = [width, height];
        setAll(plane, { width, height, viewBox: `0 0 ${width} ${height}` });
      }
      const edge = size === 2 ? EDGE : { top: 4, right: 4, bottom: 4, left: 4 };
      const [wide, high] = [width - edge.left - edge.right, height - edge.top - edge.bottom];
      scale = Math.min(wide, high) / 2 / look.reach;
      middle = [edge.left + wide / 2, edge.top + high / 2];
      build();
      drawGuide();
      drawRays();
      drawTrails();
      drawTies();
      drawArrows();
      drawMarks(quiet);
    },
  };
}

// A line with a head, which a short one has not.
function arrow([x, y], [toX, toY]) {
  const length = Math.hypot(toX - x, toY - y);
  if (!(length > 0.5)) return "";
  const [ux, uy] = [(toX - x) / length, (toY - y) / length];
  const head = Math.min(6, length / 2);
  const at = (px, py) => `${px.toFixed(1)} ${py.toFixed(1)}`;
  const side = (sign) =>
    at(toX - head * (ux + sign * 0.6 * uy), toY - head * (uy - sign * 0.6 * ux));
  const tip = at(toX, toY);
  return `M${at(x, y)}L${tip}M${side(1)}L${tip}L${side(-1)}`;
}
