// The selected line: where it comes from, what became of it, and the rules that made it.

import { clipped, el, empty, hexOf, highest, number } from "./dom.js";
import { currentRun, on, paneOf, state } from "./store.js";

const MOST_FOLDS = 60;
const MOST_NOTES = 40;

function fold({ rule, equation, proved, before, after }) {
  const badge = proved ? el("span", { class: "badge proved", title: "z3 has proved this rule", text: "proved" }) : null;
  return el(
    "li", { class: "fold" },
    el("div", { class: "fold-head" }, el("code", { class: "rule", text: rule }), badge),
    equation ? el("div", { class: "equation", text: clipped(equation, 400) }) : null,
    before || after ? el("div", { class: "became" }, el("code", { class: "old", text: clipped(before || "", 300) }), el("span", { text: "→", "aria-label": "becomes" }), el("code", { text: clipped(after || "", 300) })) : null,
  );
}

function fact(name, text) {
  return [el("dt", { text: name }), el("dd", { text })];
}

export class InspectPane {
  constructor() {
    this.body = el("div", { class: "inspect scrolls" });
    on("selection document run", () => this.show());
    this.show();
  }

  // The values of lit IR lines, so that a click in any pane tells of its rules.
  values() {
    const { selection, links, doc } = state;
    const found = [];
    const pane = doc.panes.find((each) => each.id === "ir");
    if (!pane || selection.pane.startsWith("a:")) return found;
    const lines = links.linesOf("ir", selection, true);
    if (selection.pane === "ir") {
      lines.clear();
      lines.add(selection.line);
    }
    for (const index of lines) {
      const line = pane.lines[index];
      if (line) found.push(line);
    }
    return found;
  }

  show() {
    const { doc, selection } = state;
    if (!doc) return;
    if (!selection) {
      const notes = (doc.notes || []).slice(0, MOST_NOTES);
      this.body.replaceChildren(
        empty("Nothing selected", "Click a line, a block or a step of a trace. All that belongs to it lights up, and its rules are listed here."),
        ...(notes.length ? [el("h3", { text: "Notes" }), el("ul", { class: "notes" }, ...notes.map((text) => el("li", { text })))] : []),
      );
      return;
    }
    const pane = paneOf(selection.pane);
    const line = pane && pane.lines[selection.line];
    const parts = [];
    if (line) parts.push(el("pre", { class: "selected", text: clipped(line.text.trim(), 600) }));
    if (line && line.why) parts.push(el("p", { class: line.kind === "removed" ? "reason" : "dim", text: (line.kind === "removed" ? "Removed: " : "") + line.why }));
    parts.push(this.facts(selection), ...this.folds());
    this.body.replaceChildren(...parts);
  }

  facts({ src, pcs }) {
    const list = el("dl", { class: "facts" });
    if (src.length) list.append(...fact("source", src.length > 12 ? `${src.length} lines` : `line${src.length > 1 ? "s" : ""} ${src.join(", ")}`));
    if (pcs.length) list.append(...fact("code", pcs.length > 8 ? `${number(pcs.length)} instructions from ${hexOf(pcs[0])}` : pcs.map((pc) => hexOf(pc)).join(" ")));
    const run = currentRun();
    if (run && pcs.length) {
      const gas = pcs.reduce((sum, pc) => sum + ((run.heat[pc] || [0, 0])[1]), 0);
      const count = highest(pcs.map((pc) => (run.heat[pc] || [0, 0])[0]));
      list.append(...fact("this run", count ? `${number(gas)} gas, ${count === 1 ? "once" : `${number(count)} times`}` : "not reached"));
    }
    return list;
  }

  folds() {
    const parts = [];
    let left = MOST_FOLDS;
    for (const line of this.values()) {
      const chain = line.value === undefined ? [] : (state.doc.folds || {})[line.value] || [];
      const gone = line.kind === "removed";
      if ((!chain.length && !gone) || left <= 0) continue;
      if (state.selection.pane !== "ir") parts.push(el("h3", {}, el("code", { text: clipped(line.text.trim(), 120), class: gone ? "gone" : "" })));
      if (gone && line.why) parts.push(el("p", { class: "reason", text: line.why }));
      parts.push(el("ol", { class: "folds" }, ...chain.slice(0, left).map(fold)));
      left -= chain.length;
    }
    if (!parts.length) return [el("p", { class: "dim", text: "No rule of the fold engine changed this." })];
    return [el("h3", { class: "section", text: "Rules that made it" }), ...parts];
  }
}
