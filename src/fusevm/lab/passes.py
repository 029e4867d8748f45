"""The back end with one of its passes left out: what a pass brings, and that code is right without it too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from fusevm.codegen import assembling, backend, dispatch
from fusevm.codegen.blocks import StackProgram
from fusevm.evm.assembler import push
from fusevm.ir.fold.functions import FunctionFolder
from fusevm.ir.functions import Unit

Change = tuple[object, str, Any]


def _nothing(*_: object) -> None:
    return None


def _never(*_: object) -> bool:
    return False


def _as_written(program: StackProgram, followed: object = None) -> None:
    program.order = list(program.blocks)


def _plain(word: int, unit: Unit, runs: float) -> bytes:
    return push(word, unit.fork)


# What each pass is replaced by.
PASSES: dict[str, tuple[Change, ...]] = {
    "fold": ((backend, "fold_unit", _nothing),),
    "ranges": ((FunctionFolder, "by_knowledge", _nothing),),
    "branch facts": ((FunctionFolder, "assume_way", _nothing),),
    "inline": ((backend, "inline_what_pays", _never),),
    "drop choices": ((backend, "drop_choices", _nothing),),
    "dead stores": ((backend, "drop_unread_stores", _nothing),),
    "thread branches": ((backend, "thread_branches", _never),),
    "hoist value check": ((backend, "hoist_value_check", _nothing),),
    "binary dispatch": ((backend, "lower_switches", partial(dispatch.lower_switches, linear=1 << 20)),),
    "sink": ((backend, "sink", _nothing),),
    "share constants": ((backend, "share_constants", _nothing),),
    "beam": ((backend, "write", partial(backend.write, beam=1)),),
    "peephole": ((backend, "peephole", _nothing),),
    "merge equal blocks": ((backend, "merge_equal_blocks", _never),),
    "merge tails": ((backend, "merge_tails", _nothing),),
    "short ends": ((backend, "duplicate_short_blocks", _never),),
    "placement": ((backend, "place", _as_written),),
    "constants": ((assembling, "pushed", _plain), (backend, "pushed", _plain)),
}


@contextmanager
def without(name: str) -> Iterator[None]:
    """Code compiled within is compiled without the pass of this name; an empty name leaves none out."""
    with ExitStack() as stack:
        for holder, attribute, replacement in PASSES[name] if name else ():
            stack.enter_context(_replaced(holder, attribute, replacement))
        yield


def _replaced(holder: object, attribute: str, replacement: Callable[..., object]) -> Any:
    return patch.object(holder, attribute, replacement)
