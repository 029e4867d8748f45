"""Dependency blocks: lift bytecode, fold it, write and read it as text.

>>> from fusevm import ir
>>> print(ir.written(ir.lifted("0x600160020160005500")), end="")
dependency block 0:
    $0 = Add #2 #1
    $1 = SStore #0 $0
    Stop

The functions are defined in `functions/ir.py`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fusevm.functions.ir import folded, lifted, read, written

__all__ = ["folded", "lifted", "read", "written"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'fusevm.ir' has no attribute {name!r}")
    return getattr(import_module("fusevm.functions.ir"), name)
