"""Sequences of optimiser steps as users write them: letters, or names.

Letters stand side by side, `[…]` meaning *until the size stays the same*: `dhfo[xarrscLM]`. Names are separated by
commas: `ExpressionSplitter, SSATransform`. A colon separates the cleanup sequence. Names and letters are not mixed, and
a word that is nearly a name is never read as letters.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from fusevm.yul.steps import BY_LETTER, BY_NAME, OptimiserStep

DEFAULT_SEQUENCE = (
    "dfDvulfnTUtnIfxa[r]EscLMVcul [j]Trpeulxa[r]cLvifMCTUca[r]LSsTFOtfDnca[r]IulcscCTUtvifMx[scCTUt] TOntnfDIulvifMjmul"
    "[jul] VcTOcul jmul"
)
DEFAULT_CLEANUP = "fDnTOcmuO"
# What the compiler runs before its own passes: without UnusedStoreEliminator, after which a static call may succeed
# that would have failed at the store. Stores are removed later, where that cannot happen.
COMPILED_SEQUENCE = f"{DEFAULT_SEQUENCE}:{DEFAULT_CLEANUP}".replace("S", "")

Names: TypeAlias = "Sequence[str | Names]"
Sequenced: TypeAlias = "list[OptimiserStep | Sequenced]"

_WORD = re.compile(r"[A-Za-z]+")
_LIKENESS = 0.75  # of a word to a name, from which on it is taken for a misspelt one
_LAST = "VarNameCleaner"  # names are unique only within a function after it, which no other step can work with


class SequenceError(ValueError):
    """A sequence of steps that cannot be read: what is wrong with it, and where."""


def parse_sequence(text: str) -> Sequenced:
    """Steps by letter; spaces and line ends mean nothing; `[…]` may be nested."""
    levels: list[Sequenced] = [[]]
    for at, letter in enumerate(text):
        if letter in " \n":
            continue
        if letter == "[":
            levels.append([])
        elif letter == "]":
            if len(levels) == 1:
                raise SequenceError(f"step sequence: ']' at {at + 1} closes nothing")
            inner = levels.pop()
            levels[-1].append(inner)
        elif letter in BY_LETTER:
            levels[-1].append(BY_LETTER[letter])
        elif letter == ":":
            raise SequenceError(f"step sequence: a second ':' at {at + 1}; one separates the cleanup sequence")
        else:
            known = "".join(sorted(BY_LETTER))
            raise SequenceError(f"step sequence: no step has the letter {letter!r} at {at + 1}; known: {known}")
    if len(levels) > 1:
        raise SequenceError("step sequence: '[' is never closed")
    return levels[0]


def named_sequence(names: Names) -> Sequenced:
    """Steps by name, current or old; a list among them is repeated until the size stays the same."""
    return [_named(each) if isinstance(each, str) else named_sequence(each) for each in names]


def _named(name: str) -> OptimiserStep:
    if name in BY_NAME:
        return BY_NAME[name]
    near = names_like(name)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif name and all(letter in BY_LETTER for letter in name):
        hint = "letters are written without commas and not mixed with names"
    else:
        hint = f"known: {', '.join(BY_NAME)}"
    raise SequenceError(f"step sequence: no step is named {name!r}; {hint}")


def names_like(word: str, likeness: float = 0.6) -> list[str]:
    """The names that the word may be a misspelling of, the nearest first."""
    lowered = {name.lower(): name for name in BY_NAME}
    return [lowered[each] for each in difflib.get_close_matches(word.lower(), lowered, 3, likeness)]


def read_sequences(steps: str | Names | None) -> tuple[Sequenced, Sequenced]:
    """The sequence and the cleanup sequence; what is not given is the default."""
    sequences = _read(steps)
    if any(step.name == _LAST for sequence in sequences for step in _flat(sequence)):
        raise SequenceError(f"step sequence: {_LAST} can only come last, where it runs anyway: leave it out")
    return sequences


def _flat(sequence: Sequenced) -> Iterator[OptimiserStep]:
    for each in sequence:
        if isinstance(each, OptimiserStep):
            yield each
        else:
            yield from _flat(each)


def _read(steps: str | Names | None) -> tuple[Sequenced, Sequenced]:
    if steps is None:
        steps = DEFAULT_SEQUENCE
    if not isinstance(steps, str):
        return named_sequence(steps), parse_sequence(DEFAULT_CLEANUP)
    main, colon, cleanup = steps.partition(":")
    if _has_names(steps):
        return _read_names(main), _read_names(cleanup) if colon else parse_sequence(DEFAULT_CLEANUP)
    return parse_sequence(main), parse_sequence(cleanup if colon else DEFAULT_CLEANUP)


def _has_names(text: str) -> bool:
    """Whether it is meant as names: it has a comma, or a word that is one or nearly one."""
    if "," in text:
        return True
    return any(word in BY_NAME or names_like(word, _LIKENESS) for word in _WORD.findall(text))


def _read_names(text: str) -> Sequenced:
    names = [word.strip() for word in text.split(",")] if text.strip() else []
    return named_sequence(names)
