"""Constants move outwards and meet: (X + A) + B → X + (A + B), (X + A) + V → (X + V) + A."""

# ruff: noqa: F403, F405
from collections.abc import Iterator

from fusevm.rules.families.notation import *
from fusevm.rules.pattern import Node


def _associative(op: str, rank: int) -> Iterator[Rule]:
    """solc's eight for one opcode. The engine needs three: its constants are on the right already."""

    def call(left: Tree, right: Tree) -> Node:
        return Node(op, (left, right))

    name = op.lower()
    for first, use, inner in ((rank, ENGINE | YUL, call(X, A)), (rank + 4, YUL, call(A, X))):
        turned = "" if first == rank else "-turned"
        yield rule(f"{name}-{name}-constants{turned}", call(inner, B), call(X, call(A, B)), solc=first, use=use)
        yield rule(f"{name}-{name}-out{turned}", call(inner, V), call(call(X, V), A), solc=first + 1, use=use)
        yield rule(f"{name}-constants-{name}{turned}", call(B, inner), call(X, call(A, B)), solc=first + 2, use=YUL)
        yield rule(f"{name}-out-{name}{turned}", call(V, inner), call(call(V, X), A), solc=first + 3, use=use)


REASSOCIATION = family(
    "reassociation",
    *(_associative(op, 129 + 8 * place) for place, op in enumerate(("ADD", "MUL", "AND", "OR", "XOR"))),
    # two constants meet
    rule("sub-add-constants", ADD(SUB(X, A), B), ADD(X, B - A)),
    rule("add-sub-constants", SUB(ADD(X, A), B), ADD(X, A - B)),
    rule("sub-sub-constants", SUB(SUB(X, A), B), SUB(X, A + B)),
    rule("from-add-constants", ADD(SUB(A, X), B), SUB(A + B, X)),
    rule("from-sub-constants", SUB(SUB(A, X), B), SUB(A - B, X)),
    rule("sub-sum-constants", SUB(A, ADD(X, B)), SUB(A - B, X)),
    rule("sub-less-constants", SUB(A, SUB(X, B)), SUB(A + B, X)),
    rule("sub-from-constants", SUB(A, SUB(B, X)), ADD(X, A - B)),
    rule("sums-minus-constants", SUB(ADD(X, A), ADD(Y, B)), ADD(SUB(X, Y), A - B)),
    # one constant moves out
    rule("sub-out-of-add", ADD(SUB(X, A), V), SUB(ADD(X, V), A)),
    rule("sub-out-of-add-right", ADD(V, SUB(X, A)), SUB(ADD(V, X), A)),
    rule("from-out-of-add", ADD(SUB(A, X), V), ADD(SUB(V, X), A)),
    rule("from-out-of-add-right", ADD(V, SUB(A, X)), ADD(SUB(V, X), A)),
    yul("sub-constant", SUB(X, A), ADD(X, -A), solc=196),
    rule("add-out-of-sub", SUB(ADD(X, A), V), ADD(SUB(X, V), A), solc=197),
    yul("add-out-of-sub-turned", SUB(ADD(A, X), V), ADD(SUB(X, V), A), solc=198),
    yul("add-out-of-sub-right-yul", SUB(X, ADD(Y, A)), ADD(SUB(X, Y), -A), solc=199),
    yul("add-out-of-sub-right-turned", SUB(X, ADD(A, Y)), ADD(SUB(X, Y), -A), solc=200),
    rule("add-out-of-sub-right", SUB(V, ADD(X, A)), SUB(SUB(V, X), A)),
    rule("sub-out-of-sub", SUB(SUB(X, A), V), SUB(SUB(X, V), A), solc=201),
    yul("from-out-of-sub", SUB(SUB(A, X), V), SUB(A, ADD(X, V)), solc=202),
    rule("sub-out-of-sub-right", SUB(V, SUB(X, A)), ADD(SUB(V, X), A), solc=203),
    yul("from-out-of-sub-right-yul", SUB(X, SUB(A, Y)), ADD(ADD(X, Y), -A), solc=204),
    rule("from-out-of-sub-right", SUB(V, SUB(A, X)), SUB(ADD(V, X), A)),
)
