"""ADD and SUB: neutral elements, negation, and what cancels."""

# ruff: noqa: F403, F405
from fusevm.rules.families.notation import *

ADDITION = family(
    "addition",
    mirrored("add-zero", ADD(X, 0), X, solc=(25, 26)),
    rule("sub-zero", SUB(X, 0), X, solc=27),
    rule("sub-from-ones", SUB(MAX, X), NOT(X), solc=28),
    rule("sub-self", SUB(X, X), 0, solc=70),
    rule("add-self", ADD(V, V), SHL(1, V)),
    rule("add-sign", ADD(X, SIGN), XOR(X, SIGN)),
    rule("sub-sign", SUB(X, SIGN), XOR(X, SIGN)),
    # negation
    mirrored("add-negated", ADD(X, SUB(0, Y)), SUB(X, Y)),
    rule("sub-negated", SUB(X, SUB(0, Y)), ADD(X, Y)),
    rule("negate-difference", SUB(0, SUB(X, Y)), SUB(Y, X)),
    # what cancels
    orders("sum-minus-part", SUB(ADD(X, Y), X), Y),
    orders("part-minus-sum", SUB(X, ADD(X, Y)), SUB(0, Y)),
    orders("sum-minus-sum", SUB(ADD(X, Y), ADD(X, Z)), SUB(Y, Z)),
    orders("difference-plus-part", ADD(SUB(X, Y), Y), X),
    rule("difference-minus-whole", SUB(SUB(X, Y), X), SUB(0, Y)),
    rule("whole-minus-difference", SUB(X, SUB(X, Y)), Y),
    rule("differences-from-same", SUB(SUB(X, Y), SUB(X, Z)), SUB(Z, Y)),
    rule("differences-of-same", SUB(SUB(X, Z), SUB(Y, Z)), SUB(X, Y)),
    rule("difference-chain", ADD(SUB(X, Y), SUB(Y, Z)), SUB(X, Z)),
    rule("difference-chain-turned", ADD(SUB(Y, Z), SUB(X, Y)), SUB(X, Z)),
    orders("sum-minus-difference", SUB(ADD(X, Y), SUB(X, Z)), ADD(Y, Z)),
    orders("difference-minus-sum", SUB(SUB(X, Z), ADD(X, Y)), SUB(0, ADD(Y, Z))),
    # NOT is -x-1
    rule("not-plus-constant", ADD(NOT(X), A), SUB(A - 1, X)),
    rule("not-minus-constant", SUB(NOT(X), A), SUB(-A - 1, X)),
    rule("constant-minus-not", SUB(A, NOT(X)), ADD(X, A + 1)),
    rule("not-of-sum", NOT(ADD(X, A)), SUB(~A, X)),
    rule("not-of-less", NOT(SUB(X, A)), SUB(A - 1, X)),
    rule("not-of-difference", NOT(SUB(A, X)), ADD(X, ~A)),
    rule("sub-nots", SUB(NOT(X), NOT(Y)), SUB(Y, X)),
    orders("add-not-self", ADD(X, NOT(X)), MAX),
    # sums that are bit operations
    orders("sub-and", SUB(X, AND(X, Y)), AND(X, NOT(Y))),
    orders("sub-from-or", SUB(OR(X, Y), X), AND(Y, NOT(X))),
    orders("or-minus-and", SUB(OR(X, Y), AND(X, Y)), XOR(X, Y)),
    orders("and-plus-or", ADD(AND(X, Y), OR(X, Y)), ADD(X, Y)),
    rule("add-disjoint", ADD(AND(X, A), AND(X, B)), AND(X, A | B), apart(A, B)),
    rule("add-apart", ADD(AND(X, A), B), OR(AND(X, A), B), apart(A, B)),
    rule("add-apart-shifted", ADD(SHL(A, X), B), OR(SHL(A, X), B), A < BITS, B < (1 << A)),
)
