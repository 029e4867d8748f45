"""DIV, MOD and their signed and three-operand forms. Division by zero is zero, so no rule may assume otherwise."""

# ruff: noqa: F403, F405
from fusevm.rules.families.notation import *

PROPER = (power_of_two(A), A > 1, A < SIGN)
BIAS = SHR(CLZ(A) + 1, SAR(TOP, X))  # A - 1 where X is negative: SAR rounds down, SDIV towards zero

DIVISION = family(
    "division",
    rule("div-by-zero", DIV(X, 0), 0, solc=35),
    rule("div-of-zero", DIV(0, X), 0, solc=36),
    rule("div-one", DIV(X, 1), X, solc=37),
    rule("sdiv-by-zero", SDIV(X, 0), 0, solc=38),
    rule("sdiv-of-zero", SDIV(0, X), 0, solc=39),
    rule("sdiv-one", SDIV(X, 1), X, solc=40),
    rule("mod-by-zero", MOD(X, 0), 0, solc=51),
    rule("mod-of-zero", MOD(0, X), 0, solc=52),
    rule("mod-self", MOD(X, X), 0, solc=76),
    rule("smod-by-zero", SMOD(X, 0), 0),
    rule("smod-of-zero", SMOD(0, X), 0),
    rule("smod-self", SMOD(X, X), 0),
    rule("smod-one", SMOD(X, 1), 0),
    rule("smod-minus-one", SMOD(X, MAX), 0),
    rule("div-self", DIV(X, X), ISZERO(ISZERO(X))),
    rule("sdiv-self", SDIV(X, X), ISZERO(ISZERO(X))),
    rule("sdiv-minus-one", SDIV(X, MAX), SUB(0, X)),
    rule("sdiv-sign", SDIV(X, SIGN), EQ(X, SIGN)),
    # powers of two
    yul("mod-product-power", MOD(MUL(X, Y), A), MULMOD(X, Y, A), power_of_two(A), solc=104),
    yul("mod-sum-power", MOD(ADD(X, Y), A), ADDMOD(X, Y, A), power_of_two(A), solc=105),
    rule("mod-power", MOD(X, A), AND(X, A - 1), power_of_two(A), solc=106),
    rule("div-shifted-one", DIV(X, SHL(Y, 1)), SHR(Y, X), solc=187),
    rule("div-power", DIV(X, A), SHR(log2(A), X), power_of_two(A), solc=211),
    rule("sdiv-power", SDIV(X, A), SAR(log2(A), ADD(X, BIAS)), *PROPER, use=NATIVE),
    rule("smod-power", SMOD(X, A), SUB(X, AND(ADD(X, BIAS), -A)), *PROPER, use=NATIVE),
    # large divisors
    rule("div-large", DIV(X, A), LT(A - 1, X), A > SIGN),
    rule("smod-negative", SMOD(X, A), SMOD(X, -A), A > SIGN),
    # division of divisions
    rule("div-div", DIV(DIV(X, A), B), DIV(X, A * B), product_fits(A, B)),
    rule("div-div-zero", DIV(DIV(X, A), B), 0, B > MAX // A),
    rule("div-shr", DIV(SHR(A, X), B), DIV(X, B << A), shift_fits(A, B)),
    rule("shr-div", SHR(A, DIV(X, B)), DIV(X, B << A), shift_fits(A, B)),
    rule("mod-mod", MOD(MOD(X, A), B), MOD(X, B), non_zero(A), non_zero(B), EQ(A % B, 0)),
    rule("mod-mod-less", MOD(MOD(X, A), B), MOD(X, A), A <= B),
    rule("mod-mod-same", MOD(MOD(X, Y), Y), MOD(X, Y)),
    # narrow operands
    rule("div-small", DIV(AND(X, A), B), 0, A < B),
    rule("mod-small", MOD(AND(X, A), B), AND(X, A), A < B),
    rule("div-byte", DIV(BYTE(X, Y), A), 0, A > 255),
    rule("mod-byte", MOD(BYTE(X, Y), A), BYTE(X, Y), A > 255),
    rule("sdiv-unsigned", SDIV(AND(X, A), B), DIV(AND(X, A), B), A < SIGN, B < SIGN),
    rule("smod-unsigned", SMOD(AND(X, A), B), MOD(AND(X, A), B), A < SIGN, B < SIGN),
    rule("sdiv-shr-unsigned", SDIV(SHR(A, X), B), DIV(SHR(A, X), B), non_zero(A), B < SIGN),
    rule("smod-shr-unsigned", SMOD(SHR(A, X), B), MOD(SHR(A, X), B), non_zero(A), B < SIGN),
    # three operands
    rule("addmod-by-zero", ADDMOD(X, Y, 0), 0),
    rule("addmod-one", ADDMOD(X, Y, 1), 0),
    rule("addmod-zero", ADDMOD(X, 0, Y), MOD(X, Y)),
    rule("addmod-power", ADDMOD(X, Y, A), AND(ADD(X, Y), A - 1), power_of_two(A)),
    rule("addmod-of-mod", ADDMOD(MOD(X, Z), Y, Z), ADDMOD(X, Y, Z)),
    rule("addmod-of-mod-right", ADDMOD(Y, MOD(X, Z), Z), ADDMOD(Y, X, Z)),
    rule("mod-addmod", MOD(ADDMOD(X, Y, Z), Z), ADDMOD(X, Y, Z)),
    rule("mulmod-by-zero", MULMOD(X, Y, 0), 0),
    rule("mulmod-by-one", MULMOD(X, Y, 1), 0),
    rule("mulmod-zero", MULMOD(X, 0, Y), 0),
    rule("mulmod-one", MULMOD(X, 1, Y), MOD(X, Y)),
    rule("mulmod-power", MULMOD(X, Y, A), AND(MUL(X, Y), A - 1), power_of_two(A)),
    rule("mulmod-of-mod", MULMOD(MOD(X, Z), Y, Z), MULMOD(X, Y, Z)),
    rule("mulmod-of-mod-right", MULMOD(Y, MOD(X, Z), Z), MULMOD(Y, X, Z)),
    rule("mod-mulmod", MOD(MULMOD(X, Y, Z), Z), MULMOD(X, Y, Z)),
)
