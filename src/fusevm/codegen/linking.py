"""Uses of the code's own bytes: data it copies, the runtime it deploys, and data appended to it.

Offsets and sizes become symbols, which are resolved once the new code is laid out. Code that reads itself or its gas in
any other way is not optimised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fusevm.ir import analyses
from fusevm.ir.analyses import Keeps, ValueUse
from fusevm.ir.functions import LEAVE, DependencyBlock, Function, SymbolKind, Unit
from fusevm.ir.recovery.words import RecoveryFailed
from fusevm.ir.values import CONST, WORD, Value, traits_of

OWN = "code"  # the name of the code itself
LOOKS = frozenset({"EXTCODEHASH", "EXTCODECOPY", "EXTCODESIZE"})
CALLS = frozenset({"CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"})
CLEANS = frozenset({"AND", "OR", "SHL", "SHR"})  # what compilers clean addresses with


@dataclass(slots=True)
class Deployment:
    """CODECOPY of the runtime, stores of words into the copy, RETURN of it."""

    block: DependencyBlock
    copy: Value
    stores: list[tuple[int, Value]]  # the offset in the runtime, and the MSTORE


@dataclass(slots=True)
class Parts:
    """The parts of its own bytes that the code copies."""

    data: dict[str, tuple[int, int]] = field(default_factory=dict)  # name to offset and size
    copies: list[tuple[Function, DependencyBlock, Value, str]] = field(default_factory=list)
    deployments: list[Deployment] = field(default_factory=list)
    runtime: str | None = None  # the name of the deployed part
    boundary: int | None = None  # the offset at which appended data begins
    unfollowed: str = ""  # why the bytes returned after a CODECOPY are not optimised

    @property
    def places(self) -> frozenset[int]:
        """The offsets in the runtime at which words are stored."""
        return frozenset(place for deployment in self.deployments for place, _ in deployment.stores)

    @property
    def end(self) -> int:
        return max((offset + size for offset, size in self.data.values()), default=0)


def look_inside(unit: Unit) -> int | None:
    """Refuses code that reads its gas or its own bytes; returns where appended data begins, if the code computes that.

    CODESIZE is understood if a literal is subtracted from it: the difference is the size of a constructor's arguments.
    """
    boundaries: set[int] = set()
    own = own_addresses(unit) if _asks(unit, "ADDRESS") and any(_asks(unit, op) for op in LOOKS) else set()
    for function in unit.functions.values():
        uses = analyses.uses(function)
        for value in function.instructions():
            mine = uses.get(value.id, [])
            if value.op == "GAS" and any(use.op not in CALLS or use.operand for use in mine):
                raise RecoveryFailed("GAS is used for more than a call", value.number)
            if value.op == "CODESIZE":
                boundaries |= {_appended(use, value) for use in mine}
            if value.op in LOOKS and id(value.args[0]) in own and not _asks_whether(value, mine):
                raise RecoveryFailed(f"{value.op} looks at the code itself", value.number)
    if len(boundaries) > 1:
        raise RecoveryFailed("CODESIZE is compared with more than one number")
    if not boundaries:
        return None
    symbol = Value("SYMBOL", (), unit.symbol(SymbolKind.DATA_SIZE, OWN))
    for function in unit.functions.values():
        for value in function.instructions():
            if value.op == "SUB" and value.args[0].op == "CODESIZE":
                value.args = (value.args[0], symbol)
        analyses.forget(function, Keeps.GRAPH)
    return boundaries.pop()


def _asks(unit: Unit, op: str) -> bool:
    return any(value.op == op for function in unit.functions.values() for value in function.instructions())


def own_addresses(unit: Unit) -> set[int]:
    """The values, by identity, that may be the code's own address: through joins, calls and returns of functions."""
    flows: dict[int, list[Value]] = {}  # from a value to those that it may become
    results: dict[str, list[tuple[int, Value]]] = {}  # the words that functions return
    work: list[Value] = []
    for name, function in unit.functions.items():
        results[name] = [
            (place, arg)
            for block in function.blocks()
            if block.end.op == LEAVE
            for place, arg in enumerate(block.end.args)
        ]
        for block in function.blocks():
            for arc in block.end.arcs:
                for param, arg in zip(arc.target.params, arc.args, strict=True):
                    flows.setdefault(id(arg), []).append(param)
    for function in unit.functions.values():
        for value in function.instructions():
            if value.op == "ADDRESS":
                work.append(value)
            elif value.op in CLEANS:
                for arg in value.args:
                    flows.setdefault(id(arg), []).append(value)
            elif value.op == "CALLFN":
                for param, arg in zip(unit.callee(value).params, value.args, strict=True):
                    flows.setdefault(id(arg), []).append(param)
            elif value.op == "RESULT":
                for place, arg in results[unit.callee(value.args[0]).name]:
                    if place == value.number:
                        flows.setdefault(id(arg), []).append(value)
    found: set[int] = set()
    while work:
        value = work.pop()
        if id(value) not in found:
            found.add(id(value))
            work += flows.get(id(value), ())
    return found


def _asks_whether(value: Value, uses: list[ValueUse]) -> bool:
    """Whether it only tests if there is code."""
    return value.op == "EXTCODESIZE" and all(use.op == "ISZERO" for use in uses)


def _appended(use: ValueUse, size: Value) -> int:
    if use.user is None or use.op != "SUB" or use.operand or use.user.args[1].op != CONST:
        raise RecoveryFailed("CODESIZE is used for more than the size of what is appended", size.number)
    return use.user.args[1].number


def parts_of(unit: Unit, code: bytes, is_code: Callable[[int, int], bool], boundary: int | None) -> Parts:
    """All parts of itself that folded code copies; refuses those that are not known to be data."""
    parts = Parts(boundary=boundary)
    for function in unit.functions.values():
        for block in function.blocks():
            for value in block.instructions:
                if value.op == "CODECOPY":
                    name = _copied(value, code, is_code, boundary)
                    parts.copies.append((function, block, value, name))
                    if name not in ("", OWN):
                        offset, size = map(int, name.split(":"))
                        parts.data[name] = offset, size
    if boundary is not None and (not parts.end <= boundary <= len(code) or is_code(boundary, len(code))):
        raise RecoveryFailed("what is appended does not begin where the code ends", boundary)
    _find_deployments(parts)
    return parts


def _copied(copy: Value, code: bytes, is_code: Callable[[int, int], bool], boundary: int | None) -> str:
    _, offset, size = copy.args
    if size.op == CONST and size.number == 0:
        return ""
    if offset.op != CONST:
        raise RecoveryFailed("CODECOPY from an offset that is not known", copy.number)
    if boundary is not None and offset.number == boundary:
        return OWN
    if size.op != CONST or offset.number + size.number > len(code):
        raise RecoveryFailed("CODECOPY of a size that is not known", copy.number)
    if is_code(offset.number, offset.number + size.number):
        raise RecoveryFailed("CODECOPY copies code that is run", copy.number)
    return f"{offset.number}:{size.number}"


def _find_deployments(parts: Parts) -> None:
    found = [(name, deployment) for _, block, copy, name in parts.copies for deployment in _deployment(block, copy)]
    names = {name for name, _ in found if name not in ("", OWN)}
    copies = sum(name in names for *_, name in parts.copies)
    if len(names) == 1 and copies == len(found):
        parts.runtime = names.pop()
        parts.deployments = [deployment for _, deployment in found]
    elif any(returns_copy(block, copy) for _, block, copy, _ in parts.copies):
        parts.unfollowed = "memory is used between the CODECOPY of it and its RETURN"


def _deployment(block: DependencyBlock, copy: Value) -> Iterator[Deployment]:
    """The deployment that a CODECOPY begins, if the copy is returned unchanged except for words stored into it."""
    base, _, size = copy.args
    if not returns_copy(block, copy):
        return
    stores: list[tuple[int, Value]] = []
    for value in block.instructions[block.instructions.index(copy) + 1 :]:
        if value.op == "MSTORE":
            place = distance(base, value.args[0])
            if place is None or place + 32 > size.number:
                return
            stores.append((place, value))
        elif not traits_of(value).pure and value.op != "SLOAD":
            return
    yield Deployment(block, copy, stores)


def returns_copy(block: DependencyBlock, copy: Value) -> bool:
    base, _, size = copy.args
    if block.end.op != "RETURN" or size.op != CONST:
        return False
    return _same(block.end.args[0], base) and _same(block.end.args[1], size)


def _same(one: Value, other: Value) -> bool:
    return one is other or (one.op == other.op == CONST and one.number == other.number)


def distance(base: Value, address: Value) -> int | None:
    """The distance of an address from the base, if that is a literal."""
    if base.op == CONST and address.op == CONST:
        return (address.number - base.number) & WORD
    if address is base:
        return 0
    if address.op == "ADD":
        for one, other in (address.args, address.args[::-1]):
            if one is base and other.op == CONST:
                return other.number
    return None


def link(unit: Unit, parts: Parts, follows: bool) -> None:
    """Replaces offsets and sizes by symbols; `follows`: the runtime is new, so the offsets of its immutables change."""
    symbols = {name: Value("SYMBOL", (), unit.symbol(SymbolKind.DATA_OFFSET, name)) for name in parts.data}
    own = Value("SYMBOL", (), unit.symbol(SymbolKind.DATA_SIZE, OWN)) if parts.boundary is not None else None
    for function, _, copy, name in parts.copies:
        analyses.forget(function, Keeps.GRAPH)
        base, _, size = copy.args
        if name == OWN:
            assert own is not None
            copy.args = (base, own, size)
        elif name:
            copy.args = (base, symbols[name], size)
    if not follows or parts.runtime is None:
        return
    length = Value("SYMBOL", (), unit.symbol(SymbolKind.DATA_SIZE, parts.runtime))
    for deployment in parts.deployments:
        deployment.copy.args = (*deployment.copy.args[:2], length)
        block = deployment.block
        block.end.args = (block.end.args[0], length)
        for place, store in deployment.stores:
            symbol = unit.symbol(SymbolKind.IMMUTABLE, str(place))
            at = block.instructions.index(store)
            made = Value("SETIMMUTABLE", (deployment.copy.args[0], store.args[1]), symbol, store.id, block.start)
            block.instructions[at] = made
