// The view as text, for the address and for exports: which panes, what is selected, which step, run and place in it.

import { set, state } from "./store.js";
import { layoutText, setLayout } from "./layout.js";
import { selectLine, selectPc } from "./select.js";

export function viewText() {
  const parts = new URLSearchParams();
  parts.set("panes", layoutText());
  const { selection } = state;
  if (selection && selection.line >= 0) parts.set("line", `${selection.pane}:${selection.line + 1}`);
  else if (selection && selection.pcs.length) parts.set("pc", selection.pcs[0]);
  if (state.step >= 0) parts.set("step", state.step);
  if (state.run >= 0) parts.set("run", `${state.run}:${state.trace}`);
  if (state.colour !== "gas") parts.set("colour", state.colour);
  return parts.toString().replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%2F", "/");
}

// The panes are known at once; the rest when there is a document.
export function applyPanes(text) {
  const panes = new URLSearchParams(text).get("panes");
  if (panes) setLayout(panes);
}

export function applyView(text) {
  const parts = new URLSearchParams(text);
  const whole = (value) => (/^\d{1,7}$/.test(value || "") ? Number(value) : -1);
  if (parts.get("colour") === "heat") set("graph", { colour: "heat" });
  const step = whole(parts.get("step"));
  if (step >= 0 && step < state.doc.steps.length) set("step", { step });
  const [index, at] = (parts.get("run") || "").split(":").map(whole);
  if (index >= 0 && state.runs[index]) set("run", { run: index, trace: Math.max(0, at) });
  const [pane, line] = [...(parts.get("line") || "").split(/:(?=\d+$)/), "", ""];
  if (whole(line) > 0) selectLine(pane, whole(line) - 1);
  else if (whole(parts.get("pc")) >= 0) selectPc(whole(parts.get("pc")));
}

let writing = 0;

export function keepFragment() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    try {
      history.replaceState(null, "", `#${viewText()}`);
    } catch {
      // Some browsers refuse it for files; the page works all the same.
    }
  }, 150);
}
