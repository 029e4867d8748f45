"""The dependency graph of one block: which instruction needs which word, and which must stay in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fusevm.control_flow.drawing import Arrow, EdgeLabel, picture
from fusevm.control_flow.layout import Box, laid_out
from fusevm.evm.bytecode import BasicBlock, basic_blocks
from fusevm.evm.forks import Fork
from fusevm.explanation.inputs import BadSource
from fusevm.ir.lift import lift_block
from fusevm.ir.roots import is_root
from fusevm.ir.values import CONST, UNSPILL, Value

MAX_NODES = 400
HEIGHT, CHARACTER, PADDING = 24.0, 7.2, 9.0


@dataclass(slots=True)
class Dependencies:
    """Nodes are instructions and the words they begin with; edges are `value` or `order`. In a notebook, a picture.

    >>> from fusevm import explain
    >>> found = explain("0x60015f3501" + "5f55").dependencies(0)
    >>> [node["text"] for node in found.nodes], found.edges[0]
    (['0', 'CALLDATALOAD', '1', 'ADD', '0', 'SSTORE'], ('n0', 'n1', 'value'))
    """

    block: int
    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[tuple[str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def as_data(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "nodes": self.nodes,
            "edges": [list(edge) for edge in self.edges],
            "notes": self.notes,
            "width": round(self.width, 1),
            "height": round(self.height, 1),
        }

    def svg(self) -> str:
        """A picture, without any other program."""
        boxes = {node["id"]: Box(node["w"], node["h"], node["x"], node["y"]) for node in self.nodes}
        labels = [EdgeLabel(node["id"], boxes[node["id"]], [node["text"]]) for node in self.nodes]
        arrows = [
            Arrow([boxes[one].foot, boxes[other].head], dashed=kind == "order") for one, other, kind in self.edges
        ]
        return picture(self.width, self.height, labels, arrows)

    def _repr_svg_(self) -> str:
        return self.svg()


def dependencies_of(code: bytes, fork: Fork, pc: int) -> Dependencies:
    """Of the block that contains an opcode."""
    block = next((each for each in basic_blocks(code, fork) if each.start <= pc < each.end), None)
    if block is None:
        raise BadSource(f"block {pc:#x}: none begins there; the code has {len(code):,} bytes")
    return _Drawn(block, fork).run()


class _Drawn:
    def __init__(self, block: BasicBlock, fork: Fork) -> None:
        self.lifted = lift_block(block, fork)
        self.found = Dependencies(block.start)
        self.last_pc = block.last.pc
        self.ids: dict[int, str] = {}  # of values, by identity

    def run(self) -> Dependencies:
        lifted, found = self.lifted, self.found
        shown = lifted.instructions[:MAX_NODES]
        if len(shown) < len(lifted.instructions):
            found.notes.append(f"dependencies: the first {MAX_NODES} of {len(lifted.instructions):,} instructions")
        before: str | None = None
        for value in shown:
            node = self.take(value.op, value.args, value.number)
            self.ids[id(value)] = node
            if is_root(value, None):
                if before is not None:
                    found.edges.append((before, node, "order"))
                before = node
        if lifted.end.op != "FALL" and len(shown) == len(lifted.instructions):
            node = self.take(lifted.end.op, lifted.end.args, self.last_pc)
            if before is not None:
                found.edges.append((before, node, "order"))
        self.place()
        return found

    def take(self, op: str, args: tuple[Value, ...], pc: int) -> str:
        """A node for an instruction, after those of its operands that have none yet."""
        needed = [self.node_of(arg) for arg in args]
        node = self.new(op, pc)
        self.found.edges += [(each, node, "value") for each in needed]
        return node

    def node_of(self, value: Value) -> str:
        if value.op == CONST:  # one for each use, or everything would hang on zero
            return self.new(hex(value.number) if value.number > 9 else str(value.number), None)
        known = self.ids.get(id(value))
        if known is None:
            text = f"stack {value.number}" if value.op == UNSPILL else value.op
            known = self.ids[id(value)] = self.new(text, None)
        return known

    def new(self, text: str, pc: int | None) -> str:
        name = f"n{len(self.found.nodes)}"
        self.found.nodes.append({"id": name, "text": text if len(text) <= 24 else f"{text[:23]}…", "pc": pc})
        return name

    def place(self) -> None:
        nodes = self.found.nodes
        number = {node["id"]: at for at, node in enumerate(nodes)}
        successors: dict[int, list[int]] = {}
        for source, target, _ in self.found.edges:
            successors.setdefault(number[source], []).append(number[target])
        sizes = {at: (len(node["text"]) * CHARACTER + 2 * PADDING, HEIGHT) for at, node in enumerate(nodes)}
        drawing = laid_out(sizes, successors)
        for at, node in enumerate(nodes):
            box: Box = drawing.boxes[at]
            node.update({key: round(getattr(box, key), 1) for key in "xywh"})
        self.found.width, self.found.height = drawing.width, drawing.height
