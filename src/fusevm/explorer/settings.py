"""What is explained and how: the settings of a page's session, checked where they come in."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fusevm.evm.forks import Fork, fork_named
from fusevm.values import BadValue

MAX_SOURCE = 2_000_000  # characters
MAX_STEPS = 2_000  # characters of a sequence
MAX_NAME = 200
PARTS = ("schedule", "graph", "machine")  # of a document, that take long: made when they are asked for
FORKS = [fork.label for fork in reversed(Fork)]


@dataclass(frozen=True)
class ExplorerSettings:
    """A source, and the options it is explained with."""

    source: str = ""
    name: str = "untitled.yul"
    language: str | None = None
    fork: str = "osaka"
    runs: int = 200
    steps: str | None = None
    object: str | None = None
    optimised: bool | None = None
    contract: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


_TYPES: dict[str, tuple[type, ...]] = {
    "source": (str,),
    "name": (str,),
    "language": (str, type(None)),
    "fork": (str,),
    "runs": (int,),
    "steps": (str, type(None)),
    "object": (str, type(None)),
    "optimised": (bool, type(None)),
    "contract": (str, type(None)),
}


def settings_from(given: Any) -> ExplorerSettings:
    """From a page's message. Raises BadValue, UnknownFork."""
    if not isinstance(given, dict):
        raise BadValue("settings: an object is needed")
    for name, value in given.items():
        types = _TYPES.get(name)
        if types is None:
            raise BadValue(f"settings: {name!r:.40} is not one of {', '.join(_TYPES)}")
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise BadValue(f"settings: {name}: not of the right type: {type(value).__name__}")
    made = ExplorerSettings(**given)
    if len(made.source) > MAX_SOURCE:
        raise BadValue(f"source: {len(made.source):,} characters; the most is {MAX_SOURCE:,}")
    if any(len(each or "") > MAX_NAME for each in (made.name, made.contract, made.object)) or (
        made.steps is not None and len(made.steps) > MAX_STEPS
    ):
        raise BadValue(f"settings: a name has at most {MAX_NAME} characters, a sequence {MAX_STEPS:,}")
    if not 0 <= made.runs < 1 << 63:
        raise BadValue(f"runs: {made.runs} is not from 0 to 2^63 - 1")
    fork_named(made.fork)
    return made
