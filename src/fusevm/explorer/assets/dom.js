// Elements. Text is always put in as text: nothing that comes from a contract can become markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(node, options, children) {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (name === "text") node.textContent = value;
    else if (name === "class") node.setAttribute("class", value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((each) => each !== null && each !== undefined && each !== false));
  return node;
}

export function el(tag, options = {}, ...children) {
  return filled(document.createElement(tag), options, children);
}

export function svg(tag, options = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), options, children);
}

export function button(text, act, options = {}) {
  return el("button", { type: "button", text, on: { click: act }, ...options });
}

export function number(value) {
  return typeof value === "number" ? value.toLocaleString("en") : "–";
}

export function short(value) {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  if (value >= 1e4) return `${Math.round(value / 1e3)}k`;
  if (value >= 1e3) return `${(value / 1e3).toFixed(1)}k`;
  return String(value);
}

export function hexOf(value, digits = 4) {
  return `0x${value.toString(16).padStart(digits, "0")}`;
}

// "−49.0 %": what became of a figure; a real minus sign, so that columns align.
export function change(before, after) {
  if (!before || before === after) return "±0 %";
  const share = (100 * (after - before)) / before;
  return `${share < 0 ? "−" : "+"}${Math.abs(share).toFixed(1)} %`;
}

export function empty(title, text, ...more) {
  return el("div", { class: "empty" }, el("strong", { text: title }), el("p", { text }), ...more);
}

// The largest of a list and a least value; a list may be longer than what a call takes as arguments.
export function highest(values, least = 0) {
  let found = least;
  for (const value of values) if (value > found) found = value;
  return found;
}

export function clipped(text, most = 2000) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
