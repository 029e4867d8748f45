// Which lines of every pane belong together: those of the same instructions, else of the same source lines.

function add(map, key, line) {
  const found = map.get(key);
  if (found === undefined) map.set(key, [line]);
  else found.push(line);
}

class PaneLinks {
  constructor(pane) {
    this.byPc = new Map();
    this.bySource = new Map();
    this.bySourceAlone = new Map(); // of lines that no instruction belongs to
    pane.lines.forEach((line, index) => {
      const pcs = line.pcs || [];
      for (const pc of pcs) add(this.byPc, pc, index);
      for (const source of line.src || []) {
        add(this.bySource, source, index);
        if (!pcs.length) add(this.bySourceAlone, source, index);
      }
    });
    if (pane.id === "source") pane.lines.forEach((_, index) => add(this.bySourceAlone, index + 1, index));
  }

  linesOf({ pcs, src }) {
    const found = new Set();
    for (const pc of pcs) for (const line of this.byPc.get(pc) || []) found.add(line);
    const sources = pcs.length && this.byPc.size ? this.bySourceAlone : this.bySource;
    for (const source of src) for (const line of sources.get(source) || []) found.add(line);
    return found;
  }
}

export class Links {
  constructor(doc) {
    this.panes = new Map(doc.panes.map((pane) => [pane.id, new PaneLinks(pane)]));
    this.linked = new Set(doc.panes.filter((pane) => pane.id !== "source").flatMap((pane) => [...this.panes.get(pane.id).bySource.keys()]));
    this.lineOfPc = new Map(Object.entries(doc.lines || {}).map(([pc, line]) => [Number(pc), line])); // the innermost
    this.sourceOfPc = new Map();
    const code = doc.panes.find((pane) => pane.id === "bytecode");
    for (const line of code ? code.lines : [])
      for (const pc of line.pcs || []) this.sourceOfPc.set(pc, line.src || []);
    this.setGraph(doc.graph);
  }

  setGraph(graph) {
    const blocks = graph ? graph.blocks : [];
    this.starts = blocks.map((block) => block.id).sort((a, b) => a - b);
    this.blocks = new Map(blocks.map((block) => [block.id, block]));
  }

  setPane(pane) {
    this.panes.set(pane.id, new PaneLinks(pane));
  }

  // The same place in another version is known by its source lines alone.
  linesOf(pane, selection, own) {
    const links = this.panes.get(pane.replace("a:", ""));
    if (!links || !selection) return new Set();
    if (!own) return links.linesOf({ pcs: [], src: selection.src });
    // Code that was inlined belongs to its own line first: its calls are told in the source alone.
    const main = pane === "source" || selection.pane === "source" ? new Set() : this.mainLines(selection);
    return links.linesOf({ pcs: selection.pcs, src: main.size ? [...main] : selection.src });
  }

  // The one source line that a line of code is known by: not that of a call which it was inlined for.
  mainLine({ pcs, src }) {
    const line = pcs && pcs.length ? this.lineOfPc.get(pcs[0]) : undefined;
    return line === undefined && src ? src[src.length - 1] : line;
  }

  isOf(line, src) {
    return src.includes(line.src && line.src.length === 1 ? line.src[0] : this.mainLine(line));
  }

  mainLines({ pcs }) {
    return new Set(pcs.map((pc) => this.lineOfPc.get(pc)).filter((line) => line !== undefined));
  }

  atPc(pc) {
    return { pcs: [pc], src: this.sourceOfPc.get(pc) || [] };
  }

  blockAt(pc) {
    let low = 0;
    let high = this.starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] <= pc) low = middle + 1;
      else high = middle;
    }
    return low ? this.blocks.get(this.starts[low - 1]) : undefined;
  }
}
