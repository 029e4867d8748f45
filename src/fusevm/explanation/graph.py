"""The control-flow graph of the code with loops, functions and a layout: what the explorer draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fusevm.control_flow.drawing import Arrow, EdgeLabel, picture, size_of
from fusevm.control_flow.graph import Cfg, GraphNode, control_flow
from fusevm.control_flow.layout import Box, Drawing, Edge, Point, laid_out
from fusevm.evm.bytecode import basic_blocks
from fusevm.evm.forks import Fork
from fusevm.explanation.listing import instruction_text

MAX_BLOCKS = 4_000
MAX_LINES = 16  # of a block; the rest is counted
MAX_WIDE = 34  # characters of a line
_COLOURS = {"jump": "#2b6cb0", "true": "#2f855a", "false": "#c53030", "fall": "#4a5568", "back": "#c05621"}


@dataclass(slots=True)
class GraphBlock:
    id: int
    end: int
    gas: int
    function: str | None
    loop: int | None
    lines: list[str]
    src: tuple[int, ...]
    box: Box
    reached: bool = True
    unknown: bool = False

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        data: dict[str, Any] = {
            "id": self.id,
            "end": self.end,
            "gas": self.gas,
            "function": self.function,
            "loop": self.loop,
            "lines": self.lines,
            "src": list(self.src),
            "reached": self.reached,
            "unknown": self.unknown,
        }
        return data | {key: round(getattr(self.box, key), 1) for key in "xywh"}


@dataclass(slots=True)
class GraphEdge:
    source: int
    target: int
    kind: str
    points: list[Point]

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        points = [list(point) for point in self.points]
        return {"from": self.source, "to": self.target, "kind": self.kind, "points": points}


@dataclass(slots=True)
class Graph:
    """Blocks, edges, loops and functions of some code. In a notebook it is a picture.

    >>> from fusevm import explain
    >>> graph = explain("0x5b600056").graph
    >>> [(edge.source, edge.target, edge.kind) for edge in graph.edges]
    [(0, 0, 'back')]
    """

    blocks: list[GraphBlock] = field(default_factory=list)
    edges: list[GraphEdge] = field(default_factory=list)
    loops: list[dict[str, Any]] = field(default_factory=list)
    functions: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "blocks": [block.as_data() for block in self.blocks],
            "edges": [edge.as_data() for edge in self.edges],
            "loops": self.loops,
            "functions": self.functions,
            "width": round(self.width, 1),
            "height": round(self.height, 1),
        }

    def svg(self) -> str:
        """A picture, without any other program."""
        arrows = [Arrow(edge.points, _COLOURS[edge.kind]) for edge in self.edges]
        labels = [EdgeLabel(f"b{block.id}", block.box, block.lines) for block in self.blocks]
        return picture(self.width, self.height, labels, arrows)

    def _repr_svg_(self) -> str:
        return self.svg()


def graph_of(
    code: bytes, fork: Fork, lines_at: Mapping[int, tuple[int, ...]], functions_at: Mapping[int, str]
) -> Graph:
    found = Graph()
    blocks = basic_blocks(code, fork)
    if len(blocks) > MAX_BLOCKS:
        found.notes.append(f"graph: the first {MAX_BLOCKS:,} of {len(blocks):,} blocks, as if the code ended there")
        code = code[: blocks[MAX_BLOCKS].start]
    cfg = control_flow(code, fork)
    starts = [start for start, node in cfg.nodes.items() if node.reached] or list(cfg.nodes)[:1]
    functions = _functions(cfg, functions_at)
    shown = {start: cfg.nodes[start] for start in starts}
    texts = {start: _texts(node) for start, node in shown.items()}
    drawing = laid_out(
        {start: size_of(lines) for start, lines in texts.items()},
        {start: node.successors for start, node in shown.items()},
    )
    innermost = {block: loop.header for block, loop in cfg.loops.innermost().items()}
    of_block = {block: name for name, _, blocks in functions for block in blocks}
    for start, node in shown.items():
        found.blocks.append(
            GraphBlock(
                start,
                node.block.end,
                sum(each.op.gas_at(fork) for each in node.block.instructions if each.op is not None),
                of_block.get(start),
                innermost.get(start),
                texts[start],
                _src(node, lines_at),
                drawing.boxes[start],
                node.reached,
                node.unknown,
            )
        )
        found.edges += _edges(start, node, drawing)
    found.loops = [
        {"header": loop.header, "blocks": sorted(set(loop.body) & shown.keys()), "parent": loop.parent}
        for loop in cfg.loops
        if loop.header in shown
    ]
    found.functions = [
        {"name": name, "entry": entry, "blocks": sorted(set(blocks) & shown.keys())}
        for name, entry, blocks in functions
        if entry in shown
    ]
    found.width, found.height = drawing.width, drawing.height
    if cfg.budget_spent:
        found.notes.append("graph: the budget for following jumps is spent: only jumps to constants are resolved")
    return found


def _functions(cfg: Cfg, named: Mapping[int, str]) -> list[tuple[str, int, list[int]]]:
    """What is called: by name where the compiler says it, else by place. A block belongs to the first that has it."""
    found: list[tuple[str, int, list[int]]] = []
    taken: set[int] = set()
    for entry, routine in sorted(cfg.jumps.functions.items()):
        if entry == 0 and 0 not in named:
            continue
        blocks = sorted(routine.blocks - taken)
        taken.update(blocks)
        found.append((named.get(entry, f"f_{entry:x}"), entry, blocks))
    entries = {*named, *(entry for _, entry, _ in found)}
    for entry in sorted(named.keys() & cfg.nodes.keys() - cfg.jumps.functions.keys()):  # what never returns
        found.append((named[entry], entry, sorted(_below(cfg, entry, entries, taken))))
    return found


def _below(cfg: Cfg, entry: int, entries: set[int], taken: set[int]) -> set[int]:
    """The blocks that come after an entry, up to others; they are taken from now on."""
    found, work = set[int](), [entry]
    while work:
        block = work.pop()
        if block not in taken and (block == entry or block not in entries):
            taken.add(block)
            found.add(block)
            work += cfg.nodes[block].successors
    return found


def _texts(node: GraphNode) -> list[str]:
    texts = [f"{each.pc:#06x} {instruction_text(each)}" for each in node.block.instructions[: MAX_LINES + 1]]
    texts = [text if len(text) <= MAX_WIDE else f"{text[: MAX_WIDE - 1]}…" for text in texts]
    count = len(node.block.instructions)
    return texts if count <= MAX_LINES else [*texts[: MAX_LINES - 1], f"… {count - MAX_LINES + 1} more"]


def _src(node: GraphNode, lines_at: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sorted({line for each in node.block.instructions for line in lines_at.get(each.pc, ())}))


def _edges(start: int, node: GraphNode, drawing: Drawing) -> Iterable[GraphEdge]:
    branches = node.block.last.name == "JUMPI"
    ways = [(target, "true" if branches else "jump") for target in node.taken]
    if node.falls is not None:
        ways.append((node.falls, "false" if branches else "fall"))
    for target, kind in ways:
        edge: Edge = (start, target)
        if edge in drawing.edges:
            yield GraphEdge(start, target, "back" if edge in drawing.back else kind, drawing.edges[edge])
