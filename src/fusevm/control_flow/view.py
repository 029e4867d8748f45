"""A control-flow graph to look at: text, DOT, SVG and plain data."""

from __future__ import annotations

from typing import Any

from fusevm.control_flow.drawing import GREY, PLAIN, Arrow, EdgeLabel, picture, size_of
from fusevm.control_flow.graph import Cfg, GraphNode
from fusevm.control_flow.layout import laid_out
from fusevm.evm.bytecode import Instruction


def _at(pc: int) -> str:
    return f"{pc:#06x}"


def _instruction_text(instruction: Instruction) -> str:
    if instruction.op and instruction.op.immediate:
        return f"{instruction.name} {instruction.push:#x}"
    return instruction.name


def _exits_of(node: GraphNode) -> list[str]:
    parts = [f"jump {_at(target)}" for target in node.taken]
    if node.falls is not None:
        parts.append(f"fall {_at(node.falls)}")
    if node.unknown:
        parts.append("jump ?")
    if node.bad_jump:
        parts.append("bad jump")
    return parts or [node.block.last.name.lower() if node.block.last.op is None or node.block.last.op.ends else "stop"]


def as_text(cfg: Cfg, instructions: bool = False) -> str:
    reached = sum(node.reached for node in cfg.nodes.values())
    unknown = sum(node.unknown for node in cfg.nodes.values() if node.reached)
    lines = [f"{len(cfg.nodes)} blocks, {reached} reached, {unknown} unknown jumps, {len(cfg.loops.by_header)} loops"]
    if cfg.budget_spent:
        lines.append("the budget for following jumps is spent: only jumps to constants of their own block are resolved")
    for start, node in cfg.nodes.items():
        notes = "" if node.reached else "  (not reached)"
        if start in cfg.loops.by_header:
            notes += "  (loop)"
        count = len(node.block.instructions)
        lines.append(
            f"block {_at(start)}: {count} instruction{'s' * (count != 1)} -> {', '.join(_exits_of(node))}{notes}"
        )
        if instructions:
            lines += [f"    {_at(each.pc)}  {_instruction_text(each)}" for each in node.block.instructions]
    lines += _loop_lines(cfg)
    return "\n".join(lines) + "\n"


def _loop_lines(cfg: Cfg) -> list[str]:
    lines = []
    for loop in cfg.loops:
        inside = f" in {_at(loop.parent)}" if loop.parent is not None else ""
        latches = ", ".join(map(_at, loop.latches))
        exits = ", ".join(f"{_at(source)}->{_at(target)}" for source, target in loop.exits) or "none"
        lines.append(
            f"loop {_at(loop.header)}: depth {loop.depth}{inside}, {len(loop.body)} blocks, "
            f"latches {latches}, exits {exits}"
        )
    lines += [f"irreducible: {_at(latch)}->{_at(header)}" for latch, header in sorted(cfg.loops.irreducible)]
    if not cfg.loops.complete:
        lines.append("more loops than the budget allows to list")
    return lines


def as_data(cfg: Cfg) -> dict[str, Any]:
    return {
        "fork": cfg.fork.label,
        "budget_spent": cfg.budget_spent,
        "blocks": [
            {
                "start": start,
                "end": node.block.end,
                "instructions": len(node.block.instructions),
                "taken": list(node.taken),
                "falls": node.falls,
                "unknown": node.unknown,
                "bad_jump": node.bad_jump,
                "reached": node.reached,
            }
            for start, node in cfg.nodes.items()
        ],
        "loops": [
            {
                "header": loop.header,
                "latches": list(loop.latches),
                "body": sorted(loop.body),
                "exits": [list(edge) for edge in loop.exits],
                "parent": loop.parent,
                "depth": loop.depth,
            }
            for loop in cfg.loops
        ],
        "irreducible": [list(edge) for edge in sorted(cfg.loops.irreducible)],
    }


def as_dot(cfg: Cfg) -> str:
    lines = ["digraph cfg {", "  node [shape=box, fontname=monospace];"]
    for start, node in cfg.nodes.items():
        if not node.reached:
            continue
        text = "\\l".join(label_lines(node)) + "\\l"
        style = ", peripheries=2" if start in cfg.loops.by_header else ""
        lines.append(f'  b{start} [label="{text}"{style}];')
        lines += [f"  b{start} -> b{target};" for target in node.taken]
        if node.falls is not None:
            lines.append(f"  b{start} -> b{node.falls} [style=dashed];")
        if node.unknown:
            lines.append(f"  b{start} -> unknown [color=red];")
    return "\n".join([*lines, "}"]) + "\n"


_TAKEN, _BACK, _UNKNOWN = "#2b6cb0", "#c05621", "#c53030"


def as_svg(cfg: Cfg) -> str:
    nodes = {start: node for start, node in cfg.nodes.items() if node.reached}
    texts = {start: label_lines(node) for start, node in nodes.items()}
    sizes = {start: size_of(lines) for start, lines in texts.items()}
    drawing = laid_out(sizes, {start: node.successors for start, node in nodes.items()})
    arrows = []
    for (source, target), points in drawing.edges.items():
        falls = target not in nodes[source].taken
        colour = _BACK if (source, target) in drawing.back else GREY if falls else _TAKEN
        arrows.append(Arrow(points, colour, falls))
    labels = []
    for start, node in nodes.items():
        header = start in cfg.loops.by_header
        colour = _BACK if header else _UNKNOWN if node.unknown else PLAIN
        labels.append(EdgeLabel(f"b{start}", drawing.boxes[start], texts[start], colour, 2 if header else 1))
    return picture(drawing.width, drawing.height, labels, arrows)


_LABEL_LINES = 12


def label_lines(node: GraphNode) -> list[str]:
    texts = [_instruction_text(each) for each in node.block.instructions]
    texts = [text if len(text) <= 26 else text[:23] + "..." for text in texts]
    if len(texts) > _LABEL_LINES:
        texts = [*texts[: _LABEL_LINES - 2], f"... {len(texts) - _LABEL_LINES + 1} more", texts[-1]]
    return [f"{_at(node.block.start)}:", *texts]
