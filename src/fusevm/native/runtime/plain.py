"""Plain schedules, written natively while code runs: one handler per opcode, nothing folded, dynamic jumps only.

Most code is run a few times, and most of it not at all; init code runs but once. So a plain schedule is written block
by block, when a jump first lands there or code is first fallen into. Looking for a jump's target costs a nanosecond or
two per byte of code before it; what is never reached costs nothing.

All plain schedules of an engine stand in one arena. A table of each code says where its JUMPDESTs are: 0 where there is
none or nobody has looked, KNOWN where there is one, else the number of the word where its block begins.
"""

from __future__ import annotations

from fusevm.evm.bytecode import JUMPDEST, PUSH0
from fusevm.evm.limits import STACK_LIMIT
from fusevm.native.lang import (
    Struct,
    bswap,
    exported,
    inlined,
    load,
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
from fusevm.native.layout import Engine, Frame, PlainOp, Status
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
CHUNK_WORDS = 6 * CHUNK + 64  # at most: two sections' two, a handler and its operand for each byte, and the way on
END, SECTION, GAS_SECTION, GO_ON, WRITE_ON = range(256, 261)  # after the opcodes
OP_SIZE = PlainOp.byte_size()
JUMPS = ENDS_BLOCK + 1  # ends a block, and nothing but a jump can reach what follows
SHORT = 8  # bytes that are pushed as one word
PUSH1 = PUSH0 + 1
KNOWN = 1
CALLING, INVALID_JUMP, CAP = Status.CALLING, Status.INVALID_JUMP, Status.CAP


class PlainCode(Struct):
    """Stands before the table of where a code's jumps may land."""

    code: ptr
    size: u64
    ops: ptr  # of PlainOp: what the fork makes of each byte
    scanned: u64  # JUMPDESTs before this are in the table


class Origin(Struct):
    """Where a section of a plain schedule comes from."""

    at: u64  # its first word
    pc: u64
    opens: u64  # whether it opens a block


HEADER = PlainCode.byte_size()
ORIGIN_SIZE = Origin.byte_size()


@exported
def write_block(engine: Engine, plain: PlainCode, pc: u64) -> u64:
    """Writes the schedule from an instruction on; the number of its first word, or 0 where there is no room."""
    words = engine.plain_words
    jumps: ptr = plain + HEADER
    count = engine.plain_count
    if count + CHUNK_WORDS > engine.plain_limit:
        return 0
    begin = count
    stop = pc + CHUNK
    opened: u64 = 0  # whether a block is being written
    head: u64 = 0  # where its bounds go, and the gas of its first section
    place: u64 = 0  # where the gas of the running section goes
    first_gas: u64 = 0
    gas: u64 = 0
    height: u64 = 0
    needs: u64 = 0
    grows: u64 = 0
    while True:
        op = PlainOp(plain.ops + END * OP_SIZE)
        if pc < plain.size:
            op = PlainOp(plain.ops + u64(load(u8, plain.code, pc)) * OP_SIZE)
            if unlikely(u64(op.variants) != 0):
                op = PlainOp(op.variants + u64(pushed(plain.code, plain.size, pc + 1, 1)) * OP_SIZE)
        if op.role == ROLE_DEST:
            known = u64(load(u32, jumps, pc << 2))
            if opened != 0:
                end_block(words, head, place, first_gas, gas, needs, grows)
                opened = 0
            if known > KNOWN:  # it is written already; the first one never is
                store(words, count << 3, PlainOp(plain.ops + GO_ON * OP_SIZE).handler)
                store(words, (count + 1) << 3, words + (known << 3))
                engine.plain_count = count + 2
                return begin
            if pc < stop:
                store(jumps, pc << 2, u32(count))
        if opened == 0:
            if pc >= stop:
                break
            note_origin(engine, count, pc, 1)
            store(words, count << 3, PlainOp(plain.ops + SECTION * OP_SIZE).handler)
            head = count + 1
            place = head
            count += 2
            gas = 0
            height = 0
            needs = 0
            grows = 0
            opened = 1
        elif pc >= stop:
            end_block(words, head, place, first_gas, gas, needs, grows)
            break
        gas += op.gas
        if slt(needs, op.pops - height):
            needs = op.pops - height
        height += op.delta
        if slt(grows, height):
            grows = height
        if op.role != ROLE_DEST:
            store(words, count << 3, op.handler)
            count += 1
        if op.role == ROLE_PUSH:
            if op.immediate <= SHORT:
                store(words, count << 3, u64(pushed(plain.code, plain.size, pc + 1, op.immediate)))
                count += 1
            else:
                store(words, count << 3, pushed(plain.code, plain.size, pc + 1, op.immediate))
                count += 4
        elif op.role == ROLE_ASK or op.role == ROLE_PC:
            store(words, count << 3, pc)
            count += 1
        elif op.role == ROLE_DEEP:
            store(words, count << 3, op.operand)
            count += 1
        pc += op.immediate + 1
        if op.ending == ENDS_SECTION:
            if place == head:
                first_gas = gas
            else:
                store(words, place << 3, gas)
            note_origin(engine, count, pc, 0)
            store(words, count << 3, PlainOp(plain.ops + GAS_SECTION * OP_SIZE).handler)
            place = count + 1
            count += 2
            gas = 0
        elif op.ending != GOES_ON:
            end_block(words, head, place, first_gas, gas, needs, grows)
            opened = 0
            if op.ending == JUMPS:
                engine.plain_count = count
                return begin
    store(words, count << 3, PlainOp(plain.ops + WRITE_ON * OP_SIZE).handler)
    store(words, (count + 1) << 3, pc)
    engine.plain_count = count + 2
    return begin


@inlined
def note_origin(engine: Engine, at: u64, pc: u64, opens: u64) -> None:
    origin = Origin(engine.plain_origins + engine.origin_count * ORIGIN_SIZE)
    origin.at = at
    origin.pc = pc
    origin.opens = opens
    engine.origin_count += 1


@native
def scan(plain: PlainCode, pc: u64) -> None:
    """Enters the JUMPDESTs up to a pc into the table: those that are not inside push data."""
    jumps: ptr = plain + HEADER
    at = plain.scanned
    while at <= pc:
        byte = u64(load(u8, plain.code, at))
        if byte == JUMPDEST:
            if u64(load(u32, jumps, at << 2)) == 0:
                store(jumps, at << 2, u32(KNOWN))
        elif byte - PUSH1 < 32:
            at += byte - (PUSH1 - 1)
        at += 1
    plain.scanned = at


@native
def land(engine: Engine, frame: Frame) -> u64:
    """A jump found no block: writes it, so that the jump can be tried again; or INVALID_JUMP."""
    plain = PlainCode(frame.jumps - HEADER)
    target = load(u256, frame.sp - 32)
    if target >= u256(plain.size):
        return INVALID_JUMP
    pc = u64(target)
    if pc >= plain.scanned:
        scan(plain, pc)
    known = u64(load(u32, frame.jumps, pc << 2))
    if known == 0:
        return INVALID_JUMP
    if known == KNOWN and write_block(engine, plain, pc) == 0:
        return CAP
    frame.ip = frame.ip - 8  # the jump, once more
    return CALLING


@native
def write_on(engine: Engine, frame: Frame) -> u64:
    """Code that was not yet written is fallen into: writes it, and a way there in the place of the request."""
    plain = PlainCode(frame.jumps - HEADER)
    number: u64 = 0
    if frame.pc < plain.size:
        number = u64(load(u32, frame.jumps, frame.pc << 2))
    if number <= KNOWN:
        number = write_block(engine, plain, frame.pc)
        if number == 0:
            return CAP
    place: ptr = engine.plain_words + (number << 3)
    store(frame.ip - 16, 0, PlainOp(plain.ops + GO_ON * OP_SIZE).handler)
    store(frame.ip - 8, 0, place)
    frame.ip = place
    return CALLING


@native
def end_block(words: ptr, head: u64, place: u64, first_gas: u64, gas: u64, needs: u64, grows: u64) -> None:
    """As `fuse.schedule.with_header` has it."""
    if place == head:
        first_gas = gas
    else:
        store(words, place << 3, gas)
    room = u64(STACK_LIMIT) - grows - needs
    bounds: u64 = (STACK_LIMIT + 1) << 32
    if not slt(room, 0):
        bounds = needs << 32 | room << 48
    store(words, head << 3, first_gas | bounds)


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
