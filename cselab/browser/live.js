// A training as it runs, and a button that interrupts it.
import { button, DASHES, drawing, html, legend, PALETTE, put, setUp, tooltip } from "./kit.js";
import { chart } from "./chart.js";

export function render({ model, el }) {
  const root = setUp(el, "live training");
  const status = html("span", { role: "status" });
  const stop = button("■ stop", "interrupt the kernel; run the cell again to go on", () => interrupt(model, status));
  const box = html("div");
  root.append(html("div", { class: "bar" }, stop, status), box);
  const tip = tooltip(root);

  // The kernel tells what is new; the model keeps all of it, for other views.
  const hear = (news) => model.set("data", merged(model.get("data"), news));
  model.on("msg:custom", hear);
  const showStatus = () => {
    status.textContent = model.get("status");
    stop.hidden = !model.get("running") || !model.get("kernel") || !model.get("kernel_id");
  };
  for (const name of ["status", "running"]) model.on(`change:${name}`, showStatus);
  showStatus();

  const { stop: stopDrawing } = drawing(model, root, ["data"], (width) => put(box, panels(model, width, tip)));
  return () => {
    stopDrawing();
    model.off("msg:custom", hear);
  };
}

// Trainings with new points put where they begin; what begins at 0 replaces all before.
export function merged(data, news) {
  const result = { ...data };
  for (const [name, { place, terms, ...curves }] of Object.entries(news)) {
    result[name] = { place, terms };
    for (const [curve, { start, points }] of Object.entries(curves)) {
      const before = data[name]?.[curve]?.points ?? [];
      result[name][curve] = { start: 0, points: [...before.slice(0, start), ...points] };
    }
  }
  return result;
}

// As JupyterLab's own stop button does: a running cell cannot hear a message of a widget, so the
// request goes to the server.
async function interrupt(model, status) {
  const page = document.getElementById("jupyter-config-data");
  const base = page ? JSON.parse(page.textContent).baseUrl : "/";
  const xsrf = document.cookie.match(/(?:^|; )_xsrf=([^;]*)/);
  const reply = await fetch(`${base}api/kernels/${model.get("kernel_id")}/interrupt`, {
    method: "POST",
    headers: xsrf ? { "X-XSRFToken": decodeURIComponent(xsrf[1]) } : {},
  });
  status.textContent = reply.ok ? "stopping …" : "use the ■ of the toolbar";
}

function panels(model, width, tip) {
  const found = Object.entries(model.get("data")).sort(([, a], [, b]) => a.place - b.place);
  const trainings = found.map(([name, training], n) => ({
    name,
    colour: PALETTE[n % PALETTE.length],
    terms: training.terms,
    losses: training.losses.points,
    evaluations: training.evaluations.points,
  }));
  const terms = [...new Set(trainings.flatMap((one) => one.terms))];
  const dash = Object.fromEntries(terms.map((term, n) => [term, DASHES[n % DASHES.length]]));
  const columns = width >= 1000 ? 3 : width >= 620 ? 2 : 1;
  const one = Math.floor((width - 18 * (columns - 1)) / columns);
  const lossWidth = columns === 2 ? width : one;
  const curve = (points, index) => points.map((point) => [point[0], point[index] ?? NaN]);
  const path = (points) => points.map(([step, , uniformity, alignment]) => [uniformity ?? NaN, alignment ?? NaN, step]);

  const loss = panel(
    "loss terms",
    chart({
      width: lossWidth,
      label: "loss terms by step",
      x: { label: "step", whole: true },
      y: { label: "loss" },
      series: trainings.flatMap(({ name, colour, terms: own, losses }) =>
        own.map((term, n) => ({
          name: `${name}: ${term}`,
          colour,
          dash: dash[term],
          width: losses.length > 100 ? 1.3 : 2,
          kind: "line",
          points: curve(losses, n + 1),
        })),
      ),
      tip,
    }),
  );
  if (columns === 2) loss.style.gridColumn = "1 / -1";
  const dev = panel(
    `dev score: ${model.get("dev_name")}`,
    chart({
      width: one,
      label: "dev score by step",
      x: { label: "step", whole: true },
      y: { label: "Spearman × 100" },
      series: trainings.map(({ name, colour, evaluations }) => ({ name, colour, kind: "line", points: curve(evaluations, 1) })),
      tip,
    }),
  );
  const geometry = panel(
    "alignment over uniformity (low is good)",
    chart({
      width: one,
      label: "alignment over uniformity, from evaluation to evaluation",
      x: { label: "uniformity" },
      y: { label: "alignment" },
      series: trainings.flatMap(({ name, colour, evaluations }) => {
        const points = path(evaluations).map(([x, y, step]) =>
          Object.assign([x, y], { text: `${name}, step ${step}\nuniformity ${x}, alignment ${y}` }),
        );
        return [
          { name, colour, kind: "line", points },
          { name: `${name}: last`, colour, kind: "points", points: points.slice(-1) },
        ];
      }),
      tip,
    }),
  );
  const names = trainings.map(({ name, colour }) => ({ name, colour, symbol: "point" }));
  const looks = terms.map((term) => ({ name: term, colour: "var(--ink)", dash: dash[term] }));
  return [
    legend([...names, ...(terms.length > 1 ? looks : [])]),
    html(
      "div",
      { class: "panels", style: `grid-template-columns:repeat(${columns},minmax(0,1fr))` },
      loss,
      dev,
      geometry,
    ),
  ];
}

function panel(title, content) {
  return html("div", { class: "panel" }, html("h4", {}, title), content);
}
