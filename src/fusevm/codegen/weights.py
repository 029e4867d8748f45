"""Static estimates of block frequency.

The successors of a branch or switch are equally likely, except that blocks which always fail are rare. A loop runs
eight iterations. The main code runs once; a function as often as it is called. Functions that call each other run eight
times for each call from outside.
"""

from __future__ import annotations

from fusevm.analysis.graphs import cyclic_nodes, natural_loops, strong_components
from fusevm.ir.functions import NEVER, Function, GraphBlock, Unit

TURNS = 8.0
RARE = 0.002
DAMPING = 0.35
MOST = 1e6  # calls of a function

Weights = dict[GraphBlock, float]


def failing_functions(unit: Unit) -> set[str]:
    """Functions that never return and always revert the frame."""
    found: set[str] = set()
    candidates = [(name, function) for name, function in unit.functions.items() if name and not function.returns]
    changed = True
    while changed:
        changed = False
        for name, function in candidates:
            if name not in found and function.entry in failing_blocks(function, unit, found):
                found.add(name)
                changed = True
    return found


def failing_blocks(function: Function, unit: Unit, failing: set[str]) -> set[GraphBlock]:
    """Blocks after which the frame always fails."""
    found: set[GraphBlock] = set()
    blocks = function.blocks()[::-1]
    changed = True
    while changed:
        changed = False
        for block in blocks:
            if block not in found and _fails(block, unit, failing, found):
                found.add(block)
                changed = True
    return found


def _fails(block: GraphBlock, unit: Unit, failing: set[str], known: set[GraphBlock]) -> bool:
    if block.end.arcs:
        return all(arc.target in known for arc in block.end.arcs)
    if block.end.op == NEVER and block.instructions:
        last = block.instructions[-1]
        return last.op == "CALLFN" and unit.names[last.number] in failing
    return block.end.op in ("REVERT", "INVALID")


def weights_in(function: Function, failing: set[GraphBlock]) -> Weights:
    """The weight of each block, per call of the function."""
    blocks = function.blocks()
    position = {block: number for number, block in enumerate(blocks)}
    graph = {block.start: [target.start for target in block.targets] for block in blocks}
    loops = natural_loops(graph, function.entry.start)
    bodies: dict[int, list[frozenset[int]]] = {start: [] for start in graph}
    for loop in loops:
        for start in loop.body:
            bodies[start].append(loop.body)
    weights: Weights = dict.fromkeys(blocks, 0.0)
    weights[function.entry] = 1.0
    for block in blocks:
        if block.start in loops.by_header:
            weights[block] *= TURNS
        shares = []
        for target in block.targets:
            share = RARE if target in failing else 1.0
            left = sum(target.start not in body for body in bodies[block.start])
            shares.append(share / TURNS**left)
        total = sum(shares) or 1.0
        for share, target in zip(shares, block.targets, strict=True):
            if position[target] > position[block]:
                leaves = any(target.start not in body for body in bodies[block.start])
                # A loop exit is taken once in TURNS iterations.
                weights[target] += weights[block] * (share if leaves else share / total)
    return weights


def all_weights(unit: Unit) -> dict[str, Weights]:
    """The weight of every block, per run of the main code."""
    failing = failing_functions(unit)
    inside = {
        name: weights_in(function, failing_blocks(function, unit, failing)) for name, function in unit.functions.items()
    }
    calls: dict[str, list[tuple[str, float]]] = {name: [] for name in unit.functions}
    for name, function in unit.functions.items():
        for block in function.blocks():
            for value in block.instructions:
                if value.op == "CALLFN":
                    callee = unit.names[value.number]
                    calls[callee].append((name, RARE if callee in failing else inside[name][block]))
    often = dict.fromkeys(unit.functions, 0.0)
    often[""] = 1.0
    graph = {name: [caller for caller, _ in callers] for name, callers in calls.items()}
    cyclic = cyclic_nodes(graph)
    for part in strong_components(graph):  # callers first
        outside = sum(often[caller] * weight for name in part for caller, weight in calls[name] if caller not in part)
        for name in part:
            if name:
                often[name] = min(outside * (TURNS if name in cyclic else 1.0), MOST)
    return {
        name: {block: damped(weight * often[name]) for block, weight in weights.items()}
        for name, weights in inside.items()
    }


def damped(weight: float) -> float:
    """Weights below 1 are raised towards 1, since they are only estimates."""
    return max(weight, 1e-9) ** DAMPING if weight < 1 else weight


def undamped(weight: float) -> float:
    return weight ** (1 / DAMPING) if weight < 1 else weight
