// A training as it runs, and a button that interrupts it.
import {
  bar,
  button,
  DASHES,
  drawing,
  html,
  legend,
  PALETTE,
  panel,
  put,
  setUp,
  tooltip,
} from "./kit.js";
import { chart } from "./chart.js";

export function render({ model, el }) {
  const root = setUp(el, "Live training");
  // read aloud; the progress, which changes each second, is not
  const state = html("span", { role: "status" });
  const progress = html("span", { "aria-live": "off" });
  const stop = button("■ stop", "interrupt the kernel; run the cell again to go on", async () => {
    state.textContent = await interrupt(model);
  });
  const key = html("div");
  const boxes = [html("div"), html("div"), html("div")];
  const panels = html("div", { class: "panels" }, boxes);
  root.append(bar(stop, state, progress), key, panels);
  const tip = tooltip(root);

  const showProgress = () => {
    progress.textContent = model.get("running") ? model.get("status") : "";
  };
  const showState = () => {
    state.textContent = model.get("running") ? "training" : model.get("status");
    stop.hidden = !model.get("running") || !model.get("kernel") || !model.get("kernel_id");
    showProgress();
  };
  model.on("change:status", () => (model.get("running") ? showProgress() : showState()));
  model.on("change:running", showState);
  showState();

  const redraw = [key, ...boxes].map(whenChanged);
  function draw(width) {
    const trainings = listed(model.get("data"));
    const columns = width >= 1000 ? 3 : width >= 620 ? 2 : 1;
    const one = Math.floor((width - 18 * (columns - 1)) / columns);
    panels.style.gridTemplateColumns = `repeat(${columns},minmax(0,1fr))`;
    boxes[0].style.gridColumn = columns === 2 ? "1 / -1" : "";
    const names = String(trainings.flatMap(({ name, terms }) => [name, ...terms]));
    const mark = (curve) => String(trainings.map((one) => [one[curve].length, one[curve].at(-1)]));
    const evaluated = [one, names, mark("evaluations")];
    const wide = columns === 2 ? width : one;
    redraw[0]([names], () => looks(trainings));
    redraw[1]([columns, wide, names, mark("losses")], () => lossTerms(trainings, wide, tip));
    redraw[2](evaluated, () => devScores(trainings, model.get("dev_name"), one, tip));
    redraw[3](evaluated, () => geometry(trainings, one, tip));
  }

  return drawing(model, root, ["data"], draw).stop;
}

// What draws a box's content again, if one of `parts` is another than before.
function whenChanged(box) {
  let before = null;
  return (parts, content) => {
    if (String(before) === String(parts)) return;
    before = parts;
    put(box, content());
  };
}

// Interrupt the kernel as JupyterLab's own stop button does, and say how it went: a running cell
// cannot hear a message of a widget, so the request goes to the server.
async function interrupt(model) {
  try {
    const page = document.getElementById("jupyter-config-data");
    const base = page ? JSON.parse(page.textContent).baseUrl : "/";
    const xsrf = document.cookie.match(/(?:^|; )_xsrf=([^;]*)/);
    const reply = await fetch(`${base}api/kernels/${model.get("kernel_id")}/interrupt`, {
      method: "POST",
      headers: xsrf ? { "X-XSRFToken": decodeURIComponent(xsrf[1]) } : {},
    });
    if (reply.ok) return "stopping …";
  } catch {
    // another editor than JupyterLab, which may refuse even the cookies, or the server is away
  }
  return "to stop, use the ■ of the toolbar";
}

// The trainings with their looks. After seven, colours come again with other dashes.
function listed(data) {
  const found = Object.entries(data).sort(([, a], [, b]) => a.place - b.place);
  const terms = [...new Set(found.flatMap(([, training]) => training.terms))];
  return found.map(([name, training], n) => {
    const again = Math.floor(n / PALETTE.length);
    const dash = (place) => DASHES[place % DASHES.length];
    return {
      name,
      colour: PALETTE[n % PALETTE.length],
      dash: dash(again),
      terms: training.terms,
      dashes: training.terms.map((term) => dash(terms.indexOf(term) + again * terms.length)),
      losses: training.losses,
      evaluations: training.evaluations,
    };
  });
}

// Colours are trainings and dashes are terms, unless there are more trainings than colours.
function looks(trainings) {
  const lines = trainings.flatMap(({ name, colour, terms, dashes }) =>
    terms.map((term, n) => ({ name: `${name}: ${term}`, colour, dash: dashes[n], term })),
  );
  if (trainings.length > PALETTE.length) return legend(lines);
  const terms = [...new Map(lines.map((line) => [line.term, line])).values()];
  return legend([
    ...trainings.map(({ name, colour }) => ({ name, colour, symbol: "point" })),
    ...(terms.length > 1
      ? terms.map(({ term, dash }) => ({ name: term, colour: "var(--ink)", dash }))
      : []),
  ]);
}

const STEP = { label: "step", whole: true };
const curve = (points, index) => points.map((point) => [point[0], point[index] ?? NaN]);

function overSteps(title, unit, width, series, tip) {
  const label = `${title.split(":")[0]} by step`;
  return panel(title, chart({ width, label, x: STEP, y: { label: unit }, series, tip }));
}

function lossTerms(trainings, width, tip) {
  const series = trainings.flatMap(({ name, colour, dashes, terms, losses }) =>
    terms.map((term, n) => ({
      name: `${name}: ${term}`,
      colour,
      dash: dashes[n],
      width: losses.length > 100 ? 1.3 : 2,
      kind: "line",
      points: curve(losses, n + 1),
    })),
  );
  return overSteps("loss terms", "loss", width, series, tip);
}

function devScores(trainings, devName, width, tip) {
  const series = trainings.map(({ name, colour, dash, evaluations }) => {
    return { name, colour, dash, kind: "line", points: curve(evaluations, 1) };
  });
  return overSteps(`dev score: ${devName}`, "Spearman × 100", width, series, tip);
}

function geometry(trainings, width, tip) {
  const series = trainings.flatMap(({ name, colour, dash, evaluations }) => {
    const points = evaluations.map(([step, , uniformity, alignment]) =>
      Object.assign([uniformity ?? NaN, alignment ?? NaN], {
        text: `${name}, step ${step}\nuniformity ${uniformity ?? "–"}, alignment ${alignment ?? "–"}`,
      }),
    );
    return [
      { name, colour, dash, kind: "line", points },
      { name: `${name}: last`, colour, kind: "points", points: points.slice(-1) },
    ];
  });
  return panel(
    "alignment over uniformity (low is good)",
    chart({
      width,
      label: "alignment over uniformity, from evaluation to evaluation",
      x: { label: "uniformity" },
      y: { label: "alignment" },
      series,
      tip,
    }),
  );
}
