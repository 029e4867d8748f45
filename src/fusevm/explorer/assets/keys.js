// Keys that work anywhere on the page, unless something is being typed.

import { set, state } from "./store.js";
import { openView, VIEWS } from "./layout.js";
import { helpDialog } from "./dialogs.js";
import { clearSelection } from "./select.js";
import { moveTrace } from "./trace.js";
import { switchTheme } from "./theme.js";

const KEYED = {
  "?": () => helpDialog(),
  t: () => switchTheme(),
  "/": () => document.getElementById("search").focus(),
  ",": () => moveTrace(-1),
  ".": () => moveTrace(1),
  "<": () => moveTrace(-Infinity),
  ">": () => moveTrace(Infinity),
  Escape: () => clearEverything(),
};
VIEWS.forEach((view, index) => (KEYED[String(index + 1)] = () => openView(view.id)));

function clearEverything() {
  document.getElementById("search").value = "";
  if (state.search) set("search", { search: "" });
  clearSelection();
}

export function listenForKeys() {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, dialog");
    const act = KEYED[event.key];
    if (typing || !act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}
