// A desk as JupyterLab is one: views of a widget share a model, whose kernel is `window.kernel`.
//
// As in ipywidgets, one message of state is on its way, and later ones are merged until the kernel has
// answered. `desk.busy = true`: it does not answer, until `desk.release()`.
globalThis.makeDesk = (state) => {
  const listeners = new Map();
  const queue = [];
  const changed = new Set();
  let [isAsking, isSaving, later] = [false, false, null];
  const fire = (event, ...words) => (listeners.get(event) ?? []).forEach((one) => one(...words));
  const differs = (name, value) => JSON.stringify(state[name]) !== JSON.stringify(value);

  const model = {
    get: (name) => state[name],
    set(name, value) {
      changed.add(name);
      const isNew = differs(name, value);
      state[name] = value;
      if (isNew) fire(`change:${name}`);
    },
    on: (event, listener) => listeners.set(event, [...(listeners.get(event) ?? []), listener]),
    save_changes() {
      const attributes = Object.fromEntries([...changed].map((name) => [name, state[name]]));
      changed.clear();
      if (isSaving) later = { ...later, ...attributes };
      else save(attributes);
    },
    send: (message) => put({ message }),
  };

  function save(attributes) {
    isSaving = true;
    put({ state: attributes });
  }

  function put(one) {
    desk.sent.push(one);
    queue.push(JSON.stringify(one));
    work();
  }

  async function work() {
    if (isAsking || desk.busy) return;
    isAsking = true;
    while (queue.length && !desk.busy) {
      const text = queue.shift();
      hear(await window.kernel(text));
      if (!("state" in JSON.parse(text))) continue;
      isSaving = false;
      if (later) save(later);
      later = null;
    }
    isAsking = false;
  }

  function hear(answers) {
    for (const { method, state: given = {}, content } of answers) {
      const news = Object.keys(given).filter((name) => differs(name, given[name]));
      Object.assign(state, given);
      for (const name of news) fire(`change:${name}`);
      if (method === "custom") fire("msg:custom", content);
    }
  }

  const desk = { model, sent: [], busy: false, hear, release: () => ((desk.busy = false), work()) };
  return desk;
};
