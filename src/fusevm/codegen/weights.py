"""Static estimates of block frequency.

The successors of a branch or switch are equally likely, except that blocks which always fail are rare. A loop runs
eight iterations. The main code runs once; a function as often as it is called. Functions that call each other run eight
times for each call from outside.
"""

from __future__ import annotations

from fusevm.analysis.graphs import cyclic_nodes, settled, strong_components
from fusevm.ir import analyses
from fusevm.ir.functions import NEVER, DependencyBlock, Function, Unit

LOOP_ITERATIONS = 8.0
RARE = 0.002
DAMPING = 0.35
MOST = 1e6  # calls of a function

Weights = dict[DependencyBlock, float]


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


def failing_blocks(function: Function, unit: Unit, failing: set[str]) -> set[DependencyBlock]:
    """Blocks after which the frame always fails."""
    blocks = analyses.order(function)[::-1]
    fails = dict.fromkeys(blocks, False)
    settled(blocks, fails, lambda block: _fails(block, unit, failing, fails))
    return {block for block in blocks if fails[block]}


def _fails(block: DependencyBlock, unit: Unit, failing: set[str], known: dict[DependencyBlock, bool]) -> bool:
    if block.end.arcs:
        return all(known[target] for target in block.targets)
    if block.end.op == NEVER and block.instructions:
        last = block.instructions[-1]
        return last.op == "CALLFN" and unit.names[last.number] in failing
    return block.end.op in ("REVERT", "INVALID")


def weights_in(function: Function, failing: set[DependencyBlock]) -> Weights:
    """The weight of each block, per call of the function."""
    blocks, loops = analyses.order(function), analyses.loops(function)
    position = {block: number for number, block in enumerate(blocks)}
    bodies: dict[int, list[frozenset[int]]] = {block.start: [] for block in blocks}
    lasting: dict[frozenset[int], float] = {}  # how often an exit of a loop is passed by until it is taken
    rare, graph = {block.start for block in failing}, analyses.successors(function)
    for loop in loops:
        exits = sum(end not in loop.body and end not in rare for start in loop.body for end in graph[start])
        lasting[loop.body] = LOOP_ITERATIONS * max(exits, 1)
        for start in loop.body:
            bodies[start].append(loop.body)
    weights: Weights = dict.fromkeys(blocks, 0.0)
    weights[function.entry] = 1.0
    for block in blocks:
        if block.start in loops.by_header:
            weights[block] *= LOOP_ITERATIONS
        shares = []
        for target in block.targets:
            share = RARE if target in failing else 1.0
            for body in bodies[block.start]:
                if target.start not in body:
                    share /= lasting[body]
            shares.append(share)
        total = sum(shares) or 1.0
        for share, target in zip(shares, block.targets, strict=True):
            if position[target] > position[block]:
                leaves = any(target.start not in body for body in bodies[block.start])
                # Of the exits of a loop one is taken once in LOOP_ITERATIONS iterations.
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
        for block, call in analyses.calls(function):
            callee = unit.names[call.number]
            calls[callee].append((name, RARE if callee in failing else inside[name][block]))
    often = dict.fromkeys(unit.functions, 0.0)
    often[""] = 1.0
    graph = {name: [caller for caller, _ in callers] for name, callers in calls.items()}
    cyclic = cyclic_nodes(graph)
    for part in strong_components(graph):  # callers first
        outside = sum(often[caller] * weight for name in part for caller, weight in calls[name] if caller not in part)
        for name in part:
            if name:
                often[name] = min(outside * (LOOP_ITERATIONS if name in cyclic else 1.0), MOST)
    return {
        name: {block: damped(weight * often[name]) for block, weight in weights.items()}
        for name, weights in inside.items()
    }


def damped(weight: float) -> float:
    """Weights below 1 are raised towards 1, since they are only estimates."""
    return max(weight, 1e-9) ** DAMPING if weight < 1 else weight


def together(*weights: float) -> float:
    """The weight of code that stands for all of them."""
    return damped(sum(map(undamped, weights)))


def undamped(weight: float) -> float:
    return weight ** (1 / DAMPING) if weight < 1 else weight
