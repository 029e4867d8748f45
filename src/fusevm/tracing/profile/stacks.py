"""Which functions were running when gas was spent: a watcher of the reference tier that follows jumps in and out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fusevm.evm.opcodes import BY_NAME
from fusevm.evm.precompiles import precompiles_of
from fusevm.reference.frame import Frame as Running
from fusevm.reference.hooks import Hooks
from fusevm.tracing.profile.samples import Samples, Stack
from fusevm.tracing.requests import TracedMachine, hooked
from fusevm.tracing.sources.contracts import Sources
from fusevm.tracing.sources.running import DEEPEST, ActiveFunction, Found, FunctionStack, entry_of

_JUMPS = (BY_NAME["JUMP"].byte, BY_NAME["JUMPI"].byte)


class _Open:
    __slots__ = ("functions", "gas", "outer", "pc", "stacks")

    def __init__(self, outer: Stack, functions: FunctionStack, gas: int) -> None:
        self.outer = outer  # down to this frame
        self.functions = functions
        self.gas = gas  # after the last instruction
        self.pc: int | None = None  # of that
        self.stacks: dict[ActiveFunction | None, Stack] = {}  # by leaf, until the next jump in or out

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
        self._found: dict[bytes, Found] = {}  # by code
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
        functions = FunctionStack(known, self._found.setdefault(message.code, {}))
        self._open.append(_Open((*outer, entry)[:DEEPEST], functions, message.gas))

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
        if byte in _JUMPS and now.functions.jumped(pc, frame.pc):
            now.stacks.clear()

    def failed(self, frame: Running, byte: int) -> None:
        """The frame ends now, and all its gas is gone."""


@contextmanager
def sampled(machine: TracedMachine, sources: Sources) -> Iterator[Samples]:
    """Samples of what a machine runs in the `with` block, on the reference tier."""
    watcher = StackWatcher(sources)
    with hooked(machine, Hooks(watcher=watcher)):
        yield watcher.samples
