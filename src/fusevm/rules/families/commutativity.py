"""The canonical order: constants to the right, and one of each pair of opposite comparisons."""

# ruff: noqa: F403, F405
from fusevm.rules.families.notation import *

COMMUTATIVITY = family(
    "commutativity",
    rule("add-order", ADD(A, V), ADD(V, A)),
    rule("mul-order", MUL(A, V), MUL(V, A)),
    rule("and-order", AND(A, V), AND(V, A)),
    rule("or-order", OR(A, V), OR(V, A)),
    rule("xor-order", XOR(A, V), XOR(V, A)),
    rule("eq-order", EQ(A, V), EQ(V, A)),
    rule("addmod-order", ADDMOD(A, V, X), ADDMOD(V, A, X)),
    rule("mulmod-order", MULMOD(A, V, X), MULMOD(V, A, X)),
    rule("gt-is-lt", GT(X, Y), LT(Y, X)),
    rule("sgt-is-slt", SGT(X, Y), SLT(Y, X)),
    # of +c and -c the one of smaller magnitude: X - 1 rather than X + 0xff…ff
    rule("add-negative", ADD(X, A), SUB(X, -A), A > SIGN),
    rule("sub-negative", SUB(X, A), ADD(X, -A), A > SIGN),
)
