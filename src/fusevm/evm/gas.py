"""Every gas formula of the EVM, written once.

A formula is a plain function of the fork's rules and of counts. Its text is read twice: Python runs it (reference tier,
fold engine, loop planner, transactions), and `native.lang` translates it for the native tier, where `rules` is the
engine's own struct, which has the same fields. So formulas keep to what both have: arithmetic on numbers that are not
negative, comparisons, `if`, and other formulas. A flag is 0 or 1, and may be multiplied with.

Prices that a fork has changed, or may change, are fields of `forks.Rules`; the static price of an opcode is in its row
of the opcode table. What remains is here.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusevm.evm.forks import Rules

Gas = int  # an amount of gas, a count or a flag; natively of the caller's width, 64 bits unless arguments are wider
Word = int  # a word of the EVM, 256 bits

MEMORY_WORD = 3
MEMORY_SQUARE = 512  # words squared, per unit of gas
CALL_SHARE = 64  # EIP-150: a caller keeps one part in this many
BLOB_GAS = 1 << 17  # EIP-4844: per blob
NONZERO_TOKENS = 4  # EIP-7623: tokens per non-zero byte of calldata


# -- memory, hashes, copies, logs, exponents --------------------------------------------------------------------------


def words_of(size: Gas) -> Gas:
    return (size + 31) // 32


def growth_cost(before: Gas, after: Gas) -> Gas:
    """The cost of growing memory from one number of words to another: linear, then quadratic (Yellow Paper, C_mem)."""
    return MEMORY_WORD * (after - before) + after * after // MEMORY_SQUARE - before * before // MEMORY_SQUARE


def memory_cost(words: Gas) -> Gas:
    return growth_cost(0, words)


def keccak_cost(rules: Rules, size: Gas) -> Gas:
    return rules.keccak_word * words_of(size)


def copy_cost(rules: Rules, size: Gas) -> Gas:
    return rules.copy_word * words_of(size)


def log_cost(rules: Rules, size: Gas) -> Gas:
    return rules.log_byte * size


def exponent_cost(rules: Rules, bits: Gas) -> Gas:
    """EXP, by the bytes of its exponent (EIP-160)."""
    return rules.exp_byte * ((bits + 7) // 8)


# -- state ------------------------------------------------------------------------------------------------------------


def cold_account_cost(rules: Rules) -> Gas:
    """The extra cost of a cold access to an account; a warm one is in the opcode's static price (EIP-2929)."""
    return rules.cold_account - rules.warm_access


def cold_slot_cost(rules: Rules) -> Gas:
    """SLOAD: likewise."""
    return rules.cold_sload - rules.warm_access


def sstore_is_starved(rules: Rules, left: Gas) -> bool:
    """EIP-2200: with no more than the stipend left, SSTORE is out of gas, whatever it costs."""
    return rules.sstore_sentry and left <= rules.call_stipend


def sstore_cost(rules: Rules, original: Word, current: Word, new: Word, cold: Gas) -> Gas:
    """EIP-1283, 2200, 2929: of what the slot held before the transaction, holds now and will hold."""
    access = cold * rules.cold_sload
    if not rules.net_sstore:
        return access + (rules.sstore_set if new and not current else rules.sstore_reset)
    if current == new:
        return access + rules.sstore_noop
    if original != current:
        return access + rules.sstore_noop
    if original:
        return access + rules.sstore_reset
    return access + rules.sstore_set


def sstore_refund(rules: Rules, original: Word, current: Word, new: Word) -> Gas:
    """Change of the refund counter, which may be negative (EIP-1283, 2200, 3529)."""
    if not rules.net_sstore:
        return rules.sstore_clear_refund if current and not new else 0
    if current == new:
        return 0
    if original != current:
        return sstore_dirty_refund(rules, original, current, new)
    if original and not new:
        return rules.sstore_clear_refund
    return 0


def sstore_dirty_refund(rules: Rules, original: Word, current: Word, new: Word) -> Gas:
    """For a slot that was changed before in this transaction."""
    if not original:
        return 0 if new else rules.sstore_set - rules.sstore_noop
    restored = rules.sstore_reset - rules.sstore_noop if original == new else 0
    if not current:
        return restored - rules.sstore_clear_refund
    return restored if new else rules.sstore_clear_refund


def selfdestruct_cost(rules: Rules, cold: Gas, creates: Gas) -> Gas:
    """EIP-150, 161, 2929."""
    return cold * rules.cold_account + creates * rules.new_account


# -- calls and creations ----------------------------------------------------------------------------------------------


def call_cost(rules: Rules, pays: Gas, creates: Gas) -> Gas:
    """Besides memory and access: whether value moves, and whether that creates the account."""
    return pays * rules.call_value + creates * rules.new_account


def delegation_cost(rules: Rules, cold: Gas) -> Gas:
    """EIP-7702: the account whose code runs instead."""
    return rules.cold_account if cold else rules.warm_access


def most_given(rules: Rules, left: Gas) -> Gas:
    """How much of its gas a frame can pass on (EIP-150)."""
    return left - left // CALL_SHARE if rules.all_but_64th else left


def creation_cost(rules: Rules, salted: Gas, size: Gas) -> Gas:
    """By words of init code (EIP-3860), plus hashing if its hash is part of the address (EIP-1014)."""
    return (rules.initcode_word + salted * rules.keccak_word) * words_of(size)


def deposit_cost(rules: Rules, size: Gas) -> Gas:
    return rules.code_byte * size


# -- transactions -----------------------------------------------------------------------------------------------------


def calldata_cost(rules: Rules, zeros: Gas, others: Gas) -> Gas:
    return rules.calldata_zero * zeros + rules.calldata_nonzero * others


def calldata_floor(rules: Rules, zeros: Gas, others: Gas) -> Gas:
    """EIP-7623: the least a transaction costs."""
    if not rules.calldata_floor_token:
        return 0
    return rules.tx_base + rules.calldata_floor_token * (zeros + NONZERO_TOKENS * others)


def transaction_creation_cost(rules: Rules, size: Gas) -> Gas:
    return rules.tx_create + rules.initcode_word * words_of(size)


def access_list_cost(rules: Rules, addresses: Gas, slots: Gas) -> Gas:
    return rules.access_list_address * addresses + rules.access_list_slot * slots


# -- precompiled contracts --------------------------------------------------------------------------------------------

ECRECOVER = 3_000
SHA256, RIPEMD160, IDENTITY = (60, 12), (600, 120), (15, 3)  # for a call, and for each word of its input
BLS12_PAIRING = (37_700, 32_600)  # for a call, and for each pair


def linear_cost(base: Gas, each: Gas, count: Gas) -> Gas:
    return base + each * count


def sha256_cost(size: Gas) -> Gas:
    return linear_cost(SHA256[0], SHA256[1], words_of(size))


def ripemd160_cost(size: Gas) -> Gas:
    return linear_cost(RIPEMD160[0], RIPEMD160[1], words_of(size))


def identity_cost(size: Gas) -> Gas:
    return linear_cost(IDENTITY[0], IDENTITY[1], words_of(size))


def msm_cost(pairs: int, multiplication: int, discounts: Sequence[int]) -> int:
    """EIP-2537: scalar multiplications, cheaper by the dozen; discounts in thousandths, the last for all larger."""
    return pairs * multiplication * discounts[min(pairs, len(discounts)) - 1] // 1_000


def modexp_cost(rules: Rules, size: int, iterations: int) -> int:
    """By the longer of base and modulus, and the bits of the exponent (EIP-198, 2565, 7883)."""
    return max(rules.modexp_least, modexp_complexity(rules, size) * iterations // rules.modexp_divisor)


def modexp_complexity(rules: Rules, size: int) -> int:
    if not rules.modexp_word:
        return modexp_complexity_198(size)
    if size <= rules.modexp_short:
        return rules.modexp_short_complexity
    words = (size + 7) // 8
    return rules.modexp_word * words * words


def modexp_complexity_198(size: int) -> int:
    if size <= 64:
        return size * size
    if size <= 1_024:
        return size * size // 4 + 96 * size - 3_072
    return size * size // 16 + 480 * size - 199_680
