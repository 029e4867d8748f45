"""The call graph of a program, its strongly connected components and its recursive functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fusevm.analysis.graphs import cyclic_nodes, strong_components
from fusevm.yul.syntax.ast import Block, ForLoop, FunctionCall, FunctionDefinition
from fusevm.yul.syntax.walk import nodes

MAIN = ""  # the name under which the code outside all functions is known


@dataclass(slots=True)
class CallGraph:
    """`calls` names each function's callees, builtins included; `loops` holds the functions that have a loop."""

    calls: dict[str, dict[str, None]] = field(default_factory=dict)  # a dictionary as an ordered set
    loops: set[str] = field(default_factory=set)

    def components(self) -> list[list[str]]:
        """The strongly connected components, callees before callers."""
        return strong_components(self.calls)

    def reached(self, roots: Iterable[str] = (MAIN,)) -> set[str]:
        """Everything that may be called from the roots, builtins and the roots themselves included."""
        found, work = set(roots), list(roots)
        while work:
            new = self.calls.get(work.pop(), {}).keys() - found
            found |= new
            work += new
        return found

    def recursive(self) -> set[str]:
        """The functions that may be active twice at the same time."""
        return cyclic_nodes(self.calls)


def call_graph(block: Block) -> CallGraph:
    graph = CallGraph({MAIN: {}})
    work: list[tuple[str, Block]] = [(MAIN, block)]
    for name, body in work:
        calls = graph.calls.setdefault(name, {})
        for node in nodes(body, into_functions=False):
            kind = node.__class__
            if kind is FunctionCall:
                calls[node.function.name] = None
            elif kind is FunctionDefinition:
                work.append((node.name, node.body))
            elif kind is ForLoop:
                graph.loops.add(name)
    return graph
