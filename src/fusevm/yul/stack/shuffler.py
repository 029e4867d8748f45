"""Turning one stack into another with SWAP, DUP, PUSH and POP: the order of moves solc's code generator takes.

A `Shuffle` knows the stack as it is and the stack as it shall be; `shuffle` makes the moves one by one. Slots in the
target that are junk may hold anything.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from fusevm.yul.stack.flowgraph import JUNK, LayoutSlot, Stack

REACH = 16
_MAX_MOVES = 1000


class Shuffle:
    """What the moves are decided by. So many of a slot are *missing* as the target has more of it than the source."""

    def __init__(self, target: Stack) -> None:
        self.target = target

    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def prepare(self) -> None:
        """Count how many of each slot are missing; before every move."""

    @abstractmethod
    def fits(self, source: int, target: int) -> bool:
        """The slot at the source's offset may stand at the target's."""

    @abstractmethod
    def is_same(self, left: int, right: int) -> bool: ...

    @abstractmethod
    def missing_of_source(self, offset: int) -> int: ...

    @abstractmethod
    def missing_of_target(self, offset: int) -> int: ...

    @abstractmethod
    def swap(self, depth: int) -> None: ...

    @abstractmethod
    def pop(self) -> None: ...

    @abstractmethod
    def bring(self, offset: int) -> None:
        """Push, or copy from below, what the target has at the offset."""

    def is_arbitrary(self, offset: int) -> bool:
        return offset < len(self.target) and self.target[offset] is JUNK


class StackShuffle(Shuffle):
    """A real stack to a target, reporting every move to a callback."""

    def __init__(
        self,
        stack: Stack,
        target: Stack,
        on_swap: Callable[[int], None],
        on_bring: Callable[[LayoutSlot], None],
        on_pop: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(target)
        self.stack = stack
        self.on_swap, self.on_bring, self.on_pop = on_swap, on_bring, on_pop
        self.missing: dict[LayoutSlot, int] = {}

    def size(self) -> int:
        return len(self.stack)

    def prepare(self) -> None:
        missing: dict[LayoutSlot, int] = {}
        for slot in self.stack:
            missing[slot] = missing.get(slot, 0) - 1
        size = len(self.stack)
        for offset, slot in enumerate(self.target):
            if slot is JUNK and offset < size:
                slot = self.stack[offset]
            missing[slot] = missing.get(slot, 0) + 1
        self.missing = missing

    def fits(self, source: int, target: int) -> bool:
        if source >= len(self.stack) or target >= len(self.target):
            return False
        wanted = self.target[target]
        return wanted is JUNK or self.stack[source] is wanted

    def is_same(self, left: int, right: int) -> bool:
        return self.stack[left] is self.stack[right]

    def missing_of_source(self, offset: int) -> int:
        return self.missing[self.stack[offset]]

    def missing_of_target(self, offset: int) -> int:
        return self.missing.get(self.target[offset], 0)

    def swap(self, depth: int) -> None:
        self.on_swap(depth)
        stack = self.stack
        stack[-1], stack[-1 - depth] = stack[-1 - depth], stack[-1]

    def pop(self) -> None:
        self.on_pop()
        self.stack.pop()

    def bring(self, offset: int) -> None:
        slot = self.target[offset]
        self.on_bring(slot)
        self.stack.append(slot)


def shuffle(moves: Shuffle) -> None:
    for _ in range(_MAX_MOVES):
        moves.prepare()
        if not _move(moves):
            return
    raise RuntimeError("could not arrange the stack")


def _move(moves: Shuffle) -> bool:
    """Make one move towards the target; False if there is nothing left to do."""
    size, wanted = moves.size(), len(moves.target)
    fits, missing = moves.fits, moves.missing_of_source
    if all(fits(offset, offset) for offset in range(size)):
        if size >= wanted:
            return False
        _bring_more(moves, size)
        return True
    top = size - 1
    if missing(top) < 0 and not moves.is_arbitrary(top):
        moves.pop()
        return True
    if (not fits(top, top) or moves.is_arbitrary(top)) and _swap_down(moves, top, min(size, wanted)):
        return True
    for offset in range(size):
        if not fits(offset, offset) and missing(offset) < 0 and offset <= wanted and not moves.is_arbitrary(offset):
            _bring_more(moves, offset)
            return True
    if not fits(top, top):
        for offset in range(size):
            if not fits(offset, offset) and fits(offset, top):
                moves.swap(size - offset - 1)
                return True
    if size < wanted:
        _bring_more(moves, size)
        return True
    return _permute(moves, size)


def _bring_more(moves: Shuffle, offset: int) -> None:
    if not _rescue_deep(moves) and not _bring_for(moves, offset):
        raise RuntimeError("could not arrange the stack")


def _swap_down(moves: Shuffle, top: int, limit: int) -> bool:
    """The top is wanted further down: put it there."""
    size = top + 1
    for offset in range(limit):
        if moves.fits(offset, offset) or moves.is_same(offset, top) or not moves.fits(top, offset):
            continue
        if size - offset - 1 > REACH:
            for depth in range(REACH, 0, -1):  # out of reach: park it where something is to be removed
                if moves.missing_of_source(size - 1 - depth) < 0:
                    moves.swap(depth)
                    if moves.is_arbitrary(top):
                        moves.pop()
                    return True
        moves.swap(size - offset - 1)
        return True
    return False


def _permute(moves: Shuffle, size: int) -> bool:
    """All slots are there and the top is correct: only the order is left."""
    fits, top = moves.fits, size - 1
    near = range(max(0, size - REACH - 1), size)
    for offset in near:
        if not fits(offset, offset) and fits(top, offset):
            moves.swap(size - offset - 1)
            return True
    for offset in near:
        if not fits(offset, offset) and not moves.is_same(offset, top):
            moves.swap(size - offset - 1)
            return True
    if moves.is_arbitrary(top):
        moves.pop()
        return True
    for offset in near:
        if moves.is_arbitrary(offset):
            moves.swap(size - offset - 1)
            moves.pop()
            return True
    for offset in range(size):
        if not fits(offset, offset) and (fits(top, offset)):
            moves.swap(size - offset - 1)
            return True
    for offset in range(size):
        if not fits(offset, offset) and not moves.is_same(offset, top):
            moves.swap(size - offset - 1)
            return True
    raise RuntimeError("could not arrange the stack")


def _rescue_deep(moves: Shuffle) -> bool:
    """Before the stack grows: deal with a slot that would get out of reach and is still needed."""
    size = moves.size()
    for offset in range(max(0, size - REACH + 1)):
        if not moves.fits(offset, offset):
            if moves.fits(size - 1, offset):
                moves.swap(size - offset - 1)
                return True
            if _bring_for(moves, offset):
                return True
            for other in range(offset + 1, size):
                if moves.fits(other, offset):
                    moves.swap(size - other - 1)
                    return True
        elif moves.missing_of_source(offset) > 0:
            if any(moves.is_same(offset, other) for other in range(offset + 1, size)):
                continue
            for wanted in range(len(moves.target)):
                if not moves.is_arbitrary(wanted) and moves.fits(offset, wanted):
                    moves.bring(wanted)
                    return True
    return False


def _bring_for(moves: Shuffle, wanted: int) -> bool:
    """Bring up a slot that leads to the right one at the offset: the right one, or what belongs where it is now."""
    if wanted >= len(moves.target):
        return False
    queue = [wanted]
    seen: set[int] = set()
    limit = min(moves.size(), len(moves.target))
    for offset in queue:
        seen.add(offset)
        if moves.missing_of_target(offset) > 0:
            moves.bring(offset)
            return True
        for other in range(limit):
            if not moves.fits(other, other) and moves.fits(other, offset) and other not in seen:
                queue.append(other)
    return False
