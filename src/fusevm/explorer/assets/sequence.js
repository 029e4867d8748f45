// The sequence of steps as letters that can be switched off, moved and typed.

import { button, el } from "./dom.js";
import { state } from "./store.js";
import { withSettings } from "./actions.js";

function tokensOf(text) {
  return [...text].filter((letter) => letter.trim()).map((letter) => ({ letter, off: false }));
}

function textOf(tokens) {
  let text = tokens.filter((token) => !token.off).map((token) => token.letter).join("");
  while (text.includes("[]")) text = text.replaceAll("[]", "");
  return text;
}

const isLetter = (token) => /[A-Za-z]/.test(token.letter);

export class Sequence {
  // chosen(position) is told which letter, counted without those switched off, was clicked.
  constructor(chosen) {
    this.chosen = chosen;
    this.tokens = [];
    this.names = new Map();
    this.strip = el("div", { class: "letters", role: "group", "aria-label": "Letters of the sequence" });
    this.field = el("input", {
      class: "sequence-text", spellcheck: "false", "aria-label": "Sequence of steps as text", maxlength: 2000,
      on: { keydown: (event) => event.key === "Enter" && this.apply(tokensOf(this.field.value)) },
    });
    const controls = el(
      "div", { class: "sequence-controls" },
      this.field,
      button("Apply", () => this.apply(tokensOf(this.field.value)), { title: "Explain with this sequence (Enter)" }),
      button("Default", () => this.reset(), { title: "Back to the default sequence" }),
    );
    this.element = el("div", { class: "sequence" }, this.strip, controls);
  }

  show(sequence, steps, position) {
    for (const step of steps) if (step.letter) this.names.set(step.letter, step.name);
    if (textOf(this.tokens) !== textOf(tokensOf(sequence))) this.tokens = tokensOf(sequence);
    if (document.activeElement !== this.field) this.field.value = textOf(this.tokens);
    this.position = position;
    this.changedAt = new Set(steps.filter((step) => step.changed).map((step) => step.position));
    this.element.classList.toggle("fixed", !state.live);
    this.field.disabled = !state.live;
    this.draw();
  }

  draw() {
    let position = -1;
    this.strip.replaceChildren(
      ...this.tokens.map((token, index) => {
        if (!token.off) position++;
        return isLetter(token) ? this.letter(token, index, token.off ? -1 : position) : el("span", { class: "mark", text: token.letter });
      }),
    );
  }

  letter(token, index, position) {
    const name = this.names.get(token.letter) || token.letter;
    const classes = ["letter", token.off && "off", position >= 0 && position === this.position && "chosen", this.changedAt.has(position) && "changed"];
    const node = el("button", {
      type: "button", class: classes.filter(Boolean).join(" "), text: token.letter, draggable: String(state.live), "data-index": index,
      title: `${name}${token.off ? " (off)" : ""}: click to see it; Space or a double click switches it ${token.off ? "on" : "off"}; drag to move it`,
      "aria-pressed": String(!token.off), "aria-label": `${name}, ${token.off ? "off" : "on"}`,
      on: {
        click: () => position >= 0 && this.chosen(position),
        dblclick: () => this.switchOff(index),
        keydown: (event) => this.onKey(event, index),
        dragstart: (event) => event.dataTransfer.setData("text/plain", String(index)),
        dragover: (event) => event.preventDefault(),
        drop: (event) => {
          event.preventDefault();
          this.move(Number(event.dataTransfer.getData("text/plain")), index);
        },
      },
    });
    return node;
  }

  onKey(event, index) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === " " || event.key === "Delete") this.switchOff(index);
    else if (by && event.altKey) this.move(index, index + by);
    else if (by) {
      const letters = [...this.strip.querySelectorAll(".letter")];
      const neighbour = letters[letters.indexOf(event.currentTarget) + by];
      if (neighbour) neighbour.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  switchOff(index) {
    if (!state.live) return;
    this.tokens[index].off = !this.tokens[index].off;
    this.apply(this.tokens);
    this.focus(index);
  }

  switchOffAt(position) {
    const active = this.tokens.filter((token) => !token.off);
    const index = this.tokens.indexOf(active[position]);
    if (index >= 0) this.switchOff(index);
  }

  move(from, to) {
    if (!state.live || from === to || !this.tokens[from] || !this.tokens[to]) return;
    const [token] = this.tokens.splice(from, 1);
    this.tokens.splice(to, 0, token);
    this.apply(this.tokens);
    this.focus(to);
  }

  focus(index) {
    const node = this.strip.querySelector(`[data-index="${index}"]`);
    if (node) node.focus();
  }

  apply(tokens) {
    this.tokens = tokens;
    this.field.value = textOf(tokens);
    this.draw();
    withSettings({ steps: textOf(tokens) || ":" });
  }

  reset() {
    this.tokens = [];
    withSettings({ steps: null });
  }
}
