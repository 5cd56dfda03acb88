// Loss playground: points that descend on a method's loss, in the browser.
import { DASHES, PALETTE, drawing, html, setUp, short, tooltip } from "./kit.js";
import { numbersFold } from "./chart.js";
import { chartPanels } from "./playground_charts.js";
import { lossColumn, places } from "./playground_columns.js";
import {
  descentControls,
  motionButtons,
  noteLine,
  pointsLegend,
  viewControls,
} from "./playground_controls.js";
import { sharing, termsOfKernel } from "./playground_kernel.js";
import { motion } from "./playground_motion.js";
import { Look } from "./playground_points.js";
import { PRESETS, Run, placed, resized } from "./playground_run.js";

const OF_THE_LOSS = ["weights", "other_weights", "options", "temperature"];
const OF_THE_PICTURE = ["rate", "arrows", "rays", "trails"];

export function render({ model, el }) {
  const root = setUp(el, "Loss playground");
  const view = Math.random().toString(36).slice(2); // its name: views of a widget share a model
  const spaces = model.get("spaces");
  const isSphere = () => model.get("shape") === "sphere";
  const size = () => (model.get("shape") === "plane" ? 2 : 3);
  const { showNote, element: note } = noteLine();
  const ask = model.get("kernel") ? termsOfKernel({ model, spaces, view, showNote }) : null;
  const both = ["weights", "other_weights"].map(
    (weights) => new Run(lossState(model, weights), ask),
  );
  const [main, other] = both;
  const runs = () => (model.get("compare") ? both : [main]);

  // ---- changes of the points ----
  async function renew() {
    drawn.ask();
    await Promise.all(runs().map((run) => run.refresh()));
    drawn.ask();
  }

  async function begin(points) {
    for (const run of both) run.begin(points);
    showNote("");
    await renew();
    shared.sendNews();
  }

  function move(s, v, n, row) {
    for (const run of runs()) run.move(s, v, n, row);
    renew();
  }

  async function moved() {
    await renew();
    shared.sendNews();
  }

  function reset() {
    moving.stop();
    begin(main.start);
  }

  function preset(name) {
    begin(placed(PRESETS[name](spaces.length, main.points[0][0].length, size()), isSphere()));
  }

  function reshape() {
    moving.stop();
    const points = placed(resized(main.points, size()), isSphere());
    model.set("coordinates", Object.fromEntries(spaces.map((space, s) => [space, points[s]])));
    model.save_changes();
    begin(points);
  }

  function compare() {
    other.begin(main.points, main.start, [{ step: main.step }]);
    renew();
  }

  // ---- parts ----
  const on = { toggle: () => moving.toggle(), step: () => moving.step(), reset, preset };
  const buttons = motionButtons({ spaces, on });
  const tip = tooltip(root);
  const looks = looksOf(model.get("catalogue"));
  const look = new Look();
  const settings = () => ({
    shape: model.get("shape"),
    arrows: model.get("arrows"),
    rays: model.get("rays"),
    trails: model.get("trails"),
    colours: looks,
  });
  const points = { look, tip, names: spaces, settings };
  points.on = { move, moved, turned: () => drawn.ask() };
  const terms = { looks, tip, first: firstTerms(model), missing };
  const columns = both.map((run, r) => lossColumn({ model, run, isSecond: r > 0, points, terms }));
  const losses = html("div", { style: "display:grid;gap:10px 22px;min-width:0" });
  losses.append(...columns.map((one) => one.element));
  const charts = chartPanels({ spaces, looks, tip });
  const grid = { style: "display:grid;gap:10px 22px;align-items:start" };
  const all = html("div", grid, losses, charts.element);
  const lastRows = () => main.rows.slice(-200);
  const named = () => [...new Set(lastRows().flatMap((row) => Object.keys(row)))];
  const cells = () => lastRows().map((row) => named().map((name) => short(row[name])));
  const numbers = numbersFold("terms and geometry of the last 200 steps", named, cells);
  root.append(
    buttons.element,
    descentControls(model, reshape),
    viewControls(model),
    note,
    pointsLegend(spaces),
    all,
    numbers.element,
  );

  function missing(name) {
    return ask || main.isLocal(name) ? "" : "it needs a kernel: open the notebook in JupyterLab";
  }

  // ---- drawing ----
  let [width, isSettling] = [0, false];

  function drawPoints() {
    if (!width || !main.points) return;
    const isOnItsWay = look.follow(runs().flatMap((run) => run.points)) && !moving.isPlaying();
    const place = places(width, model.get("compare"));
    all.style.gridTemplateColumns = place.all;
    losses.style.gridTemplateColumns = place.losses;
    for (const column of columns) column.draw(place, moving.isPlaying());
    if (isOnItsWay && !isSettling)
      requestAnimationFrame(() => ((isSettling = false), drawPoints()));
    isSettling = isOnItsWay;
  }

  function drawCharts() {
    const known = runs().filter((run) => run.rows.length);
    if (width && main.rows.length) charts.draw(places(width, model.get("compare")).charts, known);
    if (!moving.isPlaying()) numbers.draw();
  }

  const drawn = drawing(model, root, OF_THE_PICTURE, (now) => {
    width = now;
    drawPoints();
    drawCharts();
  });

  // ---- running ----
  const moving = motion({
    model,
    runs,
    draw: { points: drawPoints, charts: drawCharts, all: drawn.ask },
    sendNews: () => shared.sendNews(),
    sinceSent: () => shared.sinceSent(),
    showNote,
    showPlaying: buttons.showPlaying,
  });
  const shared = sharing({ model, spaces, view, runs: both, stop: moving.stop, renew });
  const showShape = () => buttons.showShape(isSphere());
  buttons.showPlaying(false);
  showShape();
  for (const name of OF_THE_LOSS) model.on(`change:${name}`, renew);
  model.on("change:shape", showShape);
  model.on("change:compare", compare);
  const hidden = () => document.hidden && moving.pause();
  document.addEventListener("visibilitychange", hidden);

  return () => {
    moving.stop();
    drawn.stop();
    document.removeEventListener("visibilitychange", hidden);
  };
}

// What a run reads of the model, for one dictionary of weights.
function lossState(model, weights) {
  const catalogue = model.get("catalogue");
  return {
    spaces: model.get("spaces"),
    weights: () => model.get(weights),
    options: () => model.get("options"),
    temperature: () => model.get("temperature"),
    coins: () => model.get("coins"),
    sphere: () => model.get("shape") === "sphere",
    names: catalogue.map((term) => term.name),
    term: (name) => catalogue.find((term) => term.name === name),
  };
}

// A colour and a dash for each term.
function looksOf(catalogue) {
  const look = (n) => ({ colour: PALETTE[n % 7], dash: DASHES[Math.floor(n / 7)] });
  return Object.fromEntries(catalogue.map(({ name }, n) => [name, look(n)]));
}

// Terms with a weight, then the method's own: their sliders come first.
function firstTerms(model) {
  const catalogue = model.get("catalogue");
  const weighted = catalogue.filter(({ name }) => model.get("weights")[name] > 0);
  const own = catalogue.filter((term) => term.own && !weighted.includes(term));
  return [...weighted, ...own].map((term) => term.name);
}
