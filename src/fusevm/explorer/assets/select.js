// Selecting a line, an instruction or a block, which lights up what belongs to it in every pane.

import { linksOf, paneOf, set, state } from "./store.js";

export function selectLine(pane, line) {
  const found = paneOf(pane);
  const at = found && found.lines[line];
  if (!at) return;
  const src = at.src && at.src.length ? at.src : pane === "source" ? [line + 1] : [];
  const pcs = at.pcs || [];
  const links = linksOf(pane);
  const block = pcs.length && links ? links.blockAt(pcs[0]) : undefined;
  set("selection", { selection: { pane, line, pcs, src }, block: block ? block.id : state.block });
}

export function hoverLine(pane, line) {
  const found = line < 0 ? null : paneOf(pane);
  const at = found && found.lines[line];
  const src = at && at.src && at.src.length ? at.src : at && pane === "source" ? [line + 1] : [];
  set("hover", { hover: at ? { pane, line, pcs: at.pcs || [], src } : null });
}

export function selectPc(pc, from = "trace") {
  if (!state.links) return;
  const block = state.links.blockAt(pc);
  set("selection", { selection: { pane: from, line: -1, ...state.links.atPc(pc) }, block: block ? block.id : null });
}

export function selectBlock(block, from = "graph") {
  const pcs = [];
  const src = new Set(block.src || []);
  for (const [pc, lines] of state.links.sourceOfPc) {
    if (pc < block.id || pc > block.end || state.links.blockAt(pc) !== block) continue;
    pcs.push(pc);
    for (const line of lines) src.add(line);
  }
  set("selection", { selection: { pane: from, line: -1, pcs, src: [...src] }, block: block.id });
}

export function selectSource(src, from) {
  set("selection", { selection: { pane: from, line: -1, pcs: [], src } });
}

export function clearSelection() {
  set("selection", { selection: null, block: null });
}
