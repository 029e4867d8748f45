"""Arguments as people type them into a form: numbers in decimal or hex, truth values, lists as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from fusevm.abi.types import Scalar, Type
from fusevm.explanation.inputs import BadSource

_NUMBER = re.compile("u?int")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def typed(type_: Type, given: Any, what: str) -> Any:
    """Text becomes what the type says; anything else is passed on as it is."""
    if not isinstance(given, str):
        return given
    text = given.strip()
    try:
        if not isinstance(type_, Scalar):
            return json.loads(text)
        if _NUMBER.match(type_.name):
            return int(text, 0)
        return _TRUTH[text.lower()] if type_.name == "bool" else given
    except (ValueError, KeyError, RecursionError):
        raise BadSource(f"{what}: {given[:80]!r} is not a value of the type {type_.name}") from None
