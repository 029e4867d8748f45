"""Plain schedules, written natively while code runs: one handler per opcode, nothing folded, dynamic jumps only.

Most code is run a few times, and most of it not at all; init code runs but once. So a plain schedule is written block
by block, when a jump first lands there or code is first fallen into (`landings.py`); what is never reached costs
nothing.

All plain schedules of an engine stand in one arena. A table of each code says where the blocks of its JUMPDESTs begin:
the number of a word, or 0 where none is written. The tables are in an arena of their own, one after another; clearing
them means undoing what was written, since most of each is never touched.
"""

from __future__ import annotations

from fusevm.evm.limits import STACK_LIMIT
from fusevm.native.lang import (
    Struct,
    bswap,
    exported,
    fill,
    inlined,
    load,
    local,
    native,
    ptr,
    slt,
    store,
    u8,
    u32,
    u64,
    u256,
    unlikely,
)
from fusevm.native.layout import Engine, NativeFrame, PlainOp, Status
from fusevm.native.runtime.landings import PlainCode, is_landing
from fusevm.schedule.sections import (
    ENDS_BLOCK,
    ENDS_SECTION,
    GOES_ON,
    ROLE_ASK,
    ROLE_DEEP,
    ROLE_DEST,
    ROLE_PC,
    ROLE_PUSH,
)

CHUNK = 256  # bytes of code written at a time: a section of these costs less than 32 bits of gas
CHUNK_WORDS = 8 * CHUNK + 64  # at most: two sections' four, a handler and its operand for each byte, and the link
END, SECTION, GAS_SECTION, GO_ON, WRITE_ON, COUNT = range(256, 262)  # after the opcodes
OP_SIZE = PlainOp.byte_size()
JUMPS = ENDS_BLOCK + 1  # ends a block, and nothing but a jump can reach what follows
SHORT = 8  # bytes that are pushed as one word
FIRST = 2  # the first word: where a table of jumps has less, there is nothing
CALLING, INVALID_JUMP, CAP = Status.CALLING, Status.INVALID_JUMP, Status.CAP


class SectionOrigin(Struct):
    """Where a section of a plain schedule comes from."""

    at: u64  # its first word
    pc: u64
    opens: u64  # whether it opens a block
    plain: ptr  # the PlainCode it is of
    steps: u64  # its instructions
    before: u64  # the number of the origin of the same code that was noted before it, and one; 0: none


class Draft(Struct):
    """What is being written, in numbers of words and units of gas. A block has one section or more."""

    count: u64  # words written
    opened: u64  # whether a block is being written
    head: u64  # where its bounds go, and the gas of its first section
    place: u64  # where the gas of the running section goes
    first_gas: u64
    gas: u64  # of the running section
    height: u64  # of the stack, from the block's start
    needs: u64
    grows: u64
    steps: u64  # instructions of the running section
    origin: ptr  # of the running section


HEADER = PlainCode.byte_size()
ORIGIN_SIZE = SectionOrigin.byte_size()
DRAFT_LIMBS = Draft.byte_size() // 8


@exported
def begin_plain(engine: Engine, plain: PlainCode, code: ptr, size: u64, ops: ptr, room: u64) -> u64:
    """Begins the schedule of a code, whose table is all zeros; the number of its first word, or 0: no room."""
    plain.code = code
    plain.size = size
    plain.ops = ops
    plain.room = room
    plain.starts = plain + HEADER + 4 * (size + 2)
    plain.walked = 0
    plain.last = 0
    plain.sections = 0
    if u64(plain) == u64(engine.plain_tables) + engine.plain_used:
        engine.plain_used += room
    return write_block(engine, plain, 0)


@exported
def forget_plain(engine: Engine) -> None:
    """No plain schedule is used any more: all tables are as if they had never been written."""
    number: u64 = 0
    while number < engine.origin_count:
        origin = SectionOrigin(engine.plain_origins + number * ORIGIN_SIZE)
        is_there = u64(origin.plain) - u64(engine.plain_tables) < engine.plain_used  # not one of its own, gone already
        if is_there and origin.pc < PlainCode(origin.plain).size:
            store(origin.plain + HEADER, origin.pc << 2, u32(0))
        number += 1
    at: u64 = 0
    while at < engine.plain_used:
        plain = PlainCode(engine.plain_tables + at)
        at += plain.room
        if plain.walked != 0:
            fill(plain.starts, 0, plain.size)
        fill(plain, 0, HEADER)
    engine.plain_used = 0
    engine.plain_count = FIRST
    engine.origin_count = 0


@exported
def write_block(engine: Engine, plain: PlainCode, pc: u64) -> u64:
    """Writes the schedule from an instruction on; returns the index of its first word, or 0 if there is no room."""
    words = engine.plain_words
    begin = engine.plain_count
    if begin + CHUNK_WORDS > engine.plain_limit:
        return 0
    room = local(u64, DRAFT_LIMBS)
    draft = Draft(room)
    draft.count = begin
    draft.opened = 0
    stop = pc + CHUNK
    while True:
        op = PlainOp(op_at(plain, pc))
        if op.role == ROLE_DEST and arrive(words, plain, draft, pc, stop) != 0:
            engine.plain_count = draft.count
            return begin
        if pc >= stop:
            break
        if draft.opened == 0:
            open_block(engine, plain, draft, pc)
        write_op(words, plain, draft, op, pc)
        pc += op.immediate + 1
        if op.ending == ENDS_SECTION:
            next_section(engine, plain, draft, pc)
        elif op.ending != GOES_ON:
            end_block(words, draft)
            if op.ending == JUMPS:
                engine.plain_count = draft.count
                return begin
    if draft.opened != 0:
        end_block(words, draft)
    put(words, draft, handler_of(plain, WRITE_ON))
    put(words, draft, pc)
    engine.plain_count = draft.count
    return begin


@inlined
def op_at(plain: PlainCode, pc: u64) -> ptr:
    """The opcode at a pc; past the code's end, END."""
    number: u64 = END
    if pc < plain.size:
        number = u64(load(u8, plain.code, pc))
        variants = PlainOp(plain.ops + number * OP_SIZE).variants
        if unlikely(variants != 0):
            number = variants + u64(pushed(plain.code, plain.size, pc + 1, 1))
    return plain.ops + number * OP_SIZE


@inlined
def handler_of(plain: PlainCode, number: u64) -> u64:
    return PlainOp(plain.ops + number * OP_SIZE).handler


@inlined
def put(words: ptr, draft: Draft, word: u64) -> None:
    store(words, draft.count << 3, word)
    draft.count += 1


@inlined
def arrive(words: ptr, plain: PlainCode, draft: Draft, pc: u64, stop: u64) -> u64:
    """A JUMPDEST ends the block before it. Whether its own is written already; the first one never is."""
    jumps: ptr = plain + HEADER
    known = u64(load(u32, jumps, pc << 2))
    if draft.opened != 0:
        end_block(words, draft)
    if known != 0:
        put(words, draft, handler_of(plain, GO_ON))
        put(words, draft, u64(words) + (known << 3))
        return 1
    if pc < stop:
        store(jumps, pc << 2, u32(draft.count))
    return 0


@inlined
def open_block(engine: Engine, plain: PlainCode, draft: Draft, pc: u64) -> None:
    begin_section(engine, plain, draft, pc, 1)
    put(engine.plain_words, draft, handler_of(plain, SECTION))
    draft.head = draft.count
    draft.place = draft.count
    draft.count += 1
    draft.gas = 0
    draft.height = 0
    draft.needs = 0
    draft.grows = 0
    draft.opened = 1


@inlined
def write_op(words: ptr, plain: PlainCode, draft: Draft, op: PlainOp, pc: u64) -> None:
    """Writes an instruction's handler and operand; adds up its gas and its effect on the stack."""
    draft.gas += op.gas
    draft.steps += 1
    if slt(draft.needs, op.pops - draft.height):
        draft.needs = op.pops - draft.height
    draft.height += op.delta
    if slt(draft.grows, draft.height):
        draft.grows = draft.height
    if op.role != ROLE_DEST:
        put(words, draft, op.handler)
    if op.role == ROLE_PUSH:
        if op.immediate <= SHORT:
            put(words, draft, u64(pushed(plain.code, plain.size, pc + 1, op.immediate)))
        else:
            store(words, draft.count << 3, pushed(plain.code, plain.size, pc + 1, op.immediate))
            draft.count += 4
    elif op.role == ROLE_ASK or op.role == ROLE_PC:
        put(words, draft, pc)
    elif op.role == ROLE_DEEP:
        put(words, draft, op.operand)


@inlined
def next_section(engine: Engine, plain: PlainCode, draft: Draft, pc: u64) -> None:
    """The block continues with another section."""
    end_section(engine.plain_words, draft)
    begin_section(engine, plain, draft, pc, 0)
    put(engine.plain_words, draft, handler_of(plain, GAS_SECTION))
    draft.place = draft.count
    draft.count += 1
    draft.gas = 0


@inlined
def begin_section(engine: Engine, plain: PlainCode, draft: Draft, pc: u64, opens: u64) -> None:
    """Notes where it comes from. Where sections are counted, its counter comes first, in the schedule itself."""
    origin = SectionOrigin(engine.plain_origins + engine.origin_count * ORIGIN_SIZE)
    origin.at = draft.count
    origin.pc = pc
    origin.opens = opens
    origin.plain = plain
    origin.before = plain.last
    engine.origin_count += 1
    plain.last = engine.origin_count
    plain.sections += 1
    draft.origin = origin
    draft.steps = 0
    count = handler_of(plain, COUNT)
    if count != 0:
        put(engine.plain_words, draft, count)
        put(engine.plain_words, draft, u64(0))


@exported
def take_counts(engine: Engine, plain: PlainCode, out: ptr) -> u64:
    """Of each section that ran since the last time: its pc, how often, and its instructions. Returns how many; `out`
    has room for all sections."""
    found: u64 = 0
    number = plain.last
    while number != 0:
        origin = SectionOrigin(engine.plain_origins + (number - 1) * ORIGIN_SIZE)
        place: ptr = engine.plain_words + (origin.at << 3)
        times = load(u64, place, 8)
        if times != 0:
            store(place, 8, u64(0))
            store(out, 0, origin.pc)
            store(out, 8, times)
            store(out, 16, origin.steps)
            out = out + 24
            found += 1
        number = origin.before
    return found


@native
def land(engine: Engine, frame: NativeFrame) -> u64:
    """A jump found no block: writes it, so that the jump can be tried again; or INVALID_JUMP."""
    plain = PlainCode(frame.jumps - HEADER)
    target = load(u256, frame.sp - 32)
    if target >= u256(plain.size):
        return INVALID_JUMP
    if is_landing(plain, u64(target)) == 0:
        return INVALID_JUMP
    if write_block(engine, plain, u64(target)) == 0:
        return CAP
    frame.ip = frame.ip - 8  # the jump again
    return CALLING


@native
def write_on(engine: Engine, frame: NativeFrame) -> u64:
    """Falls through to code that is not yet written: writes it, and replaces the request by a link to it."""
    plain = PlainCode(frame.jumps - HEADER)
    number: u64 = 0
    if frame.pc < plain.size:
        number = u64(load(u32, frame.jumps, frame.pc << 2))
    if number == 0:
        number = write_block(engine, plain, frame.pc)
        if number == 0:
            return CAP
    place: ptr = engine.plain_words + (number << 3)
    store(frame.ip - 16, 0, PlainOp(plain.ops + GO_ON * OP_SIZE).handler)
    store(frame.ip - 8, 0, place)
    frame.ip = place
    return CALLING


@inlined
def end_section(words: ptr, draft: Draft) -> None:
    """The gas of the current section is known; that of the first is stored with the block's bounds."""
    origin = SectionOrigin(draft.origin)
    origin.steps = draft.steps
    if draft.place == draft.head:
        draft.first_gas = draft.gas
    else:
        store(words, draft.place << 3, draft.gas)


@inlined
def end_block(words: ptr, draft: Draft) -> None:
    """As `schedule.build.with_header` has it."""
    end_section(words, draft)
    room = u64(STACK_LIMIT) - draft.grows - draft.needs
    bounds: u64 = (STACK_LIMIT + 1) << 32
    if not slt(room, 0):
        bounds = draft.needs << 32 | room << 48
    store(words, draft.head << 3, draft.first_gas | bounds)
    draft.opened = 0


@inlined
def pushed(code: ptr, size: u64, start: u64, length: u64) -> u256:
    """Bytes of code as a number; zeros past its end."""
    if start + 32 <= size and length != 0:
        return bswap(load(u256, code, start)) >> u256((u64(32) - length) << 3)
    value = u256(0)
    stop = start + length
    while start < stop:
        value = value << 8
        if start < size:
            value = value | u256(load(u8, code, start))
        start += 1
    return value
