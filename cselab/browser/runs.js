// Run comparer: finished trainings side by side, with bootstrap intervals of their differences.
import {
  choice,
  drawing,
  html,
  legend,
  PALETTE,
  panel,
  put,
  set,
  setUp,
  short,
  tooltip,
} from "./kit.js";
import { chart, extent } from "./chart.js";

const LIST =
  "display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,300px),1fr));gap:2px 14px;" +
  "max-height:148px;overflow-y:auto;border:1px solid var(--line);border-radius:4px;padding:6px 8px;margin:4px 0";

const DIFFERENCES = "test score minus the baseline's";

export function render({ model, el }) {
  const root = setUp(el, "Run comparer");
  const [names, most, kernel] = ["names", "most", "kernel"].map((name) => model.get(name));
  const asked = new Set();
  const colours = new Map(); // of the picked runs: each keeps its own
  const boxes = names.map((name) => {
    const box = html("input", {
      type: "checkbox",
      onchange: () => {
        const others = model.get("picked").filter((one) => one !== name);
        set(model, "picked", box.checked ? [...others, name] : others);
      },
    });
    return box;
  });
  const labels = names.map((name, n) =>
    html("label", {}, boxes[n], html("span", { style: "color:var(--ink)" }, name)),
  );
  const usable = names.filter((name) => kernel || name in model.get("opened"));
  const key = html("div");
  const panels = html("div", { class: "panels" });
  root.append(
    html(
      "div",
      { role: "group", "aria-label": `runs, at most ${most}`, style: LIST, tabindex: 0 },
      labels,
    ),
    html("div", { class: "bar" }, choice(model, "baseline", "baseline", usable)),
    key,
    panels,
  );
  const tip = tooltip(root);

  // An interrupted kernel answers with a message.
  const hear = ({ failed: { run }, error }) =>
    model.set("failed", { ...model.get("failed"), [run]: error });
  model.on("msg:custom", hear);

  function recolour(picked) {
    for (const name of colours.keys()) if (!picked.includes(name)) colours.delete(name);
    for (const name of picked) {
      const free = PALETTE.find((colour) => ![...colours.values()].includes(colour));
      if (!colours.has(name)) colours.set(name, free);
    }
  }

  // Ask the kernel to open what is missing.
  function open(wanted) {
    for (const name of asked) if (!wanted.includes(name)) asked.delete(name);
    for (const name of wanted) {
      if (!kernel || name in model.get("opened") || asked.has(name)) continue;
      asked.add(name);
      model.send({ run: name });
    }
  }

  function draw(width) {
    const [picked, baseline, opened, failed] = ["picked", "baseline", "opened", "failed"].map(
      (name) => model.get(name),
    );
    open([...new Set([...picked, baseline])]);
    names.forEach((name, n) => {
      boxes[n].checked = picked.includes(name);
      boxes[n].disabled = !usable.includes(name) || (picked.length >= most && !boxes[n].checked);
      labels[n].style.opacity = boxes[n].disabled ? 0.6 : 1;
      labels[n].title = usable.includes(name)
        ? boxes[n].disabled
          ? `at most ${most} runs are shown`
          : ""
        : "not opened when this page was made";
    });
    recolour(picked);
    const runs = picked
      .map((name) => ({ name, colour: colours.get(name), ...opened[name] }))
      .filter((run) => run.history);
    const lacking = [...new Set([...picked, baseline])].filter((name) => !(name in opened));
    put(
      key,
      legend(
        runs.map(({ name, colour }) => ({
          name: name === baseline ? `${name} (baseline)` : name,
          colour,
          symbol: "point",
        })),
      ),
      lacking
        .filter((name) => name)
        .map((name) =>
          html(
            "p",
            { class: name in failed ? "note warning" : "note", role: "status" },
            name in failed ? `${name} could not be opened: ${failed[name]}` : `opening ${name} …`,
          ),
        ),
    );
    const columns = width >= 660 ? 2 : 1;
    const half = Math.floor((width - 18 * (columns - 1)) / columns);
    panels.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    const others = picked.filter((name) => name !== baseline);
    const reference = opened[baseline];
    const compared =
      reference && runs.some(({ name }) => name !== baseline)
        ? differences(runs, reference, baseline, half, tip)
        : panel(
            DIFFERENCES,
            html("p", { class: "note" }, lacks(names, others, baseline, opened, failed)),
          );
    put(panels, devCurves(runs, half, tip), compared, phenomena(runs, width, tip));
  }

  const { stop } = drawing(model, root, ["picked", "baseline", "opened", "failed"], draw);
  return () => {
    stop();
    model.off("msg:custom", hear);
  };
}

// Why there is no difference to show.
function lacks(names, others, baseline, opened, failed) {
  if (!names.length) return "There is no finished run.";
  if (baseline in failed) return "The baseline could not be opened; choose another one.";
  if (!(baseline in opened)) return "The baseline is not opened yet.";
  if (!others.length) return "Pick a run beside the baseline.";
  return others.every((name) => name in failed)
    ? "No other run that is picked could be opened."
    : "No other run that is picked is opened yet.";
}

function devCurves(runs, width, tip) {
  return panel(
    "dev score",
    chart({
      width,
      label: "dev score by step",
      x: { label: "step", whole: true },
      y: { label: "Spearman × 100" },
      series: runs.map(({ name, colour, history }) => ({
        name,
        colour,
        kind: "line",
        points: history,
      })),
      tip,
    }),
  );
}

function differences(runs, reference, baseline, width, tip) {
  const tests = reference.tests.map(({ task }) => task);
  const notes = [];
  const others = runs.filter((run) => run.name !== baseline);
  const series = others.map(({ name, colour, tests: own }) => ({
    name,
    colour,
    kind: "points",
    points: reference.tests.flatMap((its, place) => {
      const mine = own.find(({ task }) => task === its.task);
      const why = incomparable(mine, its);
      if (why) {
        notes.push(`No difference of ${name} on ${its.task}: ${why}.`);
        return [];
      }
      const shift = (0.7 * (runs.findIndex((run) => run.name === name) + 0.5)) / runs.length - 0.35;
      const difference = mine.score - its.score;
      const [low, high] = interval(mine.resampled, its.resampled);
      const words = `${name}\n${its.task}: ${short(difference)} [${short(low)}, ${short(high)}] points\n${mine.score.toFixed(1)} against ${its.score.toFixed(1)}`;
      return [Object.assign([place + shift, difference, low, high], { text: words })];
    }),
  }));
  const heights = series.flatMap(({ points }) => points.flatMap((point) => point.slice(1)));
  return panel(
    DIFFERENCES,
    chart({
      width,
      label: "test scores minus the baseline's, with 95 % intervals",
      x: { names: tests, domain: [-0.5, tests.length - 0.5] },
      y: { label: "points, 95 % interval", domain: extent([0, ...heights], { margin: 0.08 }) },
      series,
      rules: [{ y: 0 }],
      tip,
    }),
    notes.map((words) => html("p", { class: "note" }, words)),
  );
}

// Why two scores of a test cannot be compared; nothing where they can.
function incomparable(mine, its) {
  if (!mine) return "it was not scored";
  if (mine.pairs !== its.pairs) return "its pairs are not those of the baseline";
  if (mine.score === null || its.score === null) return "all cosines of one of them are equal";
  return "";
}

function phenomena(runs, width, tip) {
  const names = [...new Set(runs.flatMap((run) => run.phenomena.map(([one]) => one)))];
  if (!names.length) return [];
  const box = panel(
    "test by phenomenon",
    chart({
      width,
      height: 300,
      label: "score by phenomenon of the synthetic pairs",
      x: { names, domain: [-0.5, names.length - 0.5] },
      y: { label: "Spearman × 100", zero: true },
      series: runs.map(({ name, colour, phenomena: scores }) => ({
        name,
        colour,
        kind: "bars",
        points: scores.flatMap(([one, score]) =>
          score === null ? [] : [[names.indexOf(one), score]],
        ),
      })),
      tip,
    }),
  );
  box.style.gridColumn = "1 / -1";
  return box;
}

// 95 % interval of the difference of two runs over the same resamples of the pairs.
export function interval(mine, its) {
  if (mine.includes(null) || its.includes(null)) return [NaN, NaN];
  const sorted = mine.map((score, n) => score - its[n]).sort((a, b) => a - b);
  return [0.025, 0.975].map((share) => {
    const place = share * (sorted.length - 1);
    const low = Math.floor(place);
    return sorted[low] + (place - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
  });
}
