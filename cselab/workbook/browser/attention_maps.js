// The attention inspector's maps: thumbnails of all heads, large maps of one, and the tokens.
import {
  cividis,
  diverging,
  html,
  isDark,
  note,
  panel,
  picture,
  setAll,
  short,
  svg,
  write,
} from "./kit.js";
import { hidden, select } from "./reading.js";

const LABEL = 88; // pixels for a map's labels
const TAIL = 42; // for the end of the last tilted label
const CELL = [12, 30]; // smallest and largest cell

// Fill a canvas with `length` x `length` cells of one pixel; the browser enlarges them.
// `colour(row, column)` gives [red, green, blue], or null for an empty cell.
function paint(canvas, length, colour) {
  canvas.width = canvas.height = length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(length, length);
  for (let row = 0; row < length; row++) {
    for (let column = 0; column < length; column++) {
      const rgb = colour(row, column);
      if (!rgb) continue;
      const at = 4 * (row * length + column);
      [image.data[at], image.data[at + 1], image.data[at + 2]] = rgb;
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

const most = (cells, out, length) => {
  let found = 0;
  cells.forEach((value, n) => {
    if (!out[Math.floor(n / length)] && !out[n % length]) found = Math.max(found, Math.abs(value));
  });
  return found || 1;
};

// All layers (rows) and heads (columns) of both models as buttons. Gives their element, and a
// function that marks the chosen ones.
export function thumbnails(width, sides, view, choose, tip) {
  const { layers, heads } = sides[0].reading;
  const room = Math.min(width > 700 ? (width - 18) / 2 : width, 34 + heads * 72);
  const size = Math.max(16, Math.floor((room - 34) / heads) - 6);
  const panels = sides.map(({ side, name: title, reading, cael }) => {
    const { length } = reading;
    const out = hidden(reading, view);
    const grid = html("div", {
      class: "heads",
      role: "group",
      "aria-label": `layers and heads of model ${side}; arrow keys move`,
      style: `grid-template-columns: 30px repeat(${heads}, ${size + 4}px)`,
    });
    const name = (words, title) => grid.append(html("span", { class: "note", title }, words));
    name("");
    for (let head = 1; head <= heads; head++) name(`${head}`);
    for (let layer = 1; layer <= layers; layer++) {
      const isCael = cael.includes(layer);
      name(`${layer}${isCael ? " ×" : ""}`, isCael ? "cross-attention layer" : null);
      for (let head = 1; head <= heads; head++) {
        const canvas = html("canvas", { "aria-hidden": "true" });
        const cells = select(reading, layer, head, view.show, cael);
        const top = most(cells, out, length);
        paint(canvas, length, (q, k) =>
          out[q] || out[k] ? null : cividis(cells[q * length + k] / top),
        );
        canvas.style.width = canvas.style.height = `${size}px`;
        const words = `layer ${layer}, head ${head}`;
        const control = {
          type: "button",
          class: "thumbnail",
          "aria-label": `model ${side}, ${words}`,
          "data-place": `${layer} ${head}`,
          onclick: () => choose(layer, head),
          onpointermove: (event) => tip.show(event, `${side}: ${words}\nlargest ${short(top)}`),
          onpointerleave: tip.hide,
        };
        grid.append(html("button", control, canvas));
      }
    }
    grid.addEventListener("keydown", (event) => {
      const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      const step = steps[event.key];
      const [layer, head] = (event.target.dataset.place ?? "").split(" ").map(Number);
      if (!step || !layer) return;
      event.preventDefault();
      grid.querySelector(`[data-place="${layer + step[0]} ${head + step[1]}"]`)?.focus();
    });
    return panel(`${side}: ${title}`, grid);
  });
  const words =
    "Each square is the map of a layer (down) and head (across), scaled to its own largest cell; " +
    "× marks cross-attention layers. Choose one to enlarge it.";
  const element = html("div", {}, note(words), html("div", { class: "panels" }, panels));
  const mark = (chosen) => {
    for (const button of element.querySelectorAll("[data-place]")) {
      const [layer, head] = button.dataset.place.split(" ").map(Number);
      const here = layer === chosen.layer && (head === chosen.head || chosen.head === 0);
      button.setAttribute("aria-pressed", String(here));
      button.tabIndex = here && head === Math.max(1, chosen.head) ? 0 : -1;
    }
  };
  return { element, mark };
}

// Maps of A, B and, where the tokens are the same, A − B. Gives their element, and functions that
// mark a token in each.
export function maps(width, sides, view, { point, tip, dark }) {
  const cells = sides.map(({ reading, cael }) =>
    select(reading, view.layer, view.head, view.show, cael),
  );
  const same = sides.length === 2 && haveSameTokens(sides);
  const scale = Math.max(
    ...sides.map(({ reading }, n) => most(cells[n], hidden(reading, view), reading.length)),
  );
  const longest = Math.max(...sides.map(({ reading }) => reading.length));
  const fitting = Math.floor((width + 18) / (LABEL + CELL[0] * longest + TAIL + 18));
  const count = Math.max(1, Math.min(same ? 3 : sides.length, fitting));
  const room = (width - 18 * (count - 1)) / count - LABEL - TAIL;
  const cell = Math.max(CELL[0], Math.min(CELL[1], Math.floor(room / longest)));
  const what = `layer ${view.layer}, ${view.head ? `head ${view.head}` : "mean of the heads"}`;
  const unit = view.show === "weights" ? "weight" : "length read";
  // The values of all models at a cell, where they read the same tokens.
  const words = (reading, query, key) => {
    const at = query * reading.length + key;
    const read = sides.map(({ side }, n) => `${side} ${short(cells[n][at])}`);
    const both = same ? [...read, `A − B ${short(cells[0][at] - cells[1][at])}`] : read;
    const own = sides.findIndex((side) => side.reading === reading);
    const shown = sides.length === 1 || same ? both : [read[own]];
    return `${reading.tokens[query]} reads ${reading.tokens[key]}\n${unit}: ${shown.join(", ")}`;
  };
  const status = note("", { role: "status" });
  const say = (token) => {
    const isOne = token && token[0] === token[1];
    const told = isOne ? sides.map((side, n) => extremes(side, cells[n], token[0])) : [];
    status.textContent = told.filter(Boolean).join(" ") || ROWS_AND_COLUMNS;
  };
  say(null);
  const shared = { cell, point, tip, unit, words, view };
  const drawn = sides.map(({ side, name, reading }, n) =>
    one({
      ...shared,
      title: `${side}: ${name}`,
      reading,
      values: cells[n],
      colour: (value) => cividis(value / scale),
      ends: [0, scale],
    }),
  );
  if (same) {
    const difference = cells[0].map((value, n) => value - cells[1][n]);
    const { reading } = sides[0];
    const far = most(difference, hidden(reading, view), reading.length);
    const middle = isDark(dark) ? [58, 61, 66] : [242, 242, 242];
    drawn.push(
      one({
        ...shared,
        title: "A − B",
        reading,
        values: difference,
        colour: (value) => diverging(value / far, middle),
        ends: [-far, 0, far],
      }),
    );
  }
  const style = `grid-template-columns: repeat(${count}, minmax(0, 1fr))`;
  const panels = html("div", { class: "panels", style }, ...drawn.map((map) => map.element));
  return {
    element: html("div", {}, html("h4", {}, what), status, panels),
    marks: [say, ...drawn.map((map) => map.mark)],
  };
}

const ROWS_AND_COLUMNS =
  "A row reads (query), a column is read (key). Point at a token, or go through them above.";

// What a token reads most from, and what reads it most.
function extremes({ side, reading }, cells, token) {
  const { length, tokens } = reading;
  if (token >= length) return null;
  const largest = (at) => {
    const places = tokens.map((_, n) => n).sort((a, b) => cells[at(b)] - cells[at(a)]);
    const two = places.slice(0, 2).map((n) => `${tokens[n]} (${short(cells[at(n)])})`);
    return two.join(", ");
  };
  const [row, column] = [largest((n) => token * length + n), largest((n) => n * length + token)];
  return `${side}: ${tokens[token]} reads most from ${row}; most is read from it by ${column}.`;
}

export function haveSameTokens(sides) {
  const texts = sides.map(({ reading }) => reading.tokens.join(" "));
  return new Set(texts).size === 1;
}

function one({ title, reading, values, cell, point, tip, unit, words, view, colour, ends }) {
  const { length, tokens } = reading;
  const out = hidden(reading, view);
  const size = cell * length;
  const style = `position:absolute;left:${LABEL}px;top:${LABEL}px;width:${size}px;height:${size}px`;
  const canvas = html("canvas", { "aria-hidden": "true", style });
  paint(canvas, length, (q, k) => (out[q] || out[k] ? null : colour(values[q * length + k])));
  const labels = tokens.map((token, n) => {
    const label = token.length > 12 ? `${token.slice(0, 11)}…` : token;
    const middle = LABEL + cell * (n + 0.5);
    return [
      write(LABEL - 5, middle + 4, label, { anchor: "end" }),
      write(middle + 4, LABEL - 5, label, { anchor: "start", turn: -60 }),
    ];
  });
  const look = { fill: "none", "stroke-width": 2, style: "stroke:var(--c1)", visibility: "hidden" };
  const [across, down] = [svg("rect", look), svg("rect", look)];
  const about = { role: "img", "aria-label": `${title}: queries down, keys across` };
  const map = picture(
    LABEL + size + TAIL,
    LABEL + size + 4,
    { ...about, style: "position:relative;max-width:none" },
    labels.flat(),
    across,
    down,
  );
  const mark = (token) => {
    const [query, key] = token ?? [-1, -1];
    for (const [rect, place, isRow] of [
      [across, query, true],
      [down, key, false],
    ]) {
      const visibility = place >= 0 && place < length ? "visible" : "hidden";
      const [x, y] = isRow ? [LABEL, LABEL + place * cell] : [LABEL + place * cell, LABEL];
      const [width, height] = isRow ? [size, cell] : [cell, size];
      setAll(rect, { visibility, x, y, width, height });
    }
  };
  const place = (event) => {
    const box = map.getBoundingClientRect();
    const key = Math.floor((event.clientX - box.left - LABEL) / cell);
    const query = Math.floor((event.clientY - box.top - LABEL) / cell);
    return [query, key];
  };
  const show = (event) => {
    const [query, key] = place(event);
    const inside = (n) => n >= 0 && n < length;
    if (inside(query) && inside(key)) {
      point([query, key]);
      tip.show(event, words(reading, query, key));
    } else {
      const label = inside(query) ? query : inside(key) ? key : null;
      point(label === null ? null : [label, label]);
      tip.hide();
    }
  };
  map.addEventListener("pointermove", show);
  map.addEventListener("pointerdown", show); // a finger does not move before it taps
  map.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "touch") return; // what was tapped stays
    point(null);
    tip.hide();
  });
  const swatch = (end) =>
    html("i", { class: "swatch", style: `background:rgb(${colour(end).join(",")})` });
  const scale = ends.map((end) => html("span", {}, swatch(end), short(end)));
  const key = html("div", { class: "legend" }, unit, ...scale);
  const box = html("div", { class: "scroll map", style: "position:relative" }, canvas, map);
  return { element: panel(title, key, box), mark };
}

// The tokens of a sentence; the one under the pointer or the focus is marked in all maps.
export function strip(reading, point) {
  const chips = reading.tokens.map((token, n) =>
    html(
      "button",
      {
        type: "button",
        class: "chip",
        "aria-label": `token ${n + 1}: ${token}`,
        tabindex: n ? -1 : 0,
        onpointerenter: () => point([n, n]),
        onpointerleave: () => point(null),
        onfocus: () => point([n, n]),
        onblur: () => point(null),
      },
      token,
    ),
  );
  const about = { class: "chips", role: "group", "aria-label": "tokens; arrow keys move" };
  const element = html("div", about, chips);
  element.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    chips[chips.indexOf(event.target) + step]?.focus();
  });
  const mark = (token) =>
    chips.forEach((chip, n) =>
      chip.classList.toggle("marked", token !== null && token.includes(n)),
    );
  return { element, mark };
}
