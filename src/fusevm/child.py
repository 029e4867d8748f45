"""Locks in a child of `os.fork`: no thread but the one that forked is there, and what others held is held for ever."""

from __future__ import annotations

import os
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")

_renewed: WeakSet[Any] = WeakSet()


def renewed_in_child(thing: T) -> T:
    """A lock, or what has `_at_fork_reinit` as locks have it: called in every child, first of all."""
    _renewed.add(thing)
    return thing


def _renew() -> None:
    for thing in list(_renewed):
        thing._at_fork_reinit()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_renew)
