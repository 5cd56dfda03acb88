// A descent of points in the browser, and the points that it starts from.
import { descended, geometry, lossOf, onSphere } from "./losses.js";

const WINDOW = 20; // steps over which a rising loss is a step that is too long
const MOST_TRAIL = 120;

// Points with their history and trail, moved down the loss of one dictionary of weights.
//
// state: { weights(), options(), temperature(), coins(), sphere(), spaces, names, term(name) }, where
// names are the terms' and term gives the catalogue's entry. ask(names, points, step): a promise of
// terms that the kernel computes, or null without one.
export class Run {
  constructor(state, ask) {
    this.state = state;
    this.ask = ask;
    this.version = 0; // of points and loss: what the kernel says of older ones is left out
    this.evaluating = null; // the promise of `refresh`
    this.warned = null; // a step size whose warning has been read
  }

  // Begin at `points`; rows and trail where some steps have been taken already.
  begin(points, start = points, rows = [], trail = [points]) {
    this.version++;
    Object.assign(this, { points, start, rows: [...rows], trail: [...trail], found: null });
    this.stride = 1;
    this.acknowledged = this.sent = 0;
  }

  // Rows from this index on differ from those that were sent. `sent` counts the rows up to the newest
  // message, `acknowledged` those that Python is known to have.
  rewrite(index) {
    this.acknowledged = Math.min(this.acknowledged, index);
    this.sent = Math.min(this.sent, index);
  }

  get step() {
    return this.rows.length ? this.rows.at(-1).step : 0;
  }

  // Whether the browser computes a term by itself.
  isLocal(name) {
    const known = this.state.term(name).known;
    return known !== "" && !(known === "barlow" && this.state.options()[name].artificial_rows > 0);
  }

  // Names of the terms with a weight that can be computed here.
  active() {
    const weights = this.state.weights();
    return this.state.names.filter((name) => weights[name] > 0 && (this.ask || this.isLocal(name)));
  }

  // Values and gradients of the active terms at some points.
  evaluate(points, step) {
    const [options, coins] = [this.state.options(), this.state.coins()];
    const context = {
      temperature: this.state.temperature(),
      step,
      coin: coins[step % coins.length] === "1",
    };
    const found = {};
    const remote = [];
    for (const name of this.active()) {
      const { known, fixed } = this.state.term(name);
      if (this.isLocal(name)) {
        found[name] = lossOf(known, points, { ...options[name], ...fixed }, context);
      } else remote.push(name);
    }
    if (!remote.length) return found;
    return this.ask(remote, points, step).then((answer) => ({ ...found, ...answer }));
  }

  row(points, found, step) {
    const [weights, { alignment, uniformity, lengths }] = [this.state.weights(), geometry(points)];
    const row = { step, alignment, uniformity };
    this.state.spaces.forEach((space, s) => (row[`‖${space}‖`] = lengths[s]));
    for (const name in found) row[name] = weights[name] * found[name].value;
    return row;
  }

  total(found = this.found) {
    const weights = this.state.weights();
    const names = Object.keys(found).filter((name) => weights[name] > 0);
    return names.reduce((sum, name) => sum + weights[name] * found[name].value, 0);
  }

  // Evaluate the present points anew: they were moved by hand, or the loss was changed. The kernel
  // gets one request at a time, and then one for the newest points alone.
  refresh() {
    this.version++;
    this.evaluating ??= this.evaluateNewest().finally(() => (this.evaluating = null));
    return this.evaluating;
  }

  async evaluateNewest() {
    let version;
    do {
      const { points, step } = this;
      version = this.version;
      const found = await this.evaluate(points, step);
      if (version === this.version) this.take(found);
    } while (version !== this.version);
  }

  take(found) {
    this.found = found;
    this.totals = [this.total()];
    this.kept = [this.points];
    const sum = (row) => Object.keys(found).reduce((all, name) => all + (row[name] ?? 0), 0);
    const before = this.rows.slice(0, -1).map(sum);
    this.peak = [...before, this.total()].reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    const index = Math.max(0, this.rows.length - 1);
    this.rows[index] = this.row(this.points, found, this.step);
    this.rewrite(index);
  }

  // Set one point. The trail begins anew there; before the first step, so does all.
  move(s, v, n, row) {
    this.version++;
    this.points = replaced(this.points, s, v, n, row);
    this.trail = [this.points];
    this.stride = 1;
    if (this.step > 0) return;
    this.start = this.points;
    this.rewrite(0);
  }

  // Take over steps that were taken elsewhere; `rows` are all from step `from` on. Gives whether they
  // go on from steps that are known here.
  join(points, from, rows) {
    if (from > this.step + 1) return false;
    this.version++;
    const first = this.rows.findIndex((row) => row.step >= from);
    const index = first < 0 ? this.rows.length : first;
    const isLater = index === this.rows.length;
    this.rows = [...this.rows.slice(0, index), ...rows];
    this.rewrite(index);
    Object.assign(this, { points, found: null });
    this.trail = isLater ? [...this.trail, points] : [points];
    return true;
  }

  // One step. Gives what went wrong: "", "unknown" without an answer of the kernel, or why the
  // points went back: "infinite", "rising".
  async descend(rate) {
    const isMissing = (name) => !this.found?.[name];
    if (this.evaluating) await this.evaluating;
    if (this.active().some(isMissing)) await this.refresh();
    const names = this.active();
    if (!names.length) return "";
    if (names.some(isMissing)) return "unknown";
    const { version } = this;
    const found = Object.fromEntries(names.map((name) => [name, this.found[name]]));
    const points = descended(this.points, found, this.state.weights(), rate, this.state.sphere());
    const step = this.step + 1;
    const next = await this.evaluate(points, step);
    if (version !== this.version) return "";
    if (names.some((name) => !next[name])) return "unknown";
    if (!isFinitePoints(points) || !Number.isFinite(this.total(next))) {
      this.goBack();
      return "infinite";
    }
    this.version++;
    this.points = points;
    this.found = next;
    this.rows.push(this.row(points, next, step));
    this.follow(points, step);
    this.totals.push(this.total());
    this.peak = Math.max(this.peak, Math.abs(this.total()));
    this.kept.push(points);
    if (this.totals.length > WINDOW + 1) {
      this.totals.shift();
      this.kept.shift();
    }
    if (this.warned !== rate && this.isRising()) {
      this.warned = rate;
      this.goBack();
      return "rising";
    }
    return "";
  }

  // A mean of some steps, as a coin may change the loss from step to step; small rises of a loss
  // that has fallen far do not count.
  isRising() {
    if (this.totals.length <= WINDOW) return false;
    const now = this.totals.slice(-5).reduce((a, b) => a + b, 0) / 5;
    return now - this.totals[0] > 0.5 * Math.max(Math.abs(this.totals[0]), 0.1 * this.peak);
  }

  // To the points before the loss rose.
  goBack() {
    const steps = this.kept.length - 1;
    this.version++;
    this.points = this.kept[0];
    this.rows.length = Math.max(1, this.rows.length - steps);
    this.rewrite(this.rows.length - 1);
    this.trail = [this.points];
    this.stride = 1;
    this.found = null;
  }

  // Half of `rate`, or half of that ..., the first with which the loss falls over some steps.
  async suggestion(rate) {
    const start = await this.evaluate(this.points, this.step);
    for (let tried = rate / 2; tried > 1e-7; tried /= 2) {
      const rounded = Number(tried.toPrecision(1));
      let [points, found] = [this.points, start];
      for (let n = 0; n < WINDOW && found; n++) {
        points = descended(points, found, this.state.weights(), rounded, this.state.sphere());
        found = await this.evaluate(points, this.step); // one coin: values can be compared
        if (!isFinitePoints(points) || !Number.isFinite(this.total(found))) found = null;
      }
      if (found && this.total(found) < this.total(start)) return rounded;
    }
    return null;
  }

  // Remember a way of at most MOST_TRAIL points: every second is left out where it is full.
  follow(points, step) {
    if (step % this.stride === 0) this.trail.push(points);
    if (this.trail.length > MOST_TRAIL) {
      this.trail = this.trail.filter((_, n) => n % 2 === 0);
      this.stride *= 2;
    }
  }
}

export function replaced(points, s, v, n, row) {
  const at = (list, k, value) => list.map((one, m) => (m === k ? value : one));
  return at(points, s, at(points[s], v, at(points[s][v], n, row)));
}

const isFinitePoints = (points) => points.flat(3).every(Number.isFinite);

// Where points can start, by name: (spaces, sentences, size) => points.
export const PRESETS = {
  random: (spaces, sentences, size) =>
    scattered(spaces, sentences, size, normals(sentences, size), 1),

  collapse(spaces, sentences, size) {
    const place = Array.from({ length: size }, (_, c) => [0.9, 0.5, 0.3][c]);
    return scattered(spaces, sentences, size, Array(sentences).fill(place), 0.04);
  },

  "hard negative"(spaces, sentences, size) {
    const points = scattered(spaces, sentences, size, ring(sentences, size), 0.12);
    return points.map((views) => {
      const near = views[1][0].map((x) => x + 0.03 * normal());
      return [views[0], views[1].map((row, n) => (n === 1 ? near : row))];
    });
  },

  // Between the towers, or between the views of one tower.
  "unequal lengths"(spaces, sentences, size) {
    const points = scattered(spaces, sentences, size, ring(sentences, size), 0.12);
    const factor = (s, v) => ((spaces > 1 ? s : v) ? 1.8 : 0.5);
    return points.map((views, s) =>
      views.map((rows, v) => rows.map((row) => row.map((x) => x * factor(s, v)))),
    );
  },

  "two towers apart"(spaces, sentences, size) {
    const points = scattered(spaces, sentences, size, ring(sentences, size), 0.12);
    const turned = points.at(-1).map((rows) => rows.map((row) => row.map((x) => -x)));
    return [...points.slice(0, -1), turned];
  },
};

export const placed = (points, sphere) =>
  sphere ? points.map((views) => views.map((rows) => rows.map(onSphere))) : points;

// The points with one dimension more or less.
export const resized = (points, size) =>
  points.map((views) =>
    views.map((rows) =>
      rows.map((row) =>
        row.length > size ? row.slice(0, size) : [...row, ...normals(1, size - row.length)[0]],
      ),
    ),
  );

function scattered(spaces, sentences, size, centres, spread) {
  const view = () => centres.map((centre) => centre.map((x) => x + spread * normal()));
  return Array.from({ length: spaces }, () => [view(), view()]);
}

function ring(sentences, size) {
  return Array.from({ length: sentences }, (_, n) => {
    const angle = (2 * Math.PI * n) / sentences + 0.4;
    const height = size > 2 ? [((n % 2) - 0.5) * 0.8] : [];
    return [Math.cos(angle), Math.sin(angle), ...height];
  });
}

const normals = (rows, size) =>
  Array.from({ length: rows }, () => Array.from({ length: size }, normal));
const normal = () =>
  Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
