"""PUSH, POP, DUP, SWAP."""

from __future__ import annotations

from collections.abc import Callable

from fusevm.reference.frame import Frame


def _pop(frame: Frame) -> None:
    frame.stack.pop()


def _push0(frame: Frame) -> None:
    frame.stack.append(0)


def _push(size: int) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        start = frame.pc
        frame.pc = end = start + size
        frame.stack.append(int.from_bytes(frame.code[start:end], "big"))

    return run


def _dup(depth: int) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        stack = frame.stack
        stack.append(stack[-depth])

    return run


def _swap(depth: int) -> Callable[[Frame], None]:
    def run(frame: Frame) -> None:
        stack = frame.stack
        stack[-1], stack[-1 - depth] = stack[-1 - depth], stack[-1]

    return run


INSTRUCTIONS = {
    "POP": _pop,
    "PUSH0": _push0,
    **{f"PUSH{size}": _push(size) for size in range(1, 33)},
    **{f"DUP{depth}": _dup(depth) for depth in range(1, 17)},
    **{f"SWAP{depth}": _swap(depth) for depth in range(1, 17)},
}
