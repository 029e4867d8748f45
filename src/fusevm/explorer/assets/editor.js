// The source is edited in place: a text field lies over the list of its lines, which shows its colours and its links.

import { el } from "./dom.js";
import { emit, state } from "./store.js";
import { hoverLine, selectLine } from "./select.js";
import { explainSoon } from "./actions.js";
import { ROW } from "./rows.js";

export class Editor {
  constructor(rows) {
    this.rows = rows;
    this.field = el("textarea", {
      class: "editor", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off",
      "aria-label": "Source, editable",
      on: {
        input: () => this.changed(),
        click: () => this.choose(),
        keyup: (event) => event.key.startsWith("Arrow") && this.choose(),
        scroll: () => this.follow(),
        pointermove: (event) => this.hovered(event.clientY),
        pointerleave: () => this.hovered(-1),
      },
    });
    rows.element.classList.add("driven");
    rows.element.addEventListener("wheel", (event) => (this.field.scrollTop += event.deltaY), { passive: true });
    this.last = -1;
  }

  show(text) {
    if (this.field.value !== text) {
      this.field.value = text;
      this.field.setSelectionRange(0, 0); // or the first focus would scroll to the end
    }
    this.lines = text.split("\n");
  }

  changed() {
    state.settings = { ...state.settings, source: this.field.value };
    this.lines = this.field.value.split("\n");
    emit("edited");
    this.follow();
    explainSoon();
  }

  caretLine() {
    let line = 0;
    const until = this.field.selectionStart;
    for (let at = this.field.value.indexOf("\n"); at >= 0 && at < until; at = this.field.value.indexOf("\n", at + 1)) line++;
    return line;
  }

  choose() {
    if (this.field.selectionStart !== this.field.selectionEnd) return;
    selectLine("source", this.caretLine());
  }

  hovered(y) {
    const top = this.field.getBoundingClientRect().top;
    const line = y < 0 ? -1 : Math.floor((y - top + this.field.scrollTop) / ROW);
    if (line !== this.last) hoverLine("source", (this.last = line));
  }

  follow() {
    this.rows.element.scrollTop = this.field.scrollTop;
    this.rows.element.scrollLeft = this.field.scrollLeft;
  }

  centre(line) {
    this.field.scrollTop = line * ROW - this.field.clientHeight / 2 + ROW;
    this.follow();
  }
}
