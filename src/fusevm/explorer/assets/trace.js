// The trace of a run, forwards and backwards, with stack, memory and storage at every step.

import { button, clipped, el, empty, hexOf, number } from "./dom.js";
import { currentRun, on, set, state } from "./store.js";
import { Rows } from "./rows.js";
import { selectPc } from "./select.js";

const MOST_WORDS = 512; // of memory shown

export function moveTrace(by) {
  const run = currentRun();
  if (!run || !run.trace.length) return;
  stepTo(Math.max(0, Math.min(run.trace.length - 1, state.trace + by)));
}

export function stepTo(at) {
  set("trace", { trace: at });
  const step = currentRun().trace[at];
  if (step && step.depth === 1) selectPc(step.pc);
}

// Memory of the frame before a step: the last one that the same frame was seen with.
export function memoryAt(trace, at) {
  const { depth } = trace[at];
  for (let index = at; index >= 0; index--) {
    if (trace[index].depth < depth) return "";
    if (trace[index].depth === depth && trace[index].memory !== undefined) return trace[index].memory;
  }
  return "";
}

// What the run has written until a step, by slot; what this very step writes comes last.
export function storageAt(trace, at) {
  const found = new Map();
  for (let index = 0; index <= at; index++)
    for (const [slot, value] of Object.entries(trace[index].storage || {})) {
      found.delete(slot);
      found.set(slot, { value, now: index === at });
    }
  return found;
}

function word(text) {
  const digits = text.replace(/^0x/, "");
  return digits.length > 16 ? `0x${digits.replace(/^0+(?=.)/, "")}` : `0x${digits}`;
}

export class TracePane {
  constructor() {
    this.rows = new Rows({ label: "Trace", draw: (index) => this.line(index), pick: (index) => stepTo(index) });
    this.slider = el("input", { type: "range", min: 0, "aria-label": "Step of the trace", on: { input: () => stepTo(Number(this.slider.value)) } });
    const control = (text, by, label, key) => button(text, () => moveTrace(by), { class: "icon", "aria-label": label, title: `${label} (${key})` });
    this.tools = el("div", { class: "trace-tools" }, control("«", -Infinity, "First step", "<"), control("‹", -1, "One step back", ","), control("›", 1, "One step on", "."), control("»", Infinity, "Last step", ">"), this.slider);
    this.stack = el("div", { class: "words" });
    this.memory = el("div", { class: "words" });
    this.storage = el("div", { class: "words" });
    const part = (title, node) => el("section", { "aria-label": title }, el("h3", { text: title }), node);
    this.frame = el("div", { class: "trace-state scrolls" }, part("Stack", this.stack), part("Memory", this.memory), part("Storage", this.storage));
    this.left = el("div", { class: "trace-left" }, this.tools, this.rows.element);
    this.body = el("div", { class: "trace-pane" });
    this.count = el("span", { class: "count" });
    this.actions = [this.count];
    on("run", () => this.load());
    on("trace", () => this.show());
    this.load();
  }

  load() {
    const run = currentRun();
    if (!run || !run.trace.length) {
      this.count.textContent = "";
      this.body.replaceChildren(empty("No run yet", state.live ? "Call a function in the Run pane; then step through it here, forwards and backwards." : "This export has no run."));
      return;
    }
    this.body.replaceChildren(this.left, this.frame);
    this.count.textContent = `${number(run.trace.length)} steps`;
    this.slider.max = run.trace.length - 1;
    this.rows.set(run.trace.length);
    this.show();
  }

  shown() {
    this.rows.schedule();
  }

  show() {
    const run = currentRun();
    const step = run && run.trace[state.trace];
    if (!step) return;
    this.slider.value = state.trace;
    this.rows.active = state.trace;
    if (!this.rows.isInView(state.trace)) this.rows.reveal(state.trace, true);
    this.rows.schedule();
    const before = state.trace ? run.trace[state.trace - 1].stack : [];
    const stack = [...step.stack].reverse();
    const line = (name, text, isNew) => el("div", { class: isNew ? "word new" : "word" }, el("span", { class: "dim", text: name }), el("code", { text: clipped(text, 80) }));
    const none = (text) => [el("p", { class: "dim", text })];
    this.stack.replaceChildren(...(stack.length ? stack.map((each, at) => line(String(at), word(each), before[step.stack.length - 1 - at] !== each)) : none("empty")));
    const memory = memoryAt(run.trace, state.trace).replace(/^0x/, "");
    const old = state.trace ? memoryAt(run.trace, state.trace - 1).replace(/^0x/, "") : "";
    const words = [];
    for (let at = 0; at < memory.length && words.length < MOST_WORDS; at += 64)
      words.push(line(hexOf(at / 2), memory.slice(at, at + 64), old.slice(at, at + 64) !== memory.slice(at, at + 64)));
    this.memory.replaceChildren(...(words.length ? words : none("empty")));
    const storage = [...storageAt(run.trace, state.trace)].map(([slot, { value, now }]) => line(word(slot), word(value), now));
    this.storage.replaceChildren(...(storage.length ? storage : none("nothing written yet")));
  }

  line(index) {
    const { pc, op, gas, cost, depth } = currentRun().trace[index];
    return el(
      "div", { class: "line step" },
      el("span", { class: "n", text: String(index + 1) }), el("span", { class: "pc", text: hexOf(pc) }),
      el("span", { class: "op", text: `${"  ".repeat(Math.min(depth - 1, 8))}${op}` }), el("span", { class: "cost", text: number(cost) }), el("span", { class: "gas", text: number(gas) }),
    );
  }
}
