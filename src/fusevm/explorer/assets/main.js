// The page begins here: from what is embedded in it, or from the server that it came from.

import { el } from "./dom.js";
import { emit, on, set, state } from "./store.js";
import { connect } from "./connect.js";
import { adopt, adoptPinned, explain, pin } from "./actions.js";
import { CodePane } from "./codepane.js";
import { StepsPane } from "./steps.js";
import { InspectPane } from "./inspect.js";
import { GraphPane } from "./graph.js";
import { DepsPane } from "./deps.js";
import { RunPane } from "./runs.js";
import { TracePane } from "./trace.js";
import { FlamePane } from "./flame.js";
import { ComparePane } from "./compare.js";
import { openView, paneAt, register } from "./layout.js";
import { makeBar, makeViews } from "./bar.js";
import { applyPanes, applyView, keepFragment } from "./fragment.js";
import { listenForKeys } from "./keys.js";
import { listenForParts } from "./parts.js";
import { keptTheme } from "./theme.js";

for (const [id, title] of [["source", "Source"], ["yul", "Yul"], ["ir", "IR"], ["bytecode", "Bytecode"], ["a:bytecode", "Pinned bytecode"], ["schedule", "Schedule"], ["machine", "Machine code"]])
  register(id, () => new CodePane(id, title));
register("steps", () => new StepsPane());
register("inspect", () => new InspectPane());
register("graph", () => new GraphPane());
register("deps", () => new DepsPane());
register("run", () => new RunPane());
register("trace", () => new TracePane());
register("flame", () => new FlamePane());
register("compare", () => new ComparePane());

function showStatus() {
  const box = document.getElementById("status");
  let clearing = 0;
  const say = (text, kind) => {
    clearTimeout(clearing);
    box.replaceChildren(...(text ? [el("span", { text })] : []));
    box.className = text ? kind : "";
    if (kind === "info" && text) clearing = setTimeout(() => say(""), 4000);
  };
  box.addEventListener("click", () => say(""));
  on("error", () => say(state.error ? (state.error.line ? `line ${state.error.line}: ` : "") + state.error.message : "", "wrong"));
  on("said", () => say(state.said, "info"));
  on("live", () => (state.live ? say("") : say("Not connected: fusevm explore has ended, or this machine was asleep. Trying again …", "wrong")));
}

function begin() {
  keptTheme();
  makeBar();
  makeViews();
  showStatus();
  listenForKeys();
  listenForParts();
  openView("optimise");
  on("selection step run trace layout graph", keepFragment);
  window.addEventListener("hashchange", () => {
    applyPanes(location.hash.slice(1));
    if (state.doc) applyView(location.hash.slice(1));
  });
}

function fromContent(content) {
  set("settings", { settings: content.settings, live: false });
  const view = location.hash.slice(1) || content.view || "";
  state.runs = content.runs || [];
  state.run = state.runs.length - 1;
  adopt(content.document);
  state.pinnedSettings = content.pinned_settings || null;
  if (content.pinned) adoptPinned(content.pinned);
  state.comparison = content.comparison || null;
  emit("run");
  emit("compare");
  emit("live");
  document.getElementById("status").replaceChildren();
  document.getElementById("status").className = "";
  applyPanes(view);
  applyView(view);
  document.documentElement.dataset.ready = "export";
}

function fromServer() {
  const view = location.hash.slice(1);
  applyPanes(view);
  let first = true;
  connect(async ({ settings, forks }) => {
    const kept = state.settings;
    set("settings", { settings: kept || settings, forks });
    emit("live");
    await explain();
    if (first && state.doc) applyView(view);
    else if (state.pinned) await pin(state.pinnedSettings);
    first = false;
    document.documentElement.dataset.ready = "live";
  });
}

// For the console, and for tests: what the page shows, and its panes.
window.fusevm = { state, paneAt };

begin();
const content = document.getElementById("content");
if (content) fromContent(JSON.parse(content.textContent));
else fromServer();
