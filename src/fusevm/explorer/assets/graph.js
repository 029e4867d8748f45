// The control-flow graph on a canvas: zoom, pan, blocks coloured by gas or by the heat of a run.

import { button, el, empty, hexOf, highest, number } from "./dom.js";
import { currentRun, on, set, state } from "./store.js";
import { selectBlock } from "./select.js";
import { isPending } from "./parts.js";
import { boxAround, drawBlock, drawEdge, drawGroup, palette } from "./drawing.js";

const CLOSEST = 2.5;
const MARGIN = 30;
const READABLE = 0.7;

export class GraphPane {
  constructor() {
    this.canvas = el("canvas", { class: "graph", tabindex: 0, role: "application", "aria-label": "Control-flow graph" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.nothing = empty("No graph", "The document has no control-flow graph.");
    this.body = el("div", { class: "graph-pane" }, this.canvas, this.tip, this.nothing);
    this.by = el("select", { "aria-label": "Colour blocks by", class: "small", on: { change: () => set("graph", { colour: this.by.value }) } },
      el("option", { value: "gas", text: "gas, static" }), el("option", { value: "heat", text: "heat of the run" }));
    this.controls = [
      el("label", { class: "field" }, el("span", { text: "colour" }), this.by),
      button("−", () => this.zoom(1 / 1.4), { class: "icon", "aria-label": "Zoom out" }),
      button("+", () => this.zoom(1.4), { class: "icon", "aria-label": "Zoom in" }),
      button("Fit", () => this.fit(), { class: "small", title: "Show all (0)" }),
    ];
    this.count = el("span", { class: "count" });
    this.actions = [this.count];
    this.view = null;
    this.listen();
    on("document", () => this.load());
    on("run graph", () => this.recolour());
    on("selection", () => this.follow());
    on("theme", () => this.schedule());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.schedule());
    new ResizeObserver(() => this.resized()).observe(this.body);
    this.load();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.drag = { x: event.clientX, y: event.clientY, moved: 0 };
    });
    canvas.addEventListener("pointermove", (event) => this.moved(event));
    canvas.addEventListener("pointerup", (event) => {
      const clicked = this.drag && this.drag.moved < 4;
      this.drag = null;
      const block = clicked && this.blockAt(event.offsetX, event.offsetY);
      if (block) selectBlock(block);
    });
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  load() {
    const graph = state.doc && state.doc.graph;
    if (graph && graph === this.graph) return;
    this.graph = graph;
    this.blocks = graph ? graph.blocks : [];
    this.nothing.hidden = this.blocks.length > 0 || isPending("graph");
    this.count.textContent = `${number(this.blocks.length)} blocks`;
    this.byId = new Map(this.blocks.map((block) => [block.id, block]));
    this.edges = (graph ? graph.edges : []).map((edge) => ({ ...edge, box: boxAround(edge.points.map(([x, y]) => ({ x, y, w: 0, h: 0 }))) }));
    const group = ({ blocks, name, entry, header }) => {
      const members = blocks.map((id) => this.byId.get(id)).filter(Boolean);
      return { name, members, first: this.byId.get(entry === undefined ? header : entry), box: boxAround(members) };
    };
    this.functions = (graph ? graph.functions : []).map(group).filter((each) => each.members.length);
    this.loops = (graph ? graph.loops : []).map(group).filter((each) => each.members.length);
    this.bounds = boxAround(this.blocks) || { x: 0, y: 0, w: 1, h: 1 };
    this.view = null;
    this.recolour();
    this.resized();
  }

  // Shares of the hottest block, from 0 to 1.
  recolour() {
    const run = currentRun();
    this.by.value = state.colour;
    this.by.options[1].disabled = !run;
    const heated = state.colour === "heat" && run;
    const weight = (block) => (heated ? (run.blocks[block.id] || [0, 0])[1] : block.gas || 0);
    const largest = highest(this.blocks.map(weight), 1);
    this.shares = new Map(this.blocks.map((block) => [block.id, Math.sqrt(weight(block) / largest)]));
    this.weights = new Map(this.blocks.map((block) => [block.id, weight(block)]));
    this.schedule();
  }

  resized() {
    const { clientWidth: width, clientHeight: height } = this.body;
    if (!width || !height) return;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.ratio = ratio;
    if (!this.view) this.begin();
    this.schedule();
  }

  // All of it where it can be read so, else its entry.
  begin() {
    this.fit();
    const entry = this.blocks[0];
    if (!this.view || this.view.scale >= READABLE || !entry) return;
    this.view = { scale: READABLE, x: this.body.clientWidth / 2 - (entry.x + entry.w / 2) * READABLE, y: MARGIN - entry.y * READABLE };
  }

  shown() {
    this.resized();
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.body;
    if (!width || !this.blocks.length) return;
    const { x, y, w, h } = this.bounds;
    const scale = Math.min((width - 2 * MARGIN) / w, (height - 2 * MARGIN) / h, 1);
    this.view = { scale, x: width / 2 - (x + w / 2) * scale, y: height / 2 - (y + h / 2) * scale };
    this.schedule();
  }

  zoom(by, atX = this.body.clientWidth / 2, atY = this.body.clientHeight / 2) {
    if (!this.view) return;
    const least = Math.min(0.02, this.view.scale);
    const scale = Math.max(least, Math.min(CLOSEST, this.view.scale * by));
    const ratio = scale / this.view.scale;
    this.view = { scale, x: atX - (atX - this.view.x) * ratio, y: atY - (atY - this.view.y) * ratio };
    this.schedule();
  }

  pan(x, y) {
    if (!this.view) return;
    this.view.x += x;
    this.view.y += y;
    this.schedule();
  }

  blockAt(x, y) {
    if (!this.view) return undefined;
    const [worldX, worldY] = [(x - this.view.x) / this.view.scale, (y - this.view.y) / this.view.scale];
    return this.blocks.find((block) => worldX >= block.x && worldX <= block.x + block.w && worldY >= block.y && worldY <= block.y + block.h);
  }

  moved(event) {
    if (this.drag) {
      const [x, y] = [event.clientX - this.drag.x, event.clientY - this.drag.y];
      this.drag = { x: event.clientX, y: event.clientY, moved: this.drag.moved + Math.abs(x) + Math.abs(y) };
      this.pan(x, y);
      return;
    }
    const block = this.blockAt(event.offsetX, event.offsetY);
    this.tip.hidden = !block;
    if (!block) return;
    const where = block.function ? ` · ${block.function}` : "";
    this.tip.textContent = `${hexOf(block.id)}${where} · ${number(this.weights.get(block.id))} gas${state.colour === "heat" ? " in this run" : ""}`;
    this.tip.style.left = `${Math.min(event.offsetX + 12, this.body.clientWidth - 220)}px`;
    this.tip.style.top = `${event.offsetY + 14}px`;
  }

  onKey(event) {
    const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (moves[event.key]) this.pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.3);
    else if (event.key === "-") this.zoom(1 / 1.3);
    else if (event.key === "0") this.fit();
    else if (event.key === "n" || event.key === "p") this.neighbour(event.key === "n" ? 1 : -1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  neighbour(by) {
    const at = this.blocks.findIndex((block) => block.id === state.block);
    const block = this.blocks[(at + by + this.blocks.length) % this.blocks.length];
    if (block) selectBlock(block, "keys");
  }

  // A block that was chosen elsewhere comes into view, large enough to be read.
  follow() {
    const block = this.byId.get(state.block);
    const { selection } = state;
    this.lit = new Set();
    for (const pc of selection ? selection.pcs : []) {
      const found = state.links.blockAt(pc);
      if (found) this.lit.add(found.id);
    }
    const { clientWidth: width, clientHeight: height } = this.body;
    if (block && this.view && width && selection && selection.pane !== "graph") {
      const { scale } = this.view;
      const [left, top] = [block.x * scale + this.view.x, block.y * scale + this.view.y];
      const isInView = left > 0 && top > 0 && left + block.w * scale < width && top + Math.min(block.h * scale, height / 2) < height;
      if (!isInView) {
        const closer = Math.max(scale, 0.45);
        this.view = { scale: closer, x: width / 2 - (block.x + block.w / 2) * closer, y: height / 2 - (block.y + block.h / 2) * closer };
      }
    }
    this.schedule();
  }

  schedule() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      this.draw();
    });
  }

  draw() {
    const { view } = this;
    const { clientWidth: width, clientHeight: height } = this.body;
    if (!view || !width) return;
    const context = this.canvas.getContext("2d");
    const colours = palette(this.canvas);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.setTransform(view.scale * this.ratio, 0, 0, view.scale * this.ratio, view.x * this.ratio, view.y * this.ratio);
    const world = { x: -view.x / view.scale, y: -view.y / view.scale, w: width / view.scale, h: height / view.scale };
    const seen = ({ x, y, w, h }) => x <= world.x + world.w && x + w >= world.x && y <= world.y + world.h && y + h >= world.y;
    this.functions.forEach((each, at) => seen(each.box) && drawGroup(context, each, 16, colours.hues[at % colours.hues.length], 0.13, colours, view.scale));
    for (const each of this.loops) if (seen(each.box)) drawGroup(context, each, 8, colours.back, 0.2, colours, view.scale);
    for (const edge of this.edges) {
      const isLit = state.block !== null && (edge.from === state.block || edge.to === state.block);
      if (seen(edge.box)) drawEdge(context, edge, colours, view.scale, isLit);
    }
    for (const block of this.blocks) {
      if (!seen(block)) continue;
      const mark = block.id === state.block ? "chosen" : this.lit && this.lit.has(block.id) ? "lit" : "";
      drawBlock(context, block, this.shares.get(block.id), colours, view.scale, mark);
    }
  }
}
