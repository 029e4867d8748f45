// The optimiser's steps: a chart of size and gas, the sequence, and what the chosen step changed.

import { button, change, el, empty, highest, number } from "./dom.js";
import { on, set, state } from "./store.js";
import { Chart } from "./chart.js";
import { Sequence } from "./sequence.js";
import { Rows } from "./rows.js";
import { positionsOf } from "./positions.js";
import { coloured } from "./syntax.js";
import { selectSource } from "./select.js";

// The steps of the object that is shown, with their position in the sequence.
function placed(doc) {
  const own = doc.steps.filter((step) => step.object === doc.object || !step.object);
  const steps = own.length ? own : doc.steps;
  const positions = positionsOf(doc.sequence || "", steps);
  return steps.map((step, index) => ({ ...step, position: positions[index] }));
}

export class StepsPane {
  constructor() {
    this.chart = new Chart((at) => this.pick(at), (at) => this.describe(at));
    this.chart.svg.addEventListener("keydown", (event) => this.onKey(event));
    this.sequence = new Sequence((position) => this.pickPosition(position));
    this.diff = new Rows({ label: "What the step changed", draw: (index) => this.line(index), pick: (index) => this.picked(index) });
    this.said = el("div", { class: "step-said" });
    this.off = button("Switch off", () => this.sequence.switchOffAt(this.current().position), { class: "small" });
    this.title = el("div", { class: "diff-head" });
    this.nothing = el("div", { class: "nothing", text: "This step changed nothing." });
    this.left = el("div", { class: "steps-left" }, this.said, this.chart.svg, this.sequence.element);
    this.right = el("div", { class: "steps-right" }, this.title, this.nothing, this.diff.element);
    this.body = el("div", { class: "steps-pane" });
    const legend = el("span", { class: "legend" }, el("span", { class: "key bytes", text: "bytes" }), el("span", { class: "key gas", text: "gas (estimate)" }));
    this.actions = [legend];
    on("document live", () => this.load());
    on("step", () => this.show());
    this.load();
  }

  load() {
    this.steps = state.doc ? placed(state.doc) : [];
    if (!this.steps.length && !(state.doc && state.doc.sequence !== null)) {
      this.body.replaceChildren(empty("No optimiser steps", "Steps belong to Yul. For bytecode, see what the fold engine did: click a line of the IR."));
      return;
    }
    this.body.replaceChildren(this.left, this.right);
    this.show();
  }

  at() {
    return this.steps.findIndex((step) => step.index === state.step);
  }

  current() {
    return this.steps[this.at()];
  }

  pick(at) {
    const step = this.steps[at];
    if (step) set("step", { step: step.index });
    this.chart.svg.focus({ preventScroll: true });
  }

  pickPosition(position) {
    const step = this.steps.find((each) => each.position === position && each.changed) || this.steps.find((each) => each.position === position);
    if (step) set("step", { step: step.index });
  }

  onKey(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    let at = Math.max(0, Math.min(this.steps.length - 1, this.at() + by));
    while (event.shiftKey && this.steps[at + by] && !this.steps[at].changed) at += by;
    this.pick(at);
  }

  show() {
    const step = this.current();
    this.chart.show(this.steps, this.at());
    this.sequence.show((state.doc && state.doc.sequence) || "", this.steps, step ? step.position : -1);
    this.describe(-1);
    this.lines = step && step.diff ? step.diff : [];
    this.title.replaceChildren(...(step ? [el("b", { text: step.name }), el("span", { class: "dim", text: ` step ${this.at() + 1}` }), el("span", { class: "space" }), ...(state.live && step.position >= 0 ? [this.off] : [])] : []));
    this.nothing.hidden = !step || this.lines.length > 0;
    this.diff.set(this.lines.length, highest(this.lines.map((line) => line.text.length)) + 6);
    this.diff.element.scrollTop = 0;
    this.diff.schedule();
  }

  // What the step under the pointer, or the chosen one, did.
  describe(at) {
    const index = at >= 0 ? at : this.at();
    const step = this.steps[index];
    if (!step) {
      this.said.textContent = "";
      return;
    }
    const before = index ? this.steps[index - 1] : step;
    const figures = (key) => (before[key] === step[key] ? `${number(step[key])}` : `${number(before[key])} → ${number(step[key])} (${change(before[key], step[key])})`);
    this.said.replaceChildren(
      el("kbd", { text: step.letter || "·" }), " ", el("b", { text: step.name }),
      el("span", { class: "dim", text: `  ${figures("bytes")} bytes · ${figures("gas")} gas${step.ms === undefined ? "" : ` · ${step.ms.toFixed(1)} ms`}` }),
    );
  }

  picked(index) {
    const { src } = this.lines[index];
    if (src && src.length) selectSource(src, "steps");
  }

  line(index) {
    const { sign, text } = this.lines[index];
    const kind = { "+": "added", "-": "gone" }[sign] || "same";
    return el("div", { class: `line diff ${kind}` }, el("span", { class: "sign", text: sign === "-" ? "−" : sign }), el("div", { class: "text" }, ...coloured(text)));
  }
}
