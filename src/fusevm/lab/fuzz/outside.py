"""Calls of every kind, and creations with init code of their own."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.evm.forks import Fork
from fusevm.lab.fuzz import constants as words
from fusevm.lab.fuzz.code import CodeParts, raw
from fusevm.lab.fuzz.precompile_inputs import precompile_input
from fusevm.lab.fuzz.statements import address
from fusevm.lab.fuzz.writer import Writer

CALLS = ("CALL", "CALL", "CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")
Compose = Callable[[Writer, int], CodeParts]


def call(w: Writer) -> None:
    kind = w.rng.choice([name for name in CALLS if w.has(name)])
    _call_range(w, w.size, w.offset)
    _value(w, kind)
    address(w)
    _gas(w)
    w.op(kind)
    _look_at_result(w)


def pay(w: Writer) -> None:
    """Sends value to an account, often one that does not exist, and reads it afterwards."""
    rng = w.rng
    target = rng.choice((*w.around.targets, 0xF00D, 0xF00E, 0xF00F))
    for _ in range(rng.choice((1, 1, 2))):
        for _ in range(4):
            w.push(0)
        w.push(rng.choice((1, 1, 2)))
        w.push(target)
        _gas(w)
        w.op("CALL")
    if w.chance(0.8):
        w.push(target)
        w.op(rng.choice([name for name in ("EXTCODEHASH", "EXTCODEHASH", "EXTCODESIZE", "BALANCE") if w.has(name)]))


def call_precompile(w: Writer) -> None:
    """With input it can work on, brought into memory from a part of the code."""
    rng = w.rng
    target = rng.choice(w.around.precompiles)
    part = w.part(raw(precompile_input(rng, target)))
    w.copy_part(part, 0)
    kind = rng.choice([name for name in CALLS if w.has(name)])
    _call_range(w, lambda: w.push_size(part), lambda: w.push(0))
    _value(w, kind)
    w.push(target)
    _gas(w)
    w.op(kind)
    _look_at_result(w)


def create(w: Writer, compose: Compose) -> None:
    """Runs new init code, and mostly calls what came of it."""
    rng = w.rng
    part = w.part(compose(w, rng.randint(8, 40)))
    to = words.offset(rng) % 0x200
    w.copy_part(part, to)
    salted = w.has("CREATE2") and w.chance(0.5)
    if salted:
        w.key()
    if w.chance(0.95):
        w.push_size(part)
    else:
        w.size()
    w.push(to)
    w.push(rng.choice((0, 0, 0, 1, words.word(rng))))
    w.op("CREATE2" if salted else "CREATE")
    if w.chance(0.6):
        above = w.height
        kind = rng.choice([name for name in CALLS if w.has(name)])
        _call_range(w, w.size, w.offset)
        _value(w, kind)
        w.op(f"DUP{w.height - above + 1}")
        _gas(w)
        w.op(kind)
        _look_at_result(w)


def _call_range(w: Writer, in_size: Callable[[], None], in_offset: Callable[[], None]) -> None:
    """Output size and offset, then the input's."""
    w.size()
    w.offset()
    in_size()
    in_offset()


def _value(w: Writer, kind: str) -> None:
    if kind in ("CALL", "CALLCODE"):
        w.push(w.rng.choice((0, 0, 0, 0, 1, 1, 2, words.word(w.rng))))


def _gas(w: Writer) -> None:
    """Most of the available gas. Before EIP-150 asking for more ended the frame."""
    rng = w.rng
    if w.chance(0.25):
        w.push(rng.choice((0, 1, 700, 2300, 5_000, 20_000, 60_000)))
    elif w.fork >= Fork.TANGERINE_WHISTLE:
        if w.chance(0.9):
            w.op("GAS")
        else:
            w.push(words.word(rng))
    else:
        w.push(rng.choice((1_000, 10_000, 12_000, 36_000, 60_000)))
        w.ops("GAS", "SUB")


def _look_at_result(w: Writer) -> None:
    if w.has("RETURNDATACOPY") and w.chance(0.3):
        w.op("RETURNDATASIZE")
        if w.chance(0.6):
            w.op("DUP1")
            w.push(0)
            w.offset()
            w.op("RETURNDATACOPY")
