// A list of any length: only the rows in view are elements. Every row has the same height.

import { el } from "./dom.js";

export const ROW = 19;
const MORE = 6; // rows drawn above and below the view

let made = 0;

export class Rows {
  // draw(index) makes a row; pick(index, event) and hover(index or -1) are told where the pointer is.
  constructor({ label, draw, pick, hover, role = "listbox" }) {
    this.name = `rows-${++made}`; // for the ids of rows
    this.draw = draw;
    this.pick = pick;
    this.count = 0;
    this.active = -1;
    this.sizer = el("div", { class: "sizer", role: "presentation" });
    this.element = el("div", { class: "rows", tabindex: 0, role, "aria-label": label }, this.sizer);
    this.element.addEventListener("scroll", () => this.schedule());
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.element.addEventListener("click", (event) => {
      const index = this.indexAt(event.clientY);
      if (index >= 0) this.choose(index, event);
    });
    // A row that is replaced between press and release gets no click.
    this.element.addEventListener("pointerdown", () => (this.pressed = true));
    for (const event of ["pointerup", "pointercancel"])
      window.addEventListener(event, () => this.pressed && setTimeout(() => this.released()));
    if (hover) {
      let last = -1;
      const tell = (index) => {
        if (index !== last) hover((last = index));
      };
      this.element.addEventListener("pointermove", (event) => tell(this.indexAt(event.clientY)));
      this.element.addEventListener("pointerleave", () => tell(-1));
    }
    new ResizeObserver(() => this.schedule()).observe(this.element);
  }

  indexAt(y) {
    const index = Math.floor((y - this.element.getBoundingClientRect().top + this.element.scrollTop) / ROW);
    return index >= 0 && index < this.count ? index : -1;
  }

  set(count, characters = 0) {
    this.count = count;
    this.sizer.style.height = `${count * ROW}px`;
    this.sizer.style.minWidth = `max(100%, ${characters}ch)`;
    if (this.active >= count) this.active = -1;
    this.schedule();
  }

  schedule() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.refresh();
    });
  }

  released() {
    this.pressed = false;
    this.schedule();
  }

  refresh() {
    if (this.pressed) return;
    const { scrollTop, clientHeight } = this.element;
    if (!clientHeight) return;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - MORE);
    const last = Math.min(this.count, Math.ceil((scrollTop + clientHeight) / ROW) + MORE);
    const drawn = [];
    for (let index = first; index < last; index++) {
      const row = this.draw(index);
      row.classList.add("row");
      row.style.top = `${index * ROW}px`;
      row.setAttribute("role", "option");
      row.id = `${this.name}-${index}`;
      row.setAttribute("aria-setsize", this.count);
      row.setAttribute("aria-posinset", index + 1);
      if (index === this.active) row.classList.add("active");
      row.setAttribute("aria-selected", index === this.active);
      drawn.push(row);
    }
    this.sizer.replaceChildren(...drawn);
    if (this.active >= first && this.active < last) this.element.setAttribute("aria-activedescendant", `${this.name}-${this.active}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  choose(index, event) {
    this.active = index;
    this.reveal(index);
    this.schedule();
    if (this.pick) this.pick(index, event);
  }

  isInView(index) {
    const { scrollTop, clientHeight } = this.element;
    return index * ROW >= scrollTop && (index + 1) * ROW <= scrollTop + clientHeight;
  }

  reveal(index, centred = false) {
    const { scrollTop, clientHeight } = this.element;
    if (centred) this.element.scrollTop = index * ROW - clientHeight / 2 + ROW;
    else if (index < 0 || this.isInView(index)) return;
    else if (index * ROW < scrollTop) this.element.scrollTop = index * ROW;
    else this.element.scrollTop = (index + 1) * ROW - clientHeight;
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count };
    const move = moves[event.key];
    if (move === undefined || event.altKey || event.ctrlKey || event.metaKey || !this.count) return;
    event.preventDefault();
    event.stopPropagation();
    this.choose(Math.max(0, Math.min(this.count - 1, this.active + move)), event);
  }
}
