"""Which functions of a contract are running: followed over the jumps that compilers mark."""

from __future__ import annotations

from typing import NamedTuple

from fusevm.chain.environment import Message
from fusevm.tracing.sources.contracts import Known, Sources
from fusevm.tracing.sources.functions import SourceFunction

DEEPEST = 200  # maximum number of distinct functions on a stack


class ActiveFunction(NamedTuple):
    """A function on a stack; those with a source say where they begin."""

    name: str
    path: str | None = None
    line: int = 0


class CallingFunction(NamedTuple):
    """A function that has jumped into another."""

    call: ActiveFunction | None
    jump: int  # pc of the jump; where it returns to follows
    entered: SourceFunction | None  # the function it is itself, where the code that began it tells


class _At(NamedTuple):
    """The function around the place of a pc. What is made from the whole function is not of a line in it."""

    function: SourceFunction
    call: ActiveFunction
    whole: bool


class FunctionStack:
    """The functions that called each other inside one frame.

    What runs now is the function around the pc's place. A jump into a function adds the one that jumps. Optimisers let
    functions share the code that ends them; made from a whole function, such code is told by who entered it.
    """

    __slots__ = ("_found", "callers", "entered", "known")

    def __init__(self, known: Known | None, found: dict[int, _At | None] | None = None) -> None:
        self.known = known
        self.callers: list[CallingFunction] = []
        self.entered: SourceFunction | None = None
        self._found = {} if found is None else found

    def leaf(self, pc: int) -> ActiveFunction | None:
        found = self._at(pc)
        if found is None or (found.whole and found.function != self.entered):
            return None
        return found.call

    def calls(self, pc: int) -> list[ActiveFunction]:
        """The functions that run, the outermost first; without repetitions that follow each other."""
        found: list[ActiveFunction] = []
        for call in (*(caller.call for caller in self.callers), self.leaf(pc)):
            if call is not None and (not found or found[-1] != call):
                found.append(call)
        return found

    def jumped(self, pc: int, target: int) -> bool:
        """After a jump; whether it went into a function or out of one."""
        if self.known is None:
            return False
        kind = self.known.map.jumps.get(pc)
        if kind == "i" and len(self.callers) < DEEPEST:
            self.callers.append(CallingFunction(self.leaf(pc), pc, self.entered))
            found = self._at(target)
            self.entered = found.function if found is not None and found.whole else None
            return True
        depth = self._returns_to(target)
        if depth is None and kind == "o" and self.callers:
            depth = len(self.callers) - 1
        if depth is None:
            return False
        self.entered = self.callers[depth].entered
        del self.callers[depth:]
        return True

    def _returns_to(self, target: int) -> int | None:
        """The caller whose jump is just before the target: Vyper does not mark returns, and optimisers lose marks."""
        for depth in range(len(self.callers) - 1, -1, -1):
            if self.callers[depth].jump + 1 == target:
                return depth
        return None

    def _at(self, pc: int) -> _At | None:
        if pc not in self._found:
            self._found[pc] = _function_at(self.known, pc)
        return self._found[pc]


Found = dict[int, _At | None]  # by pc: for all frames of one code


def _function_at(known: Known | None, pc: int) -> _At | None:
    place = None if known is None else known.map.places.get(pc)
    function = None if place is None else place.function
    if place is None or function is None:
        return None
    call = ActiveFunction(function.name, place.file.path, place.file.line_at(function.start))
    return _At(function, call, place.start == function.start)


def entry_of(message: Message, known: Known | None, sources: Sources, precompile: str | None = None) -> ActiveFunction:
    """What an outside call is named: the contract, and the function that its data selects."""
    if precompile is not None:
        return ActiveFunction(f"{precompile} (precompile)")
    name = f"0x{message.code_address.hex()}" if known is None else known.contract.name
    file = None if known is None else known.contract.file
    path = None if file is None else file.path
    if message.creates:
        return ActiveFunction(f"{name}: constructor", path)
    selector = message.data[:4]
    signature = known.contract.signatures.get(selector) if known is not None else sources.signature_of(selector)
    return ActiveFunction(f"{name}: {signature or (f'0x{selector.hex()}' if selector else '()')}", path)
