"""Where control goes: branches, loops, subroutines, jump tables, wild jumps, and how a code ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

from fusevm.evm.forks import Fork
from fusevm.evm.opcodes import BY_NAME
from fusevm.lab.fuzz import constants as words
from fusevm.lab.fuzz.code import CodeParts
from fusevm.lab.fuzz.loop_programs import flood, loop
from fusevm.lab.fuzz.outside import call, call_precompile, create, pay
from fusevm.lab.fuzz.statements import STRAIGHT, address
from fusevm.lab.fuzz.undone import call_twice, create_hollow, create_where_paid, fail_if_odd, give_away, make
from fusevm.lab.fuzz.weighted import Weighted
from fusevm.lab.fuzz.writer import VOCABULARIES, Writer

Statement = Callable[[Writer], None]

_MAX_NESTED = 2  # code within code within code
_MAX_LOOPS = 3


def block(w: Writer, room: int) -> None:
    """Statements until the room is used up. The stack may end higher than it began, never lower."""
    table = _statements(w.fork)
    end = len(w.code.items) + room
    outer, w.room = w.room, room
    while len(w.code.items) < end:
        w.room = end - len(w.code.items)
        table.pick(w.rng)(w)
        w.level()
    w.room = outer


def _inner(w: Writer, share: float = 0.6) -> int:
    """Room for a block within a block."""
    return max(2, min(30, int(w.room * w.rng.random() * share)))


def branch(w: Writer) -> None:
    """An if, sometimes with an else; the arms leave the stack as they found it, or end the run."""
    w.condition()
    other, end = w.new_label(), w.new_label()
    w.ref(other)
    w.op("JUMPI")
    base, floor = w.height, w.floor
    w.floor = base
    block(w, _inner(w))
    if w.chance(0.08):
        ending(w)
        w.height = base
    else:
        w.settle(base)
    if w.chance(0.4):
        w.ref(end)
        w.op("JUMP")
        w.label(other)
        block(w, _inner(w))
        w.settle(base)
        w.label(end)
    else:
        w.label(other)
    w.floor = floor


def value_check(w: Writer) -> None:
    """How a contract refuses money it does not expect."""
    paid = w.new_label()
    w.ops("CALLVALUE", "DUP1", "ISZERO")
    w.ref(paid)
    w.op("JUMPI")
    w.push(0)
    w.ops("DUP1", "REVERT" if w.has("REVERT") else "RETURN")
    w.label(paid)
    w.op("POP")


def counted(w: Writer) -> None:
    if w.loops < _MAX_LOOPS:
        loop(w, lambda inside: block(inside, _inner(inside, 0.35)))


def subroutine(w: Writer) -> None:
    """Code that is jumped to from several places and jumps back to where it was called from."""
    entry, over = w.new_label(), w.new_label()
    base, floor = w.height, w.floor
    w.ref(over)
    w.op("JUMP")
    w.label(entry)
    w.height = w.floor = base + 1  # the latch
    block(w, _inner(w, 0.3))
    w.settle(base + 1)
    w.op("JUMP")
    w.label(over)
    w.floor = floor
    for _ in range(w.rng.randint(1, 3)):
        back = w.new_label()
        w.ref(back)
        w.ref(entry)
        w.op("JUMP")
        w.height = base
        w.label(back)


def table_jump(w: Writer) -> None:
    """To one of two places, computed: b ^ (a ^ b) * (0 or 1)."""
    one, two, end = w.new_label(), w.new_label(), w.new_label()
    w.condition()
    w.op("ISZERO")
    w.ref(one)
    w.ref(two)
    w.ops("XOR", "MUL")
    w.ref(two)
    w.ops("XOR", "JUMP")
    base, floor = w.height, w.floor
    w.floor = base
    for label in (one, two):
        w.label(label)
        block(w, _inner(w, 0.3))
        w.settle(base)
        w.ref(end)
        w.op("JUMP")
    w.label(end)
    w.floor = floor


def wild_jump(w: Writer) -> None:
    """To a place that is not a JUMPDEST: past the end, into push data that looks like one; taken or not."""
    rng = w.rng
    if w.chance(0.9):
        w.push(rng.choice((0, 0, 0, 1)))
        w.push(rng.choice((0, 1, 2, 3, 0x5B5B, words.word(rng))))
        w.op("JUMPI")
    else:
        here = w.new_label()
        w.label(here)
        w.push(int.from_bytes(b"\x5b" * rng.randint(1, 32), "big"))
        w.ref(here)
        w.push(rng.choice((1, 2, 3)))
        w.op("ADD")
        w.operand()
        w.ops("SWAP1", "JUMPI")


def hops(w: Writer) -> None:
    """Jumps to jumps, written in any order."""
    stops = [w.new_label() for _ in range(w.rng.randint(2, 4))]
    w.ref(stops[0])
    w.op("JUMP")
    legs = list(pairwise(stops))
    w.rng.shuffle(legs)
    for here, there in legs:
        w.label(here)
        w.ref(there)
        w.op("JUMP")
    w.label(stops[-1])


def row(w: Writer) -> None:
    """JUMPDESTs in a row; edges to the first, into the middle, and to a computed one."""
    rng = w.rng
    labels = [w.new_label() for _ in range(rng.choice((2, 3, 4, 5, 8, 16, 40)))]
    for _ in range(rng.randrange(3)):
        w.condition()
        w.ref(rng.choice(labels))
        w.op("JUMPI")
    kind = rng.random()
    if kind < 0.3:
        w.ref(rng.choice(labels))
        w.op("JUMP")
    elif kind < 0.6:
        w.operand()
        w.push((1 << len(labels).bit_length() - 1) - 1)
        w.op("AND")
        w.ref(labels[0])
        w.ops("ADD", "JUMP")
    for label in labels:
        w.label(label)


def dispatch(w: Writer) -> None:
    """By the first four bytes of the call's data, as a contract begins."""
    rng, base, floor = w.rng, w.height, w.floor
    w.push(0)
    w.op("CALLDATALOAD")
    w.push(0xE0 if w.has("SHR") else 1 << 224)
    w.ops(*(("SHR",) if w.has("SHR") else ("SWAP1", "DIV")))
    arms = [w.new_label() for _ in range(rng.randint(1, 3))]
    for arm in arms:
        w.op("DUP1")
        w.push(rng.choice((0, 0, 1, rng.getrandbits(32))))
        w.op("EQ")
        w.ref(arm)
        w.op("JUMPI")
    end = w.new_label()
    w.ref(end)
    w.op("JUMP")
    w.floor = base + 1
    for arm in arms:
        w.label(arm)
        block(w, _inner(w, 0.3))
        w.settle(base + 1)
        if w.chance(0.8):  # or fall into the next arm
            w.ref(end)
            w.op("JUMP")
    w.label(end)
    w.floor = floor


def cycle(w: Writer) -> None:
    """A jump to itself, which only gas can end."""
    here = w.new_label()
    w.label(here)
    w.ref(here)
    w.op("JUMP")


def creation(w: Writer) -> None:
    if w.nesting < _MAX_NESTED and w.loops < 2:
        create(w, init_code)


def creation_where_paid(w: Writer) -> None:
    if w.nesting < _MAX_NESTED and w.loops < 2:
        create_where_paid(w, init_code)


def early_end(w: Writer) -> None:
    """Ends the run under a condition that seldom holds."""
    go_on = w.new_label()
    w.operands(1)
    w.push(words.word(w.rng))
    w.op("EQ" if w.chance(0.5) else "LT")
    w.op("ISZERO")
    w.ref(go_on)
    w.op("JUMPI")
    base = w.height
    ending(w)
    w.height = base
    w.label(go_on)


FLOW: tuple[tuple[float, Statement, str], ...] = (
    (4.0, branch, "JUMPI"),
    (3.0, counted, "JUMPI"),
    (0.2, value_check, "JUMPI"),
    (1.0, subroutine, "JUMP"),
    (0.7, table_jump, "JUMP"),
    (0.5, wild_jump, "JUMPI"),
    (0.5, early_end, "JUMPI"),
    (0.5, hops, "JUMP"),
    (0.7, row, "JUMP"),
    (0.5, dispatch, "JUMPI"),
    (0.02, flood, "JUMP"),
    (0.01, cycle, "JUMP"),
    (3.0, call, "CALL"),
    (1.0, pay, "CALL"),
    (1.5, call_precompile, "CALL"),
    (1.0, creation, "CREATE"),
    (0.4, creation_where_paid, "CREATE2"),
    (0.4, create_hollow, "CREATE"),
    (0.2, give_away, "CALL"),
    (0.6, call_twice, "CALL"),
)  # fmt: skip


@cache
def _statements(fork: Fork) -> Weighted[Statement]:
    names = VOCABULARIES[fork].names
    return Weighted([(weight, statement) for weight, statement, needs in (*STRAIGHT, *FLOW) if needs in names])


# -- endings


def _return(w: Writer) -> None:
    """What is on the stack, through memory."""
    count = min(w.height, w.rng.randint(1, 5))
    for index in range(count):
        w.push(32 * index)
        w.op("MSTORE")
    if w.chance(0.3):
        w.op("GAS")
        w.push(32 * count)
        w.op("MSTORE")
        count += 1
    w.push(32 * count if w.chance(0.8) else words.size(w.rng))
    w.push(0 if w.chance(0.8) else words.offset(w.rng))
    w.op("REVERT" if w.has("REVERT") and w.chance(0.2) else "RETURN")


def _selfdestruct(w: Writer) -> None:
    address(w)
    w.op("SELFDESTRUCT")


def _stop(w: Writer) -> None:
    w.op("STOP")


def _invalid(w: Writer) -> None:
    w.op("INVALID")


ENDINGS: Weighted[Statement] = Weighted([(12.0, _return), (4.0, _stop), (2.0, _selfdestruct), (0.7, _invalid)])


def ending(w: Writer) -> None:
    ENDINGS.pick(w.rng)(w)


# -- whole codes


def contract_code(w: Writer, room: int) -> CodeParts:
    block(w, room)
    if w.chance(0.15):
        fail_if_odd(w)
    if not w.code.parts and w.chance(0.1):
        _run_off(w)
    else:
        ending(w)
    return w.code


def maker_code(w: Writer, room: int) -> CodeParts:
    """A contract that makes others, and undoes them if it is told to; see `call_twice`."""
    if w.chance(0.3):
        block(w, room)
    make(w, init_code)
    ending(w)
    return w.code


def caller_code(w: Writer, room: int, maker: int) -> CodeParts:
    """A contract that calls a maker more than once, among other things."""
    before = room // 4 if w.chance(0.5) else 0
    block(w, before)
    call_twice(w, maker)
    block(w, room - before)
    ending(w)
    return w.code


def _run_off(w: Writer) -> None:
    """The code just ends, or ends within a PUSH."""
    if w.chance(0.5):
        width = w.rng.randint(1, 32)
        w.data(bytes((BY_NAME[f"PUSH{width}"].byte,)) + w.rng.randbytes(w.rng.randrange(width)))


def init_code(parent: Writer, room: int) -> CodeParts:
    """Does something, then returns a contract; or nothing; or fails."""
    rng = parent.rng
    w = Writer(rng, parent.around, parent.nesting + 1)
    block(w, room)
    kind = rng.random()
    if kind < 0.65:
        part = w.part(contract_code(Writer(rng, parent.around, parent.nesting + 2), rng.randint(2, 25)))
        w.copy_part(part, 0)
        w.push_size(part)
        w.push(0)
        w.op("RETURN")
    elif kind < 0.75:
        _selfdestruct(w)
    elif kind < 0.8:
        w.push(0xEF)
        w.push(0)
        w.ops("MSTORE8")
        w.push(rng.choice((1, 2, 32)))
        w.push(0)
        w.op("RETURN")
    else:
        ending(w)
    return w.code
