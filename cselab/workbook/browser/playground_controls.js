// The controls above the playground's points, and the note below them.
import { bar, button, check, choice, html, legend, logSlider } from "./kit.js";
import { PRESETS } from "./playground_run.js";

// Play, one step, reset, and where points start from. on: { toggle, step, reset, preset(name) }.
// Gives { element, showPlaying(playing), showShape(isSphere) }.
export function motionButtons({ spaces, on }) {
  const play = button("▶ play", "gradient descent on all points", on.toggle);
  play.style.minWidth = "6.5em";
  const presets = Object.keys(PRESETS)
    .filter((name) => spaces.length > 1 || name !== "two towers apart")
    .map((name) => [name, button(name, `start from: ${name}`, () => on.preset(name))]);
  const start = html(
    "span",
    { role: "group", "aria-label": "start from", class: "bar", style: "margin:0;gap:6px" },
    html("span", { style: "color:var(--soft)" }, "start from"),
    presets.map(([, one]) => one),
  );
  const element = bar(
    play,
    button("one step", "one step of gradient descent", on.step),
    button("reset", "back to the points before the first step", on.reset),
    start,
  );
  return {
    element,
    showPlaying(playing) {
      play.textContent = playing ? "❚❚ pause" : "▶ play";
      play.setAttribute("aria-label", playing ? "pause" : "play: gradient descent");
    },
    showShape(isSphere) {
      for (const [name, one] of presets) {
        one.disabled = name === "unequal lengths" && isSphere;
        one.title = one.disabled ? "on the sphere all lengths are 1" : `start from: ${name}`;
      }
    },
  };
}

// Shape, step size, speed and temperature. onShape(): called instead of saving a new shape, since the
// points go with it in one message: the kernel then draws none of its own.
export function descentControls(model, onShape) {
  const withPoints = {
    get: (name) => model.get(name),
    set: (name, value) => model.set(name, value),
    save_changes: onShape,
    on: (name, listener) => model.on(name, listener),
  };
  return bar(
    choice(withPoints, "shape", "points in", ["plane", "space", "sphere"]),
    logSlider(model, "rate", "step size", [1e-4, 1]),
    logSlider(model, "speed", "steps per second", [5, 200]),
    logSlider(model, "temperature", "temperature τ", [0.01, 3]),
  );
}

// What is drawn beside the points.
export function viewControls(model) {
  const second = "a second loss on the same points, with weights of its own";
  return bar(
    choice(model, "arrows", "arrows (downhill)", ["sum", "each term", "none"]),
    check(model, "rays", "rays", "from the origin to each point: its direction and its length"),
    check(model, "trails", "trails"),
    check(model, "compare", "compare two losses", second),
  );
}

// What the marks of points are.
export function pointsLegend(spaces) {
  const key = legend([
    { name: "view a", symbol: "point", colour: "var(--soft)" },
    { name: "view b, with the sentence's number", symbol: "ring", colour: "var(--soft)" },
  ]);
  const towers = spaces.length > 1 ? "● tower I, ◆ tower II; " : "";
  key.append(html("span", {}, `${towers}a grey line joins positives; drag a point to move it`));
  return key;
}

// A note for the reader, such as what went wrong.
export function noteLine() {
  const element = html("div", { role: "status", class: "note" });
  const showNote = (words, ...more) => {
    element.replaceChildren(...(words ? [html("span", {}, words), ...more.filter(Boolean)] : []));
    element.classList.toggle("warning", Boolean(words));
  };
  return { element, showNote };
}
