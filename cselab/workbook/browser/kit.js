// What all widgets share: elements, controls bound to the model, tooltips, colours.

export const PALETTE = [0, 1, 2, 3, 4, 5, 6].map((n) => `var(--c${n})`);
export const DASHES = ["", "7 4", "2 3", "9 3 2 3"];

// An HTML element. Properties that start with "on" are listeners; others are attributes.
export function html(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

// An SVG element.
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

// A picture, a text in it (`turn`: degrees around its place) and a line along a path.
export const picture = (width, height, properties, ...children) =>
  svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, ...properties }, ...children);

export function write(x, y, words, { anchor = "middle", turn, ...more } = {}) {
  const transform = turn ? `rotate(${turn} ${x} ${y})` : null;
  return svg("text", { x, y, "text-anchor": anchor, transform, ...more }, words);
}

export const stroke = (d, colour, width, more = {}) =>
  svg("path", { d, fill: "none", style: `stroke:${colour}`, "stroke-width": width, ...more });

export function setAll(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
}

function fill(element, properties, children) {
  setAll(element, properties);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Replace a box's content. A fold that the reader has opened (told by its `data-fold`) stays open,
// where it was scrolled to, and in focus.
export function put(box, ...children) {
  const parts = (fold) => [...fold.querySelectorAll("summary, .numbers")];
  const before = new Map();
  for (const fold of box.querySelectorAll("details[data-fold]")) {
    const [focus, top] = [parts(fold).indexOf(document.activeElement), parts(fold)[1]?.scrollTop];
    before.set(fold.dataset.fold, { open: fold.open, focus, top });
  }
  box.replaceChildren(...children.flat());
  for (const fold of box.querySelectorAll("details[data-fold]")) {
    const { open = false, focus = -1, top } = before.get(fold.dataset.fold) ?? {};
    if (open) {
      fold.open = true;
      fold.dispatchEvent(new Event("toggle")); // its table is built now, not when the browser tells
      parts(fold)[1].scrollTop = top;
    }
    parts(fold)[focus]?.focus({ preventScroll: true });
  }
}

// A row of controls, a line of small text, and a box with a title.
export const bar = (...parts) => html("div", { class: "bar" }, ...parts);
export const note = (words, more = {}) => html("p", { class: "note", ...more }, words);
export function panel(title, ...children) {
  return html("div", { class: "panel" }, html("h4", {}, title), ...children);
}

// Prepare a widget's element: its class, and keys that stay its own. JupyterLab would take arrow
// keys as its shortcuts, unless the very element in focus says no.
export function setUp(el, label) {
  const root = html("div", { class: "cselab", role: "group", "aria-label": label });
  root.addEventListener("focusin", ({ target }) =>
    target.setAttribute("data-lm-suppress-shortcuts", "true"),
  );
  el.append(root);
  return root;
}

// Set a trait, which the kernel hears where there is one.
export function set(model, name, value) {
  model.set(name, value);
  model.save_changes();
}

// Call `draw(width)` now, when the root's width changes, and (once a frame) when a trait of `names`
// does. Gives what draws again.
export function drawing(model, root, names, draw) {
  let asked = false;
  let width = 0;
  const now = () => {
    asked = false;
    if (width > 0) draw(width);
  };
  const ask = () => {
    if (!asked) requestAnimationFrame(now);
    asked = true;
  };
  for (const name of names) model.on(`change:${name}`, ask);
  const observer = new ResizeObserver(([entry]) => {
    const found = Math.floor(entry.contentRect.width);
    if (found !== width) {
      width = found;
      ask();
    }
  });
  observer.observe(root);
  return { ask, stop: () => observer.disconnect() };
}

// Show a trait now and when it changes.
function follow(model, name, show) {
  model.on(`change:${name}`, show);
  show();
}

export const labelled = (label, control, title = null) =>
  html("label", { title }, html("span", {}, label), control);

// A box of options; `onchange` gets the index of the chosen one.
export function menu(label, options, onchange) {
  const texts = options.map((text) => html("option", {}, String(text)));
  const change = () => onchange(control.selectedIndex);
  const control = html("select", { "aria-label": label, onchange: change }, texts);
  return control;
}

// A choice of one of several; options are values, or [text, value].
export function choice(model, name, label, options) {
  const pairs = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  const texts = pairs.map(([text]) => text);
  const control = menu(label, texts, (index) => set(model, name, pairs[index][1]));
  follow(model, name, () => {
    control.selectedIndex = pairs.findIndex(([, value]) => value === model.get(name));
  });
  return labelled(label, control);
}

// A slider. `toSlider` and `fromSlider` change its scale, `format` what stands beside it.
export function slider(model, name, label, range, change = {}) {
  const { format = String, toSlider = Number, fromSlider = Number } = change;
  const value = html("output");
  const control = html("input", {
    type: "range",
    step: 1,
    ...range,
    "aria-label": label,
    oninput: () => set(model, name, fromSlider(Number(control.value))),
  });
  follow(model, name, () => {
    control.value = toSlider(model.get(name));
    value.textContent = format(model.get(name));
    control.setAttribute("aria-valuetext", value.textContent);
  });
  return html("label", { title: change.title }, html("span", {}, label), control, value);
}

const ROUND = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];

// A slider over powers of ten, which stops at round numbers.
export function logSlider(model, name, label, [low, high]) {
  const stops = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    stops.push(...ROUND.map((x) => Number(`${x}e${power}`)));
  }
  const values = stops.filter((x) => x >= low && x <= high);
  const nearest = (x) =>
    values.reduce((best, stop, n) => {
      const far = (value) => Math.abs(Math.log(value / x));
      return far(stop) < far(values[best]) ? n : best;
    }, 0);
  const change = { toSlider: nearest, fromSlider: (n) => values[n], format: short };
  return slider(model, name, label, { min: 0, max: values.length - 1 }, change);
}

// A check box.
export function check(model, name, label, title) {
  const control = html("input", {
    type: "checkbox",
    onchange: () => set(model, name, control.checked),
  });
  follow(model, name, () => (control.checked = model.get(name)));
  return html("label", { title }, control, html("span", {}, label));
}

// A text that is sent when the reader leaves the field or presses Enter.
export function text(model, name, label) {
  const control = html("input", {
    type: "text",
    disabled: !model.get("kernel"),
    title: model.get("kernel") ? null : "typing needs a kernel",
    "aria-label": label,
    onchange: () => set(model, name, control.value),
    onkeydown: ({ key }) => key === "Enter" && set(model, name, control.value),
  });
  follow(model, name, () => (control.value = model.get(name)));
  return html("label", { class: "wide" }, html("span", {}, label), control);
}

export function button(label, title, onclick) {
  return html("button", { type: "button", title, onclick }, label);
}

// A line of text beside the pointer, kept inside the root.
export function tooltip(root) {
  const tip = html("div", { class: "tip", "aria-hidden": "true", hidden: true });
  root.append(tip);
  return {
    show(event, words) {
      tip.textContent = words;
      tip.hidden = false;
      const box = root.getBoundingClientRect();
      const x = Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth - 4);
      const below = event.clientY - box.top + 14;
      const fits = below + tip.offsetHeight <= box.height;
      tip.style.left = `${Math.max(0, x)}px`;
      tip.style.top = `${fits ? below : below - tip.offsetHeight - 28}px`;
    },
    hide() {
      tip.hidden = true;
    },
  };
}

// Names and looks of series: [{ name, colour, dash, symbol }], symbol "line", "point" or "ring".
export function legend(entries) {
  return html(
    "div",
    { class: "legend" },
    entries.map(({ name, colour, dash, symbol = "line" }) => {
      const marks = {
        line: () => stroke("M0 6H24", colour, 2.5, { "stroke-dasharray": dash }),
        ring: () => stroke("M1.5 6a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0", colour, 2),
        point: () => svg("circle", { cx: 6, cy: 6, r: 5, style: `fill:${colour}` }),
      };
      const width = symbol === "line" ? 24 : 12;
      return html("span", {}, picture(width, 12, { "aria-hidden": "true" }, marks[symbol]()), name);
    }),
  );
}

// A number in at most four characters or so.
export function short(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  const size = Math.abs(x);
  if (size !== 0 && (size < 0.001 || size >= 1e5)) return minus(x.toExponential(1));
  if (Number.isInteger(x)) return minus(String(x));
  return minus(String(Number(x.toPrecision(3))));
}

const minus = (words) => words.replaceAll("-", "−");

// Numbers of an axis, each with as many decimals as their step needs.
export function even(values) {
  const step = values.length > 1 ? Math.abs(values[1] - values[0]) : 1;
  const largest = Math.max(...values.map(Math.abs));
  if (largest >= 1e6 || (largest > 0 && largest < 1e-3)) return values.map(short);
  const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  return values.map((x) => minus(x.toFixed(decimals)));
}

const CIVIDIS = "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838"
  .split(" ")
  .map((colour) => [0, 2, 4].map((n) => parseInt(colour.slice(n, n + 2), 16)));

const mix = (a, b, share) => a.map((part, n) => Math.round(part + share * (b[n] - part)));

const SHADES = Array.from({ length: 257 }, (_, n) => {
  const place = (n / 256) * (CIVIDIS.length - 1);
  const low = Math.min(Math.floor(place), CIVIDIS.length - 2);
  return mix(CIVIDIS[low], CIVIDIS[low + 1], place - low);
});

// Cividis at 0..1 as [red, green, blue]; Nuñez, Anderton and Renslow 2018. Looked up: a grid of
// heads has half a million cells.
export function cividis(share) {
  return SHADES[Math.round(256 * Math.min(Math.max(share, 0), 1))];
}

// Blue below 0, orange above, the middle in between; -1..1.
export function diverging(share, middle) {
  const end = share < 0 ? [0, 114, 178] : [213, 94, 0];
  return mix(middle, end, Math.min(Math.abs(share), 1));
}

// Whether the surroundings are dark.
export function isDark(root) {
  const [r, g, b] = getComputedStyle(root)
    .backgroundColor.match(/[\d.]+/g)
    .map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b < 128;
}

// Call `draw` when the theme changes: canvases take their colours when they are drawn.
export function onTheme(draw) {
  const observer = new MutationObserver(draw);
  observer.observe(document.body, { attributeFilter: ["data-jp-theme-light"] });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", draw);
  return () => {
    observer.disconnect();
    scheme.removeEventListener("change", draw);
  };
}
