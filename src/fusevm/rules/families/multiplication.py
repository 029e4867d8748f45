"""MUL and EXP: neutral elements, signs, powers of two, small powers, constant factors that meet."""

# ruff: noqa: F403, F405
from fusevm.rules.families.notation import *

MULTIPLICATION = family(
    "multiplication",
    mirrored("mul-zero", MUL(X, 0), 0, solc=(29, 30)),
    mirrored("mul-one", MUL(X, 1), X, solc=(31, 32)),
    mirrored("mul-minus-one", MUL(X, MAX), SUB(0, X), solc=(33, 34)),
    yul("mul-power-left", MUL(A, X), SHL(log2(A), X), power_of_two(A), solc=209),
    rule("mul-power", MUL(X, A), SHL(log2(A), X), power_of_two(A), solc=210),
    mirrored("mul-shifted-one", MUL(X, SHL(Y, 1)), SHL(Y, X), solc=(185, 186)),
    # signs
    rule("mul-negated", MUL(SUB(0, X), SUB(0, Y)), MUL(X, Y)),
    rule("mul-negated-constant", MUL(SUB(0, X), A), MUL(X, -A)),
    rule("negate-product", SUB(0, MUL(X, A)), MUL(X, -A)),
    # factors that meet
    rule("mul-shl-constants", MUL(SHL(A, X), B), MUL(X, B << A)),
    rule("shl-mul-constants", SHL(A, MUL(X, B)), MUL(X, B << A)),
    mirrored("mul-plus-self", ADD(MUL(X, A), X), MUL(X, A + 1)),
    rule("mul-plus-mul", ADD(MUL(X, A), MUL(X, B)), MUL(X, A + B)),
    rule("mul-minus-self", SUB(MUL(X, A), X), MUL(X, A - 1)),
    rule("self-minus-mul", SUB(X, MUL(X, A)), MUL(X, 1 - A)),
    rule("mul-minus-mul", SUB(MUL(X, A), MUL(X, B)), MUL(X, A - B)),
    rule("shl-plus-self", ADD(SHL(A, X), X), MUL(X, (1 << A) + 1)),
    rule("self-plus-shl", ADD(X, SHL(A, X)), MUL(X, (1 << A) + 1)),
    rule("shl-minus-self", SUB(SHL(A, X), X), MUL(X, (1 << A) - 1)),
    orders("products-plus", ADD(MUL(X, Y), MUL(X, Z)), MUL(X, ADD(Y, Z))),
    orders("products-minus", SUB(MUL(X, Y), MUL(X, Z)), MUL(X, SUB(Y, Z))),
    rule("mul-booleans", MUL(P, Q), AND(P, Q)),
    # powers
    rule("exp-zero", EXP(X, 0), 1),
    rule("exp-one", EXP(X, 1), X),
    rule("exp-square", EXP(X, 2), MUL(X, X)),
    rule("exp-cube", EXP(X, 3), MUL(MUL(X, X), X)),
    rule("exp-fourth", EXP(X, 4), MUL(MUL(X, X), MUL(X, X))),
    rule("exp-of-zero", EXP(0, X), ISZERO(X), solc=206),
    rule("exp-of-one", EXP(1, X), 1, solc=207),
    rule("exp-of-two", EXP(2, X), SHL(X, 1), solc=208),
    rule("exp-of-minus-one", EXP(MAX, X), SUB(ISZERO(AND(X, 1)), AND(X, 1)), solc=212),
    rule("exp-of-power", EXP(A, AND(X, B)), SHL(MUL(AND(X, B), log2(A)), 1), power_of_two(A), B <= MAX // BITS),
    rule("exp-boolean", EXP(A, P), ADD(MUL(P, A - 1), 1)),
)
