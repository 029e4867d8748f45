// What the page shows and what is selected in it; who wants to know of a change listens to its topic.

export const state = {
  live: false, // a server answers
  settings: null,
  forks: [],
  doc: null,
  links: null,
  pinned: null, // another version of the document, to compare with
  pinnedLinks: null,
  pinnedSettings: null,
  comparison: null,
  runs: [],
  run: -1,
  trace: 0, // the step of the run's trace
  step: -1, // the optimiser step
  selection: null, // {pane, line, pcs, src}
  hover: null,
  dependencies: {},
  block: null, // pc of the block chosen in the graph
  colour: "gas", // of the graph's blocks
  error: null,
  busy: null,
  search: "",
};

const listeners = new Map();

export function on(topics, act) {
  for (const topic of topics.split(" ")) {
    if (!listeners.has(topic)) listeners.set(topic, []);
    listeners.get(topic).push(act);
  }
}

export function emit(topic, value) {
  for (const act of listeners.get(topic) || []) act(value);
}

export function set(topic, values) {
  Object.assign(state, values);
  emit(topic);
}

export function paneOf(id) {
  if (id.startsWith("a:")) return state.pinned && state.pinned.panes.find((pane) => pane.id === id.slice(2));
  return state.doc && state.doc.panes.find((pane) => pane.id === id);
}

export function linksOf(id) {
  return id.startsWith("a:") ? state.pinnedLinks : state.links;
}

export function currentRun() {
  return state.runs[state.run] || null;
}
