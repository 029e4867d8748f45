"""The rewrite rules: what each says, and z3's proof of it.

>>> from fusevm import rules
>>> next(rule.equation for rule in rules.RULES if rule.name == "add-zero")
'ADD(X, 0) → X'
>>> sorted(rules.FAMILIES)[:3]
['addition', 'bits', 'booleans']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fusevm.rules.families import FAMILIES, RULES
    from fusevm.rules.pattern import Rule
    from fusevm.rules.prove import Proof

__all__ = ["FAMILIES", "RULES", "Proof", "Rule", "proved"]

_PLACES = {"FAMILIES": "families", "RULES": "families", "Rule": "pattern", "Proof": "prove"}


def proved(rule: "Rule", timeout: float = 3.0) -> "Proof":
    """What z3 says about a rule, with a limit of seconds per question. Needs `pip install 'fusevm[prove]'`.

    >>> from fusevm import rules
    >>> rules.proved(rules.RULES[0]).holds
    True
    """
    from fusevm.rules.prove import prove

    return prove(rule, timeout)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'fusevm.rules' has no attribute {name!r}")
    return getattr(import_module(f"fusevm.rules.{_PLACES[name]}"), name)
