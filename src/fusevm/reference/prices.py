"""What an instruction costs in all, whether or not it can be paid: what traces show of calls and of failures.

Instructions charge in parts, and stop at the first they cannot pay. Here one runs on a frame that only adds up, up to
the point where it would touch memory; what it did to the state is undone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from fusevm.chain.state import RIPEMD160
from fusevm.evm.gas import growth_cost, words_of
from fusevm.evm.halts import ExceptionalHalt
from fusevm.reference.frame import Frame

ENDLESS = 1 << 512  # gas: more than any instruction can ask for


class DynamicPrice(NamedTuple):
    gas: int  # besides the static part
    refund: int  # the counter, with what the instruction would add to it


def price_of(
    frame: Frame,
    stack: tuple[int, ...],
    memory_size: int,
    instruction: Callable[[Frame], Frame | None],
    *,
    calls: bool,
) -> DynamicPrice:
    """The price of an instruction on this stack and memory, its static part being paid.

    The cost of a call includes the gas it forwards; that of a creation does not (it forwards what is left).
    """
    state = frame.state
    mark, touched = state.mark(), RIPEMD160 in state.touched
    twin = _Pricing(frame, stack, memory_size, calls)
    with suppress(_Priced, ExceptionalHalt):
        instruction(twin)
    price = DynamicPrice(twin.charged, state.refund)
    state.revert(mark)
    if not touched:
        state.touched.discard(RIPEMD160)  # that touch alone outlives a revert
    return price


class _Priced(Exception):
    """All has been charged."""


class _Memory:
    """Stands for a frame's memory; has its size, and ends the pricing when looked into."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, _: object) -> NoReturn:
        raise _Priced

    def __setitem__(self, _: object, __: object) -> NoReturn:
        raise _Priced


class _Pricing(Frame):
    """A frame that pays whatever it is charged."""

    __slots__ = ("_calls", "_words", "charged")
    memory: Any

    def __init__(self, frame: Frame, stack: tuple[int, ...], memory_size: int, calls: bool) -> None:
        super().__init__(frame.message, frame.state, frame.context)
        self.static, self.pc, self.gas = frame.static, frame.pc, frame.gas
        self.stack, self.returndata = list(stack), frame.returndata
        self.memory = _Memory(memory_size)
        self.charged = 0
        self._calls = calls
        self._words = memory_size // 32

    def charge(self, amount: int) -> None:
        """Once gas is short, any amount is granted: a call then costs all the gas it asks for."""
        self.charged += amount
        self.gas = ENDLESS if amount > self.gas else self.gas - amount

    def expand(self, offset: int, size: int) -> None:
        """Only calls and creations charge for anything after their memory; all others are done."""
        words = words_of(offset + size) if size else 0
        if words > self._words:
            self.charge(growth_cost(self._words, words))
            self._words = words
        if not self._calls:
            raise _Priced

    def read(self, offset: int, size: int) -> bytes:
        raise _Priced

    def write(self, offset: int, data: bytes) -> None:
        raise _Priced
