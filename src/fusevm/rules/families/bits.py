"""AND, OR, XOR, NOT: neutral elements, idempotence, absorption, de Morgan where it shrinks, masks that meet."""

# ruff: noqa: F403, F405
from fusevm.rules.families.notation import *

BITWISE = family(
    "bits",
    mirrored("and-ones", AND(X, MAX), X, solc=(41, 42)),
    mirrored("and-zero", AND(X, 0), 0, solc=(43, 44)),
    mirrored("or-zero", OR(X, 0), X, solc=(45, 46)),
    mirrored("or-ones", OR(X, MAX), MAX, solc=(47, 48)),
    mirrored("xor-zero", XOR(X, 0), X, solc=(49, 50)),
    rule("xor-ones", XOR(X, MAX), NOT(X)),
    rule("and-self", AND(X, X), X, solc=67),
    rule("or-self", OR(X, X), X, solc=68),
    rule("xor-self", XOR(X, X), 0, solc=69),
    rule("not-not", NOT(NOT(X)), X, solc=77),
    # absorption
    orders("xor-cancels", XOR(X, XOR(X, Y)), Y, solc=(78, 79, 80, 81)),
    orders("or-absorbs-and", OR(X, AND(X, Y)), X, solc=(82, 83, 84, 85)),
    orders("and-absorbs-or", AND(X, OR(X, Y)), X, solc=(86, 87, 88, 89)),
    orders("and-not-self", AND(X, NOT(X)), 0, solc=(90, 91)),
    orders("or-not-self", OR(X, NOT(X)), MAX, solc=(92, 93)),
    orders("xor-not-self", XOR(X, NOT(X)), MAX),
    mirrored("and-and-same", AND(AND(X, Y), Y), AND(X, Y), solc=(94, 95)),
    mirrored("and-and-same-left", AND(AND(Y, X), Y), AND(Y, X), solc=(96, 97)),
    mirrored("or-or-same", OR(OR(X, Y), Y), OR(X, Y), solc=(98, 99)),
    mirrored("or-or-same-left", OR(OR(Y, X), Y), OR(Y, X), solc=(100, 101)),
    orders("or-with-masked-rest", OR(X, AND(NOT(X), Y)), OR(X, Y)),
    orders("and-with-filled-rest", AND(X, OR(NOT(X), Y)), AND(X, Y)),
    orders("and-not-and", AND(X, NOT(AND(X, Y))), AND(X, NOT(Y))),
    orders("or-not-or", OR(X, NOT(OR(X, Y))), OR(X, NOT(Y))),
    orders("and-xor", AND(X, XOR(X, Y)), AND(X, NOT(Y))),
    orders("or-xor", OR(X, XOR(X, Y)), OR(X, Y)),
    orders("xor-or", XOR(X, OR(X, Y)), AND(Y, NOT(X))),
    orders("xor-and", XOR(X, AND(X, Y)), AND(X, NOT(Y))),
    orders("xor-of-and-or", XOR(AND(X, Y), OR(X, Y)), XOR(X, Y)),
    orders("or-of-and-xor", OR(AND(X, Y), XOR(X, Y)), OR(X, Y)),
    rule("and-or-and-same", OR(AND(X, A), AND(X, B)), AND(X, A | B)),
    orders("and-common", OR(AND(X, Y), AND(X, Z)), AND(X, OR(Y, Z))),
    orders("or-common", AND(OR(X, Y), OR(X, Z)), OR(X, AND(Y, Z))),
    # de Morgan
    rule("and-of-nots", AND(NOT(X), NOT(Y)), NOT(OR(X, Y))),
    rule("or-of-nots", OR(NOT(X), NOT(Y)), NOT(AND(X, Y))),
    rule("xor-of-nots", XOR(NOT(X), NOT(Y)), XOR(X, Y)),
    rule("xor-of-not", XOR(NOT(X), V), NOT(XOR(X, V))),
    rule("xor-of-not-right", XOR(V, NOT(X)), NOT(XOR(V, X))),
    rule("xor-of-not-constant", XOR(NOT(X), A), XOR(X, ~A)),
    rule("not-of-xor-constant", NOT(XOR(X, A)), XOR(X, ~A)),
    orders("not-and-not", NOT(AND(NOT(X), Y)), OR(X, NOT(Y))),
    orders("not-or-not", NOT(OR(NOT(X), Y)), AND(X, NOT(Y))),
    # masks that meet
    rule("and-or-apart", AND(OR(X, A), B), AND(X, B), apart(A, B)),
    rule("and-or-covered", AND(OR(X, A), B), B, covers(A, B)),
    rule("and-xor-apart", AND(XOR(X, A), B), AND(X, B), apart(A, B)),
    rule("or-and-filled", OR(AND(X, A), B), OR(X, B), covers(A, ~B)),
    rule("or-and-hidden", OR(AND(X, A), B), B, covers(B, A)),
    rule("or-xor-hidden", OR(XOR(X, A), B), OR(X, B), covers(B, A)),
    rule("and-xor-and-same", XOR(AND(X, A), AND(X, B)), AND(X, A ^ B)),
    rule("xor-of-masked", XOR(AND(X, A), AND(Y, A)), AND(XOR(X, Y), A)),
    rule("and-of-masked", AND(AND(X, A), AND(Y, B)), AND(AND(X, Y), A & B)),
    rule("and-masked-or-gone", AND(OR(AND(X, A), Y), B), AND(Y, B), apart(A, B)),
    rule("and-masked-or-gone-right", AND(OR(Y, AND(X, A)), B), AND(Y, B), apart(A, B)),
    rule("and-masked-or-free", AND(OR(AND(X, A), Y), B), AND(OR(X, Y), B), covers(A, B)),
    rule("and-masked-or-free-right", AND(OR(Y, AND(X, A)), B), AND(OR(Y, X), B), covers(A, B)),
    rule("and-not-masked", AND(NOT(AND(X, A)), B), AND(NOT(X), B), covers(A, B)),
    *(
        yul(f"and-or-and-{place}", pattern, OR(AND(X, A & B), AND(Y, B)), solc=177 + place)
        for place, pattern in enumerate(
            outer
            for inner in (AND(X, A), AND(A, X))
            for middle in (OR(inner, Y), OR(Y, inner))
            for outer in (AND(middle, B), AND(B, middle))
        )
    ),
)
