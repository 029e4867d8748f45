// Dialogs: another contract, and the keys.

import { button, el } from "./dom.js";
import { state } from "./store.js";
import { withSettings } from "./actions.js";

const KEYS = [
  ["Click, ↑ ↓", "select a line; what belongs to it lights up in every pane"],
  ["← →", "in the chart of steps: the step before, after (with Shift: the next that changed something)"],
  [", .", "one step backwards, forwards in the trace of the run, from anywhere"],
  ["< >", "to the first, last step of the trace"],
  ["/", "search all panes; Enter and Shift+Enter go through what was found"],
  ["1 … 4", "the views: Optimise, Graph, Run, Compare"],
  ["+ − 0", "in the graph: zoom in, out, show all; arrows move, n and p go from block to block"],
  ["Space, Alt+← →", "on a letter of the sequence: switch it off, move it"],
  ["t", "light, dark, as the system has it"],
  ["Esc", "clear the search and the selection"],
  ["?", "this list"],
];

function dialog(title, ...content) {
  const close = button("×", () => box.close(), { class: "icon", "aria-label": "Close" });
  const box = el("dialog", { "aria-label": title }, el("header", {}, el("h2", { text: title }), el("span", { class: "space" }), close), ...content);
  box.addEventListener("close", () => box.remove());
  box.addEventListener("click", (event) => event.target === box && box.close());
  document.body.append(box);
  box.showModal();
  return box;
}

export function helpDialog() {
  const list = el("dl", { class: "keys" });
  for (const [keys, text] of KEYS) list.append(el("dt", {}, el("kbd", { text: keys })), el("dd", { text }));
  dialog("Keys", list, el("p", { class: "dim", text: "Sizes are of the code itself; gas beside them is a static estimate. Gas of a run is exact." }));
}

export function openDialog() {
  const { settings } = state;
  const name = el("input", { value: settings.name, maxlength: 200, "aria-label": "Name" });
  const text = el("textarea", { class: "paste", spellcheck: "false", "aria-label": "Source, hex or artifact", placeholder: "Paste a contract" });
  text.value = settings.source;
  const file = el("input", { type: "file", "aria-label": "File", on: { change: () => taken(file.files[0]) } });
  const taken = async (chosen) => {
    if (!chosen) return;
    name.value = chosen.name;
    text.value = await chosen.text();
  };
  const start = button("Explain", () => {
    box.close();
    withSettings({ source: text.value, name: name.value || "untitled.yul", language: null, object: null, steps: null, optimised: null, contract: null });
  }, { class: "primary" });
  const box = dialog(
    "Open a contract",
    el("div", { class: "open-form" }, el("div", { class: "open-name" }, el("label", {}, "Name ", name), file), text, el("p", { class: "dim", text: "The language is found from the text: Yul, assembly, hex, an artifact; Solidity and Vyper where solc and vyper are installed." }), start),
  );
}
