// Losses of points and their gradients: the terms of cselab/methods that need nothing but points,
// in float64. tests/workbook/widgets/test_browser_losses.py holds each to its Python function.

// Reverse-mode differentiation of scalars. A node has its value, and the slope of each parent.
class Tape {
  constructor() {
    this.nodes = [];
  }

  node(value, parents = [], slopes = []) {
    const one = { value, parents, slopes, gradient: 0 };
    this.nodes.push(one);
    return one;
  }

  // shift + the sum of factors * nodes.
  linear(nodes, factors, shift = 0) {
    let value = shift;
    nodes.forEach((one, n) => (value += factors[n] * one.value));
    return this.node(value, nodes, factors);
  }

  sum(nodes) {
    return this.linear(
      nodes,
      nodes.map(() => 1),
    );
  }

  mean(nodes) {
    return this.linear(
      nodes,
      nodes.map(() => 1 / nodes.length),
    );
  }

  minus(a, b) {
    return this.linear([a, b], [1, -1]);
  }

  scaled(a, factor, shift = 0) {
    return this.linear([a], [factor], shift);
  }

  times(a, b) {
    return this.node(a.value * b.value, [a, b], [b.value, a.value]);
  }

  over(a, b) {
    const value = a.value / b.value;
    return this.node(value, [a, b], [1 / b.value, -value / b.value]);
  }

  square(a) {
    return this.node(a.value ** 2, [a], [2 * a.value]);
  }

  root(a) {
    const value = Math.sqrt(a.value);
    return this.node(value, [a], [value > 0 ? 0.5 / value : 0]);
  }

  exp(a) {
    const value = Math.exp(a.value);
    return this.node(value, [a], [value]);
  }

  log(a) {
    return this.node(Math.log(a.value), [a], [1 / a.value]);
  }

  // As torch's clamp(min=least): no gradient below.
  atLeast(a, least) {
    return a.value >= least ? a : this.node(least);
  }

  dot(a, b) {
    let value = 0;
    a.forEach((one, n) => (value += one.value * b[n].value));
    const slopes = [...b.map((one) => one.value), ...a.map((one) => one.value)];
    return this.node(value, [...a, ...b], slopes);
  }

  logSumExp(nodes) {
    const most = Math.max(...nodes.map((one) => one.value));
    if (!Number.isFinite(most)) return this.node(most);
    const parts = nodes.map((one) => Math.exp(one.value - most));
    const total = parts.reduce((a, b) => a + b, 0);
    return this.node(
      most + Math.log(total),
      nodes,
      parts.map((part) => part / total),
    );
  }

  length(row) {
    return this.root(this.sum(row.map((one) => this.square(one))));
  }

  // As torch.nn.functional.normalize.
  unit(row) {
    const length = this.atLeast(this.length(row), 1e-12);
    return row.map((one) => this.over(one, length));
  }

  backward(result) {
    for (const one of this.nodes) one.gradient = 0;
    result.gradient = 1;
    for (let n = this.nodes.length - 1; n >= 0; n--) {
      const { gradient, parents, slopes } = this.nodes[n];
      if (gradient !== 0) {
        for (let k = 0; k < parents.length; k++) parents[k].gradient += gradient * slopes[k];
      }
    }
  }
}

const others = (list, n) => list.filter((_, m) => m !== n);
const columns = (rows) => rows[0].map((_, c) => rows.map((row) => row[c]));

// Each row's logits with all columns: their cosine / temperature.
function cosineLogits(tape, rows, candidates, temperature) {
  const [a, b] = [rows, candidates].map((all) => all.map((row) => tape.unit(row)));
  return a.map((row) => b.map((column) => tape.scaled(tape.dot(row, column), 1 / temperature)));
}

// The mean over rows of log sum exp(candidates) - positive.
function crossEntropy(tape, logits, positive, candidates = (row) => row) {
  return tape.mean(
    logits.map((row, n) => tape.minus(tape.logSumExp(candidates(row, n)), row[positive(n)])),
  );
}

function infoNce(tape, a, b, temperature, layout = "cross") {
  if (layout === "all") return otherView(tape, [...a, ...b], [...a, ...b], temperature);
  return crossEntropy(tape, cosineLogits(tape, a, b, temperature), (n) => n);
}

// Rows and columns are view-major; a row's own column is no candidate, its other view is positive.
function otherView(tape, rows, candidates, temperature) {
  const logits = cosineLogits(tape, rows, candidates, temperature);
  const half = rows.length / 2;
  return crossEntropy(tape, logits, (n) => (n + half) % rows.length, others);
}

function centred(tape, column) {
  const mean = tape.mean(column);
  return column.map((one) => tape.minus(one, mean));
}

// Columns with mean 0 and variance 1: biased with batch norm's epsilon, or unbiased.
function standardised(tape, rows, released) {
  return columns(rows).map((column) => {
    const middle = centred(tape, column);
    const squares = tape.sum(middle.map((one) => tape.square(one)));
    const spread = released
      ? tape.root(tape.scaled(squares, 1 / rows.length, 1e-5))
      : tape.atLeast(tape.root(tape.scaled(squares, 1 / (rows.length - 1))), 1e-12);
    return middle.map((one) => tape.over(one, spread));
  });
}

// A length that is 0, without a gradient, below 1e-15.
function safeLength(tape, row) {
  const squares = tape.sum(row.map((one) => tape.square(one)));
  return squares.value > 1e-30 ? tape.root(squares) : tape.node(0);
}

function modulusRatio(tape, p, q) {
  const apart = safeLength(
    tape,
    p.map((one, c) => tape.minus(one, q[c])),
  );
  const lengths = tape.sum([safeLength(tape, p), safeLength(tape, q)]);
  return lengths.value > 0 ? tape.over(apart, lengths) : apart;
}

function safeCosine(tape, a, b) {
  const lengths = tape.times(safeLength(tape, a), safeLength(tape, b));
  return tape.over(tape.dot(a, b), tape.atLeast(lengths, 1e-8));
}

// -log, below 0.05 its tangent.
function extendedNegLog(tape, s) {
  if (s.value < 0.05) return tape.scaled(s, -1 / 0.05, 1 - Math.log(0.05));
  return tape.scaled(tape.log(s), -1);
}

// The modulus constraint between the towers' directions and between their lengths.
function modulus(tape, i, ii, lengthsI, lengthsII, variant) {
  const pairs = (v, use) => i[v].map((_, n) => use(n));
  const ratios = [0, 1].map((v) =>
    pairs(v, (n) => modulusRatio(tape, lengthsI[v][n], lengthsII[1 - v][n])),
  );
  if (variant === "paper") {
    const both = pairs(0, (n) => {
      const weight = extendedNegLog(tape, safeCosine(tape, i[0][n], ii[0][n]));
      return tape.times(weight, tape.sum([ratios[0][n], ratios[1][n]]));
    });
    return tape.mean(both);
  }
  const parts = [0, 1].flatMap((v) =>
    pairs(v, (n) => {
      const s = safeCosine(tape, i[v][n], ii[1 - v][n]);
      const weight = tape.scaled(tape.log(s.value < 0 ? tape.node(1e-4) : s), -1);
      return tape.times(weight, ratios[v][n]);
    }),
  );
  return tape.mean(parts);
}

function uniformity(tape, rows, t) {
  const unit = rows.map((row) => tape.unit(row));
  const parts = [];
  for (let n = 0; n < unit.length; n++) {
    for (let m = 0; m < n; m++) {
      const apart = unit[n].map((one, c) => tape.square(tape.minus(one, unit[m][c])));
      parts.push(tape.scaled(tape.sum(apart), -t));
    }
  }
  return tape.scaled(tape.logSumExp(parts), 1, -Math.log(parts.length));
}

function alignment(tape, a, b) {
  return tape.mean(
    a.map((row, n) => {
      const [u, v] = [tape.unit(row), tape.unit(b[n])];
      return tape.sum(u.map((one, c) => tape.square(tape.minus(one, v[c]))));
    }),
  );
}

// Terms of one space, summed over the spaces: (tape, [view a, view b], options, context).
// context: { temperature, step, coin }.
const OF_A_SPACE = {
  nce: (tape, [a, b], { layout }, { temperature }) => infoNce(tape, a, b, temperature, layout),

  off_info(tape, [a, b], { negative_weight, positive_scale }, { temperature }) {
    const clean = a.map((row, n) => row.map((one, c) => tape.mean([one, b[n][c]])));
    const apart = cosineLogits(tape, clean, clean, temperature);
    const losses = a.map((row, n) => {
      const cosine = tape.dot(tape.unit(row), tape.unit(b[n]));
      const positive = tape.scaled(cosine, positive_scale / temperature);
      const negatives = others(apart[n], n).map((one) =>
        tape.scaled(one, 1, Math.log(negative_weight)),
      );
      return tape.minus(tape.logSumExp([positive, ...negatives]), positive);
    });
    return tape.mean(losses);
  },

  dcl(tape, [a, b], { temperature, variant }) {
    const released = variant === "released";
    const [left, right] = [a, b].map((rows) => standardised(tape, rows, released));
    const factor = 1 / (temperature * (released ? a.length : 1));
    const logits = left.map((c) => right.map((d) => tape.scaled(tape.dot(c, d), factor)));
    const mean = crossEntropy(tape, logits, (n) => n);
    return released ? mean : tape.scaled(mean, left.length);
  },

  barlow(tape, [a, b]) {
    const [left, right] = [a, b].map((rows) =>
      columns(rows).map((column) => tape.unit(centred(tape, column))),
    );
    const parts = left.flatMap((one, c) =>
      right.map((other, d) => {
        const correlation = tape.dot(one, other);
        if (c === d) return tape.square(tape.scaled(correlation, -1, 1));
        return tape.scaled(tape.square(correlation), 0.012);
      }),
    );
    return tape.sum(parts);
  },

  arc(tape, [a, b], { margin }, { temperature }) {
    const angle = (margin * Math.PI) / 180;
    const logits = cosineLogits(tape, a, b, temperature);
    logits.forEach((row, n) => {
      const cosine = tape.scaled(row[n], temperature);
      const sine = tape.root(tape.atLeast(tape.scaled(tape.square(cosine), -1, 1), 1e-7));
      const factors = [Math.cos(angle) / temperature, -Math.sin(angle) / temperature];
      row[n] = tape.linear([cosine, sine], factors);
    });
    return crossEntropy(tape, logits, (n) => n);
  },

  rank(tape, [a, b], options, { temperature }) {
    const logSoftmax = (row) => {
      const total = tape.logSumExp(row);
      return row.map((one) => tape.minus(one, total));
    };
    const lists = (rows, candidates) =>
      cosineLogits(tape, rows, candidates, temperature).map((row, n) => logSoftmax(others(row, n)));
    const [p, q] = [lists(a, b), lists(b, a)];
    const divergences = p.map((row, n) => {
      const parts = row.flatMap((one, k) => {
        const other = q[n][k];
        const middle = tape.scaled(tape.logSumExp([one, other]), 1, -Math.log(2));
        return [one, other].map((x) => tape.times(tape.exp(x), tape.minus(x, middle)));
      });
      return tape.scaled(tape.sum(parts), 0.5);
    });
    return tape.mean(divergences);
  },

  self_contrast(tape, [a, b]) {
    const lengths = (row) => tape.atLeast(tape.length(row), 1e-8);
    return tape.mean(
      a.map((row, n) => tape.over(tape.dot(row, b[n]), tape.times(lengths(row), lengths(b[n])))),
    );
  },

  nt_xent: (tape, [a, b], { temperature }) => infoNce(tape, a, b, temperature, "all"),

  smoothed(tape, [a, b], { warm_up }, { temperature, step }) {
    const weight = Math.min(1, step / Math.max(1, warm_up)); // no memory: nothing is smoothed
    return tape.scaled(infoNce(tape, a, b, temperature), weight);
  },

  modulus(tape, [a, b], { variant }) {
    const swapped = variant === "paper" ? [b, a] : [a, b];
    return tape.scaled(modulus(tape, [a, b], swapped, [a, b], [a, b], variant), 0.5);
  },

  // InfoNCE's parts, at t = 1 / (2 temperature).
  align: (tape, [a, b], options, { temperature }) =>
    tape.scaled(alignment(tape, a, b), 0.5 / temperature),

  uniform: (tape, views, options, { temperature }) =>
    tape.mean(views.map((rows) => uniformity(tape, rows, 0.5 / temperature))),
};

// Terms between two towers: (tape, tower I, tower II, options, context).
const OF_TWO_TOWERS = {
  icnce(tape, anchors, candidates, { variant }, { temperature }) {
    if (variant === "released")
      return otherView(tape, anchors.flat(), candidates.flat(), temperature);
    return tape.mean([0, 1].map((v) => infoNce(tape, anchors[v], candidates[v], temperature)));
  },

  icnce_by_coin(tape, i, ii, options, context) {
    const [anchors, candidates] = context.coin ? [i, ii] : [ii, i];
    return OF_TWO_TOWERS.icnce(tape, anchors, candidates, options, context);
  },

  ictm: (tape, i, ii, { variant }) => modulus(tape, i, ii, i, ii, variant),
};

export const PORTED = [...Object.keys(OF_A_SPACE), ...Object.keys(OF_TWO_TOWERS)];

// A term's value, and its gradient on each point.
//
// points: one [view a, view b] a space, each of N rows. options: hyperparameters by name. context:
// { temperature, step, coin }. Gives { value, gradients }, gradients as points.
export function lossOf(name, points, options, context) {
  const tape = new Tape();
  const nodes = points.map((views) =>
    views.map((rows) => rows.map((row) => row.map((x) => tape.node(x)))),
  );
  const total =
    name in OF_TWO_TOWERS
      ? OF_TWO_TOWERS[name](tape, ...nodes, options, context)
      : tape.sum(nodes.map((views) => OF_A_SPACE[name](tape, views, options, context)));
  tape.backward(total);
  const gradients = nodes.map((views) =>
    views.map((rows) => rows.map((row) => row.map((one) => one.gradient))),
  );
  return { value: total.value, gradients };
}

// Alignment (over the pairs of all spaces), uniformity (of view a of all spaces) and mean lengths.
export function geometry(points) {
  const tape = new Tape();
  const [a, b] = [0, 1].map((v) =>
    points.flatMap((views) => views[v].map((row) => row.map((x) => tape.node(x)))),
  );
  const lengths = points.map((views) => {
    const all = views.flat().map((row) => Math.hypot(...row));
    return all.reduce((x, y) => x + y, 0) / all.length;
  });
  return {
    alignment: alignment(tape, a, b).value,
    uniformity: uniformity(tape, a, 2).value,
    lengths,
  };
}

// One step down the sum of weighted gradients; on the sphere, back to length 1.
//
// found: results of lossOf by term. weights: by term.
export function descended(points, found, weights, rate, sphere) {
  return points.map((views, s) =>
    views.map((rows, v) =>
      rows.map((row, n) => {
        const moved = row.map((x, c) => {
          let slope = 0;
          for (const name in found) slope += weights[name] * found[name].gradients[s][v][n][c];
          return x - rate * slope;
        });
        return sphere ? onSphere(moved) : moved;
      }),
    ),
  );
}

export function onSphere(row) {
  const length = Math.hypot(...row) || 1;
  return row.map((x) => x / length);
}
