"""Random contracts for the back end: dispatchers, checked arithmetic, ABI decoding, many live values, calls outside.

Beside the statements of `generate.py` these write what the back end has a pass for. Everything is defined for any
bytecode of the program: gas() is handed to calls or compared with what every run has, code is measured only by names.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from fusevm.lab.yul import generate
from fusevm.lab.yul.generate import ProgramGenerator
from fusevm.lab.yul.generate_functions import YulFunction
from fusevm.lab.yul.generate_solidity import with_what_they_call
from fusevm.lab.yul.generate_statements import MASKS, STATEMENTS, WEIGHTS, crowded

_SMALL_WORDS = (0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 7, 31, 32, 33, 64, 100, 255, 256)


@dataclass(frozen=True, slots=True)
class YulContract:
    """What is compiled, and the calls that are made to it."""

    source: str
    calls: tuple[tuple[bytes, int], ...]  # calldata and value
    deploys: bool = False  # the code is creation code that leaves the contract


def random_contract(seed: int, statements: int | None = None) -> YulContract:
    """The same for the same seed and size; `statements` as for `random_program`."""
    random = Random(f"contract {seed}")
    return ContractGenerator(random, random.randrange(2) == 0, statements).contract()


def without_own_code(source: str) -> str:
    """The program without what distinguishes one bytecode of it from another: reading its own code."""
    source = source.replace("codecopy(", "calldatacopy(").replace("extcalldatacopy(", "extcodecopy(")
    source = source.replace("address()", "origin()").replace("self()", "address()")
    return source.replace("beyond_code(", "codecopy(")


class ContractGenerator(ProgramGenerator):
    def __init__(self, random: Random, guarded: bool, statements: int | None = None) -> None:
        super().__init__(random, guarded, statements)
        self.helpers: set[str] = set()
        self.selectors: list[int] = []
        self.immutables: list[str] = []
        self.makes_child = False
        self.uses_msize = not guarded and self.chance(4)

    # -- the whole ----------------------------------------------------------------------------------------------------

    def contract(self) -> YulContract:
        deploys = self.chance(4)
        if deploys:
            self.immutables = [f"immutable {number}" for number in range(self.random.randrange(4))]
            self.makes_child = self.chance(3)
        text = self.dispatching() if self.chance(2) else self.plain()
        text = without_own_code(text)
        if deploys:
            text = self.deploying(text)
        return YulContract(text, tuple([self.call_data() for _ in range(8)]), deploys)

    def plain(self) -> str:
        with self.braces():
            self.write(f"mstore(0x40, {'memoryguard(0x80)' if self.guarded else '0x80'})")
            self.declare_functions(self.several(0, 4))
            self.inputs()
            if self.is_small and self.chance(12):  # large programs come to as many values by themselves
                crowded(self)
            self.block(self.several(4, 10))
            self.finish()
            self.write_helpers()
        return "\n".join(self.lines)

    def write_helpers(self) -> None:
        for text in with_what_they_call(self.helpers):
            self.write(text)

    def dispatching(self) -> str:
        """The shape of a contract as compilers write it."""
        sizes = (1, 1, 1, 2, 3, 6) if self.is_small else (1, 2, 3, 5, 9, 17)
        self.selectors = [self.random.getrandbits(32) for _ in range(self.random.choice(sizes))]
        if not self.is_small:
            self.statements = max(self.statements, 4 * min(len(self.selectors), 6))
        refuses = self.random.choice(("all", "all", "some", "none"))
        with self.braces():
            self.write(f"mstore(0x40, {'memoryguard(0x80)' if self.guarded else '0x80'})")
            head = self.random.choice(("if iszero(lt(calldatasize(), 4))", "if gt(calldatasize(), 3)", ""))
            with self.braces(head):
                self.write("switch shr(224, calldataload(0))")
                for number, selector in enumerate(self.selectors):
                    self.write(f"case {selector:#010x} {{ outer_{number}() }}")
                if self.chance(2):
                    self.write(f"default {{ {self.random.choice(('', 'revert(0, 0)', 'sstore(99, callvalue())'))} }}")
            self.write(self.random.choice(("revert(0, 0)", "stop()", "")))
            self.declare_functions(self.several(0, 3))
            for number in range(len(self.selectors)):
                self.outer(number, refuses == "all" or (refuses == "some" and self.chance(2)))
            self.write_helpers()
        return "\n".join(self.lines)

    def outer(self, number: int, refuses: bool) -> None:
        """An external function: what it is called with is decoded, what it finds is encoded."""
        count = self.random.randrange(4)
        names = [self.name("p") for _ in range(count)]
        with self.braces(f"function outer_{number}()"):
            self.scope.variables, self.scope.fixed, self.scope.in_function = [], [], False
            if refuses:
                self.write(self.random.choice(("if callvalue() { revert(0, 0) }", "if callvalue() { refuse() }")))
                self.helpers.add("refuse")
            if count:
                self.helpers.add(f"decode_{count}")
                self.write(f"let {', '.join(names)} := decode_{count}(4, calldatasize())")
            self.scope.variables += names
            self.inputs()
            self.block(self.several(1, 4))
            self.answer()

    def answer(self) -> None:
        kind = self.random.randrange(4)
        if kind == 0:
            self.helpers.update(("allocate", "encode_1"))
            at = self.name("m")
            self.write(f"let {at} := allocate({self.random.choice((32, 33, 64))})")
            self.write(f"return({at}, sub(encode_1({at}, {self.expression(1)}), {at}))")
        elif kind == 1:
            self.helpers.add("encode_2")
            at, tail = self.name("m"), self.name("m")
            self.write(f"let {at} := mload(64)")
            self.write(f"let {tail} := encode_2({at}, {self.expression(1)}, {self.expression(1)})")
            self.write(f"return({at}, sub({tail}, {at}))")
        elif kind == 2:
            self.write(f"mstore(0, {self.expression(2)}) return(0, 32)")
        else:
            self.write("return(0, 0)")

    def deploying(self, text: str) -> str:
        """Creation code around the contract, which fills its immutables in."""
        size = 'datasize("Contract")'
        words = ("caller()", "callvalue()", "timestamp()", "7", "x")
        at, head = ("at", "mstore(64, memoryguard(0x80)) let at := mload(64)") if self.guarded else ("0", "")
        sets = "\n".join(f'setimmutable({at}, "{name}", {self.random.choice(words)})' for name in self.immutables)
        child = 'object "Child" { code { sstore(0, add(sload(0), 1)) mstore(0, number()) return(0, 32) } }'
        return (
            f'object "Creation" {{ code {{ {head} let x := add(caller(), 5) sstore(77, x)\n'
            f'datacopy({at}, dataoffset("Contract"), {size})\n{sets}\nreturn({at}, {size}) }}\n'
            f'object "Contract" {{ code {text}\n{child if self.makes_child else ""}\n'
            'data "table" hex"00112233445566778899" } }'
        )

    def call_data(self) -> tuple[bytes, int]:
        random = self.random
        head = b""
        if self.selectors and random.randrange(8):
            head = random.choice(self.selectors).to_bytes(4, "big")
        elif random.randrange(2):
            head = random.randbytes(random.randrange(5))
        words = [self.word() for _ in range(random.choice((0, 1, 2, 3, 3, 4, 5)))]
        data = head + b"".join(word.to_bytes(32, "big") for word in words) + bytes(random.choice((0, 0, 0, 1, 31)))
        return data, random.choice((0, 0, 0, 0, 1, 10**6))

    def word(self) -> int:
        kind = self.random.randrange(4)
        if kind < 2:
            return self.random.choice(_SMALL_WORDS)
        return self.random.choice(generate._EDGES) if kind == 2 else self.random.getrandbits(256)

    # -- parts --------------------------------------------------------------------------------------------------------

    def statement(self) -> None:
        if self.statements > 0 and self.indent <= 6 and self.chance(2):
            self.statements -= 1
            self.random.choices(STATEMENTS, WEIGHTS)[0](self)
        else:
            super().statement()

    def declare_functions(self, count: int) -> None:
        super().declare_functions(count)
        if self.indent < 3 and self.chance(3):
            self.scope.functions.append(self.many_values())
        if self.indent < 3 and self.chance(4):
            self.scope.functions.append(self.circle())

    def many_values(self) -> YulFunction:
        """A function with many parameters and results."""
        function = YulFunction(self.name("f"), self.random.randrange(4, 13), self.random.randrange(1, 8))
        self.define(function)
        return function

    def circle(self) -> YulFunction:
        """Two mutually recursive functions, with a bounded depth."""
        one, other = YulFunction(self.name("f"), 2, 1, bounded=True), self.name("f")
        with self.braces(f"function {one.name}(n, x) -> r"):
            self.scope.variables, self.scope.fixed = ["x"], ["n"]
            self.write(f"r := {self.expression(1)}")
            self.write(f"if n {{ r := xor(r, {other}(sub(n, 1), {self.expression(1)})) }}")
        with self.braces(f"function {other}(n, x) -> r"):
            self.scope.variables, self.scope.fixed = ["x"], ["n"]
            self.write(f"r := {self.expression(1)}")
            self.write(f"if n {{ r := add({one.name}(sub(n, 1), x), r) {self.random.choice(('leave', ''))} }}")
            self.write(f"sstore({self.key()}, r)")
        return one

    def leaf(self) -> str:
        """Often a word that is not known beforehand, or one of a known range."""
        inner = self.unknown() if self.chance(4) else super().leaf()
        if not self.chance(5):
            return inner
        kind = self.random.randrange(8)
        if kind < 4:
            return f"and({inner}, {self.random.choice(MASKS):#x})"
        if kind == 4:
            return f"shr({self.random.choice((1, 96, 128, 224, 248, 255))}, {inner})"
        if kind == 5:
            return f"byte({self.random.choice((0, 31, 7))}, {inner})"
        if kind == 6 and self.immutables:
            return f'loadimmutable("{self.random.choice(self.immutables)}")'
        return f"iszero({inner})"

    def unknown(self) -> str:
        return f"calldataload({self.random.choice((0, 4, 4, 36, 36, 68))})"

    def inputs(self) -> None:
        """A few variables that no optimiser knows."""
        for _ in range(self.random.randrange(1, 4)):
            name = self.name("c")
            self.write(
                f"let {name} := {self.random.choice((self.unknown(), self.unknown(), 'sload(2)', 'callvalue()'))}"
            )
            self.scope.variables.append(name)

    def leave_somehow(self, often: bool = False) -> None:
        if self.chance(25):
            self.write("selfdestruct(caller())")
        else:
            super().leave_somehow(often)

    def masked(self, mask: int) -> str:
        return f"and({self.leaf()}, {mask:#x})"
