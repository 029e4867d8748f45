"""The inlining heuristic: calls that cost more than a copy of the callee, deployed once and run `runs` times."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from math import inf

from fusevm.analysis.graphs import cyclic_nodes, strong_components
from fusevm.codegen.constants import DEPOSIT, pushed
from fusevm.codegen.weights import Weights
from fusevm.ir import analyses
from fusevm.ir.functions import LEAVE, DependencyBlock, Function, Unit
from fusevm.ir.inline import inline_calls
from fusevm.ir.values import CONST, Value

CALL_BYTES, CALL_GAS = 8, 24  # of a call, its label and its return
RETURN_BYTES = 24  # of the function's own label and its jump back
OPERAND_BYTES, OPERAND_GAS = 1, 3  # of pushing an argument
CONSTANT_BYTES, CONSTANT_GAS = 3, 4  # estimated saving in the callee per constant argument
LONG = 20  # bytes of code that push a constant which cannot be made shorter
DOUBLING = 1_000  # runs at which a unit may double its size, and in proportion
LEAST_GROWTH, MAX_GROWTH = 0.2, 4.0
LEAST_RUNS = 1e-6  # fewer make no difference
DEARER = 0.9  # fewer runs, as if bytes cost more: in small steps, since a large one gives up copies that would fit


@dataclass(slots=True)
class Site:
    caller: str
    block: DependencyBlock
    call: Value
    weight: float


def size_of(function: Function, unit: Unit) -> int:
    """The approximate size of the function's code in bytes."""
    size = 0
    for block in analyses.order(function):
        size += 2 + 4 * (len(block.end.arcs) - 1 if block.end.arcs else 0) + len(block.end.args)
        for value in block.instructions:
            size += 1 + sum(_operand(arg, unit) for arg in value.args)
            size += CALL_BYTES if value.op == "CALLFN" else 0
        if block.end.op == LEAVE:
            size += len(block.end.args)
    return size


def _operand(value: Value, unit: Unit) -> int:
    if value.op == CONST:
        length = len(pushed(value.number, unit, 0))
        # Short constants often fold away in a copy. A hash, such as the slot at which an array begins, stays.
        return length if length > LONG else min(1 + (value.number.bit_length() + 7) // 8, 6)
    return OPERAND_BYTES if value.uses > 1 else 0


def call_sites(unit: Unit, weights: dict[str, Weights]) -> dict[str, list[Site]]:
    sites: dict[str, list[Site]] = {name: [] for name in unit.functions}
    for name, function in unit.functions.items():
        for block, call in analyses.calls(function):
            sites[unit.names[call.number]].append(Site(name, block, call, weights[name][block]))
    return sites


def recursive_functions(unit: Unit) -> set[str]:
    """Functions that call themselves, directly or indirectly."""
    return cyclic_nodes(analyses.call_graph(unit))


def gain(size: int, sites: int, site: Site, runs: float) -> float:
    """What replacing a call by a copy saves, in gas over all runs, deployment included."""
    constants = sum(arg.op == CONST for arg in site.call.args)
    grows = size - RETURN_BYTES - CALL_BYTES - OPERAND_BYTES * len(site.call.args) - CONSTANT_BYTES * constants
    if sites == 1:
        grows = min(grows - size, -1)  # the function itself is removed
    saves = CALL_GAS + OPERAND_GAS * len(site.call.args) + CONSTANT_GAS * constants
    return saves * site.weight * runs - DEPOSIT * grows


def largest_size(unit: Unit, runs: int) -> float:
    """The size that the unit may reach by inlining; without it, the weights of nested loops would justify any."""
    growth = min(max(runs / DOUBLING, LEAST_GROWTH), MAX_GROWTH)
    return (1 + growth) * sum(size_of(function, unit) for function in unit.functions.values())


def inline_what_pays(
    unit: Unit, weights: dict[str, Weights], runs: int, largest: float = inf, apart: Set[str] = frozenset()
) -> bool:
    """Inlines what pays; where the unit would be larger than `largest`, only what pays most for its bytes.

    Nothing is inlined into the functions `apart`. Returns whether anything was inlined.
    """
    order = callees_first(unit)
    recursive = recursive_functions(unit)
    sites = call_sites(unit, weights)
    sizes = {name: size_of(function, unit) for name, function in unit.functions.items()}
    often: float = runs
    chosen, size = _chosen(unit, order, recursive, sites, sizes, often, apart)
    while size > max(largest, sum(sizes.values())) and often > LEAST_RUNS:
        often *= DEARER
        chosen, size = _chosen(unit, order, recursive, sites, sizes, often, apart)
    kept = {"", *recursive}
    for name in reversed(order):  # callers first: a function that is inlined everywhere is skipped
        if name in kept:
            function = unit.functions[name]
            if chosen[name]:
                inline_calls(unit, function, chosen)
                analyses.forget(function)
            kept.update(analyses.callees(function, unit))
    return any(chosen.values())


def _chosen(
    unit: Unit,
    order: list[str],
    recursive: set[str],
    sites: dict[str, list[Site]],
    sizes: dict[str, int],
    runs: float,
    apart: Set[str],
) -> tuple[dict[str, set[int]], int]:
    """The calls to inline, by calling function, and the size of the unit after that; callees are decided first."""
    sizes = dict(sizes)
    chosen: dict[str, set[int]] = {name: set() for name in unit.functions}
    gone = 0
    for name in order:
        alone = len(sites[name]) == 1
        if not name or name in recursive or not (unit.functions[name].returns or alone):
            continue  # a call that never returns is just a jump
        free = [site for site in sites[name] if site.caller not in apart]
        taken = [site for site in free if gain(sizes[name], len(sites[name]), site, runs) > 0]
        for site in taken:
            chosen[site.caller].add(site.call.id)
            sizes[site.caller] += sizes[name] - CALL_BYTES - OPERAND_BYTES * len(site.call.args)
        if len(taken) == len(sites[name]):
            gone += sizes[name]
    return chosen, sum(sizes.values()) - gone


def callees_first(unit: Unit) -> list[str]:
    calls = {name: sorted(callees) for name, callees in analyses.call_graph(unit).items()}
    return [name for part in strong_components(calls) for name in part]
