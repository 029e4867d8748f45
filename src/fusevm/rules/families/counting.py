"""CLZ (EIP-7939): what the number of leading zeros says about its operand."""

# ruff: noqa: F403, F405
from fusevm.rules.families.notation import *

LOG = Const("log2 bits", lambda bits: bits.bit_length() - 1)

COUNTING = family(
    "counting",
    rule("iszero-clz", ISZERO(CLZ(X)), SLT(X, 0)),
    rule("clz-is-all", EQ(CLZ(X), BITS), ISZERO(X)),
    rule("clz-shifted", SHR(LOG, CLZ(X)), ISZERO(X)),
    rule("clz-never", EQ(CLZ(X), A), 0, A > BITS),
    rule("clz-lt-always", LT(CLZ(X), A), 1, A > BITS),
    rule("clz-lt-never", LT(A, CLZ(X)), 0, A >= BITS),
    rule("clz-lt", LT(CLZ(X), A), LT(MAX >> A, X), A <= BITS),
    rule("clz-gt", LT(A, CLZ(X)), LT(X, SIGN >> A), A < BITS),
    rule("clz-signed", CLZ(OR(X, A)), 0, A >= SIGN),
    rule("and-clz", AND(CLZ(X), A), CLZ(X), covers(A, (BITS << 1) - 1)),
)
