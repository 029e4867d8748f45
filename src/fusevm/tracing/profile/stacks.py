"""Which functions were running when gas was spent: a watcher of the reference tier that follows jumps in and out."""

from __future__ import annotations

from fusevm.chain.environment import Message
from fusevm.evm.precompiles import precompiles_of
from fusevm.reference.frame import Frame as Running
from fusevm.tracing.profile.samples import Call, Samples, Stack
from fusevm.tracing.sources.contracts import Known, Sources

DEEPEST = 200  # functions of a stack that are told apart


class FunctionStack:
    """The functions that called each other inside one frame. Compilers mark jumps into functions and out of them.

    What runs now is the function around the pc's place. A jump into a function adds the one that jumps.
    """

    __slots__ = ("_leaves", "callers", "known")

    def __init__(self, known: Known | None, leaves: dict[int, Call | None]) -> None:
        self.known = known
        self.callers: list[tuple[Call | None, int]] = []  # with the pc of the jump
        self._leaves = leaves

    def leaf(self, pc: int) -> Call | None:
        if pc not in self._leaves:
            self._leaves[pc] = _function_at(self.known, pc)
        return self._leaves[pc]

    def calls(self, pc: int) -> list[Call]:
        """The functions that run, the outermost first; without repetitions that follow each other."""
        found: list[Call] = []
        for call in (*(caller for caller, _ in self.callers), self.leaf(pc)):
            if call is not None and (not found or found[-1] != call):
                found.append(call)
        return found

    def jumped(self, pc: int) -> bool:
        """After the instruction at a pc; whether it went into a function or out of one."""
        if self.known is None:
            return False
        kind = self.known.map.jumps.get(pc)
        if kind == "i" and len(self.callers) < DEEPEST:
            self.callers.append((self.leaf(pc), pc))
        elif kind == "o" and self.callers:
            self.callers.pop()
        return kind is not None


def _function_at(known: Known | None, pc: int) -> Call | None:
    place = None if known is None else known.map.places.get(pc)
    function = None if place is None else place.function
    if place is None or function is None:
        return None
    return Call(function.name, place.file.path, place.file.line_at(function.start))


def entry_of(message: Message, known: Known | None, sources: Sources, precompile: str | None) -> Call:
    """What an outside call is named: the contract, and the function that its data selects."""
    if precompile is not None:
        return Call(f"{precompile} (precompile)")
    name = f"0x{message.code_address.hex()}" if known is None else known.contract.name
    file = None if known is None else known.contract.file
    if message.creates:
        return Call(f"{name}: constructor", None if file is None else file.path)
    selector = message.data[:4]
    signature = known.contract.selectors.get(selector) if known is not None else sources.signature_of(selector)
    asked = signature or (f"0x{selector.hex()}" if selector else "()")
    return Call(f"{name}: {asked}", None if file is None else file.path)


class _Open:
    __slots__ = ("functions", "gas", "outer", "pc", "stacks")

    def __init__(self, outer: Stack, functions: FunctionStack, gas: int) -> None:
        self.outer = outer  # down to this frame
        self.functions = functions
        self.gas = gas  # after the last instruction
        self.pc: int | None = None  # of that
        self.stacks: dict[Call | None, Stack] = {}  # by leaf, until the next jump in or out

    def stack(self, pc: int) -> Stack:
        leaf = self.functions.leaf(pc)
        if leaf not in self.stacks:
            self.stacks[leaf] = (self.outer + tuple(self.functions.calls(pc)))[:DEEPEST]
        return self.stacks[leaf]


class StackWatcher:
    """Fills samples while the reference tier runs. The gas of an instruction is as in `Recording.gas`."""

    watched = frozenset(range(256))

    def __init__(self, sources: Sources) -> None:
        self.samples = Samples()
        self._sources = sources
        self._leaves: dict[bytes, dict[int, Call | None]] = {}  # by code
        self._open: list[_Open] = []

    def enter(self, frame: Running) -> None:
        message = frame.message
        if not message.depth:  # whatever an earlier call left when it was broken off
            self._open.clear()
        known = self._sources.of_code(message.code)
        found = precompiles_of(frame.context.fork).get(message.code_address) if message.runs_precompile else None
        precompile = None if found is None or message.creates else found.name
        entry = entry_of(message, known, self._sources, precompile)
        outer: Stack = ()
        if self._open:
            caller = self._open[-1]
            outer = caller.outer if caller.pc is None else caller.stack(caller.pc)
        leaves = self._leaves.setdefault(message.code, {})
        self._open.append(_Open((*outer, entry)[:DEEPEST], FunctionStack(known, leaves), message.gas))

    def leave(self, frame: Running) -> None:
        """What a frame used beside its instructions: gas burnt by a halt, the price of new code, a precompile's."""
        ended = self._open.pop()
        self.samples.add(ended.outer if ended.pc is None else ended.stack(ended.pc), ended.gas - frame.gas)

    def before(self, frame: Running, byte: int) -> None:
        now = self._open[-1]
        now.pc, now.gas = frame.pc - 1, frame.gas

    def after(self, frame: Running, byte: int, called: Running | None) -> None:
        now = self._open[-1]
        pc = now.pc
        assert pc is not None
        given = 0 if called is None else called.message.gas
        self.samples.add(now.stack(pc), now.gas - frame.gas - given)
        now.gas = frame.gas
        if now.functions.jumped(pc):
            now.stacks.clear()

    def failed(self, frame: Running, byte: int) -> None:
        """The frame ends now, and all its gas is gone."""
