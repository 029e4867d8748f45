// Parts of the document that take long are asked for when a pane that shows them is opened.

import { ask } from "./connect.js";
import { emit, on, set, state } from "./store.js";
import { isShown } from "./layout.js";

const NEEDS = { schedule: ["schedule"], machine: ["machine"], graph: ["graph"], deps: ["graph"], compare: ["graph"] };
const asked = new Set();

export function isPending(part) {
  return Boolean(state.doc && (state.doc.pending || []).includes(part));
}

function take(part, data) {
  const { doc, links } = state;
  doc.pending = doc.pending.filter((each) => each !== part);
  if (part === "graph") {
    doc.graph = data;
    links.setGraph(data);
  } else {
    doc.panes = [...doc.panes.filter((pane) => pane.id !== part), data];
    links.setPane(data);
  }
  emit("document");
  emit("selection");
}

async function fetchPart(part) {
  const { doc } = state;
  if (asked.has(part) || !isPending(part)) return;
  asked.add(part);
  set("busy", { busy: part === "machine" ? "Compiling to machine code" : `Making the ${part}` });
  try {
    const data = await ask({ do: "part", part }, (said) => set("busy", { busy: said }));
    if (doc === state.doc) take(part, data);
  } catch (error) {
    if (doc === state.doc) {
      doc.pending = doc.pending.filter((each) => each !== part);
      set("error", { error: { message: error.message, line: null } });
    }
  } finally {
    asked.delete(part);
    set("busy", { busy: null });
  }
}

export function fetchShownParts() {
  if (!state.live || !state.doc) return;
  const wanted = Object.entries(NEEDS).filter(([pane]) => isShown(pane)).flatMap(([, parts]) => parts);
  for (const part of new Set(wanted)) fetchPart(part);
}

export function listenForParts() {
  on("layout document", fetchShownParts);
}
