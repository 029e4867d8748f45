"""Who calls whom: the call graph of a program, its strongly connected parts and its recursive functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fusevm.yul.syntax.ast import Block, ForLoop, FunctionCall, FunctionDefinition
from fusevm.yul.syntax.walk import nodes

MAIN = ""  # the name under which the code outside all functions is known


@dataclass(slots=True)
class CallGraph:
    """`calls` names each function's callees, builtins included; `loops` holds the functions that have a loop."""

    calls: dict[str, dict[str, None]] = field(default_factory=dict)  # a dictionary as an ordered set
    loops: set[str] = field(default_factory=set)

    def components(self) -> list[list[str]]:
        """The strongly connected parts, callees before callers. (Tarjan's, without recursion.)"""
        index: dict[str, int] = {}
        low: dict[str, int] = {}
        stack: list[str] = []
        on_stack: set[str] = set()
        found: list[list[str]] = []
        for root in self.calls:
            if root in index:
                continue
            index[root] = low[root] = len(index)
            stack.append(root)
            on_stack.add(root)
            work = [(root, iter(self.calls[root]))]
            while work:
                name, callees = work[-1]
                for callee in callees:
                    if callee not in self.calls:
                        continue  # a builtin
                    if callee not in index:
                        index[callee] = low[callee] = len(index)
                        stack.append(callee)
                        on_stack.add(callee)
                        work.append((callee, iter(self.calls[callee])))
                        break
                    if callee in on_stack:
                        low[name] = min(low[name], index[callee])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[name])
                    if low[name] == index[name]:
                        part = _taken_off(stack, name)
                        found.append(part)
                        on_stack.difference_update(part)
        return found

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
        return {name for part in self.components() for name in part if len(part) > 1 or name in self.calls[name]}


def _taken_off(stack: list[str], last: str) -> list[str]:
    """The top of the stack down to a name, removed from it."""
    at = len(stack) - 1
    while stack[at] != last:
        at -= 1
    part = stack[at:]
    del stack[at:]
    return part


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
