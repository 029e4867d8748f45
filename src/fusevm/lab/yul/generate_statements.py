"""What the back end has a pass for, a few statements at a time: checks, loops, comparisons, places, calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fusevm.lab.yul.generate_solidity import ARITHMETIC, CLEANING

if TYPE_CHECKING:
    from fusevm.lab.yul.generate_contracts import ContractGenerator

# Contracts of the campaign's world, by address: see `compiled.py`.
ECHO, REVERTER, STORER, CALLER_BACK = 0x1001, 0x1002, 0x1003, 0x1004
MASKS = (1, 3, 0xFF, 0x1F, 0xFFFF, 2**32 - 1, 2**64 - 1, 2**128 - 1, 2**160 - 1, 0xFF << 8, 2**255 - 1, 2**256 - 32)
_OUTSIDE = (ECHO, ECHO, REVERTER, STORER, CALLER_BACK, 4, 2, 0x9999)
_LONG = (
    0x8C5BE1E5EBEC7D5BD14F71427D1E84F3DD0314C0F7B2291E5B200AC8C7C3B925, 2**256 - 2**32, 0xA9059CBB << 224,
    0xDDF252AD1BE2C89B69C2B068FC378DAA952BA7F163C4A11628F55A4DF523B3EF, 2**160 - 1, 2**255, 2**128,
)  # fmt: skip
_BOUNDS = (1, 3, 0x7F, 0xFF, 0xFFFF, 2**64 - 1, 2**127 - 1, 2**128 - 1, 2**160 - 1, 2**255 - 1)
_COMPARISONS = ("lt", "gt", "slt", "sgt", "eq")


def checked(g: ContractGenerator) -> None:
    """Arithmetic that panics; most operands are small enough."""
    name = g.random.choice(ARITHMETIC)
    g.helpers.add(name)
    mask = g.random.choice((0xFF, 0xFFFF, 2**64 - 1, 2**128 - 1, 2**256 - 1))
    operands = [g.masked(mask), g.masked(g.random.choice((3, 0xFF, mask)))]
    if name in ("div_256", "mod_256"):
        operands[1] = f"add({operands[1]}, 1)" if g.chance(2) else operands[1]
    elif name.startswith("sub") and g.chance(2):
        operands[0] = f"or({operands[0]}, 0x10000)"
    result = g.name("x")
    g.write(f"let {result} := {name}({', '.join(operands)})")
    g.scope.variables.append(result)


def counted(g: ContractGenerator) -> None:
    """A loop as compilers write it, with its counter checked once more, perhaps another one inside."""
    if g.indent > 4:
        return
    counter, bound, total = g.name("i"), g.name("n"), g.name("x")
    g.helpers.update(("increment", "add_256"))
    g.write(f"let {total} := {g.masked(0xFFFF)}")
    g.write(f"let {bound} := and({g.expression(1)}, {g.random.choice((1, 3, 7))})")
    g.scope.variables.append(total)
    step = g.random.choice((f"increment({counter})", f"add({counter}, 1)"))
    with g.braces(f"for {{ let {counter} := 0 }} lt({counter}, {bound}) {{ {counter} := {step} }}"):
        g.scope.in_loop = True
        g.scope.fixed += [counter, bound]
        if g.chance(2):
            g.write(f"if iszero(lt({counter}, {bound})) {{ revert(0, 0) }}")
        if g.chance(2):
            g.write(f"if eq({counter}, {g.random.randrange(4)}) {{ {g.random.choice(('break', 'continue'))} }}")
        g.write(f"{total} := add_256(and({total}, 0xffffffff), {g.random.choice((counter, g.masked(0xFF)))})")
        if g.chance(3):
            counted(g)
        g.block(g.random.randrange(0, 2))
        if g.chance(3):
            g.leave_somehow(often=True)


def compared(g: ContractGenerator) -> None:
    """Comparisons that others before them have decided, nearly or wholly."""
    names = [g.name("x") for _ in range(2)]
    for name in names:
        g.write(f"let {name} := {g.expression(1) if g.chance(2) else g.masked(g.random.choice(MASKS))}")
    bound = g.random.choice((0, 1, 4, 32, 255, 256, 2**64 - 1, 2**255, 2**256 - 1))
    pair = [names[0], g.random.choice((names[1], str(bound)))]
    g.random.shuffle(pair)
    condition = f"{g.random.choice(_COMPARISONS)}({', '.join(pair)})"
    if g.chance(3):
        condition = f"iszero({condition})"
    elif g.chance(4):
        condition = (
            f"{g.random.choice(('and', 'or'))}({condition}, {g.random.choice(_COMPARISONS)}({', '.join(names)}))"
        )
    with g.braces(f"if {condition}"):
        for _ in range(g.random.randrange(1, 4)):
            g.write(f"sstore({g.random.randrange(20, 30)}, {_again(g, names, bound)})")
        g.leave_somehow(often=True)
    for _ in range(g.random.randrange(1, 3)):
        g.write(f"sstore({g.random.randrange(30, 40)}, {_again(g, names, bound)})")
    g.scope.variables += names


def _again(g: ContractGenerator, names: list[str], bound: int) -> str:
    near = g.random.choice((bound, bound + 1 & 2**256 - 1, bound - 1 & 2**256 - 1, 4))
    pair = [g.random.choice(names), g.random.choice((*names, str(near)))]
    g.random.shuffle(pair)
    kind = g.random.randrange(6)
    if kind == 0:
        return f"sub({', '.join(pair)})"
    if kind == 1:
        offset = g.random.choice((1, 4, 31, 2**256 - 1, 2**256 - 4))
        moved = f"{g.random.choice(('add', 'sub'))}({pair[0]}, {offset})"
        return f"{g.random.choice(_COMPARISONS)}({moved}, {near})"
    if kind == 2:
        return f"{g.random.choice(('and', 'or', 'mod', 'div', 'signextend', 'sar'))}({', '.join(pair)})"
    return f"{g.random.choice(_COMPARISONS)}({', '.join(pair)})"


def bounded(g: ContractGenerator) -> None:
    """An operation on words of known ranges, and questions that its own range nearly or wholly answers."""
    masks = [g.random.choice(_BOUNDS) for _ in range(2)]
    names = [g.name("x") for _ in range(3)]
    for name, mask in zip(names, masks, strict=False):
        ways = (f"and({g.unknown()}, {mask:#x})", f"shr({256 - mask.bit_length()}, {g.unknown()})")
        g.write(
            f"let {name} := {g.random.choice((ways[0], ways[0], ways[1], f'add({ways[0]}, {g.random.choice(MASKS)})'))}"
        )
    op = g.random.choice(
        ("mul", "mul", "and", "or", "xor", "add", "sub", "mod", "div", "shl", "shr", "signextend", "sar", "byte")
    )
    operands = [names[0], g.random.choice((names[1], str(g.random.choice((0, 1, 3, 8, 31, 128, 255)))))]
    if op in ("shl", "shr", "sar", "signextend", "byte") and g.chance(2):
        operands[0] = str(g.random.choice((0, 1, 7, 15, 30, 31, 128, 248)))
    g.write(f"let {names[2]} := {op}({', '.join(operands)})")
    top = g.random.choice((masks[0], masks[1], masks[0] * masks[1] % 2**256, masks[0] + masks[1], 2**255, 2**128))
    for _ in range(g.random.randrange(1, 4)):
        near = (top + g.random.choice((-1, 0, 0, 1))) % 2**256
        question = g.random.choice((
            f"{g.random.choice(_COMPARISONS)}({names[2]}, {near:#x})",
            f"and({names[2]}, {g.random.choice(_BOUNDS):#x})",
            f"iszero({names[2]})", f"signextend({g.random.choice((0, 1, 15, 31))}, {names[2]})", names[2],
            f"{g.random.choice(_COMPARISONS)}({names[2]}, {g.random.choice(names[:2])})",
        ))  # fmt: skip
        g.write(f"sstore({g.random.randrange(40, 50)}, {question})")
    g.scope.variables += names


def decided_later(g: ContractGenerator) -> None:
    """Conditions carried from one branch to another: a flag set here and tested there."""
    flag = g.name("x")
    g.write(f"let {flag} := {g.random.choice(('0', '1', g.expression(1)))}")
    if g.chance(2):
        g.write(f"switch {g.masked(3)}")
        for number in g.random.sample(range(4), g.random.randrange(1, 4)):
            g.write(f"case {number} {{ {flag} := {g.random.choice(('0', '1', '2', g.expression(1)))} }}")
        if g.chance(2):
            g.write(f"default {{ {flag} := {g.expression(1)} }}")
    else:
        g.write(f"if {g.expression(1)} {{ {flag} := {g.random.choice(('0', '1', g.expression(1)))} }}")
    condition = g.random.choice((flag, f"iszero({flag})", f"iszero(iszero({flag}))"))
    with g.braces(f"if {condition}"):
        g.block(g.random.randrange(1, 3))
        g.leave_somehow()
    g.scope.variables.append(flag)


def same_places(g: ContractGenerator) -> None:
    """Reads and writes of places that may be the same, with something in between."""
    kind = g.random.choice(("s", "s", "t", "m"))
    load, store = f"{kind}load", f"{kind}store"

    def place() -> str:
        if kind == "m":
            return g.address(32)
        unknown = f"and(calldataload({g.random.choice((0, 4, 36))}), 3)"
        return g.random.choice((unknown, str(g.random.randrange(4)), f"add({unknown}, 1)"))

    places = [place() for _ in range(2)]
    names = [g.name("x") for _ in range(3)]
    g.write(f"let {names[0]} := {load}({places[0]})")
    if g.chance(2):
        g.write(f"{store}({places[1]}, {g.leaf()})")
    between = g.random.randrange(6)
    if between == 0:
        g.write(f"if {g.expression(1)} {{ {store}({g.random.choice(places)}, {g.leaf()}) }}")
    elif between == 1:
        with g.braces(f"if {g.expression(1)}"):
            g.block(1)
    elif between == 2:
        called(g)
    elif between == 3:
        g.loop()
    elif between == 4:
        g.call()
    g.write(f"let {names[1]} := {load}({places[0]})")
    g.write(f"{store}({places[0]}, {g.random.choice((names[0], g.leaf()))})")
    if g.chance(2):
        g.write(f"{store}({places[1]}, {g.leaf()})")
    g.write(f"let {names[2]} := {load}({g.random.choice(places)})")
    g.write(f"sstore({g.random.randrange(40, 50)}, add({names[1]}, mul(3, {names[2]})))")
    g.scope.variables += names


def called(g: ContractGenerator) -> None:
    """A call to a contract of the world, and a use of what it returned."""
    kind = g.random.choice(("call", "call", "staticcall", "delegatecall"))
    address = g.random.choice(_OUTSIDE)
    if kind == "delegatecall" and address == CALLER_BACK:
        address = ECHO
    value = [g.random.choice(("0", "0", "1"))] if kind == "call" else []
    sizes = g.random.choice((0, 4, 32, 36)), g.random.choice((0, 32, 64))
    memory = [g.address(sizes[0]), str(sizes[0]), g.address(sizes[1]), str(sizes[1])]
    gas = g.random.choice(("gas()", "gas()", "100000", "sub(gas(), 50)"))
    call = f"{kind}({', '.join([gas, hex(address), *value, *memory])})"
    if address == CALLER_BACK:  # which calls again, with less calldata; how much gas that takes is not compared
        call = call.replace("(100000,", "(gas(),")
        with g.braces("if gt(calldatasize(), 35)"):
            g.write(f"sstore({g.key()}, {call})")
        return
    ok = g.name("x")
    g.write(f"let {ok} := {call}")
    look = g.random.randrange(4)
    if look == 0:
        g.write(f"if iszero({ok}) {{ returndatacopy(0, 0, returndatasize()) revert(0, returndatasize()) }}")
    elif look == 1:
        g.write(f"if gt(returndatasize(), 31) {{ returndatacopy({g.address(32)}, 0, 32) }}")
    elif look == 2:
        g.write(f"sstore({g.key()}, returndatasize())")
    g.scope.variables.append(ok)


def calls_itself(g: ContractGenerator) -> None:
    """A reentrant call into this contract, with less calldata."""
    with g.braces("if gt(calldatasize(), 60)"):
        size = g.random.choice((0, 4, 36))
        if size:
            head = f"shl(224, {g.random.choice(g.selectors):#x})" if g.selectors else g.leaf()
            g.write(f"mstore(0, {head})")
        g.write(f"sstore({g.key()}, call(gas(), self(), 0, 0, {size}, 0, 32))")
        if g.chance(2):
            g.write(f"sstore({g.key()}, mload(0))")


def created(g: ContractGenerator) -> None:
    """A contract of its own: from code in memory, or from a part of this object."""
    if g.makes_child and g.chance(2):
        at, address = g.name("m"), g.name("x")
        g.write(f"let {at} := {g.base()}")
        g.write(f'datacopy({at}, dataoffset("Child"), datasize("Child"))')
        g.write(f'let {address} := create(0, {at}, datasize("Child"))')
        g.write(f'calldatacopy({at}, calldatasize(), datasize("Child"))')  # whose bytes are not compared
        g.write(f"sstore({g.key()}, call(gas(), {address}, 0, 0, 0, 0, 32))")
        return
    # 6001600052600160ff f3 …: stores a word and leaves one byte of code
    g.write("mstore(0, 0x60056000556001601ff300000000000000000000000000000000000000000000)")
    create = g.random.choice(("create(0, 0, 32)", f"create2(0, 0, 32, {g.leaf()})", "create(1, 0, 10)"))
    g.write(f"sstore({g.key()}, {create})")


def deep(g: ContractGenerator) -> None:
    """Twenty and more values at a time, used in another order."""
    names = [g.name("w") for _ in range(g.random.randrange(14, 27))]
    for number, name in enumerate(names):
        value = g.random.choice((f"calldataload({32 * number})", g.expression(1), f"add({number}, calldatasize())"))
        g.write(f"let {name} := {value}")
    if g.chance(3):
        g.block(1)
    order = list(names)
    g.random.shuffle(order)
    total = order[0]
    for name in order[1:]:
        total = f"{g.random.choice(('add', 'sub', 'xor'))}({', '.join(g.random.sample((total, name), 2))})"
    g.write(f"sstore({g.key()}, {total})")
    if g.chance(2):
        g.write(f"sstore({g.key()}, xor({', '.join(g.random.sample(names, 2))}))")


def crowded(g: ContractGenerator) -> None:
    """Values that must all be kept, and cannot be read again: some do not fit on the stack."""
    names = [g.name("w") for _ in range(g.random.randrange(17, 24))]
    for number, name in enumerate(names):
        g.write(f"let {name} := {g.random.choice((f'sload({number})', f'add(sload({number}), calldatasize())'))}")
    for _ in range(2):
        g.write(f"sstore({g.random.choice(names)}, {g.random.choice(names)})")
        order = g.random.sample(names, len(names))
        total = order[0]
        for name in order[1:]:
            total = f"{g.random.choice(('add', 'sub', 'xor'))}({total}, {name})"
        g.write(f"sstore({g.key()}, {total})")
    g.scope.variables += names[:3]


def selected(g: ContractGenerator) -> None:
    """A switch of many cases far apart, as on selectors."""
    if g.indent > 5:
        return
    width = g.random.choice((32, 256))
    cases = g.random.sample(range(40), g.random.choice((3, 6, 12, 20)))
    cases = [case if g.chance(2) else g.random.getrandbits(width) for case in cases]
    name = g.name("x")
    g.write(f"let {name} := {g.leaf()}")
    g.write(f"switch {g.random.choice((g.masked(31), g.masked(7), 'shr(224, calldataload(0))', g.leaf()))}")
    for number, case in enumerate(dict.fromkeys(cases)):
        if number % 5 == 4:
            with g.braces(f"case {case:#x}"):
                g.block(1)
                g.leave_somehow()
        else:
            g.write(f"case {case:#x} {{ {name} := {g.leaf()} }}")
    if g.chance(2):
        g.write(f"default {{ {g.random.choice((f'{name} := {g.leaf()}', 'revert(0, 0)'))} }}")
    g.scope.variables.append(name)


def long_constants(g: ContractGenerator) -> None:
    """One long word in several places."""
    word = hex(g.random.choice(_LONG))
    g.write(f"sstore({g.key()}, xor({g.leaf()}, {word}))")
    with g.braces(f"if {g.expression(1)}"):
        g.write(f"sstore({g.key()}, and({g.leaf()}, {word}))")
        if g.chance(2):
            g.write(f"if lt({word}, {g.leaf()}) {{ sstore({g.key()}, {word}) }}")
    g.write(f"log1({g.address(32)}, 32, {word})")


def helped(g: ContractGenerator) -> None:
    """One of the helpers of compilers."""
    kind = g.random.randrange(8)
    name = g.name("x")
    if kind == 0:
        g.helpers.add("mapping")
        g.write(f"let {name} := sload(mapping({g.random.randrange(3)}, {g.leaf()}))")
    elif kind == 1:
        g.helpers.update(("mapping", "add_256"))
        key = g.leaf()
        value = f"add_256(and(sload(mapping(1, {key})), 0xffff), {g.masked(0xFF)})"
        g.write(f"sstore(mapping(1, {key}), {value})")
        g.write(f"let {name} := sload(mapping(1, {key}))")
    elif kind == 2:
        g.helpers.add("update")
        g.write(f"sstore(3, update(sload(3), {g.random.randrange(32)}, {g.leaf()}))")
        g.helpers.add("extract")
        g.write(f"let {name} := extract(sload(3), {g.random.randrange(32)})")
    elif kind == 3:
        g.helpers.add("power")
        g.write(f"let {name} := power({g.random.choice(('2', '3', g.masked(0xFF)))}, {g.masked(7)})")
    elif kind == 4:
        g.helpers.add("root")
        g.write(f"let {name} := root({g.masked(0xFFFF)})")
    elif kind == 5:
        g.helpers.add("decode_bytes")
        length = g.name("x")
        g.write(f"if gt(calldatasize(), 99) {{ let {name}, {length} := decode_bytes(4, calldatasize())")
        g.write(f"sstore(50, {name}) sstore(51, {length}) }}")
        return
    else:
        helper = g.random.choice(CLEANING)
        g.helpers.add(helper)
        g.write(f"let {name} := {helper}({g.expression(1)})")
    g.scope.variables.append(name)


def measured(g: ContractGenerator) -> None:
    """Reads of gas and code for which every bytecode must give the same result."""
    kind = g.random.randrange(8 if g.uses_msize else 5)
    if kind == 0:
        g.write("if lt(gas(), 1000) { revert(0, 0) }")
    elif kind == 1:
        g.write(f"sstore({g.key()}, gt(codesize(), 1))")
    elif kind == 2:
        g.write(f"beyond_code({g.address(32)}, codesize(), 32)")
    elif kind == 3:
        g.write(f"sstore({g.key()}, gt(gas(), {g.random.choice((0, 1, 500))}))")
    elif kind > 4:
        g.write(f"sstore({g.key()}, msize())")
    else:
        g.write(f"sstore({g.key()}, iszero(extcodesize(self())))")


def unchecked_end(g: ContractGenerator) -> None:
    """A value that only one path needs."""
    names = [g.name("x") for _ in range(2)]
    g.write(f"let {names[0]} := {g.expression(3)}")
    g.write(f"let {names[1]} := {g.read(1)}")
    with g.braces(f"if {g.expression(1)}"):
        if g.chance(2):
            g.block(1)
        g.write(f"sstore({g.key()}, {names[0]})")
        g.write(f"mstore({g.address(32)}, {names[1]})")
        g.leave_somehow()


_CHOICES: tuple[tuple[Callable[[ContractGenerator], None], int], ...] = (
    (checked, 14), (counted, 8), (compared, 14), (bounded, 10), (decided_later, 10), (same_places, 12), (called, 6),
    (calls_itself, 3), (created, 3), (deep, 3), (selected, 5), (long_constants, 5), (helped, 12), (measured, 3),
    (unchecked_end, 8),
)  # fmt: skip
STATEMENTS = [statement for statement, _ in _CHOICES]
WEIGHTS = [weight for _, weight in _CHOICES]
