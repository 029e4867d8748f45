"""Conversions between widths: SIGNEXTEND, BYTE and masks of each other, narrowing the narrowed, widening it again."""

# ruff: noqa: F403, F405
from fusevm.rules.families.notation import *

READ = (A < BYTES, covers(B, low_bytes(A)))  # the mask keeps all bits that SIGNEXTEND(A, _) reads
NARROWER = (A < BYTES, low_bytes(A) >= B, low_mask(B))  # the mask keeps no more than that
BY_BYTES = (multiple_of_8(A), A <= BITS, B <= BYTES)
BYTES_RIGHT = (multiple_of_8(B), A < BYTES, B <= BITS)
REACHES_TOP = (*BYTES_RIGHT, EQ((BITS - B) >> 3, A + 1))

NARROWING = family(
    "narrowing",
    # SIGNEXTEND
    rule("signextend-same", SIGNEXTEND(X, SIGNEXTEND(X, Y)), SIGNEXTEND(X, Y), solc=102),
    rule("signextend-signextend", SIGNEXTEND(A, SIGNEXTEND(B, X)), SIGNEXTEND(minimum(A, B), X), solc=103),
    rule("signextend-all", SIGNEXTEND(A, X), X, A >= LAST, solc=110),
    rule("signextend-zero", SIGNEXTEND(X, 0), 0),
    rule("signextend-ones", SIGNEXTEND(X, MAX), MAX),
    rule("signextend-covered", SIGNEXTEND(A, AND(X, B)), SIGNEXTEND(A, X), *READ),
    rule("signextend-positive", SIGNEXTEND(A, AND(X, B)), AND(X, B), A < BYTES, low_sign(A) > B),
    rule("signextend-high", SIGNEXTEND(A, OR(X, B)), SIGNEXTEND(A, X), A < BYTES, apart(B, low_bytes(A))),
    rule("signextend-byte", SIGNEXTEND(A, BYTE(X, Y)), BYTE(X, Y), non_zero(A)),
    rule("signextend-boolean", SIGNEXTEND(X, P), P),
    rule("signextend-shr", SIGNEXTEND(A, SHR(B, X)), SHR(B, X), A < BYTES, low_sign(A) > MAX >> B),
    rule("signextend-shr-sar", SIGNEXTEND(A, SHR(B, X)), SAR(B, X), *REACHES_TOP, solc=195),
    rule("signextend-sar", SIGNEXTEND(A, SAR(B, X)), SAR(B, X), A < BYTES, low_bytes(A) >= MAX >> B),
    rule("sar-shl-signextend", SAR(A, SHL(A, X)), SIGNEXTEND(LAST - (A >> 3), X), multiple_of_8(A), A < BITS),
    rule("shl-signextend", SHL(A, SIGNEXTEND(B, X)), SIGNEXTEND((A >> 3) + B, SHL(A, X)), *BY_BYTES, solc=194),
    yul("and-signextend-turned", AND(A, SIGNEXTEND(B, X)), AND(A, X), B < LAST, covers(low_bytes(B), A), solc=111),
    rule("and-signextend", AND(SIGNEXTEND(B, X), A), AND(A, X), B < LAST, covers(low_bytes(B), A), solc=112),
    # BYTE
    rule("byte-outside", BYTE(A, X), 0, A >= BYTES, solc=109),
    rule("byte-last", BYTE(LAST, X), AND(X, 0xFF), solc=66),
    rule("byte-of-zero", BYTE(X, 0), 0),
    yul("and-byte", AND(BYTE(X, Y), 0xFF), BYTE(X, Y), solc=65),
    rule("and-byte-covered", AND(BYTE(X, Y), A), BYTE(X, Y), covers(A, tree(0xFF))),
    rule("and-byte-gone", AND(BYTE(X, Y), A), 0, apart(A, tree(0xFF))),
    rule("byte-shl", BYTE(A, SHL(B, X)), BYTE(A + (B >> 3), X), multiple_of_8(B), A <= BYTES, B <= BITS, solc=191),
    rule("byte-shr-zero", BYTE(A, SHR(B, X)), 0, A < (B >> 3), solc=192),
    rule("byte-shr", BYTE(A, SHR(B, X)), BYTE(A - (B >> 3), X), *BYTES_RIGHT, A >= B >> 3, solc=193),
    rule("byte-and", BYTE(A, AND(X, B)), AND(BYTE(A, X), BYTE(A, B))),
    rule("byte-or", BYTE(A, OR(X, B)), OR(BYTE(A, X), BYTE(A, B))),
    rule("byte-xor", BYTE(A, XOR(X, B)), XOR(BYTE(A, X), BYTE(A, B))),
    rule("byte-signextend", BYTE(A, SIGNEXTEND(B, X)), BYTE(A, X), A < BYTES, B < BYTES, LAST - A <= B),
    rule("byte-of-byte", BYTE(A, BYTE(X, Y)), 0, A < LAST),
    rule("byte-of-boolean", BYTE(A, P), 0, A < LAST),
    rule("and-shr-byte", AND(SHR(A, X), 0xFF), BYTE(LAST - (A >> 3), X), multiple_of_8(A), A < BITS),
    rule("shr-byte", SHR(A, BYTE(X, Y)), 0, A >= 8),
    # a mask or an extension that a later, narrower one makes idle
    rule("and-add-and", AND(ADD(AND(X, A), Y), B), AND(ADD(X, Y), B), low_mask(B), covers(A, B)),
    rule("and-add-and-right", AND(ADD(Y, AND(X, A)), B), AND(ADD(Y, X), B), low_mask(B), covers(A, B)),
    rule("and-sub-and", AND(SUB(AND(X, A), Y), B), AND(SUB(X, Y), B), low_mask(B), covers(A, B)),
    rule("and-sub-and-right", AND(SUB(Y, AND(X, A)), B), AND(SUB(Y, X), B), low_mask(B), covers(A, B)),
    rule("and-mul-and", AND(MUL(AND(X, A), Y), B), AND(MUL(X, Y), B), low_mask(B), covers(A, B)),
    rule("and-mul-and-right", AND(MUL(Y, AND(X, A)), B), AND(MUL(Y, X), B), low_mask(B), covers(A, B)),
    rule("and-add-signextend", AND(ADD(SIGNEXTEND(A, X), Y), B), AND(ADD(X, Y), B), *NARROWER),
    rule("and-add-signextend-right", AND(ADD(Y, SIGNEXTEND(A, X)), B), AND(ADD(Y, X), B), *NARROWER),
    rule("and-sub-signextend", AND(SUB(SIGNEXTEND(A, X), Y), B), AND(SUB(X, Y), B), *NARROWER),
    rule("and-sub-signextend-right", AND(SUB(Y, SIGNEXTEND(A, X)), B), AND(SUB(Y, X), B), *NARROWER),
    rule("signextend-add", SIGNEXTEND(A, ADD(SIGNEXTEND(B, X), Y)), SIGNEXTEND(A, ADD(X, Y)), A <= B),
    rule("signextend-add-right", SIGNEXTEND(A, ADD(Y, SIGNEXTEND(B, X))), SIGNEXTEND(A, ADD(Y, X)), A <= B),
    rule("signextend-sub", SIGNEXTEND(A, SUB(SIGNEXTEND(B, X), Y)), SIGNEXTEND(A, SUB(X, Y)), A <= B),
    rule("signextend-sub-right", SIGNEXTEND(A, SUB(Y, SIGNEXTEND(B, X))), SIGNEXTEND(A, SUB(Y, X)), A <= B),
    rule("signextend-add-and", SIGNEXTEND(A, ADD(AND(X, B), Y)), SIGNEXTEND(A, ADD(X, Y)), *READ),
    rule("signextend-add-and-right", SIGNEXTEND(A, ADD(Y, AND(X, B))), SIGNEXTEND(A, ADD(Y, X)), *READ),
    rule("shl-and-idle", SHL(A, AND(X, B)), SHL(A, X), A < BITS, covers(B, MAX >> A)),
    rule("shl-signextend-idle", SHL(A, SIGNEXTEND(B, X)), SHL(A, X), A < BITS, B < BYTES, low_bytes(B) >= MAX >> A),
)
