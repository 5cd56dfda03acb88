// Draws the page's figures and widgets from its compressed payload: no kernel, no network.
if (!globalThis.DecompressionStream) {
  const words = "The figures of this page need a browser of 2023 or later.";
  document.querySelector("main").prepend(words);
  throw new Error(words);
}
const packed = document.getElementById("payload").textContent;
const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
const { plotly, figures, scripts, widgets } = await new Response(unpacked).json();

// A model as anywidget gives one, without a kernel: it holds the state that was saved.
function savedModel(state) {
  const listeners = new Map();
  return {
    get: (name) => state[name],
    set(name, value) {
      if (Object.is(state[name], value)) return;
      state[name] = value;
      for (const listener of listeners.get(`change:${name}`) ?? []) listener();
    },
    on(event, listener) {
      listeners.set(event, [...(listeners.get(event) ?? []), listener]);
    },
    off(event, listener) {
      listeners.set(
        event,
        (listeners.get(event) ?? []).filter((one) => one !== listener),
      );
    },
    save_changes() {},
    send() {},
  };
}

for (const [name, source] of Object.entries(scripts)) {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { default: widget } = await import(address);
  widgets.forEach(({ script, state }, n) => {
    if (script !== name) return;
    const el = document.getElementById(`widget-${n}`);
    try {
      widget.render({ model: savedModel(state), el });
    } catch (error) {
      // the others and the figures are still drawn
      el.textContent = `This widget could not be drawn: ${error}`;
      console.error(error);
    }
  });
}

if (figures.length) {
  const script = document.createElement("script");
  script.textContent = plotly;
  document.head.append(script);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const look = () => {
    const style = getComputedStyle(document.documentElement);
    const [ink, line, edge] = ["--ink", "--line", "--edge"].map((name) =>
      style.getPropertyValue(name),
    );
    return { ink, line, edge };
  };
  const themed = (layout) => {
    const { ink, line, edge } = look();
    const changes = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      "font.color": ink,
    };
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis\d*$/.test(name))
        Object.assign(changes, { [`${name}.gridcolor`]: line, [`${name}.linecolor`]: edge });
    }
    return changes;
  };
  figures.forEach(async ({ data, layout, frames }, n) => {
    const place = document.getElementById(`figure-${n}`);
    const config = { responsive: true, displayModeBar: false };
    await Plotly.newPlot(place, { data, layout, frames, config });
    const recolour = () => Plotly.relayout(place, themed(place.layout));
    if (dark.matches) await recolour();
    dark.addEventListener("change", recolour);
  });
}
