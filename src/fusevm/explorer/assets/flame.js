// Where a run's gas went: a flame graph by function and source line, from the top down. A click goes into a part.

import { button, clipped, el, empty, highest, number, svg } from "./dom.js";
import { currentRun, on } from "./store.js";
import { selectSource } from "./select.js";

const BAR_HIGH = 22;
const NARROWEST = 1.5; // pixels
const HUES = 6;

function hueOf(name) {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.charCodeAt(0)) % 997;
  return sum % HUES;
}

function depthOf(node) {
  return 1 + highest((node.children || []).map(depthOf));
}

export class FlamePane {
  constructor() {
    this.said = el("div", { class: "flame-said", text: "" });
    this.up = button("Show all", () => this.zoomTo(null), { class: "small", hidden: true });
    this.area = el("div", { class: "flame-area scrolls" });
    this.box = el("div", { class: "flame" }, el("div", { class: "flame-head" }, this.said, el("span", { class: "space" }), this.up), this.area);
    this.body = el("div", { class: "flame-pane" });
    on("run", () => this.load());
    new ResizeObserver(() => this.draw()).observe(this.area);
    this.load();
  }

  load() {
    const run = currentRun();
    this.root = run && run.flame;
    this.zoomed = null;
    if (!this.root || !this.root.gas) this.body.replaceChildren(empty("No run yet", "A run's gas is drawn here by function and source line."));
    else {
      this.body.replaceChildren(this.box);
      this.draw();
    }
  }

  shown() {
    this.draw();
  }

  zoomTo(path) {
    this.zoomed = path;
    this.up.hidden = !path || path.length < 2;
    this.draw();
  }

  draw() {
    const width = this.area.clientWidth;
    if (!this.root || !width) return;
    const path = this.zoomed || [this.root];
    const focus = path[path.length - 1];
    const drawn = [];
    path.slice(0, -1).forEach((node, depth) => drawn.push(this.part(node, 0, width, depth, path.slice(0, depth + 1))));
    const visit = (node, x, room, depth, way) => {
      if (room < NARROWEST) return;
      drawn.push(this.part(node, x, room, depth, way));
      let left = x;
      for (const child of node.children || []) {
        const share = node.gas ? (child.gas / node.gas) * room : 0;
        visit(child, left, share, depth + 1, [...way, child]);
        left += share;
      }
    };
    visit(focus, 0, width, path.length - 1, path);
    const height = (path.length - 1 + depthOf(focus)) * BAR_HIGH + 2;
    this.area.replaceChildren(svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Gas by function and source line" }, ...drawn));
    this.describe(focus);
  }

  describe(node) {
    const share = (100 * node.gas) / this.root.gas;
    this.said.replaceChildren(el("b", { text: clipped(node.name, 80) }), el("span", { class: "dim", text: ` ${number(node.gas)} gas, ${share.toFixed(1)} %` }));
  }

  part(node, x, room, depth, path) {
    const letters = Math.floor((room - 8) / 6.6);
    const text = letters > 2 ? clipped(node.name, letters - 1) : "";
    const group = svg(
      "g", { class: `flame-part h${hueOf(node.name)}`, tabindex: room > 12 ? 0 : null, role: "button", "aria-label": `${node.name}: ${node.gas} gas` },
      svg("rect", { x: x + 0.5, y: depth * BAR_HIGH + 0.5, width: Math.max(0.5, room - 1), height: BAR_HIGH - 2, rx: 3 }),
      text ? svg("text", { x: x + 5, y: depth * BAR_HIGH + 15, text }) : null,
    );
    const open = () => {
      this.zoomTo(path);
      const line = /^(\d+): /.exec(node.name);
      if (line) selectSource([Number(line[1])], "flame");
    };
    group.addEventListener("click", open);
    group.addEventListener("keydown", (event) => event.key === "Enter" && open());
    group.addEventListener("pointerenter", () => this.describe(node));
    return group;
  }
}
