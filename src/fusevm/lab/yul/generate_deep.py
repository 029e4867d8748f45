"""Random programs with about as many values at once as DUP and SWAP reach: across calls of themselves, and in sums.

Half of them have a memoryguard. Whether such a program fits is a matter of layout, order and spilling.
"""

from __future__ import annotations

from random import Random

from fusevm.lab.yul.generate_contracts import ContractGenerator, YulContract, without_own_code
from fusevm.lab.yul.generate_functions import YulFunction
from fusevm.lab.yul.generate_statements import crowded


def deep_contract(seed: int) -> YulContract:
    """The same for the same seed."""
    random = Random(f"deep {seed}")
    return _Deep(random, random.randrange(2) == 0, 5).contract()


class _Deep(ContractGenerator):
    def contract(self) -> YulContract:
        with self.braces():
            self.write(f"mstore(0x40, {'memoryguard(0x80)' if self.guarded else '0x80'})")
            if self.chance(2):
                self.declare_functions(1)
            for _ in range(self.random.choice((1, 1, 2))):
                self.scope.functions.append(self.recursive())
            self.inputs()
            for function in self.scope.functions:
                self.receive(self.call_of(function, 1), function.returns)
            if self.chance(3):
                self.sum_between_calls()
            if self.chance(4):
                crowded(self)
            self.block(1)
            self.finish()
            self.write_helpers()
        calls = tuple([self.call_data() for _ in range(6)])
        return YulContract(without_own_code("\n".join(self.lines)), calls)

    def recursive(self) -> YulFunction:
        """Keeps values while it calls itself, some of them in a loop, as a search does."""
        random = self.random
        function = YulFunction(self.name("f"), random.randrange(2, 9), random.randrange(1, 4), bounded=True)
        parameters = [self.name("p") for _ in range(function.parameters)]
        returns = [self.name("r") for _ in range(function.returns)]
        with self.braces(f"function {function.name}({', '.join(parameters)}) -> {', '.join(returns)}"):
            bound = parameters[0]
            self.scope.variables, self.scope.fixed = [*parameters[1:], *returns], [bound]
            self.scope.in_function = True
            for _ in range(random.randrange(3, 19 - len(parameters) - len(returns))):
                self.remember()
            head, counter = f"if {bound}", self.name("i")
            loops = self.chance(4)
            if loops:
                head = (
                    f"for {{ let {counter} := 0 }} lt({counter}, and({bound}, 1)) {{ {counter} := add({counter}, 1) }}"
                )
            with self.braces(head):
                self.scope.fixed += [counter] * loops
                for _ in range(random.choice((1, 1, 2))):
                    if self.chance(3):
                        self.remember()
                    rest = [self.expression(1) for _ in parameters[1:]]
                    self.receive(f"{function.name}({', '.join([f'sub({bound}, 1)', *rest])})", function.returns)
            self.block(1)
            kept = [name for name in self.scope.variables if name[0] in "wp"]
            for _ in range(random.choice((1, 1, 2))):
                self.write(f"sstore({self.key()}, {self.chained(random.sample(kept, len(kept)))})")
            self.write(f"{returns[0]} := {self.chained([*returns, *random.sample(kept, len(kept) // 2)])}")
        return function

    def remember(self) -> None:
        name, number = self.name("w"), self.random.randrange(24)
        word = self.random.choice((f"sload({number})", f"sload({number})", self.unknown(), self.expression(2)))
        self.write(f"let {name} := {word}")
        self.scope.variables.append(name)

    def chained(self, names: list[str]) -> str:
        total = names[0]
        for name in names[1:]:
            total = f"{self.random.choice(('add', 'sub', 'xor', 'and'))}({total}, {name})"
        return total

    def sum_between_calls(self) -> None:
        """Operands are evaluated from the last to the first: all of them wait on the stack for the innermost."""
        called = [each for each in self.scope.functions if each.returns == 1]
        words = [f"sload({number})" for number in range(self.random.randrange(10, 22))]
        if called:
            for _ in range(self.random.randrange(1, 4)):
                words.insert(self.random.randrange(len(words)), self.call_of(self.random.choice(called), 1))
        self.write(f"sstore({self.key()}, {self.chained(words)})")
