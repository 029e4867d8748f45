"""Native code for calls of precompiled contracts. In the subset of `lang`.

The identity is here. For some others the account has the address of a function (`native/host/precompiles.py` loads it
when the contract is first used). All else is asked of Python.
"""

from __future__ import annotations

from fusevm.evm.gas import ECRECOVER, identity_cost, ripemd160_cost, sha256_cost, words_of
from fusevm.native.lang import call_pointer, copy, inlined, native, ptr, u64
from fusevm.native.layout import Account, Engine, NativeFrame
from fusevm.native.runtime.frames import answer
from fusevm.native.runtime.memory import BROKEN, FAILED, charge, hasten

AT_ECRECOVER, AT_SHA256, AT_IDENTITY = 1, 2, 4
# Bytes that are hashed here. For more, Python's hashlib is worth asking, which has the processor's own instructions for
# SHA-256; and a long input is hashed in parts, with a check of the clock between them.
MAX_SHA256, MAX_RIPEMD160 = 768, 1 << 16
# What counts as hashed until the clock is looked at (`hasten`): 0.02 s of it, half of what Keccak is allowed.
ECRECOVER_WORDS, HASH_WORDS = 1_200, 6


@native
def call_precompile(frame: NativeFrame, gas: u64, given: u64, account: Account, in_offset: u64, in_size: u64) -> u64:
    """Runs a precompiled contract."""
    engine = Engine(frame.engine)
    data: ptr = frame.memory + in_offset
    took: u64 = 0
    if account.address == AT_IDENTITY:
        if pay(engine, given, identity_cost(in_size)) != 0:
            engine.answer_size = in_size
            copy(engine.output, data, in_size)
    elif is_direct(account, in_size) != 0:
        if pay(engine, given, direct_cost(account, in_size)) != 0:
            engine.answer_size = call_pointer(u64, account.entry, data, in_size, engine.output)
            took = ECRECOVER_WORDS if account.address == AT_ECRECOVER else 2 * words_of(in_size) + HASH_WORDS
    else:
        engine.asked_data = data
        engine.asked_size = in_size
        engine.asked_gas = given
        if call_pointer(u64, engine.run_precompile, account) != 0:
            return BROKEN
    size = engine.answer_size
    if size == FAILED:
        return answer(frame, charge(frame, gas, given), 0)
    gas = charge(frame, gas, given - engine.answer_gas)
    frame.returned = engine.output
    frame.returned_size = size
    if size > frame.call_size:
        size = frame.call_size
    copy(frame.memory + frame.call_offset, engine.output, size)
    return answer(frame, hasten(frame, gas, took), 1)


@inlined
def pay(engine: Engine, given: u64, price: u64) -> u64:
    """Whether the gas is enough; if not, that is the answer."""
    engine.answer_gas = given - price
    if price <= given:
        return 1
    engine.answer_size = FAILED
    engine.answer_gas = 0  # recordings distinguish it from an invalid input
    return 0


@inlined
def is_direct(account: Account, size: u64) -> u64:
    """Whether the account's function is to be called: it is loaded, and does not take long."""
    if u64(account.entry) == 0:
        return 0
    if account.address == AT_ECRECOVER:
        return 1
    return u64(size <= MAX_SHA256) if account.address == AT_SHA256 else u64(size <= MAX_RIPEMD160)


@inlined
def direct_cost(account: Account, size: u64) -> u64:
    if account.address == AT_ECRECOVER:
        return ECRECOVER
    return sha256_cost(size) if account.address == AT_SHA256 else ripemd160_cost(size)
