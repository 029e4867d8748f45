// Two versions side by side: what got cheaper, block by block.

import { button, change, clipped, el, empty, hexOf, number } from "./dom.js";
import { on, state } from "./store.js";
import { Rows } from "./rows.js";
import { compareVersions, pin } from "./actions.js";
import { selectBlock, selectSource } from "./select.js";
import { toggle } from "./layout.js";

function versionName(doc, settings) {
  if (settings && settings.optimised === false) return "as written";
  const steps = settings && settings.steps ? ` · steps ${clipped(settings.steps, 20)}` : "";
  return `${number(doc.runs)} runs${steps}`;
}

function kindOf({ before, after }) {
  return after < before ? "better" : after > before ? "worse" : "same";
}

function delta(pair) {
  if (!pair) return el("span", { class: "change" });
  const { before, after } = pair;
  return el("span", { class: `change ${kindOf(pair)}`, text: before === after ? "=" : `${after < before ? "−" : "+"}${number(Math.abs(after - before))}` });
}

function both(pair) {
  if (!pair) return el("span", { class: "pair" });
  return el("span", { class: "pair" }, el("span", { class: "dim", text: number(pair.before) }), " → ", el("span", { text: number(pair.after) }));
}

export class ComparePane {
  constructor() {
    this.rows = new Rows({ label: "Blocks of both versions", draw: (index) => this.line(index), pick: (index) => this.picked(index) });
    this.head = el("div", { class: "compare-head" });
    this.body = el("div", { class: "compare-pane" });
    this.controls = [
      button("Pin this version", () => this.pinned(null), { class: "small", title: "Keep this version; then change steps, runs or the source" }),
      button("Against the source as written", () => this.pinned({ optimised: false }), { class: "small", title: "Compare with the same contract without optimiser steps" }),
    ];
    on("compare document live", () => this.show());
    this.show();
  }

  async pinned(values) {
    await pin(values);
    toggle("a:bytecode", true);
  }

  show() {
    for (const control of this.controls) control.hidden = !state.live;
    const { comparison } = state;
    if (!comparison || !state.pinned || !state.doc) {
      const again = state.pinned && state.live ? [button("Compare", () => compareVersions(), { class: "primary" })] : [];
      this.body.replaceChildren(empty("Nothing to compare yet", "Pin this version, then change a step, the runs or the source. Or compare with the source as written.", ...again));
      return;
    }
    const { totals } = comparison;
    const total = (name, pair) =>
      el("div", { class: "figure" }, el("span", { class: "dim", text: name }), el("s", { text: number(pair.before) }), el("b", { text: number(pair.after) }), el("span", { class: `change ${kindOf(pair)}`, text: change(pair.before, pair.after) }));
    this.head.replaceChildren(
      el("div", { class: "versions" }, el("span", { class: "dim", text: "pinned " }), el("b", { text: versionName(state.pinned, state.pinnedSettings) }), el("span", { class: "dim", text: " → shown " }), el("b", { text: versionName(state.doc, state.settings) })),
      total("bytes", totals.bytes), total("gas, static", totals.gas), ...(totals.run ? [total("gas of the runs", totals.run)] : []),
    );
    const columns = el("div", { class: "line compare-line head" }, ...["block", "bytes", "", "gas, static", "", "gas of the runs", ""].map((text) => el("span", { text })));
    this.body.replaceChildren(this.head, columns, this.rows.element);
    this.rows.set(comparison.blocks.length);
  }

  picked(index) {
    const { b, src } = state.comparison.blocks[index];
    const found = b !== null && state.links.blocks.get(b);
    if (found) selectBlock(found, "compare");
    else selectSource(src.b.length ? src.b : src.a, "compare");
  }

  line(index) {
    const { a, b, bytes, gas, run, src } = state.comparison.blocks[index];
    const place = (pc) => (pc === null || pc === undefined ? "–" : hexOf(pc));
    const lines = src.b.length ? src.b : src.a;
    const where = lines.length ? `  line${lines.length > 1 ? "s" : ""} ${lines.slice(0, 4).join(", ")}${lines.length > 4 ? " …" : ""}` : "";
    return el(
      "div", { class: "line compare-line" },
      el("span", {}, el("code", { class: "dim", text: place(a) }), " → ", el("code", { text: place(b) }), el("span", { class: "dim", text: where })),
      both(bytes), delta(bytes), both(gas), delta(gas), both(run), delta(run),
    );
  }
}
