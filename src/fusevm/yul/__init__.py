"""Yul: parse, optimise, compile and run it.

>>> from fusevm import yul
>>> yul.compile("{ sstore(0, add(1, 2)) }").code.hex()
'60035f5500'

The functions are defined in `functions/yul.py`, above the code generator, which this package does not know.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fusevm.functions.yul import YulRun, compile, optimize, parse, run  # noqa: A004
    from fusevm.yul.syntax.errors import YulError

__all__ = ["YulError", "YulRun", "compile", "optimize", "parse", "run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'fusevm.yul' has no attribute {name!r}")
    return getattr(import_module("fusevm.functions.yul"), name)
