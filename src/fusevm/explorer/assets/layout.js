// The workspace: two rows of panes side by side, which can be chosen, resized and maximised.

import { button, el } from "./dom.js";
import { emit, on, paneOf, state } from "./store.js";

// In the order in which panes stand in a row. `row` says where one opens.
const PANES = [
  { id: "source", title: "Source", row: 0 },
  { id: "yul", title: "Yul", row: 0 },
  { id: "a:bytecode", title: "Pinned", row: 0 },
  { id: "ir", title: "IR", row: 0 },
  { id: "bytecode", title: "Bytecode", row: 0 },
  { id: "schedule", title: "Schedule", row: 0 },
  { id: "machine", title: "Machine", row: 0 },
  { id: "graph", title: "Graph", row: 0, weight: 2.6 },
  { id: "steps", title: "Steps", row: 1, weight: 2.6 },
  { id: "inspect", title: "Inspect", row: 1 },
  { id: "deps", title: "Depends", row: 1 },
  { id: "run", title: "Run", row: 1 },
  { id: "trace", title: "Trace", row: 1, weight: 1.5 },
  { id: "flame", title: "Flame", row: 1 },
  { id: "compare", title: "Compare", row: 1, weight: 2 },
];
const TOOLS = new Set(PANES.filter((pane) => pane.row === 1 || pane.id === "graph").map((pane) => pane.id));

export const VIEWS = [
  { id: "optimise", title: "Optimise", panes: "source,yul,ir,bytecode/steps,inspect", share: 0.56 },
  { id: "graph", title: "Graph", panes: "source,bytecode,graph/inspect,deps", share: 0.7 },
  { id: "run", title: "Run", panes: "source,bytecode,schedule/run,trace,flame", share: 0.48 },
  { id: "compare", title: "Compare", panes: "source,a:bytecode,bytecode/inspect,compare", share: 0.52 },
];

const SMALLEST = 90; // pixels
const makers = new Map();
const frames = new Map();
const weights = new Map(PANES.map((pane) => [pane.id, pane.weight || 1]));
let shown = new Set();
let largest = null;
let share = VIEWS[0].share;

export function register(id, make) {
  makers.set(id, make);
}

export function isShown(id) {
  return shown.has(id);
}

// A pane of code is there if the document has it; machine code is made on request.
export function isOffered(id) {
  if (TOOLS.has(id)) return (id !== "steps" && id !== "compare") || !state.doc || state.live || hasContent(id);
  if (id === "a:bytecode") return Boolean(state.pinned);
  if (state.live && state.doc && (state.doc.pending || []).includes(id)) return true;
  return state.doc ? Boolean(paneOf(id)) : ["source", "yul", "ir", "bytecode"].includes(id);
}

function hasContent(id) {
  return id === "steps" ? state.doc.steps.length > 0 : Boolean(state.comparison);
}

export function layoutText() {
  const rows = [0, 1].map((row) => PANES.filter((pane) => pane.row === row && shown.has(pane.id)).map((pane) => pane.id).join(","));
  return rows.join("/") + (largest ? `/${largest}` : "");
}

export function setLayout(text) {
  const [first = "", second = "", most = ""] = text.split("/");
  const known = new Set(PANES.map((pane) => pane.id));
  const wanted = `${first},${second}`.split(",").filter((id) => known.has(id));
  if (!wanted.length) return;
  shown = new Set(wanted);
  largest = shown.has(most) ? most : null;
  arrange();
}

export function openView(id) {
  const view = VIEWS.find((each) => each.id === id);
  share = view.share;
  setLayout(view.panes);
}

export function currentView() {
  const rows = layoutText();
  return VIEWS.find((view) => view.panes === rows || withoutMissing(view.panes) === withoutMissing(rows));
}

function withoutMissing(text) {
  return text.split("/").map((row) => row.split(",").filter(isOffered).join(",")).join("/");
}

export function toggle(id, force) {
  const wanted = force === undefined ? !shown.has(id) : force;
  if (wanted) shown.add(id);
  else shown.delete(id);
  if (largest && !shown.has(largest)) largest = null;
  arrange();
}

export function maximise(id) {
  largest = largest === id ? null : id;
  arrange();
}

export function offeredPanes() {
  return PANES.filter((pane) => isOffered(pane.id));
}

export function paneAt(id) {
  const frame = frames.get(id);
  return frame && frame.pane;
}

export function shownPanes() {
  return PANES.filter((pane) => shown.has(pane.id) && isOffered(pane.id)).map((pane) => pane.id);
}

function frameOf({ id, title }) {
  if (frames.has(id)) return frames.get(id);
  const pane = makers.get(id)();
  const heading = el("h2", { text: title, class: "pane-title" });
  const large = button("⤢", () => maximise(id), { class: "icon", title: "Fill the workspace, or go back", "aria-label": `Maximise ${title}` });
  const close = button("×", () => toggle(id, false), { class: "icon", title: "Close this pane", "aria-label": `Close ${title}` });
  const head = el("div", { class: "pane-head" }, heading, ...(pane.actions || []), el("span", { class: "space" }), ...(pane.controls || []), large, close);
  head.addEventListener("dblclick", (event) => event.target.closest("button, input, select") || maximise(id));
  const element = el("section", { class: "pane", "data-pane": id, "aria-label": title }, head, pane.body);
  const frame = { id, element, pane, heading };
  frames.set(id, frame);
  return frame;
}

function describe(frame) {
  const pane = paneOf(frame.id);
  if (!pane) return;
  frame.heading.textContent = frame.id.startsWith("a:") ? `${pane.title} · pinned` : pane.title;
  frame.heading.title = pane.note || "";
}

// A bar between two neighbours; drags and arrow keys move weight from one to the other.
function splitter(vertical, before, after, move) {
  const bar = el("div", {
    class: vertical ? "splitter vertical" : "splitter horizontal", role: "separator", tabindex: 0,
    "aria-orientation": vertical ? "vertical" : "horizontal", "aria-label": "Resize",
  });
  const size = (node) => (vertical ? node.offsetWidth : node.offsetHeight);
  const by = (pixels) => {
    const [one, two] = [size(before()), size(after())];
    const moved = Math.max(SMALLEST - one, Math.min(two - SMALLEST, pixels));
    if (one + two > 2 * SMALLEST) move(one + moved, two - moved);
  };
  bar.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    bar.setPointerCapture(event.pointerId);
    let last = vertical ? event.clientX : event.clientY;
    bar.onpointermove = (moved) => {
      const now = vertical ? moved.clientX : moved.clientY;
      by(now - last);
      last = now;
    };
    bar.onpointerup = bar.onpointercancel = () => (bar.onpointermove = null);
  });
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -20, ArrowUp: -20, ArrowRight: 20, ArrowDown: 20 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    by(step);
  });
  return bar;
}

function rowOf(panes) {
  const row = el("div", { class: "panes" });
  panes.forEach((pane, index) => {
    const frame = frameOf(pane);
    describe(frame);
    frame.element.style.flexGrow = weights.get(pane.id);
    if (index) {
      const left = frameOf(panes[index - 1]);
      row.append(
        splitter(true, () => left.element, () => frame.element, (one, two) => {
          const sum = weights.get(left.id) + weights.get(pane.id);
          weights.set(left.id, (sum * one) / (one + two));
          weights.set(pane.id, (sum * two) / (one + two));
          left.element.style.flexGrow = weights.get(left.id);
          frame.element.style.flexGrow = weights.get(pane.id);
        }),
      );
    }
    row.append(frame.element);
  });
  return row;
}

// Elements that leave the document forget how far they were scrolled.
function keepingScroll(act) {
  const kept = [...document.querySelectorAll("#workspace .rows, #workspace .scrolls, #workspace textarea")].map((node) => [node, node.scrollTop]);
  act();
  for (const [node, top] of kept) if (node.scrollTop !== top) node.scrollTop = top;
}

export function arrange() {
  const workspace = document.getElementById("workspace");
  const offered = PANES.filter((pane) => shown.has(pane.id) && isOffered(pane.id));
  const rows = largest
    ? [offered.filter((pane) => pane.id === largest)]
    : [0, 1].map((row) => offered.filter((pane) => pane.row === row)).filter((row) => row.length);
  keepingScroll(() => {
    const made = rows.map(rowOf);
    if (made.length === 2) {
      made[0].style.flexGrow = share;
      made[1].style.flexGrow = 1 - share;
      const bar = splitter(false, () => made[0], () => made[1], (one, two) => {
        share = one / (one + two);
        made[0].style.flexGrow = share;
        made[1].style.flexGrow = 1 - share;
      });
      made.splice(1, 0, bar);
    }
    workspace.replaceChildren(...made);
    if (!made.length) workspace.append(el("div", { class: "empty" }, el("strong", { text: "No pane is open" }), el("p", { text: "Choose a view or a pane above." })));
  });
  for (const pane of rows.flat()) {
    const { pane: content } = frames.get(pane.id);
    if (content.shown) content.shown();
  }
  emit("layout");
}

let offeredBefore = "";

on("document live", () => {
  const now = offeredPanes().map((pane) => pane.id).join();
  if (now !== offeredBefore) {
    offeredBefore = now;
    arrange();
  } else for (const frame of frames.values()) describe(frame);
});
