"""Random Yul programs that are valid, end soon and do a bit of everything: for comparing them before and after steps.

Loops are bounded by counters that nothing else assigns to, recursion by a parameter that shrinks. Two kinds of program:
plain ones use memory as they like; *guarded* ones begin with a memoryguard, keep to their own memory, and have
functions with more variables than the stack can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from fusevm.lab.yul.generate_functions import TEMPLATES, YulFunction
from fusevm.lab.yul.generate_idioms import IDIOMS

_PURE = {
    1: ("not", "iszero", "clz"),
    2: (
        "add", "sub", "mul", "div", "sdiv", "mod", "smod", "exp", "signextend", "lt", "gt", "slt", "sgt", "eq",
        "and", "or", "xor", "byte", "shl", "shr", "sar",
    ),
    3: ("addmod", "mulmod"),
}  # fmt: skip
_ENVIRONMENT = ("caller", "address", "callvalue", "calldatasize", "number", "origin", "gasprice", "coinbase")
_ODD = (0, 1, 2, 3, 7, 8, 31, 32, 33, 64, 96, 160, 224, 248, 255, 256, 257, 0xFFFF, 2**64, 2**160 - 1, 2**160)
_EDGES = (*_ODD, 2**255, 2**255 - 1, 2**256 - 1, 2**256 - 2, 2**256 - 32, 0xFF << 248, 0xFFFFFFFF << 224)
_CALLS = {"call": 7, "callcode": 7, "delegatecall": 6, "staticcall": 6}
_GUARD = 0x80  # below it guarded programs own memory for good


@dataclass(slots=True)
class _Scope:
    """What may be mentioned here. `fixed` variables may be read only."""

    variables: list[str] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)
    functions: list[YulFunction] = field(default_factory=list)
    in_loop: bool = False
    in_function: bool = False


def random_program(seed: int, guarded: bool | None = None, statements: int | None = None) -> str:
    """The source of a program, the same for the same arguments. Every fourth is guarded, unless the caller says.

    With so few `statements` it is a small one; without a number it has some dozens.
    """
    random = Random(seed)
    return ProgramGenerator(random, random.randrange(4) == 0 if guarded is None else guarded, statements).program()


class ProgramGenerator:
    def __init__(self, random: Random, guarded: bool, statements: int | None = None) -> None:
        self.random = random
        self.guarded = guarded
        self.lines: list[str] = []
        self.indent = 0
        self.names = 0
        self.is_small = statements is not None
        self.statements = statements or random.choice((8, 15, 25, 40))  # still to be written
        self.scope = _Scope()
        self.uses_msize = not guarded and random.randrange(12) == 0

    # -- writing ------------------------------------------------------------------------------------------------------

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    @contextmanager
    def braces(self, head: str = "") -> Iterator[None]:
        self.write(f"{head} {{".lstrip())
        self.indent += 1
        outer = self.scope
        self.scope = _Scope(
            list(outer.variables), list(outer.fixed), list(outer.functions), outer.in_loop, outer.in_function
        )
        yield
        self.scope = outer
        self.indent -= 1
        self.write("}")

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def several(self, least: int, most: int) -> int:
        """How many of something: a third as many in a small program."""
        count = self.random.randrange(least, most)
        return (count + 2) // 3 if self.is_small else count

    def program(self) -> str:
        with self.braces():
            if self.guarded:
                self.write(f"mstore(0x40, memoryguard({_GUARD:#x}))")
            self.declare_functions(self.several(0, 4))
            self.block(self.several(3, 9))
            self.finish()
        return "\n".join(self.lines)

    def finish(self) -> None:
        """Let the outside see the variables that are left, and memory."""
        for number, name in enumerate(self.scope.variables[-8:]):
            self.write(f"sstore({100 + number}, {name})")
        if self.guarded:
            self.write("log0(mload(0x40), 0xc0)")
        elif self.chance(4):
            self.write("return(0, 0x140)")
        elif not self.chance(4):
            self.write("log0(0, 0x140)")

    # -- functions ----------------------------------------------------------------------------------------------------

    def declare_functions(self, count: int) -> None:
        """Each may call those before it, and bounded ones themselves."""
        for _ in range(count):
            if self.chance(3):
                self.scope.functions.append(self.random.choice(TEMPLATES)(self))
                continue
            bounded = self.chance(4)
            parameters = self.random.randrange(1 if bounded else 0, 4)
            function = YulFunction(self.name("f"), parameters, self.random.choice((0, 1, 1, 1, 2, 3)), bounded)
            self.define(function)
            self.scope.functions.append(function)

    def define(self, function: YulFunction) -> None:
        parameters = [self.name("p") for _ in range(function.parameters)]
        returns = [self.name("r") for _ in range(function.returns)]
        arrow = f" -> {', '.join(returns)}" if returns else ""
        with self.braces(f"function {function.name}({', '.join(parameters)}){arrow}"):
            scope = self.scope
            scope.variables, scope.fixed = parameters + returns, []
            scope.in_loop, scope.in_function = False, True
            if function.bounded:
                scope.variables.remove(parameters[0])
                scope.fixed.append(parameters[0])
            if self.guarded and not function.bounded and self.chance(2):
                self.wide()
            if function.bounded:
                self.recurse(function, parameters[0])
            self.block(self.random.randrange(1, 5))
            for name in returns:
                if self.chance(2):
                    self.write(f"{name} := {self.expression(2)}")

    def recurse(self, function: YulFunction, bound: str) -> None:
        with self.braces(f"if {bound}"):
            rest = [self.expression(1) for _ in range(function.parameters - 1)]
            call = f"{function.name}({', '.join([f'sub({bound}, 1)', *rest])})"
            self.receive(call, function.returns)

    def wide(self) -> None:
        """More variables at once than the stack can hold."""
        names = [self.name("w") for _ in range(self.random.randrange(12, 24))]
        for name in names:
            self.write(f"let {name} := {self.expression(1)}")
        self.scope.variables += names
        if self.chance(2):
            self.block(2)
        for number, name in enumerate(names):
            self.write(f"sstore({200 + number}, {name})")

    # -- statements ---------------------------------------------------------------------------------------------------

    def block(self, count: int) -> None:
        for _ in range(count):
            self.statement()

    def statement(self) -> None:
        if self.statements <= 0 or self.indent > 6:
            self.store()
            return
        self.statements -= 1
        self.random.choices(_STATEMENTS, _WEIGHTS)[0](self)

    def declare(self) -> None:
        name = self.name("x")
        kind = self.random.randrange(10)
        if kind == 0:
            self.write(f"let {name}")
        elif kind == 1 and any(each.returns > 1 for each in self.scope.functions):
            self.receive_several()
            return
        else:
            self.write(f"let {name} := {self.expression(3)}")
        self.scope.variables.append(name)

    def receive_several(self) -> None:
        function = self.random.choice([each for each in self.scope.functions if each.returns > 1])
        self.receive(self.call_of(function, 1), function.returns)

    def receive(self, call: str, returns: int) -> None:
        """A call as a statement, its values going somewhere."""
        if not returns:
            self.write(call)
            return
        if len(self.scope.variables) >= returns and self.chance(2):
            self.write(f"{', '.join(self.random.sample(self.scope.variables, returns))} := {call}")
            return
        names = [self.name("x") for _ in range(returns)]
        self.write(f"let {', '.join(names)} := {call}")
        self.scope.variables += names

    def assign(self) -> None:
        if not self.scope.variables:
            self.declare()
            return
        self.write(f"{self.random.choice(self.scope.variables)} := {self.expression(3)}")

    def store(self) -> None:
        kind = self.random.randrange(10)
        if kind < 4:
            self.write(f"mstore({self.address(32)}, {self.expression(2)})")
        elif kind < 8:
            self.write(f"sstore({self.key()}, {self.expression(2)})")
        elif kind == 8:
            self.write(f"tstore({self.key()}, {self.expression(2)})")
        else:
            self.write(f"mstore8({self.address(1)}, {self.expression(2)})")

    def copy(self) -> None:
        size = self.random.choice((0, 1, 31, 32, 33, 64))
        target, kind = self.address(size), self.random.randrange(5)
        if kind == 0:
            self.write(f"mcopy({target}, {self.address(size)}, {size})")
        elif kind == 1:
            self.write(f"returndatacopy({target}, 0, {self.random.choice(('0', '1', 'returndatasize()'))})")
        elif kind == 2:
            self.write(f"extcodecopy({self.expression(1)}, {target}, {self.small()}, {size})")
        else:
            self.write(f"{self.random.choice(('calldatacopy', 'codecopy'))}({target}, {self.small()}, {size})")

    def log(self) -> None:
        topics = self.random.randrange(5)
        size = self.random.choice((0, 32, 64))
        words = [self.address(size), str(size), *(self.expression(1) for _ in range(topics))]
        self.write(f"log{topics}({', '.join(words)})")

    def outside(self) -> None:
        if self.chance(5):
            call = f"create({self.small()}, {self.address(32)}, 32)"
        else:
            kind = self.random.choice(list(_CALLS))
            value = [self.small()] if _CALLS[kind] == 7 else []
            sizes = self.random.choice((0, 32)), self.random.choice((0, 32, 64))
            memory = [self.address(sizes[0]), str(sizes[0]), self.address(sizes[1]), str(sizes[1])]
            gas = self.random.choice(("gas()", "5000"))
            call = f"{kind}({', '.join([gas, self.expression(1), *value, *memory])})"
        self.write(f"pop({call})" if self.chance(2) else f"sstore({self.key()}, {call})")

    def call(self) -> None:
        if not self.scope.functions:
            self.assign()
            return
        function = self.random.choice(self.scope.functions)
        self.receive(self.call_of(function, 2), function.returns)

    def condition(self) -> None:
        with self.braces(f"if {self.expression(2)}"):
            self.block(self.random.randrange(0, 4))
            self.leave_somehow()

    def switch(self) -> None:
        self.write(f"switch {self.expression(2)}")
        cases = self.random.sample(_EDGES, self.random.randrange(0, 4))
        for value in cases:
            with self.braces(f"case {value}"):
                self.block(self.random.randrange(0, 3))
                self.leave_somehow()
        if not cases or self.chance(2):
            with self.braces("default"):
                self.block(self.random.randrange(0, 3))

    def loop(self) -> None:
        counter, limit = self.name("i"), self.random.randrange(0, 5)
        condition = self.random.choice(
            (f"lt({counter}, {limit})", f"lt({counter}, {limit})", "1", f"and(1, lt({counter}, 3))")
        )
        with self.braces():
            self.write(f"let {counter} := 0")
            self.scope.fixed.append(counter)
            extra = self.post_statement()
            outside = _Scope(list(self.scope.variables), list(self.scope.fixed), list(self.scope.functions))
            self.write(f"for {{ }} {condition} {{ {counter} := add({counter}, 1) {extra}}}")
            with self.braces():
                self.scope.in_loop = True
                if condition == "1":
                    self.write(f"if gt({counter}, {limit}) {{ break }}")
                self.block(self.random.randrange(1, 4))
            self.scope.variables, self.scope.fixed = outside.variables, outside.fixed

    def post_statement(self) -> str:
        if self.scope.variables and self.chance(3):
            return f"{self.random.choice(self.scope.variables)} := {self.expression(1)} "
        return f"mstore({self.address(32)}, {self.expression(1)}) " if self.chance(4) else ""

    def nested(self) -> None:
        with self.braces():
            if self.indent < 4 and self.chance(3):
                self.declare_functions(1)
            self.block(self.random.randrange(1, 4))

    def leave_somehow(self, often: bool = False) -> None:
        """Sometimes a branch does not come back."""
        if not self.chance(3) and not (often and self.chance(2)):
            return
        ways = ["stop()", f"revert({self.address(32)}, 32)", "revert(0, 0)", "invalid()"]
        ways.append(f"return({self.address(64)}, 64)")
        if self.scope.in_loop:
            ways += ["break", "continue"] * 3
        if self.scope.in_function:
            ways += ["leave"] * 4
        self.write(self.random.choice(ways))

    def discard(self) -> None:
        self.write(f"pop({self.expression(3)})")

    # -- expressions --------------------------------------------------------------------------------------------------

    def expression(self, depth: int) -> str:
        kind = self.random.randrange(12)
        if depth <= 0 or kind < 4:
            return self.leaf()
        if kind < 9:
            return self.operation(depth)
        if kind == 9:
            return self.read(depth)
        if kind >= 10:
            usable = [each for each in self.scope.functions if each.returns == 1]
            if usable and (kind == 10 or any(each.busy for each in usable)):
                return self.call_of(self.random.choice(usable), depth - 1)
        return f"calldataload({self.small()})"

    def operation(self, depth: int) -> str:
        arity = self.random.choice((1, 2, 2, 2, 2, 2, 2, 3))
        name = self.random.choice(_PURE[arity])
        arguments = [self.expression(depth - 1) for _ in range(arity)]
        if arity == 2 and self.chance(8):
            arguments[1] = arguments[0] if "(" not in arguments[0] else arguments[1]
        if name == "exp":
            arguments[1] = self.small()
        return f"{name}({', '.join(arguments)})"

    def read(self, depth: int) -> str:
        kind = self.random.randrange(12)
        if kind < 3:
            return f"mload({self.address(32)})"
        if kind < 6:
            return f"sload({self.key()})"
        if kind == 6:
            return f"tload({self.key()})"
        if kind == 7:
            size = self.random.choice((0, 20, 32, 64))
            return f"keccak256({self.address(size)}, {size})"
        if kind == 8:
            return f"{self.random.choice(('balance', 'extcodesize', 'extcodehash'))}({self.expression(depth - 1)})"
        if kind == 9:
            return "returndatasize()"
        return "msize()" if self.uses_msize and kind == 10 else f"{self.random.choice(_ENVIRONMENT)}()"

    def leaf(self) -> str:
        variables = self.scope.variables + self.scope.fixed
        if variables and self.random.randrange(5) < 3:
            return self.random.choice(variables)
        kind = self.random.randrange(10)
        if kind < 6:
            value = self.random.choice(_EDGES)
            return str(value) if self.chance(2) else hex(value)
        if kind == 6:
            return hex(self.random.getrandbits(self.random.choice((8, 64, 160, 256))))
        if kind == 7:
            return self.random.choice(('"abc"', "true", "false", 'hex"00ff"'))
        return str(self.random.randrange(40))

    def small(self) -> str:
        return str(self.random.choice((0, 0, 1, 4, 31, 32, 36, 64)))

    def key(self) -> str:
        """Of storage: often the same few."""
        return self.expression(1) if self.chance(5) else str(self.random.randrange(4))

    def address(self, size: int) -> str:
        """In memory, with room for this many bytes."""
        if self.guarded:
            if self.chance(3) and size <= 0x40:
                return str(self.random.choice((0, 0x20)) if size <= 0x20 else 0)
            return f"add(mload(0x40), {32 * self.random.randrange(6)})"
        kind = self.random.randrange(10)
        if kind < 7:
            return hex(32 * self.random.randrange(8))
        if kind == 7:
            return str(self.random.randrange(200))
        if kind == 8:
            return f"and({self.expression(1)}, 0xff)"
        return f"add({hex(32 * self.random.randrange(4))}, and({self.leaf()}, 0x7f))"

    def point(self, name: str) -> None:
        """The variable is a pointer. With a memoryguard no code may depend on its number, since the guard may move."""
        if not self.guarded:
            self.scope.fixed.append(name)

    def base(self) -> str:
        """A place in memory with room after it."""
        return "mload(0x40)" if self.guarded else str(self.random.choice((0, 32, 64)))

    def call_of(self, function: YulFunction, depth: int) -> str:
        arguments = [self.expression(depth - 1) for _ in range(function.parameters)]
        if function.bounded:
            arguments[0] = f"and({arguments[0]}, 3)"
        return f"{function.name}({', '.join(arguments)})"


_CHOICES: tuple[tuple[Callable[[ProgramGenerator], None], int], ...] = (
    (ProgramGenerator.declare, 18),
    (ProgramGenerator.assign, 18),
    (ProgramGenerator.store, 16),
    (ProgramGenerator.condition, 10),
    (ProgramGenerator.switch, 5),
    (ProgramGenerator.loop, 7),
    (ProgramGenerator.nested, 3),
    (ProgramGenerator.call, 8),
    (ProgramGenerator.copy, 3),
    (ProgramGenerator.log, 3),
    (ProgramGenerator.outside, 4),
    (ProgramGenerator.discard, 2),
    *IDIOMS,
)
_STATEMENTS = [statement for statement, _ in _CHOICES]
_WEIGHTS = [weight for _, weight in _CHOICES]
