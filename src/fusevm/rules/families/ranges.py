"""What ranges, bits that may be set and known order decide. For the fold engine where it knows them (`RangeFolder`).

Per opcode in this order: what decides the instruction first.
"""

# ruff: noqa: F403, F405
from fusevm.rules.families.notation import *

RANGES = family(
    "ranges",
    # comparisons
    ranged("lt-below", LT(X, Y), 1, high(X) < low(Y)),
    ranged("lt-not-below", LT(X, Y), 0, high(Y) <= low(X)),
    ranged("lt-less", LT(X, Y), 1, less(X, Y)),
    ranged("lt-not-greater", LT(X, Y), 0, not_greater(Y, X)),
    ranged("slt-negative-positive", SLT(X, Y), 1, low(X) >= SIGN, high(Y) < SIGN),
    ranged("slt-positive-negative", SLT(X, Y), 0, low(Y) >= SIGN, high(X) < SIGN),
    ranged("slt-positives", SLT(X, Y), LT(X, Y), high(X) < SIGN, high(Y) < SIGN),
    ranged("slt-negatives", SLT(X, Y), LT(X, Y), low(X) >= SIGN, low(Y) >= SIGN),
    ranged("eq-apart", EQ(X, Y), 0, either(high(X) < low(Y), high(Y) < low(X))),
    ranged("eq-one-word", EQ(X, Y), 1, high(X) <= low(Y), high(Y) <= low(X)),
    ranged("eq-less", EQ(X, Y), 0, either(less(X, Y), less(Y, X))),
    ranged("eq-no-bit", EQ(X, A), 0, non_zero(A & ~bits(X))),
    ranged("iszero-never", ISZERO(X), 0, non_zero(low(X))),
    ranged("iszero-always", ISZERO(X), 1, ISZERO(high(X))),
    ranged("iszero-iszero-truth", ISZERO(ISZERO(X)), X, high(X) < 2),
    # x - k < n is x < n + k, where neither wraps
    ranged("lt-sum-moved", LT(ADD(X, A), B), LT(X, B - A), B < A, low(X) >= -A),
    ranged("lt-from-sum-moved", LT(B, ADD(X, A)), LT(B - A, X), B < A, low(X) >= -A),
    ranged("lt-difference-moved", LT(SUB(X, A), B), LT(X, A + B), B <= MAX - A, low(X) >= A),
    ranged("lt-from-difference-moved", LT(B, SUB(X, A)), LT(A + B, X), B <= MAX - A, low(X) >= A),
    # no bit of the result may be set
    ranged("and-no-bits", AND(X, Y), 0, apart(bits(X), bits(Y))),
    ranged("shl-no-bits", SHL(A, X), 0, ISZERO(bits(X) << A)),
    ranged("shr-no-bits", SHR(A, X), 0, ISZERO(bits(X) >> A)),
    ranged("mul-no-bits", MUL(X, Y), 0, ISZERO(lowest(bits(X)) * lowest(bits(Y)))),
    ranged("signextend-no-bits", SIGNEXTEND(A, X), 0, A < BYTES, apart(bits(X), low_bytes(A))),
    # what changes nothing
    ranged("and-all-bits", AND(X, A), X, covers(A, bits(X))),
    ranged("signextend-fits", SIGNEXTEND(A, X), X, A < BYTES, high(X) < low_sign(A)),
    ranged("mod-greater", MOD(X, Y), X, high(X) < low(Y)),
    ranged("div-greater", DIV(X, Y), 0, high(X) < low(Y)),
)
