// The dependencies of a block, drawn as a graph on demand: values upwards, what must keep its order dashed.

import { clipped, el, empty, hexOf, svg } from "./dom.js";
import { on, state } from "./store.js";
import { isShown } from "./layout.js";
import { dependenciesOf } from "./actions.js";

const STEP_X = 18;
const STEP_Y = 54;
const NODE_HIGH = 24;
const MOST_NODES = 400;

// Each node one layer below the lowest that it needs; nodes of a layer in the order of what they need.
function placedNodes(nodes, edges) {
  const needs = new Map(nodes.map((node) => [node.id, []]));
  for (const [from, to] of edges) if (needs.has(to) && needs.has(from)) needs.get(to).push(from);
  const layers = new Map();
  const entered = new Set();
  const depth = (id) => {
    if (layers.has(id)) return layers.get(id);
    if (entered.has(id)) return 0;
    entered.add(id);
    const found = Math.max(0, ...needs.get(id).map((each) => depth(each) + 1));
    layers.set(id, found);
    return found;
  };
  nodes.forEach((node) => depth(node.id));
  const rows = [];
  for (const node of nodes) (rows[layers.get(node.id)] ||= []).push(node);
  const places = new Map();
  rows.forEach((row, layer) => {
    const middle = (node) => {
      const found = needs.get(node.id).map((id) => places.get(id)).filter(Boolean);
      return found.length ? found.reduce((sum, place) => sum + place.x + place.w / 2, 0) / found.length : 0;
    };
    const sorted = layer ? row.map((node) => [middle(node), node]).sort((a, b) => a[0] - b[0]) : row.map((node) => [0, node]);
    let right = 10;
    for (const [wanted, node] of sorted) {
      const w = Math.min(46, node.text.length) * 7.3 + 16;
      const x = Math.max(right, wanted - w / 2);
      places.set(node.id, { x, y: 12 + layer * STEP_Y, w });
      right = x + w + STEP_X;
    }
  });
  return places;
}

export class DepsPane {
  constructor() {
    this.body = el("div", { class: "deps scrolls" });
    on("selection document layout", () => this.show());
    this.show();
  }

  async show() {
    if (!state.doc || !isShown("deps")) return;
    const { block } = state;
    if (block === null) {
      this.drawn = null;
      this.body.replaceChildren(empty("No block selected", "Click a block of the graph, or a line of bytecode, to see what depends on what in it."));
      return;
    }
    const known = state.dependencies[block];
    if (known && known === this.drawn) return;
    const found = known || (await dependenciesOf(block));
    if (block !== state.block) return;
    this.drawn = found;
    if (!found || !found.nodes.length) this.body.replaceChildren(empty("Nothing to draw", state.live ? `The block at ${hexOf(block)} computes nothing.` : "This block's dependencies were not asked for before the export."));
    else this.draw(found, block);
  }

  draw(found, block) {
    const nodes = found.nodes.slice(0, MOST_NODES);
    const places = placedNodes(nodes, found.edges);
    const width = Math.max(...[...places.values()].map((place) => place.x + place.w)) + 12;
    const height = Math.max(...[...places.values()].map((place) => place.y)) + NODE_HIGH + 14;
    const lines = found.edges.filter(([from, to]) => places.has(from) && places.has(to)).map(([from, to, kind]) => {
      const [a, b] = [places.get(from), places.get(to)];
      const [x1, y1, x2, y2] = [a.x + a.w / 2, a.y + NODE_HIGH, b.x + b.w / 2, b.y];
      const middle = (y1 + y2) / 2;
      return svg("path", { class: `dep ${kind}`, d: `M${x1},${y1}C${x1},${middle} ${x2},${middle} ${x2},${y2}` });
    });
    const boxes = nodes.map((node) => {
      const { x, y, w } = places.get(node.id);
      return svg("g", { class: "dep-node" }, svg("title", { text: clipped(node.text, 300) }), svg("rect", { x, y, width: w, height: NODE_HIGH, rx: 4 }), svg("text", { x: x + 8, y: y + 16, text: clipped(node.text, 45) }));
    });
    const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Dependencies of the block at ${hexOf(block)}` }, ...lines, ...boxes);
    const more = found.nodes.length > MOST_NODES ? [el("p", { class: "dim", text: `The first ${MOST_NODES} of ${found.nodes.length} nodes.` })] : [];
    this.body.replaceChildren(el("p", { class: "dim", text: `Block ${hexOf(block)}: a line leads from a value to what uses it; a dashed one keeps an order.` }), ...more, drawing);
  }
}
