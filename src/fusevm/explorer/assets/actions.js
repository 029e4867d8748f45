// What the page asks of the server, and what becomes of the answers.

import { ask, cancelAll } from "./connect.js";
import { el } from "./dom.js";
import { emit, set, state } from "./store.js";
import { Links } from "./links.js";
import { viewText } from "./fragment.js";

const PAUSE = 350; // milliseconds after the last key
const MOST_REPLAYED = 5;
let timer = 0;
let explaining = false;
let again = false;
let optimising = false; // in the background, which gives way to what is asked for next

export function adopt(doc) {
  const own = (each) => each && (each.object === doc.object || !each.object);
  const step = own(doc.steps[state.step]) ? state.step : doc.steps.findLastIndex((each) => each.changed && own(each));
  Object.assign(state, { doc, links: new Links(doc), dependencies: doc.dependencies || {}, step, error: null, comparison: null });
  if (!doc.objects.includes(state.settings.object)) state.settings = { ...state.settings, object: null };
  emit("document");
  emit("error");
  emit("step");
}

export function adoptPinned(doc) {
  Object.assign(state, { pinned: doc, pinnedLinks: doc ? new Links(doc) : null });
  emit("document");
}

async function working(text, question) {
  set("busy", { busy: text });
  try {
    return await ask(question, (said) => set("busy", { busy: said }));
  } finally {
    set("busy", { busy: null });
  }
}

export function explainSoon() {
  clearTimeout(timer);
  timer = setTimeout(explain, PAUSE);
}

export function withSettings(values) {
  state.settings = { ...state.settings, ...values };
  emit("settings");
  return explain();
}

// Explains what the settings say now. While one explanation is made, only the last change after it counts.
export async function explain() {
  clearTimeout(timer);
  again = explaining;
  if (again && optimising) cancelAll();
  if (explaining || !state.live) return;
  explaining = true;
  try {
    const started = performance.now();
    const calls = state.runs.map((run) => run.asked).filter(Boolean);
    adopt(await working("Explaining", { do: "explain", settings: state.settings }));
    if (state.doc.deferred && !again) await optimise();
    state.answered = performance.now() - started;
    set("run", { runs: [], run: -1, trace: 0 });
    if (calls.length <= MOST_REPLAYED) for (const call of calls) await run(call);
    if (state.pinned) await compareVersions();
  } catch (error) {
    set("error", { error: { message: error.message, line: error.line || null } });
  } finally {
    explaining = false;
    if (again) explain();
  }
}

// What takes seconds to optimise is shown as it is first. Cancelled or failed, that stays.
async function optimise() {
  optimising = true;
  try {
    adopt(await working("Optimising", { do: "explain", settings: { ...state.settings, optimised: true } }));
  } catch (error) {
    if (!again) set("error", { error: { message: `not optimised: ${error.message}`, line: null } });
  } finally {
    optimising = false;
  }
}

export async function run(call) {
  try {
    const result = await working("Running", { do: "run", call });
    set("run", { runs: [...state.runs, { ...result, asked: call }], run: state.runs.length, trace: 0, error: null });
    emit("error");
    return result;
  } catch (error) {
    set("error", { error: { message: error.message, line: null } });
    return null;
  }
}

export async function resetRuns() {
  await ask({ do: "reset" });
  set("run", { runs: [], run: -1, trace: 0 });
}

export async function dependenciesOf(block) {
  if (state.dependencies[block] || !state.live) return state.dependencies[block];
  try {
    state.dependencies[block] = await working("Drawing dependencies", { do: "dependencies", block });
  } catch (error) {
    set("error", { error: { message: error.message, line: null } });
  }
  return state.dependencies[block];
}

// Keeps a version: this one, or the same source with other settings.
export async function pin(values = null) {
  try {
    const settings = values ? { ...state.settings, ...values } : null;
    state.pinnedSettings = settings || state.settings;
    adoptPinned(await working("Explaining the other version", { do: "pin", settings }));
    await compareVersions();
  } catch (error) {
    set("error", { error: { message: error.message, line: null } });
  }
}

export async function compareVersions() {
  set("compare", { comparison: await working("Comparing", { do: "compare" }) });
}

export async function exportPage() {
  try {
    const text = await working("Exporting", { do: "export", view: viewText() });
    const address = URL.createObjectURL(new Blob([text], { type: "text/html" }));
    const name = `${state.doc.name.replace(/[^\w.-]+/g, "_")}.html`;
    el("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
    set("said", { said: `Saved as ${name}: one file, no server needed.` });
  } catch (error) {
    set("error", { error: { message: error.message, line: null } });
  }
}

export function cancel() {
  again = false;
  cancelAll();
}
