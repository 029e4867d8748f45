"""Deeds that are undone and done again: calls that fail by their data, creations where a payment went before.

Accounts that are created, destroyed and created again are where two tiers may differ: each keeps, for a while, what
the other undoes. Plain random statements hardly ever do the same thing twice at one address.
"""

from __future__ import annotations

from fusevm.lab.fuzz.code import CodeParts, raw
from fusevm.lab.fuzz.outside import Compose
from fusevm.lab.fuzz.writer import Writer

_ENOUGH = (60_000, 100_000, 150_000)  # gas for a call that creates something; what fails takes all of it
_PREFIX = 0xFF << 160  # of what a CREATE2 address is the hash of
_HOLLOW = (b"", b"\0", b"\x5b\0", b"\xfe")  # code of contracts that have nothing else


def fail_if_odd(w: Writer) -> None:
    """The size of the calldata decides whether everything done so far is undone."""
    go_on = w.new_label()
    w.op("CALLDATASIZE")
    w.push(1)
    w.ops("AND", "ISZERO")
    w.ref(go_on)
    w.op("JUMPI")
    if w.has("REVERT") and w.chance(0.5):
        w.push(0)
        w.ops("DUP1", "REVERT")
    else:
        w.op("INVALID")
    w.label(go_on)


def call_twice(w: Writer, target: int | None = None) -> None:
    """The same call with data of an odd and of an even size: what one of them does is undone where that decides."""
    rng = w.rng
    if target is None:
        target = rng.choice(w.around.targets)
    sizes = [rng.choice((1, 3, 5)), rng.choice((0, 0, 4))]
    if w.chance(0.3):
        sizes.reverse()
    if w.chance(0.3):
        sizes.append(rng.choice(sizes))
    for size in sizes:
        _call(w, target, size=size, value=rng.choice((0, 0, 1)))


def make(w: Writer, compose: Compose) -> None:
    """Creates accounts; the caller decides whether they stay."""
    for _ in range(w.rng.choice((1, 1, 2))):
        if w.has("CREATE2") and w.chance(0.5):
            create_where_paid(w, compose)
        else:
            create_hollow(w)
    fail_if_odd(w)


def give_away(w: Writer) -> None:
    """Sends on what the call brought, or all there is."""
    target = w.rng.choice(w.around.targets)
    for _ in range(4):
        w.push(0)
    if w.chance(0.6):
        w.op("CALLVALUE")
    else:
        w.ops("ADDRESS", "BALANCE")
    w.push(target)
    w.push(w.rng.choice((0, 5_000, 20_000)))
    w.ops("CALL", "POP")


def create_hollow(w: Writer) -> None:
    """A contract that has nothing but its code, if that: it gives away the value it is created with."""
    part = w.part(_hollow(w))
    w.copy_part(part, 0)
    w.push_size(part)
    w.push(0)
    w.push(w.rng.choice((0, 1, 1, 2)))
    w.op("CREATE")
    if w.chance(0.5):
        w.op("POP")


def _hollow(parent: Writer) -> CodeParts:
    w = Writer(parent.rng, parent.around, parent.nesting + 1)
    if w.chance(0.8):
        give_away(w)
    if w.chance(0.2):
        give_away(w)
    code = parent.rng.choice(_HOLLOW)
    part = w.part(raw(code))
    w.copy_part(part, 0)
    w.push_size(part)
    w.push(0)
    w.op("RETURN")
    return w.code


def create_where_paid(w: Writer, compose: Compose) -> None:
    """Pays the address that CREATE2 is about to use, and reads the world before, between and after."""
    rng = w.rng
    part = w.part(rng.choice((raw(b""), _hollow(w), compose(w, rng.randint(2, 10)))))
    to = 0x60
    salt = rng.choice((0, 0, 1))
    w.copy_part(part, to)
    _push_address(w, part, to, salt)
    deeds = [_pay, _look, _create, _look]
    if w.chance(0.3):
        rng.shuffle(deeds)
    if w.chance(0.3):
        deeds.insert(rng.randrange(4), rng.choice((_pay, _look, _create)))
    for deed in deeds:
        deed(w, part, to, salt)
    w.op(rng.choice(("POP", "BALANCE", "EXTCODEHASH", "EXTCODESIZE")))


def _push_address(w: Writer, part: int, to: int, salt: int) -> None:
    """keccak(0xff ++ this address ++ salt ++ keccak(init code)), which CREATE2 will create (EIP-1014)."""
    w.push(_PREFIX)
    w.ops("ADDRESS", "OR")
    w.push(0)
    w.op("MSTORE")
    w.push(salt)
    w.push(0x20)
    w.op("MSTORE")
    w.push_size(part)
    w.push(to)
    w.op("KECCAK256")
    w.push(0x40)
    w.op("MSTORE")
    w.push(85)
    w.push(11)
    w.op("KECCAK256")


def _pay(w: Writer, part: int, to: int, salt: int) -> None:
    for _ in range(4):
        w.push(0)
    w.push(w.rng.choice((0, 1, 1)))
    w.ops("DUP6", "GAS", "CALL", "POP")


def _create(w: Writer, part: int, to: int, salt: int) -> None:
    w.push(salt)
    w.push_size(part)
    w.push(to)
    w.push(w.rng.choice((0, 0, 1)))
    w.ops("CREATE2", "POP")


def _look(w: Writer, part: int, to: int, salt: int) -> None:
    """What has not run before, or was not hashed, must be asked for."""
    if w.chance(0.7):
        _call(w, w.rng.choice(w.around.targets), size=0, value=0)
    else:
        w.push(w.rng.choice(w.around.targets))
        w.ops("EXTCODEHASH", "POP")


def _call(w: Writer, target: int, *, size: int, value: int) -> None:
    """With a fixed amount of gas, so that something is left where it fails."""
    w.push(0)
    w.push(0)
    w.push(size)
    w.push(0)
    w.push(value)
    w.push(target)
    w.push(w.rng.choice(_ENOUGH))
    w.ops("CALL", "POP")
