// A pane of code: lines with links to all other panes, the heat of a run, removed lines with their reason.

import { clipped, el, hexOf, highest, number, short } from "./dom.js";
import { currentRun, linksOf, on, paneOf, state } from "./store.js";
import { ROW, Rows } from "./rows.js";
import { coloured } from "./syntax.js";
import { hoverLine, selectLine } from "./select.js";
import { Editor } from "./editor.js";

const STRIPES = 8;
const OFFSET = /^\s*(0x[0-9a-fA-F]+)\s+/; // which bytecode begins with: it stands in the gutter
const NUMBERED = new Set(["source", "yul"]);

export class CodePane {
  constructor(id, title) {
    this.id = id;
    this.kind = id.replace("a:", "");
    this.lit = new Set();
    this.around = new Set(); // of the lit ones, calls that the selection was inlined for
    this.near = new Set();
    this.found = new Set();
    this.texts = null; // of the editor, where they differ from the document's
    this.rows = new Rows({
      label: title,
      draw: (index) => this.line(index),
      pick: (index) => selectLine(id, index),
      hover: (index) => hoverLine(id, index),
    });
    this.ruler = el("canvas", { class: "ruler", "aria-hidden": "true" });
    this.count = el("span", { class: "count" });
    this.actions = [this.count];
    this.body = el("div", { class: `code-pane k-${this.kind}` }, this.rows.element, this.ruler);
    on("document", () => this.load());
    on("selection", () => this.select());
    on("hover", () => this.hovered());
    on("run", () => this.heated());
    on("search", () => this.searched());
    on("error", () => this.rows.schedule());
    if (id === "source") on("edited live", () => this.edited());
    new ResizeObserver(() => this.rule()).observe(this.body);
    this.load();
  }

  get lines() {
    const pane = paneOf(this.id);
    return pane ? pane.lines : [];
  }

  text(index) {
    if (this.texts) return this.texts[index];
    return this.lines[index].text;
  }

  load() {
    this.editable = this.id === "source" && state.live && state.settings && (!state.doc || state.doc.language !== "bytecode");
    if (this.editable && !this.editor) {
      this.editor = new Editor(this.rows);
      this.body.insertBefore(this.editor.field, this.ruler);
    }
    if (this.editor) {
      this.editor.field.hidden = !this.editable;
      this.rows.element.classList.toggle("driven", Boolean(this.editable));
    }
    if (this.editable) this.editor.show(state.settings.source);
    this.heated();
    this.edited();
    this.select(false);
    this.searched();
  }

  edited() {
    this.texts = this.editable ? this.editor.lines : null;
    const count = this.texts ? this.texts.length : this.lines.length;
    let longest = 0;
    for (let index = 0; index < count; index++) {
      const why = this.texts ? undefined : this.lines[index].why;
      longest = Math.max(longest, this.text(index).length + (why ? why.length + 4 : 0));
    }
    this.body.classList.toggle("bare", !count);
    this.count.textContent = this.matches === undefined ? `${number(count)} lines` : `${number(this.matches)} found`;
    this.rows.set(count, Math.min(longest, 2000) + 18);
  }

  heated() {
    const run = this.id.startsWith("a:") ? null : currentRun();
    this.heat = null;
    if (run && this.lines.some((line) => line.pcs && line.pcs.length)) {
      this.heat = this.lines.map((line) => (line.pcs || []).reduce((sum, pc) => sum + ((run.heat[pc] || [0, 0])[1]), 0));
      this.hottest = highest(this.heat, 1);
    }
    this.body.classList.toggle("heated", Boolean(this.heat));
    this.rows.schedule();
  }

  select(moves = true) {
    const { selection } = state;
    const links = linksOf(this.id);
    const own = selection && selection.pane.startsWith("a:") === this.id.startsWith("a:");
    this.lit = links && selection ? links.linesOf(this.id, selection, own) : new Set();
    const isOwn = selection && selection.pane === this.id;
    this.around = new Set();
    if (links && selection && !isOwn && own && selection.pane !== "source") {
      const main = links.mainLines(selection);
      const isCall = ({ src }) => src && src.length && !src.some((line) => main.has(line));
      if (main.size) this.around = new Set([...this.lit].filter((line) => this.lines[line] && isCall(this.lines[line])));
    }
    if (isOwn) this.lit.add(selection.line);
    this.rows.active = isOwn ? selection.line : -1;
    if (moves && !isOwn && this.lit.size) this.show(this.litLines());
    this.rows.schedule();
    this.rule();
  }

  // Those that matter most, in order.
  litLines() {
    const { selection } = state;
    const links = linksOf(this.id);
    const lit = [...this.lit].sort((a, b) => a - b);
    let main = lit.filter((line) => !this.around.has(line));
    if (links && selection && selection.pane === "source") {
      const own = main.filter((line) => this.lines[line] && links.isOf(this.lines[line], selection.src));
      if (own.length) main = own; // not code that it shares with others, such as a revert
    }
    return main.length ? main : lit;
  }

  // The place with most of the lines comes into view, unless most of them are.
  show(lines) {
    const room = Math.max(1, Math.floor(this.rows.element.clientHeight / ROW) - 1);
    let best = 0;
    let held = 0;
    for (let first = 0, last = 0; first < lines.length; first++) {
      while (last < lines.length && lines[last] < lines[first] + room) last++;
      if (last - first > held) [best, held] = [first, last - first];
    }
    const seen = lines.filter((line) => this.rows.isInView(line));
    const middle = Math.floor((lines[best] + lines[best + held - 1]) / 2);
    if (seen.length < held && this.editable) this.editor.centre(middle);
    else if (seen.length < held) this.rows.reveal(middle, true);
  }

  shown() {
    this.rows.schedule();
    if (this.lit.size) requestAnimationFrame(() => this.show(this.litLines()));
  }

  hovered() {
    const links = linksOf(this.id);
    const { hover } = state;
    const before = this.near.size;
    const own = hover && hover.pane.startsWith("a:") === this.id.startsWith("a:");
    this.near = links && hover && hover.pane !== this.id ? links.linesOf(this.id, hover, own) : new Set();
    if (before || this.near.size) this.rows.schedule();
  }

  searched() {
    const wanted = state.search.toLowerCase();
    this.found = new Set();
    const count = this.texts ? this.texts.length : this.lines.length;
    if (wanted)
      for (let index = 0; index < count; index++) if (this.text(index).toLowerCase().includes(wanted)) this.found.add(index);
    this.matches = wanted ? this.found.size : undefined;
    this.count.textContent = wanted ? `${number(this.matches)} found` : `${number(count)} lines`;
    if (this.found.size) this.show([...this.found]);
    this.rows.schedule();
    this.rule();
  }

  // The next line that the search found, after the one that is active.
  next(step) {
    const found = [...this.found];
    if (!found.length) return false;
    const at = this.rows.active;
    const after = step > 0 ? found.find((line) => line > at) : found.findLast((line) => line < at);
    const line = after === undefined ? (step > 0 ? found[0] : found[found.length - 1]) : after;
    selectLine(this.id, line);
    this.show([line]);
    return true;
  }

  line(index) {
    const line = this.lines[index] || { text: "" };
    const row = el("div", { class: "line" });
    const classes = row.classList;
    if (line.kind && line.kind !== "code") classes.add(line.kind);
    if (this.lit.has(index)) classes.add(this.around.has(index) ? "around" : "lit");
    if (this.near.has(index)) classes.add("near");
    if (this.found.has(index)) classes.add("found");
    row.append(el("span", { class: "gutter", text: this.mark(index, line) }));
    const stripe = el("span", { class: "stripe" });
    const links = linksOf(this.id);
    const main = links && line.src && line.src.length ? (this.kind === "source" ? index + 1 : links.mainLine(line)) : 0;
    if (main && links.linked.has(main)) stripe.classList.add(`s${main % STRIPES}`);
    row.append(stripe);
    if (this.heat) row.append(this.heatCell(index));
    row.append(el("div", { class: "text" }, ...coloured(this.kind === "bytecode" ? this.text(index).replace(OFFSET, "") : this.text(index), this.hasSemicolons())));
    if (line.why && !this.texts) row.append(el("span", { class: "why", text: clipped(line.why, 300) }));
    if (this.id === "source" && state.error && state.error.line === index + 1) {
      classes.add("wrong");
      row.append(el("span", { class: "why", text: clipped(state.error.message, 300) }));
    }
    return row;
  }

  // Comments begin with a semicolon in assembly alone: elsewhere it ends a statement.
  hasSemicolons() {
    return this.kind === "machine" || (this.kind === "source" && Boolean(state.doc) && state.doc.language === "assembly");
  }

  mark(index, line) {
    if (NUMBERED.has(this.kind)) return String(index + 1);
    if (line.kind === "removed") return "−";
    if (this.kind === "bytecode") return (OFFSET.exec(line.text) || ["", ""])[1];
    return line.pcs && line.pcs.length ? hexOf(line.pcs[0]) : "";
  }

  heatCell(index) {
    const gas = this.heat[index];
    const cell = el("span", { class: "heat", text: gas ? short(gas) : "" });
    if (gas) {
      cell.style.setProperty("--share", Math.max(0.08, Math.sqrt(gas / this.hottest)).toFixed(3));
      cell.title = `${number(gas)} gas in this run`;
    }
    return cell;
  }

  rule() {
    const { clientHeight: height } = this.body;
    if (!height) return;
    const canvas = this.ruler;
    if (canvas.height !== height) canvas.height = height;
    canvas.width = 8;
    const context = canvas.getContext("2d");
    const style = getComputedStyle(canvas);
    const count = Math.max(this.rows.count, height / 19);
    const ticks = (lines, colour) => {
      context.fillStyle = style.getPropertyValue(colour);
      for (const line of lines) context.fillRect(1, Math.floor((line / count) * height), 6, 2);
    };
    ticks(this.found, "--found");
    ticks(this.lit, "--lit-line");
  }
}
