// The playground's column of a loss: points, weights of the terms, and both as a setting.
import { bar, button, html, short } from "./kit.js";
import { pointsPanel } from "./playground_points.js";
import { settingOf, termControls } from "./playground_terms.js";

// isSecond: the loss of `other_weights`. points: what `pointsPanel` needs besides the run. terms: what
// `termControls` needs besides the weights. Gives { element, draw(place, quiet) }, place from `places`.
export function lossColumn({ model, run, isSecond, points, terms }) {
  const which = isSecond ? "second" : "first";
  const weights = isSecond ? "other_weights" : "weights";
  const catalogue = model.get("catalogue");
  const panel = pointsPanel({ ...points, run, label: `points, ${which} loss` });
  const heading = html("h4", {}, "terms and their weights");
  const ending = { label: `weights of the ${which} loss`, which: isSecond ? ", second loss" : "" };
  const controls = termControls({ ...terms, ...ending, model, weights });
  const total = html("div", { class: "note", style: "margin:2px 0" });
  const setting = html("code", { style: "overflow-wrap:anywhere;font-size:12px;user-select:all" });
  const copy = button("copy", "copy the setting", () => copied(setting, copy));
  copy.style.flex = "none";
  const exported = bar(setting, copy);
  exported.style.cssText = "flex-wrap:nowrap;align-items:flex-start";
  const title = html("h4", {}, `as a setting: lab.train("${model.get("method_name")}", **…)`);
  const part = (...parts) => html("div", { style: "min-width:0" }, ...parts);
  const element = html(
    "div",
    { style: "display:grid;gap:4px 22px;min-width:0;align-content:start" },
    part(panel.element),
    part(heading, controls, total, title, exported),
  );

  // The step and the loss, or why nothing moves.
  function words() {
    const active = run.active();
    const isLeft = ({ name }) => model.get(weights)[name] > 0 && !active.includes(name);
    const left = catalogue.filter(isLeft).map((term) => term.name);
    const without = left.length ? `, without ${left.join(", ")}: only a kernel computes it` : "";
    if (!active.length) return `no term has a weight: nothing moves${without}`;
    return `step ${run.step}, loss ${run.found ? short(run.total()) : "…"}${without}`;
  }

  return {
    element,
    draw({ isComparing, isBeside, picture }, quiet) {
      element.hidden = isSecond && !isComparing;
      element.style.display = element.hidden ? "none" : "grid";
      if (element.hidden || !run.points) return;
      element.style.gridTemplateColumns = isBeside
        ? `${picture}px minmax(0, 460px)`
        : "minmax(0, 1fr)";
      heading.textContent = `${isComparing ? `${which} loss: ` : ""}terms and their weights`;
      setting.textContent = settingOf(model, weights);
      total.textContent = words();
      panel.draw(picture, quiet);
      panel.element.style.margin = isBeside ? "" : "0 auto";
    },
  };
}

// Where the parts are in `width` pixels: charts stand beside the points where both fit, the two
// losses beside each other, a loss's terms beside its points.
export function places(width, isComparing) {
  const isWide = !isComparing && width >= 1480;
  const points = isWide ? 880 : width;
  const half = Math.floor((points - 22) / 2);
  const isTwo = isComparing && half >= 330;
  const inside = isTwo ? half : points;
  const isBeside = inside >= 720;
  return {
    isComparing,
    isBeside,
    picture: isBeside ? Math.min(520, Math.floor(inside * 0.54)) : inside,
    charts: isWide ? width - points - 22 : width,
    losses: isTwo ? "1fr 1fr" : "minmax(0, 1fr)",
    all: isWide ? `${points}px minmax(0, 1fr)` : "minmax(0, 1fr)",
  };
}

async function copied(setting, copy) {
  try {
    await navigator.clipboard.writeText(setting.textContent);
  } catch {
    getSelection().selectAllChildren(setting); // without leave to write: the reader can copy it
    return;
  }
  copy.textContent = "copied";
  setTimeout(() => (copy.textContent = "copy"), 1500);
}
