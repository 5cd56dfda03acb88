// A tower's reading of a sentence: attention (n, h, L, L), and lengths of the values (n, h, L), of
// the context and of the states (n, L), of n layers, h heads and L tokens.

// Numbers from base64 of float16.
function halves(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const bits = new Uint16Array(bytes.buffer);
  return Float32Array.from(bits, (half) => {
    const sign = half & 0x8000 ? -1 : 1;
    const exponent = (half >> 10) & 31;
    const fraction = half & 1023;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  });
}

export function unpack(found) {
  const length = found.tokens.length;
  const reading = { tokens: found.tokens, classes: found.classes, length };
  for (const name of ["attention", "values", "others", "context", "states"]) {
    reading[name] = found[name] && halves(found[name]);
  }
  reading.layers = reading.states.length / length;
  reading.heads = reading.values.length / reading.states.length;
  return reading;
}

// The cells (L, L) of a layer and head; head 0 is the mean of all. `cael`: the layers that read the
// other tower's values.
export function select(reading, layer, head, show, cael) {
  const { length, heads, attention } = reading;
  const crossing = show === "other lengths" && cael.includes(layer);
  const lengths = show === "weights" ? null : crossing ? reading.others : reading.values;
  const cells = new Float32Array(length * length);
  const wanted = head ? [head - 1] : Array.from({ length: heads }, (_, n) => n);
  for (const one of wanted) {
    const from = ((layer - 1) * heads + one) * length;
    for (let cell = 0; cell < length * length; cell++) {
      const weight = attention[from * length + cell];
      cells[cell] += (lengths ? weight * lengths[from + (cell % length)] : weight) / wanted.length;
    }
  }
  return cells;
}

// The attention that each token receives in a layer and head; sums to 1.
export function received(reading, layer, head) {
  const { length } = reading;
  const cells = select(reading, layer, head, "weights", []);
  return Array.from({ length }, (_, key) => {
    let sum = 0;
    for (let query = 0; query < length; query++) sum += cells[query * length + key];
    return sum / length;
  });
}

// The share of attention that each of the four token classes receives in a layer.
export function shares(reading, layer) {
  const sums = [0, 0, 0, 0];
  received(reading, layer, 0).forEach((share, token) => (sums[reading.classes[token]] += share));
  return sums;
}

// The numbers of a layer, one a token.
export function ofLayer(rows, reading, layer) {
  return Array.from(rows.subarray((layer - 1) * reading.length, layer * reading.length));
}

// ‖h_cls‖ / ‖H‖_F of a layer, H the context of all other tokens: JTCSE Eq. 6.
export function energy(reading, layer) {
  const [cls, ...others] = ofLayer(reading.context, reading, layer);
  return cls / Math.hypot(...others);
}

// Which tokens the reader has hidden.
export function hidden(reading, view) {
  return reading.classes.map(
    (kind) => (view.hide_special && kind < 2) || (view.hide_punctuation && kind === 2),
  );
}
