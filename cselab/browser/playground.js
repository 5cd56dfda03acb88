// Loss playground: points that descend on a method's loss, in the browser.
import { DASHES, PALETTE, button, check, choice, drawing, html, legend, logSlider, set, setUp, short, tooltip } from "./kit.js";
import { PRESETS, Run, placed, resized } from "./playground_run.js";
import { Look, pointsPanel } from "./playground_points.js";
import { settingOf, termControls } from "./playground_terms.js";
import { chartPanels } from "./playground_charts.js";

const TRAITS = ["weights", "other_weights", "options", "temperature", "arrows", "trails"];

export function render({ model, el }) {
  const root = setUp(el, "loss playground");
  const tip = tooltip(root);
  const kernel = model.get("kernel");
  const spaces = model.get("spaces");
  const catalogue = model.get("catalogue");
  const looks = Object.fromEntries(catalogue.map(({ name }, n) => [name, { colour: PALETTE[n % 7], dash: DASHES[Math.floor(n / 7)] }]));
  const kernelTerms = kernel ? asker(model, spaces, (words) => say(words)) : null;
  const state = (weights) => ({
    spaces,
    weights: () => model.get(weights),
    options: () => model.get("options"),
    temperature: () => model.get("temperature"),
    coins: () => model.get("coins"),
    sphere: () => model.get("shape") === "sphere",
    names: catalogue.map((term) => term.name),
    term: (name) => catalogue.find((term) => term.name === name),
  });
  const both = ["weights", "other_weights"].map((weights) => new Run(state(weights), kernelTerms));
  const [main, other] = both;
  const runs = () => (model.get("compare") ? both : [main]);
  const look = new Look();
  let playing = false;

  const asDict = (points) => Object.fromEntries(spaces.map((space, s) => [space, points[s]]));
  const asList = (dict) => spaces.map((space) => dict[space]);

  // What Python hears: the points, and the steps that it does not have yet.
  let [sent, messages] = [0, 0];
  function tell() {
    sent = performance.now();
    const rows = main.rows.slice(main.unsent);
    const news = { message: (messages += 1), from: rows[0]?.step ?? main.step + 1, rows };
    if (main.unsent === 0) news.start = asDict(main.start);
    model.set("coordinates", asDict(main.points));
    model.set("news", news);
    model.save_changes();
    main.unsent = main.rows.length;
  }

  // Begin at new points in both panels.
  async function begin(points) {
    for (const run of both) run.begin(points);
    say("");
    await renew();
    tell();
  }

  // Python's points and history.
  async function adopt() {
    const { start, rows, trail } = model.get("past");
    const points = asList(model.get("coordinates"));
    main.begin(points, asList(start), rows, trail.map(asList));
    main.unsent = main.rows.length;
    other.begin(points, asList(start), [{ step: main.step }]);
    await renew();
  }

  async function renew() {
    await Promise.all(runs().map((run) => run.refresh()));
    views.ask();
  }

  // ---- moving ----
  let [due, before, busy, drawn] = [0, 0, false, 0];
  async function frame(now) {
    if (!playing) return;
    due = Math.min(due + ((now - before) / 1000) * model.get("speed"), 60);
    before = now;
    if (!busy) await steps(Math.floor(due), now);
    if (playing) requestAnimationFrame(frame);
  }

  async function steps(count, since) {
    busy = true;
    const remote = runs().some((run) => run.active().some((name) => !run.isLocal(name)));
    const limit = remote ? 80 : 24; // milliseconds a frame
    for (let n = 0; n < count && playing; n++) {
      due -= 1;
      if (!(await one())) break;
      if (performance.now() - since > limit) {
        due = Math.min(due, 1); // as fast as it can be shown
        break;
      }
    }
    busy = false;
    if (count > 0) {
      drawPoints();
      if (performance.now() - drawn > 200) drawCharts();
      if (performance.now() - sent > 450) tell();
    }
  }

  // One step of each run. Gives whether all went well.
  async function one() {
    const rate = model.get("rate");
    for (const run of runs()) {
      const wrong = await run.descend(rate);
      if (!wrong) continue;
      if (wrong === "unknown") pause(); // the kernel's answer says why
      else await explain(run, wrong, rate);
      return false;
    }
    return true;
  }

  async function explain(run, wrong, rate) {
    pause();
    await run.refresh();
    const better = await run.suggestion(rate);
    const what = wrong === "infinite" ? "the loss is not finite" : "the loss rises by more than half within 20 steps";
    const advice = better ? ` The step is too long for this loss; about ${short(better)} would do.` : " No shorter step lowers this loss from here.";
    const use = better && button(`use ${short(better)}`, "set the step size", () => (set(model, "rate", better), say("")));
    say(`${what[0].toUpperCase()}${what.slice(1)}: the points are back where they were before.${advice} `, use);
    views.ask();
    tell();
  }

  function play() {
    playing = true;
    before = performance.now();
    due = 1;
    say("");
    showPlaying();
    requestAnimationFrame(frame);
  }

  function pause() {
    if (!playing) return;
    playing = false;
    showPlaying();
    views.ask();
    tell();
  }

  function showPlaying() {
    playButton.textContent = playing ? "❚❚ pause" : "▶ play";
    playButton.setAttribute("aria-label", playing ? "pause" : "play: gradient descent");
  }

  async function oneStep() {
    pause();
    say("");
    if (busy) return;
    busy = true;
    await one();
    busy = false;
    views.ask();
    tell();
  }

  // ---- controls ----
  const playButton = button("▶ play", "gradient descent on all points", () => (playing ? pause() : play()));
  playButton.style.minWidth = "6.5em";
  const sphere = () => model.get("shape") === "sphere";
  const fresh = (name) => {
    const [count, size] = [main.points[0][0].length, model.get("shape") === "plane" ? 2 : 3];
    begin(placed(PRESETS[name](spaces.length, count, size), sphere()));
  };
  const presets = Object.keys(PRESETS)
    .filter((name) => spaces.length > 1 || name !== "two towers apart")
    .map((name) => [name, button(name, `start from: ${name}`, () => fresh(name))]);
  // The points go with the shape in one message: the kernel then draws none of its own.
  const withPoints = { get: (name) => model.get(name), set: (name, value) => model.set(name, value), save_changes: () => reshape(), on: (name, listener) => model.on(name, listener) };
  const shape = choice(withPoints, "shape", "points in", ["plane", "space", "sphere"]);
  const buttons = html(
    "div",
    { class: "bar" },
    playButton,
    button("one step", "one step of gradient descent", oneStep),
    button("reset", "back to the points before the first step", () => (pause(), begin(main.start))),
    html("span", { role: "group", "aria-label": "start from", class: "bar", style: "margin:0;gap:6px" }, html("span", { style: "color:var(--soft)" }, "start from"), presets.map(([, one]) => one)),
  );
  const sliders = html(
    "div",
    { class: "bar" },
    shape,
    logSlider(model, "rate", "step size", [1e-4, 1]),
    logSlider(model, "speed", "steps per second", [1, 240], { fromSlider: (x) => Math.round(10 ** x) }),
    logSlider(model, "temperature", "temperature τ", [0.01, 3]),
  );
  const hint = html("div", { role: "status", class: "note" });
  function say(words, ...more) {
    hint.replaceChildren(...(words ? [html("span", {}, words), ...more.filter(Boolean)] : []));
    hint.classList.toggle("warning", Boolean(words));
  }

  const missing = (name) => (kernel || main.isLocal(name) ? "" : "it needs a kernel: open the notebook in JupyterLab");
  const method = state("weights").names.filter((name) => model.get("weights")[name] > 0);
  const first = [...method, ...catalogue.filter((term) => term.own && !method.includes(term.name)).map((term) => term.name)];
  const settings = () => ({ shape: model.get("shape"), arrows: model.get("arrows"), trails: model.get("trails"), colours: looks });
  const on = {
    move(s, v, n, row) {
      for (const run of runs()) run.move(s, v, n, row);
      renew();
    },
    moved: async () => {
      await renew();
      tell();
    },
    turned: () => views.ask(),
  };
  const columns = both.map((run, r) => {
    const panel = pointsPanel({ label: `points, ${r ? "second" : "first"} loss`, run, look, names: spaces, settings, on, tip });
    const weights = r ? "other_weights" : "weights";
    const controls = termControls({ model, weights, looks, missing, tip, first, label: `weights of the ${r ? "second" : "first"} loss`, which: r ? ", second loss" : "" });
    const setting = html("code", { style: "overflow-wrap:anywhere;font-size:12px;user-select:all" });
    const copy = button("copy", "copy the setting", () => copied(setting, copy));
    copy.style.flex = "none";
    const total = html("div", { class: "note", style: "margin:2px 0" });
    const exported = html("div", { class: "bar", style: "flex-wrap:nowrap;align-items:flex-start" }, setting, copy);
    const heading = html("h4", {}, "terms and their weights");
    const side = html("div", { style: "min-width:0" }, heading, controls, total, html("h4", {}, "as a setting"), exported);
    const box = html("div", { style: "display:grid;gap:4px 22px;min-width:0;align-content:start" }, html("div", { style: "min-width:0" }, panel.element), side);
    return { run, panel, side, heading, setting, total, weights, box };
  });
  const area = html("div", { style: "display:grid;gap:10px 22px;min-width:0" }, columns.map((one) => one.box));
  const view = html("div", { class: "bar" }, choice(model, "arrows", "arrows (downhill)", ["sum", "each term", "none"]), check(model, "trails", "trails"), check(model, "compare", "compare two losses", "a second loss on the same points, with weights of its own"));
  const marks = [
    { name: "view a", symbol: "dot", colour: "var(--soft)" },
    { name: "view b, with the sentence's number", symbol: "ring", colour: "var(--soft)" },
  ];
  const key = legend(marks);
  key.append(html("span", {}, spaces.length > 1 ? "● tower I, ◆ tower II; a line joins positives; drag a point to move it" : "a line joins positives; drag a point to move it"));
  const charts = chartPanels({ spaces, looks, tip });
  const numbers = html("div", { class: "numbers", tabindex: 0, role: "region", "aria-label": "terms and geometry of the last 200 steps" });
  const fold = html("details", { ontoggle: () => drawNumbers() }, html("summary", {}, "numbers"), numbers);
  const all = html("div", { style: "display:grid;gap:10px 22px;align-items:start" }, area, charts.element);
  root.append(buttons, sliders, view, hint, key, all, fold);

  // ---- drawing ----
  let [width, chartWidth, settling] = [0, 0, false];
  function drawPoints() {
    if (!width || !main.points) return;
    const more = look.follow(runs().flatMap((run) => run.points));
    const comparing = model.get("compare");
    // Wide enough: the charts stand beside the points.
    const [points, besides] = !comparing && width >= 1480 ? [880, width - 902] : [width, width];
    all.style.gridTemplateColumns = besides < width ? `${points}px minmax(0, 1fr)` : "minmax(0, 1fr)";
    chartWidth = besides;
    const across = comparing ? Math.floor((points - 22) / 2) : points;
    const two = comparing && across >= 330;
    area.style.gridTemplateColumns = two ? "1fr 1fr" : "minmax(0, 1fr)";
    const inside = two ? across : points;
    const beside = inside >= 720;
    const picture = beside ? Math.min(520, Math.floor(inside * 0.54)) : inside;
    columns.forEach(({ run, panel, box, side, heading, setting, total, weights }, r) => {
      box.hidden = r > 0 && !comparing;
      box.style.display = box.hidden ? "none" : "grid";
      if (box.hidden || !run.points) return;
      box.style.gridTemplateColumns = beside ? `${picture}px minmax(0, 460px)` : "minmax(0, 1fr)";
      heading.textContent = comparing ? `${r ? "second" : "first"} loss: terms and their weights` : "terms and their weights";
      setting.textContent = settingOf(model, weights);
      const loss = run.found ? short(run.total()) : "…";
      const active = run.active();
      const left = catalogue.filter(({ name }) => model.get(weights)[name] > 0 && !active.includes(name));
      const without = left.length ? `, without ${left.map((term) => term.name).join(", ")}: only a kernel computes it` : "";
      total.textContent = (active.length ? `step ${run.step}, loss ${loss}` : "no term has a weight: nothing moves") + without;
      panel.draw(picture, playing);
      panel.element.style.margin = beside ? "" : "0 auto";
    });
    if (more && !playing && !settling) requestAnimationFrame(() => ((settling = false), drawPoints()));
    settling = more && !playing;
  }

  function drawCharts() {
    drawn = performance.now();
    if (width && main.rows.length) charts.draw(chartWidth, runs().filter((run) => run.rows.length));
    drawNumbers();
  }

  function drawNumbers() {
    if (!fold.open || playing) return;
    const rows = main.rows.slice(-200);
    const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    const head = html("tr", {}, names.map((name) => html("th", { scope: "col" }, name)));
    numbers.replaceChildren(html("table", {}, html("thead", {}, head), html("tbody", {}, rows.map((row) => html("tr", {}, names.map((name) => html("td", {}, short(row[name]))))))));
  }

  const views = drawing(model, root, ["rate"], (now) => {
    width = now;
    drawPoints();
    drawCharts();
  });

  // ---- changes ----
  function showPresets() {
    for (const [name, one] of presets) {
      one.disabled = name === "unequal lengths" && sphere();
      one.title = one.disabled ? "on the sphere all lengths are 1" : `start from: ${name}`;
    }
  }
  function reshape() {
    const size = model.get("shape") === "plane" ? 2 : 3;
    const points = placed(resized(main.points, size), sphere());
    model.set("coordinates", asDict(points));
    model.save_changes();
    pause();
    showPresets();
    begin(points);
  }
  for (const name of TRAITS) model.on(`change:${name}`, renew);
  model.on("change:compare", async () => {
    if (model.get("compare")) {
      set(model, "other_weights", { ...model.get("weights") });
      other.begin(main.points, main.start, [{ step: main.step }]);
    }
    await renew();
  });
  model.on("change:past", () => {
    pause();
    showPresets();
    adopt();
  });
  const hidden = () => document.hidden && pause();
  document.addEventListener("visibilitychange", hidden);
  showPresets();
  showPlaying();
  adopt();
  if (kernel) model.send({ do: "past" });

  return () => {
    playing = false;
    views.stop();
    document.removeEventListener("visibilitychange", hidden);
  };
}

// Asks the kernel for terms that the browser does not know: (names, points, step) => promise.
function asker(model, spaces, say) {
  const waiting = new Map();
  let last = 0;
  model.on("msg:custom", (message) => {
    const done = waiting.get(message.id);
    if (!done) return;
    waiting.delete(message.id);
    clearTimeout(done.late);
    if (message.error) say(`The kernel could not compute a term: ${message.error}`);
    else if (done.said) say("");
    done.resolve(message.terms);
  });
  return (names, points, step) =>
    new Promise((resolve) => {
      const done = { resolve, said: false };
      done.late = setTimeout(() => {
        done.said = true;
        say(`Waiting for the kernel, which computes ${names.join(", ")}.`);
      }, 1500);
      waiting.set((last += 1), done);
      model.send({ do: "terms", id: last, terms: names, step, points: Object.fromEntries(spaces.map((space, s) => [space, points[s]])) });
    });
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
