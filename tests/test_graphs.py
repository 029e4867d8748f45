"""Graph algorithms against their definitions, on random graphs."""

from __future__ import annotations

import random

import pytest

from fusevm.analysis.graphs import (
    DominatorTree,
    cyclic_nodes,
    dominators,
    natural_loops,
    reverse_postorder,
    strong_components,
)

SEEDS = range(200)
DEEP = 50_000  # far beyond Python's limit of recursion


def random_graph(seed: int) -> dict[int, list[int]]:
    dice = random.Random(seed)
    size = dice.randrange(2, 14)
    return {node: [dice.randrange(size) for _ in range(dice.randrange(3))] for node in range(size)}


def reached(graph: dict[int, list[int]], start: int, without: int = -1) -> set[int]:
    seen, work = set(), [start] if without != start else []
    while work:
        node = work.pop()
        if node not in seen and node != without:
            seen.add(node)
            work += graph[node]
    return seen


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_share_a_component_where_each_reaches_the_other(seed: int) -> None:
    graph = random_graph(seed)
    component = {node: number for number, part in enumerate(strong_components(graph)) for node in part}
    assert component.keys() == graph.keys()
    for one in graph:
        for other in graph:
            mutual = other in reached(graph, one) and one in reached(graph, other)
            assert (component[one] == component[other]) == mutual


@pytest.mark.parametrize("seed", SEEDS)
def test_components_come_after_those_they_lead_to(seed: int) -> None:
    graph = random_graph(seed)
    component = {node: number for number, part in enumerate(strong_components(graph)) for node in part}
    assert all(component[to] <= component[node] for node in graph for to in graph[node])


def test_components_ignore_successors_that_are_not_nodes() -> None:
    assert strong_components({"f": ["g", "add"], "g": ["f", "mul"]}) == [["f", "g"]]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_is_cyclic_where_a_successor_leads_back_to_it(seed: int) -> None:
    graph = random_graph(seed)
    assert cyclic_nodes(graph) == {node for node in graph if any(node in reached(graph, to) for to in graph[node])}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dominator_comes_before_what_it_dominates_in_reverse_postorder(seed: int) -> None:
    graph = random_graph(seed)
    order = reverse_postorder(graph, 0)
    assert order[0] == 0
    assert sorted(order) == sorted(reached(graph, 0))
    tree = DominatorTree(graph, 0)
    assert all(order.index(tree.above[node]) <= order.index(node) for node in order)


@pytest.mark.parametrize("seed", SEEDS)
def test_reverse_postorder_of_an_acyclic_graph_is_topological(seed: int) -> None:
    graph = {node: [to for to in targets if to > node] for node, targets in random_graph(seed).items()}
    place = {node: index for index, node in enumerate(reverse_postorder(graph, 0))}
    assert all(place[node] < place[to] for node in place for to in graph[node])


@pytest.mark.parametrize("seed", SEEDS)
def test_dominators_agree_with_the_definition(seed: int) -> None:
    graph = random_graph(seed)
    everything = reached(graph, 0)
    strict = {
        node: {other for other in everything - {node} if node not in reached(graph, 0, other)} for node in everything
    }
    for node, above in dominators(graph, 0).items():
        expected = max(strict[node], key=lambda other: len(strict[other]), default=node)
        assert above == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_a_loop_body_is_what_reaches_a_latch_without_its_header(seed: int) -> None:
    graph = random_graph(seed)
    for loop in natural_loops(graph, 0):
        assert all(loop.header in graph[latch] for latch in loop.latches)
        inside = {
            node
            for node in reached(graph, 0) - {loop.header}
            if any(latch in reached(graph, node, loop.header) for latch in loop.latches)
        }
        assert loop.body == inside | {loop.header}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_innermost_loop_of_a_node_is_the_smallest_around_it(seed: int) -> None:
    loops = natural_loops(random_graph(seed), 0)
    innermost = loops.innermost()
    assert innermost.keys() == {node for loop in loops for node in loop.body}
    for node, loop in innermost.items():
        assert len(loop.body) == min(len(each.body) for each in loops if node in each.body)


def test_loop_bodies_are_within_budget_or_said_to_be_incomplete() -> None:
    graph = {n: [n + 1] for n in range(2000)} | {2000 + n: [1999 - n, 2001 + n] for n in range(2000)}
    loops = natural_loops(graph, 0, budget=10_000)
    assert not loops.complete
    assert sum(len(loop.body) for loop in loops) <= 10_000


def test_a_very_long_chain_needs_no_recursion() -> None:
    graph = {node: [(node + 1) % DEEP] for node in range(DEEP)}
    assert [len(part) for part in strong_components(graph)] == [DEEP]
    assert reverse_postorder(graph, 0) == list(range(DEEP))
    assert dominators(graph, 0)[DEEP - 1] == DEEP - 2
