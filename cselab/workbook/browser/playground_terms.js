// The controls of the playground's terms: weights, hyperparameters, and what each term is.
import { bar, button, html, labelled, menu, picture, slider, stroke } from "./kit.js";

const NUMBER_STYLE =
  "width:6em;font:inherit;color:var(--ink);background:var(--tint);border:1px solid var(--edge);" +
  "border-radius:4px;padding:3px 6px";

let described = 0; // for names of elements that are used once in a page

// A model of the values of one dictionary of `model`, for controls that are bound to a trait.
export function part(model, name) {
  return {
    get: (key) => model.get(name)[key],
    set: (key, value) => model.set(name, { ...model.get(name), [key]: value }),
    save_changes: () => model.save_changes(),
    on: (_, listener) => model.on(`change:${name}`, listener),
  };
}

// Sliders of the terms' weights: first those of the method, others in a fold.
//
// weights: name of the trait. which: what the sliders' names end with. looks: { colour, dash } by
// term. missing(name): why a term is not computed, or "".
export function termControls({ model, weights, looks, missing, tip, first, label, which = "" }) {
  const catalogue = model.get("catalogue");
  const start = { ...model.get(weights) };
  const line = (term) => {
    const [look, most] = [looks[term.name], Math.max(2, 2 * start[term.name])];
    return termLine({ model, weights, which, term, look, missing, tip, most });
  };
  const isFirst = (term) => first.includes(term.name);
  const more = catalogue.filter((term) => !isFirst(term));
  const box = html("div", { role: "group", "aria-label": label });
  const order = [...catalogue].sort((a, b) => first.indexOf(a.name) - first.indexOf(b.name));
  box.append(...order.filter(isFirst).map(line));
  if (more.length) {
    const fold = html("details", {}, html("summary", {}, "more terms"), more.map(line));
    fold.open = more.some((term) => start[term.name] > 0);
    box.append(fold);
  }
  return box;
}

function termLine({ model, weights, which, term, look, missing, tip, most }) {
  const id = `cselab-term-${described++}`;
  const reason = missing(term.name);
  const sample = stroke("M0 6H22", look.colour, 3, { "stroke-dasharray": look.dash });
  const swatch = picture(22, 12, { "aria-hidden": "true" }, sample);
  const range = { min: 0, max: most, step: 0.05 };
  const format = (x) => String(Number(x.toFixed(3)));
  const control = slider(part(model, weights), term.name, term.name, range, { format });
  control.style.flex = "1 1 auto";
  control.querySelector("span").style.cssText =
    "flex:0 0 6.6em;color:var(--ink);overflow-wrap:anywhere";
  const input = control.querySelector("input");
  input.style.cssText = "flex:1 1 60px;min-width:50px;width:60px";
  input.setAttribute("aria-label", `weight of ${term.name}${which}`);
  model.on(`change:${weights}`, () => {
    const value = model.get(weights)[term.name];
    if (value <= Number(input.max)) return;
    input.max = 2 * value; // set from Python, above the slider's range
    input.value = value;
  });
  if (reason) {
    input.disabled = true;
    control.style.opacity = 0.55;
  }
  const text = [term.formula, term.about, reason && `Not computed here: ${reason}`].filter(Boolean);
  const mono = "font-family:ui-monospace,monospace;font-size:12px;overflow-wrap:anywhere";
  const more = html(
    "div",
    { id, hidden: true, style: "margin:2px 0 8px 28px;font-size:13px" },
    text.map((words) => html("div", { style: words === term.formula ? mono : null }, words)),
    bar(...term.fields.map((field) => fieldControl(model, term.name, field))),
  );
  const ask = button("?", null, () => {
    more.hidden = !more.hidden;
    ask.setAttribute("aria-expanded", !more.hidden);
    tip.hide();
  });
  ask.setAttribute("aria-label", `what ${term.name} is`);
  ask.setAttribute("aria-expanded", false);
  ask.setAttribute("aria-describedby", id);
  ask.style.cssText = "padding:0 8px;min-height:24px;flex:none";
  ask.addEventListener(
    "pointerenter",
    (event) => more.hidden && event.pointerType === "mouse" && tip.show(event, text.join("\n")),
  );
  ask.addEventListener("pointerleave", tip.hide);
  const style = "display:flex;gap:6px;align-items:center;flex-wrap:nowrap;margin:1px 0";
  return html("div", {}, html("div", { style }, swatch, control, ask), more);
}

// A hyperparameter: a choice, or a number. `schema`: its JSON schema, with its name.
function fieldControl(model, name, schema) {
  const { name: field, type, minimum: min = 0, maximum: max, description } = schema;
  const { exclusiveMinimum: above = -Infinity, exclusiveMaximum: below = Infinity } = schema;
  const choices = type === "boolean" ? [true, false] : schema.enum;
  const options = part(model, "options");
  const values = {
    ...options,
    get: () => options.get(name)[field],
    set: (_, value) => options.set(name, { ...options.get(name), [field]: value }),
  };
  const send = (value) => {
    values.set(field, value);
    values.save_changes();
  };
  const typed = () => {
    const value = Number(control.value);
    const isValid = control.value !== "" && control.checkValidity();
    if (isValid && value > above && value < below) send(value);
    else show();
  };
  const step = type === "integer" ? 1 : "any";
  const number = { type: "number", min, max, step, style: NUMBER_STYLE, onchange: typed };
  const control = choices
    ? menu("", choices, (index) => send(choices[index]))
    : html("input", number);
  const show = () => {
    if (choices) control.selectedIndex = choices.indexOf(values.get());
    else control.value = values.get();
  };
  control.setAttribute("aria-label", `${field} of ${name}`);
  values.on("", show);
  show();
  return labelled(field.replaceAll("_", " "), control, description);
}

// The settings that the weights are, as JSON.
export function settingOf(model, weights) {
  const given = model.get(weights);
  const terms = {};
  for (const { name, fields } of model.get("catalogue")) {
    if (!(given[name] > 0)) continue;
    const options = model.get("options")[name];
    const changed = fields.filter((field) => options[field.name] !== field.default);
    const values = Object.fromEntries(changed.map((field) => [field.name, options[field.name]]));
    terms[name] = changed.length ? { weight: given[name], ...values } : given[name];
  }
  const text = JSON.stringify({ terms, temperature: model.get("temperature") }, null, 1);
  return text.replace(/\n\s*/g, " ").replace(/\{ /g, "{").replace(/ \}/g, "}");
}
