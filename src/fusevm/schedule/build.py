"""The schedule native code runs: a flat array of handler addresses and operands, with sequences fused.

Every block opens with a SECTION, which charges its gas and checks the stack's bounds once. Static jumps hold the
address of the entry they go to. The longest sequence that has a handler wins.
"""

from __future__ import annotations

import ctypes
from array import array
from collections import deque
from collections.abc import Container, Mapping
from itertools import islice, repeat
from typing import NamedTuple, Protocol

from fusevm.evm.bytecode import jumpdests
from fusevm.evm.forks import Fork
from fusevm.evm.limits import STACK_LIMIT
from fusevm.evm.opcodes import OPCODES_TABLE
from fusevm.schedule.sections import COPY, SWAP, TELLING, HandlerToken, Section, sections_of, token_of
from fusevm.schedule.threading import HOPPING, Hop, hops_in, threaded

HANDLER, PLACE = 1, 2  # kinds of words that are addresses
ASKING = frozenset(("SYNC", "PROBE", *TELLING))  # their operand is the pc, for Python
LIMB_MASK = (1 << 64) - 1
METERED = frozenset(("SYNC", *(op.name for op in OPCODES_TABLE if op.dynamic)))  # may cost more than their static gas
NUMBER, WIDE, TARGET, PC, HOP = range(5)  # the kinds of operands after a handler's address
OPERANDS = {"PUSH": NUMBER, "SECTION": NUMBER, "GASSECTION": NUMBER, "PUSHW": WIDE, "JUMP@": TARGET, "JUMPI@": TARGET}
OPERANDS |= {COPY: NUMBER, SWAP: NUMBER, HOPPING: HOP, "TALLY": NUMBER, "METER": NUMBER}
OPERANDS |= dict.fromkeys(ASKING, PC)


class Marks(Protocol):
    """Gives the addresses of the counters of a schedule; 0 for none."""

    def section(self, code: bytes, pc: int, steps: int) -> int:
        """The counter of a section with this many instructions."""

    def passed(self, code: bytes, pc: int, steps: int) -> int:
        """The counter of the fall-through edge of the JUMPI at its end, if there is one."""

    def meter(self, code: bytes, pc: int) -> int:
        """The counter of an instruction's dynamic gas."""

    def exact(self, code: bytes, pc: int) -> int:
        """The counter of an instruction that runs by itself."""


class SequenceTrie:
    """A node of the trie of handled sequences: what can be matched after the names so far."""

    __slots__ = ("address", "hopping", "longer", "operands", "sequence")

    def __init__(self, sequence: tuple[str, ...]) -> None:
        self.sequence = sequence
        self.address = 0  # of the handler of just this sequence, if there is one
        self.hopping: SequenceTrie | None = (
            None  # the same with HOPPING for the JUMPI@ at its end, if that has a handler
        )
        self.operands = [(n, OPERANDS[name]) for n, name in enumerate(sequence) if name in OPERANDS]
        self.longer: dict[str, SequenceTrie] = {}


Trie = dict[str, SequenceTrie]


class ScheduleUnit(NamedTuple):
    """One handler in the schedule: its place, and the instructions it executes."""

    at: int
    sequence: tuple[str, ...]
    tokens: tuple[HandlerToken, ...]
    section: Section | None

    @property
    def steps(self) -> int:
        return sum(token.steps for token in self.tokens)


class Schedule:
    """What native code runs, and where its jumps may land."""

    __slots__ = (
        "base", "code", "code_base", "entry", "held", "jumps", "jumps_base", "kinds", "plain", "twin", "units", "words",
    )  # fmt: skip

    def __init__(
        self, words: array[int], jumps: array[int], code: bytes, units: list[ScheduleUnit], kinds: bytes | bytearray
    ) -> None:
        self.words = words
        self.kinds = kinds  # what each word is: a number, HANDLER or PLACE
        self.jumps = jumps
        self.code = code
        self.units = units
        self.plain = False  # written quickly: one handler per opcode
        self.held: object = None  # kept alive as long as the schedule
        self.twin = 0  # where the second copy, without regions, begins; 0: there are no regions
        self.base = words.buffer_info()[0]
        self.entry = self.base + 16
        self.jumps_base = jumps.buffer_info()[0]
        self.code_base = address_of(code)

    @property
    def size(self) -> int:
        """Its size in bytes, including the code."""
        return 8 * len(self.words) + 4 * len(self.jumps) + len(self.kinds) + len(self.code)


def address_of(data: bytes) -> int:
    """Where the bytes are; good for as long as somebody holds them."""
    return id(data) + CONTENT


# How far into an object of bytes they begin: CPython's own layout, taken from an example.
_EXAMPLE = b"where are these bytes?"
CONTENT = (ctypes.cast(ctypes.c_char_p(_EXAMPLE), ctypes.c_void_p).value or 0) - id(_EXAMPLE)


class Handlers:
    """All handlers by sequence, as a trie for finding the longest match."""

    def __init__(self, addresses: Mapping[tuple[str, ...], int]) -> None:
        self.addresses = dict(addresses)
        self.native = frozenset(sequence[0] for sequence in addresses if len(sequence) == 1)
        self.trie: Trie = {}
        for sequence, address in addresses.items():
            node = self.trie
            for length, name in enumerate(sequence, 1):
                branch = node.setdefault(name, SequenceTrie(sequence[:length]))
                node = branch.longer
            branch.address = address
        for sequence in addresses:
            if sequence[-1] == HOPPING and (plain := self._branch((*sequence[:-1], "JUMPI@"))) is not None:
                plain.hopping = self._branch(sequence)

    def _branch(self, sequence: tuple[str, ...]) -> SequenceTrie | None:
        node, branch = self.trie, None
        for name in sequence:
            branch = node.get(name)
            if branch is None:
                return None
            node = branch.longer
        return branch

    def only(self, wanted: frozenset[tuple[str, ...]]) -> Handlers:
        """Single opcodes and the wanted sequences."""
        return Handlers({each: at for each, at in self.addresses.items() if len(each) == 1 or each in wanted})


def build_schedule(
    code: bytes,
    fork: Fork,
    handlers: Handlers,
    *,
    keep_units: bool = False,
    probes: bool = False,
    marks: Marks | None = None,
) -> Schedule:
    """Lays out the schedule. `keep_units` records which unit is where; `probes` stops at every section's start. With
    `marks` everything that runs is counted, for a recording.
    """
    dests = jumpdests(code)
    sections = sections_of(code, fork, handlers.native, dests)
    if marks is None:  # what is jumped over is not counted
        sections = threaded(sections, dests)
    writer = _Writer(code, dests, handlers, sections, keep_units=keep_units, probes=probes, marks=marks)
    writer.write()
    writer.resolve()
    return writer.schedule()


class _Writer:
    """A schedule being written: first the words, with open places, then the places are patched in."""

    def __init__(
        self,
        code: bytes,
        dests: Container[int],
        handlers: Handlers,
        sections: list[Section],
        *,
        keep_units: bool,
        probes: bool,
        marks: Marks | None,
    ) -> None:
        self.code = code
        self.dests = dests
        self.handlers = handlers
        self.sections = sections
        self.keep_units = keep_units
        self.probes = probes
        self.marks = marks
        self.words: list[int] = [0, 0]  # never used, so that 0 can mean "no such place"
        self.jumps = array("I", bytes(4 * (len(code) + 1)))
        self.fixups: list[tuple[int, HandlerToken]] = []  # words that are places, and the jumps they belong to
        self.handled: list[int] = []  # where handlers are
        self.units: list[ScheduleUnit] = []
        self.hops: dict[int, Hop] = {} if marks else hops_in(sections, dests)

    def write(self) -> None:
        """Every section. Hostile code has one per byte, so nothing is called that is not needed for each."""
        words, jumps, dests = self.words, self.jumps, self.dests
        at_once = not (self.keep_units or self.probes or self.marks) and ("SECTION", "JUMP@") in self.handlers.addresses
        numbered = enumerate(self.sections)
        for index, section in numbered:
            if at_once and section.row > 1 and (alike := _alike(self.sections, index)) > 1:
                self._write_row(section, alike)
                deque(islice(numbered, alike - 1), maxlen=0)
                continue
            if section.needs >= 0 and section.pc in dests:
                jumps[section.pc] = len(words)
            self._write_section(section)

    def _write_row(self, section: Section, alike: int) -> None:
        """JUMPDESTs of a row: what `_write_section` would do with each, for all of them at once."""
        words, at, cost = self.words, len(self.words), section.gas // section.row
        pass_on = self.handlers.addresses["SECTION", "JUMP@"]
        charges = range(section.gas, section.gas - alike * cost, -cost)
        words += [word for gas in charges for word in (pass_on, gas | STACK_LIMIT << 48, 0)]
        self.jumps[section.pc : section.pc + alike] = array("I", range(at, len(words), 3))
        self.handled += range(at, len(words), 3)
        self.fixups += zip(range(at + 2, len(words), 3), repeat(section.tokens[0]), strict=False)

    def _write_section(self, section: Section) -> None:
        """The section's handlers: the longest sequence that has one wins."""
        words, trie, tokens = self.words, self.handlers.trie, with_header(section)
        if self.probes:
            tokens = [HandlerToken("PROBE", 0, section.pc, 0), *tokens]
        if self.marks is not None:
            tokens = self._marked(self.marks, section, tokens)
        at, count = 0, len(tokens)
        while at < count:
            node, best, ahead = trie, None, at
            while ahead < count:
                branch = node.get(tokens[ahead][0])
                if branch is None:
                    break
                ahead += 1
                if branch.address:
                    best, end = branch, ahead
                node = branch.longer
            if best is None:
                raise KeyError(f"no handler for {tokens[at].name}")
            if best.hopping is not None and tokens[end - 1][1] in self.hops:
                best = best.hopping
            if self.keep_units:
                self.units.append(
                    ScheduleUnit(len(words), best.sequence, tuple(tokens[at:end]), None if at else section)
                )
            self.handled.append(len(words))
            words.append(best.address)
            for position, operand in best.operands:
                token = tokens[at + position]
                if operand == NUMBER:
                    words.append(token[1])
                elif operand == TARGET:
                    self.fixups.append((len(words), token))
                    words.append(0)
                else:
                    self._write_operand(token, operand)
            at = end

    def _marked(self, marks: Marks, section: Section, tokens: list[HandlerToken]) -> list[HandlerToken]:
        """The tokens of a section, with counting tokens added."""
        found = [HandlerToken("TALLY", marks.section(self.code, section.pc, section.steps), section.pc, 0)]
        for token in tokens:
            place = marks.meter(self.code, token.pc) if token.name in METERED else 0
            if place:
                found += (HandlerToken("METER", place, token.pc, 0), token, HandlerToken("UNMETER", 0, token.pc, 0))
            else:
                found.append(token)
        place = marks.passed(self.code, section.pc, section.steps)
        if place:
            found.append(HandlerToken("TALLY", place, section.pc, 0))  # reached only by falling through
        return found

    def _write_operand(self, token: HandlerToken, operand: int) -> None:
        words = self.words
        if operand == WIDE:
            value = token[1]
            words += (value & LIMB_MASK, value >> 64 & LIMB_MASK, value >> 128 & LIMB_MASK, value >> 192)
        elif operand == PC:
            words.append(token.pc)
        else:
            hop = self.hops[token.operand]
            for target in (hop.target, token.operand):
                self.fixups.append((len(words), token._replace(operand=target)))
                words.append(0)
            words.append(hop.gas)

    def resolve(self) -> None:
        """Patches the places, as word indices."""
        words, jumps, size = self.words, self.jumps, len(self.code)
        for index, token in self.fixups:
            place = jumps[token.operand] if token.operand < size else 0
            words[index] = place or self._bad_jump(token)

    def _bad_jump(self, token: HandlerToken) -> int:
        """A jump to an invalid target fails when it is taken, at a place of its own that identifies the jump."""
        place = len(self.words)
        self.handled.append(place)
        self.words.append(self.handlers.addresses[("BADJUMP",)])
        if self.keep_units:
            self.units.append(ScheduleUnit(place, ("BADJUMP",), (token,), None))
        return place

    def schedule(self) -> Schedule:
        packed = array("Q", self.words)
        base = packed.buffer_info()[0]
        kinds = bytearray(len(packed))
        for index in self.handled:
            kinds[index] = HANDLER
        for index, _ in self.fixups:
            kinds[index] = PLACE
            packed[index] = base + 8 * packed[index]
        return Schedule(packed, self.jumps, self.code, self.units, kinds)


def _alike(sections: list[Section], index: int) -> int:
    """How many JUMPDESTs of a row can be laid out together. Hostile code can be nothing else, so it must be quick."""
    tokens = sections[index].tokens
    count = 0
    while sections[index + count].tokens is tokens:
        count += 1
    return count


def with_header(section: Section) -> list[HandlerToken]:
    """The section's tokens after the one that charges for them."""
    pc, gas, needs, grows, tokens, steps, row = section
    if needs < 0:
        if not gas:
            return tokens
        return [token_of(("GASSECTION", gas, pc, 0)), *tokens]
    room = STACK_LIMIT - grows - needs
    if room < 0:  # more than the stack limit: always fails
        packed = gas | STACK_LIMIT + 1 << 32
    else:
        packed = gas | needs << 32 | room << 48
    if row:  # the jump is shared by the row, the steps are this section's own
        tokens = [tokens[0]._replace(pc=pc, steps=steps)]
    return [token_of(("SECTION", packed, pc, 0)), *tokens]
