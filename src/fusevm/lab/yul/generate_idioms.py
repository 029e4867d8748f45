"""What steps look for, in random programs: values stored and loaded again, assignments on several paths, pointers.

A program of unrelated statements seldom tempts an optimiser. Each of these writes a few statements that belong to each
other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusevm.lab.yul.generate import ProgramGenerator


def through_memory(g: ProgramGenerator) -> None:
    """A value stored and loaded again, perhaps changed in between."""
    place, value, loaded = g.name("x"), g.name("x"), g.name("x")
    store, load = g.random.choice((("mstore", "mload"), ("mstore", "mload"), ("sstore", "sload"), ("tstore", "tload")))
    g.write(f"let {place} := {g.address(64) if load == 'mload' else g.key()}")
    g.write(f"let {value} := {g.expression(2)}")
    g.write(f"{store}({place}, {value})")
    if load == "mload":
        g.point(place)
    kind = g.random.randrange(7)
    if kind == 0:
        g.statement()
    elif kind == 1:
        offset = g.random.choice((0, 1, 31, 32, 33, 2**256 - 1, 2**256 - 31, 2**256 - 32))
        if not g.guarded or offset < 64:
            near = g.name("x")
            g.write(f"let {near} := add({place}, {offset})")
            g.write(f"if lt({near}, 0x4000) {{ {store}({near}, {g.leaf()}) }}")
    elif kind == 2:
        g.call()
    elif kind == 3:
        g.loop()
    elif kind == 4:
        g.write(f"{store}({place}, {g.random.choice((value, g.leaf()))})")
    elif kind == 5:
        g.condition()
    if load == "mload" and g.chance(3):
        size = g.name("x")
        g.write(f"let {size} := {g.random.choice((0, 4, 20, 32, 64))}")
        g.write(f"let {loaded} := keccak256({place}, {size})")
    else:
        g.write(f"let {loaded} := {load}({place})")
    g.scope.variables += [value, loaded]
    if g.chance(2):
        g.write(f"sstore({g.key()}, {loaded})")


def overwritten(g: ProgramGenerator) -> None:
    """A variable assigned on several paths and read after them."""
    name = g.random.choice(g.scope.variables) if g.scope.variables and g.chance(2) else None
    if name is None:
        name = g.name("x")
        g.write(f"let {name} := {g.expression(1)}")
        g.scope.variables.append(name)
    with g.braces(f"if {g.expression(1)}"):
        g.write(f"{name} := {g.expression(1)}")
        g.statement()
        g.leave_somehow(often=True)
    if g.chance(2):
        g.write(f"{name} := {g.expression(1)}")
    elif g.chance(2):
        g.write(f"sstore({g.key()}, {name})")


def out_of_scope(g: ProgramGenerator) -> None:
    """A variable whose value mentions one that is gone."""
    outer, inner = g.name("x"), g.name("x")
    one, other = g.random.choice((("add", "sub"), ("and", "shl"), ("sub", "add"), ("shl", "shr"), ("and", "and")))
    g.write(f"let {outer}")
    with g.braces():
        g.write(f"let {inner} := {g.expression(2)}")
        g.write(f"{outer} := {one}({_pair(g, inner)})")
    g.write(f"sstore({g.key()}, {other}({_pair(g, outer)}))")
    g.scope.variables.append(outer)


def _pair(g: ProgramGenerator, name: str) -> str:
    pair = [name, g.leaf()]
    g.random.shuffle(pair)
    return ", ".join(pair)


def stored_then_ended(g: ProgramGenerator) -> None:
    """Stores to one place with something in between that may end the call."""
    key = g.name("x")
    store = g.random.choice(("sstore", "sstore", "mstore"))
    g.write(f"let {key} := {g.address(32) if store == 'mstore' else g.key()}")
    g.write(f"{store}({key}, {g.leaf()})")
    enders = [each for each in g.scope.functions if each.busy]
    if enders and g.chance(2):
        function = g.random.choice(enders)
        g.receive(g.call_of(function, 1), function.returns)
    else:
        g.condition()
    g.write(f"{store}({key}, {g.leaf()})")


def used_once(g: ProgramGenerator) -> None:
    """A variable that could stand where it is used, were it not for what happens in between."""
    names = [g.name("x") for _ in range(g.random.randrange(1, 4))]
    for name in names:
        g.write(f"let {name} := {g.read(1) if g.chance(2) else g.expression(2)}")
    g.random.shuffle(names)
    value = names[0]
    for name in [*names[1:], g.expression(2)]:
        pair = [value, name]
        g.random.shuffle(pair)
        value = f"{g.random.choice(('add', 'sub', 'xor'))}({', '.join(pair)})"
    g.write(f"sstore({g.key()}, {value})")


def rounds(g: ProgramGenerator) -> None:
    """A loop that writes to another place every round and looks back when it ends."""
    if g.indent > 5:
        return
    counter, pointer, value = g.name("i"), g.name("x"), g.name("x")
    place = f"add({g.base()}, mul({counter}, {g.random.choice((1, 32, 32, 64))}))"
    g.write(f"let {value} := {g.expression(1)}")
    g.write(f"let {counter} := 0")
    g.scope.variables.append(value)
    g.scope.fixed.append(counter)
    seen = g.random.choice((f"sstore(add({counter}, 300), {value}) ", f"mstore({g.address(32)}, {value}) ", ""))
    g.write(f"for {{ }} {g.random.choice(('1', f'lt({counter}, 3)'))} {{ {seen}{counter} := add({counter}, 1) }}")
    with g.braces():
        g.scope.in_loop = True
        g.write(f"let {pointer} := {place}")
        g.point(pointer)
        g.write(f"mstore({pointer}, {g.leaf()})")
        if g.chance(2):
            g.write(f"{value} := {g.expression(1)}")
        if g.chance(2):
            g.write(f"if eq({counter}, {g.random.randrange(3)}) {{ {value} := {g.leaf()} continue }}")
        end = "break" if g.guarded else g.random.choice(("break", "return(0, 0x140)", "revert(0, 0x140)"))
        g.write(f"if gt({counter}, {g.random.randrange(4)}) {{ {end} }}")
        if g.chance(2):
            g.write(f"{value} := {g.expression(1)}")
        if g.chance(2):
            g.write(f"mstore({pointer}, {g.leaf()})")


def moving_pointer(g: ProgramGenerator) -> None:
    """Stores through a variable that moves on in between."""
    pointer = g.name("x")
    g.write(f"let {pointer} := {g.base()}")
    for _ in range(g.random.randrange(2, 4)):
        place = g.name("x")
        g.write(f"let {place} := add({pointer}, {g.random.choice((0, 32))})")
        g.write(f"mstore({place}, {g.leaf()})")
        step = g.random.choice(("32", "64", "sub(0, 32)", "and(calldataload(4), 0x20)"))
        if not g.guarded or not step.startswith("sub"):
            g.write(f"{pointer} := add({pointer}, {step})")
        g.point(place)
    if g.chance(2):
        g.write(f"sstore({g.key()}, keccak256({g.base()}, 0x60))")


def nested_calls(g: ProgramGenerator) -> None:
    """A call whose arguments are calls that do something: they come last to first, once each."""
    functions = [each for each in g.scope.functions if each.returns == 1 and not each.bounded]
    busy = [each for each in functions if each.busy]
    if not busy:
        return
    outer = g.random.choice(functions)
    inner = [g.call_of(g.random.choice(busy), 1) if g.chance(2) else g.leaf() for _ in range(outer.parameters)]
    g.receive(f"{outer.name}({', '.join(inner)})", 1)


def deep_calls(g: ProgramGenerator) -> None:
    """Calls around calls, many levels deep, with a variable at the bottom."""
    functions = [each for each in g.scope.functions if each.returns == 1 and each.parameters and not each.bounded]
    if not functions:
        return
    value = g.leaf()
    for _ in range(g.random.choice((3, 8, 17, 25))):
        function = g.random.choice(functions)
        arguments = [g.leaf() for _ in range(function.parameters)]
        arguments[g.random.randrange(function.parameters)] = value
        value = f"{function.name}({', '.join(arguments)})"
    g.receive(value, 1)


def long_chain(g: ProgramGenerator) -> None:
    """Each variable used once, in the next: they become one deep expression."""
    name = g.name("x")
    g.write(f"let {name} := {g.read(1)}")
    for _ in range(g.random.choice((3, 10, 20))):
        last, name = name, g.name("x")
        operation = g.random.choice(("sub", "xor", "div", "mul"))
        g.write(f"let {name} := {operation}({_pair(g, last)})")
    g.scope.variables.append(name)


def wide_switch(g: ProgramGenerator) -> None:
    """A switch of many cases, most of which do next to nothing."""
    if g.indent > 5:
        return
    name = g.name("x")
    g.write(f"let {name} := {g.leaf()}")
    g.write(f"switch and({g.expression(1)}, {g.random.choice((7, 31))})")
    for number in g.random.sample(range(40), g.random.choice((4, 12, 30))):
        g.write(f"case {number} {{ {name} := {g.leaf()} }}")
    if g.chance(2):
        with g.braces("default"):
            g.write(f"{name} := {g.expression(1)}")
    g.scope.variables.append(name)


def crowd(g: ProgramGenerator) -> None:
    """Many variables at the same time, used much later."""
    names = [g.name("x") for _ in range(g.random.choice((3, 6, 9)))]
    for name in names:
        g.write(f"let {name} := {g.read(1) if g.chance(2) else g.expression(1)}")
    g.statement()
    g.random.shuffle(names)
    for name in names:
        g.write(f"sstore({g.key()}, {name})")


IDIOMS: tuple[tuple[Callable[[ProgramGenerator], None], int], ...] = (
    (through_memory, 10),
    (overwritten, 10),
    (out_of_scope, 3),
    (stored_then_ended, 4),
    (used_once, 5),
    (rounds, 5),
    (moving_pointer, 3),
    (nested_calls, 5),
    (deep_calls, 3),
    (long_chain, 2),
    (wide_switch, 2),
    (crowd, 2),
)
