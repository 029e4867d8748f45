"""Random programs about what an optimiser may believe: how large words are, which comparisons hold, what memory holds.

Words are narrowed, computed with, compared, and compared again inside branches; what was stored is read again after
calls that may store, read or end. Constants and calldata lie at each other's bounds: a belief wrong by one shows.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

TOP = 2**256 - 1
_EDGES = (0, 1, 2, 3, 4, 31, 32, 127, 128, 255, 256, 2**64, 2**128, 2**160 - 1, 2**255 - 1, 2**255, TOP - 1, TOP)
_MASKS = (1, 3, 0xF, 0xFF, 0xFF00, 0xFFFF, 2**64 - 1, 2**128 - 1, 2**160 - 1, 2**255)
_COMPARISONS = ("lt", "gt", "lt", "gt", "eq", "slt", "sgt")
_ARITHMETIC = ("add", "add", "sub", "sub", "mul", "mul", "div", "mod", "and", "or", "xor", "shl", "shr", "sdiv")
_ENDS = ("return(0, 64)", "stop()", "revert(0, 64)", "invalid()", "selfdestruct(caller())")
_KINDS = (("mstore", "mload"), ("sstore", "sload"), ("tstore", "tload"))


class BoundsGenerator:
    """One program; the same for the same random numbers."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names: list[str] = []
        self.near: set[int] = {0, 1, TOP}  # words worth calling it with
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.slots = 0
        self.guarded = self.chance(3)  # memory from 128 on is the compiler's
        self.uses_msize = not self.guarded and self.chance(5)

    def text(self) -> str:
        if self.guarded:
            self.lines.append("pop(memoryguard(128))")
        for place in range(self.random.randrange(1, 4)):
            self.let(self.narrowed(f"calldataload({32 * place})"))
        for _ in range(self.random.randrange(5)):
            self.let(self.computed())
        if self.chance(8):
            self.overwritten()
        kinds = (
            self.tested, self.tested, self.checked, self.told, self.remembered,
            self.counted, self.flagged, self.read_before, self.several, self.multiplied,
        )  # fmt: skip
        for _ in range(self.random.randrange(1, 5)):
            self.random.choice(kinds)(2)
        if self.chance(8):
            self.crowded()
        if self.guarded and self.chance(5):
            self.handed_many()
        if self.uses_msize:
            self.lines.append(f"mstore({self.random.choice((128, 300, 700))}, {self.leaf()})")
            self.shown("msize()")
        self.lines.append(self.random.choice(("return(0, 128)", "stop()", "")))
        return "{\n" + "\n".join([*self.lines, *self.functions]) + "\n}"

    def calldata(self) -> bytes:
        return b"".join(self.word().to_bytes(32, "big") for _ in range(3))

    def word(self) -> int:
        known = sorted(self.near)
        found = self.random.choice(known) + self.random.choice((-1, 0, 0, 0, 1))
        return found % (TOP + 1)

    # -- words --------------------------------------------------------------------------------------------------------

    def chance(self, of: int) -> bool:
        return self.random.randrange(of) == 0

    def number(self) -> str:
        number = self.random.choice(_EDGES)
        if self.chance(3):
            number = (number + self.random.choice((-2, -1, 1, 2, 5))) % (TOP + 1)
        self.near.add(number)
        return str(number)

    def name(self) -> str:
        return self.random.choice(self.names)

    def leaf(self) -> str:
        return self.number() if self.chance(3) else self.name()

    def let(self, value: str) -> str:
        name = f"x{len(self.names)}"
        self.lines.append(f"let {name} := {value}")
        self.names.append(name)
        return name

    def narrowed(self, word: str) -> str:
        kind = self.random.randrange(12)
        if kind > 8:
            mask = self.random.choice((*_MASKS, 2, 2**128, 2**192))
            self.near.add(mask)
            return f"or({word}, {mask})"
        if kind < 3:
            mask = self.random.choice(_MASKS)
            self.near.update((mask, mask + 1))
            return f"and({word}, {mask})"
        if kind == 3:
            return f"shr({self.random.choice((1, 96, 128, 192, 240, 248, 255))}, {word})"
        if kind == 4:
            return f"byte({self.random.choice((0, 30, 31))}, {word})"
        if kind == 5:
            size = self.random.choice((0, 0, 1, 7, 15))
            self.near.update((1 << 8 * size + 7, (1 << 8 * size + 7) - 1, (1 << 8 * size + 8) - 1))
            return f"signextend({size}, {word})"
        if kind == 6:
            return f"mod({word}, {self.random.choice((2, 3, 10, 256, 2**128))})"
        return word

    def computed(self) -> str:
        kind = self.random.randrange(8)
        if kind == 0:
            return self.narrowed(self.name() if self.chance(2) else self.computed())
        if kind == 1:
            return f"{self.random.choice(('not', 'iszero'))}({self.name()})"
        if kind == 2:
            return self.comparison()
        if kind == 3:  # a field of a word
            shift = f"{self.random.choice(('shl', 'shr'))}({self.random.choice((4, 8, 16, 64, 128))}, {self.name()})"
            return f"{self.random.choice(('and', 'and', 'or'))}({shift}, {self.random.choice(_MASKS)})"
        operation = self.random.choice(_ARITHMETIC)
        one, other = self.leaf(), self.name()
        if operation.startswith("sh"):
            return f"{operation}({self.random.choice((1, 4, 8, 16, 128, 224, 248, 255, 256))}, {other})"
        return f"{operation}({one}, {other})" if self.chance(2) else f"{operation}({other}, {one})"

    def comparison(self) -> str:
        one = self.computed() if self.chance(4) else self.name()
        other = self.leaf()
        return f"{self.random.choice(_COMPARISONS)}({', '.join(self.random.sample((one, other), 2))})"

    def condition(self, depth: int = 2) -> str:
        kind = self.random.randrange(6 if depth else 2)
        if kind == 0:
            return self.name()
        if kind < 3:
            return self.comparison()
        if kind == 3:
            return f"iszero({self.condition(depth - 1)})"
        operation = self.random.choice(("and", "and", "or"))
        return f"{operation}({self.condition(depth - 1)}, {self.condition(depth - 1)})"

    # -- statements ---------------------------------------------------------------------------------------------------

    def shown(self, value: str) -> None:
        self.slots += 1
        self.lines.append(f"sstore({self.slots}, {value})")

    def inside(self, head: str, write: Callable[[], None]) -> None:
        """What is declared in braces ends with them."""
        known = len(self.names)
        self.lines.append(f"{head} {{")
        write()
        self.lines.append("}")
        # names are never used twice, so those that ended are only hidden
        self.names[known:] = [self.random.choice(self.names[:known]) for _ in self.names[known:]]

    def tested(self, depth: int) -> None:
        """A branch, and what it says asked again in it, in other words."""
        self.inside(f"if {self.condition()}", lambda: self.asked(depth))
        if self.chance(2):
            self.asked(depth - 1)

    def asked(self, depth: int) -> None:
        for _ in range(self.random.randrange(1, 4)):
            if depth > 0 and self.chance(4):
                self.tested(depth - 1)
            else:
                self.shown(self.comparison() if self.chance(2) else self.computed())
        if self.chance(4):
            self.lines.append(self.random.choice(_ENDS))

    def checked(self, depth: int) -> None:
        """Checked arithmetic: a check that cannot fail may go, no other."""
        one, other = self.name(), self.leaf()
        kind = self.random.randrange(5)
        check, result = (
            (f"gt({one}, add({one}, {other}))", f"add({one}, {other})"),
            (f"gt(sub({one}, {other}), {one})", f"sub({one}, {other})"),
            (f"lt({one}, {other})", f"sub({one}, {other})"),
            (
                f"iszero(or(iszero({one}), eq({other}, div(mul({one}, {other}), {one}))))",
                f"mul({one}, {other})",
            ),
            (f"iszero({other})", f"div({one}, {other})"),
        )[kind]
        self.lines.append(f"if {check} {{ {self.random.choice(_ENDS)} }}")
        self.shown(self.let(result))
        self.asked(depth - 1)

    def told(self, depth: int) -> None:
        """A switch: inside a case the word is known."""
        word = self.name()
        self.lines.append(f"switch {word}")
        for number in sorted({int(self.number()) for _ in range(self.random.choice((1, 2, 3, 4, 16)))}):
            self.inside(f"case {number}", lambda: self.shown(self.comparison()))
        if self.chance(2):
            self.inside("default", lambda: self.asked(depth - 1))

    def counted(self, depth: int) -> None:
        """A loop: what is known at its head holds in every round or not at all."""
        name = self.let(self.random.choice(("0", self.name())))
        moves = self.random.choice((f"add({name}, 1)", f"add({name}, 32)", f"sub({name}, 1)", f"shr(1, {name})"))
        rounds = f"r{len(self.names)}"
        bound = self.condition(1) if self.chance(2) else f"lt({name}, {self.leaf()})"
        self.lines.append(f"for {{ let {rounds} := 0 }} and(lt({rounds}, 4), iszero(iszero({bound})))")
        self.lines.append(f"{{ {rounds} := add({rounds}, 1) {name} := {moves} }}")

        def body() -> None:
            self.shown(f"add({self.comparison()}, shl(1, {rounds}))")
            if self.chance(3):
                self.lines.append(f"if {self.condition(1)} {{ {self.random.choice(('break', 'continue'))} }}")

        self.inside("", body)
        self.shown(name)

    def remembered(self, depth: int) -> None:
        """Stored, then perhaps stored over, read or ended by a function that is too much to inline; then read again."""
        store, load = self.random.choice(_KINDS)
        places = self.random.sample(("0", "0", "1", "31", "32", "33", "64", "64" if self.guarded else "300"), 2)
        other = self.random.choice(_KINDS)
        function = f"f{len(self.functions)}"
        acts = self.random.sample(
            (
                f"{store}({places[0]}, add(n, 5))",
                f"{store}({places[1]}, n)",
                f"sstore(0x999, {load}({places[0]}))",
                f"{other[0]}({places[0]}, 3)",
                f"if eq(n, {self.number()}) {{ {self.random.choice(_ENDS)} }}",
                f"r := {load}({places[1]})",
                "r := keccak256(0, 64)",
                "log0(0, 64)",
            ),
            self.random.randrange(1, 4),
        )
        again = f"if lt(n, 3) {{ if n {{ r := {function}(sub(n, 1)) }} }}" if self.chance(2) else ""
        self.functions.append(f"function {function}(n) -> r {{ {again} {' '.join(acts)} }}")
        self.lines.append(f"{store}({places[0]}, {self.leaf()})")
        kind = self.random.randrange(4)
        result = self.let(f"{function}({self.leaf()})") if kind else self.name()
        if kind == 0:
            self.inside(f"if {self.condition(1)}", lambda: self.lines.append(f"pop({function}({self.name()}))"))
        elif kind == 1:
            self.lines.append(f"if {self.condition(1)} {{ {store}({places[1]}, {self.leaf()}) }}")
        if self.chance(2):
            self.lines.append(f"{store}({places[0]}, {self.leaf()})")
        self.shown(f"add({load}({places[0]}), mul({result}, {self.random.choice((0, 1, 3))}))")
        if self.chance(3):
            self.shown(f"{function}({self.name()})")

    def overwritten(self) -> None:
        """Stored twice, and between that a function that may end the frame: a static call halts at the first store."""
        store, function = self.random.choice(("sstore", "tstore")), f"f{len(self.functions)}"
        again = f"if lt(n, 3) {{ if n {{ {function}(sub(n, 1)) }} }}"  # too much to inline
        end = self.random.choice(("revert(0, 64)", *_ENDS))
        ends = f"if {self.random.choice(_COMPARISONS)}(n, {self.number()}) {{ {end} }}"
        self.functions.append(f"function {function}(n) {{ {again} {ends} }}")
        self.lines += [f"{store}(0, {self.leaf()})", f"{function}({self.name()})", f"{store}(0, {self.leaf()})"]

    def flagged(self, depth: int) -> None:
        """A word that says which way was taken, asked for where the ways are one again."""
        flag = self.let(self.random.choice(("0", "0", "1", self.leaf())))
        for _ in range(self.random.randrange(1, 3)):
            self.lines.append(f"if {self.condition(1)} {{ {flag} := {self.random.choice(('0', '1', self.leaf()))} }}")
        self.tested(depth - 1)
        self.inside(f"if {self.random.choice((flag, f'iszero({flag})', f'eq({flag}, 1)'))}", lambda: self.asked(0))
        if self.chance(2):
            self.shown(flag)

    def read_before(self, depth: int) -> None:
        """Read, then stored over; the old word is used later, and perhaps on one way alone."""
        store, load = self.random.choice(_KINDS)
        place = self.random.choice(("0", "32", "64" if self.guarded else "300"))
        old = self.let(f"{load}({place})")
        self.lines.append(f"{store}({place}, {self.random.choice((self.leaf(), f'add({old}, 1)'))})")
        if self.chance(2):
            self.inside(f"if {self.condition(1)}", lambda: self.shown(f"add({old}, {self.leaf()})"))
        else:
            self.shown(f"sub({old}, {self.leaf()})")
        if self.chance(2):
            self.shown(f"{load}({place})")

    def several(self, depth: int) -> None:
        """A function of several results, each of its own kind, called once or twice."""
        function, count = f"f{len(self.functions)}", self.random.randrange(2, 4)
        results = [f"r{number}" for number in range(count)]
        values = [self.random.choice(("a", "add(b, 1)", "sub(a, b)", "lt(a, b)", "7", "b")) for _ in results]
        sets = [f"{result} := {value}" for result, value in zip(results, values, strict=True)]
        self.random.shuffle(sets)
        leaves = (
            f"if {self.random.choice(('a', 'b', 'lt(a, b)'))} {{ {results[0]} := b leave }}" if self.chance(2) else ""
        )
        again = f"if lt(a, 3) {{ if a {{ {results[-1]}, {', '.join(results[:-1])} := {function}(sub(a, 1), b) }} }}"
        self.functions.append(
            f"function {function}(a, b) -> {', '.join(results)} {{ "
            f"{again if self.chance(2) else ''} {sets[0]} {leaves} {' '.join(sets[1:])} }}"
        )
        for _ in range(self.random.choice((1, 1, 2))):
            names = [f"y{len(self.names)}_{number}" for number in range(count)]
            self.lines.append(f"let {', '.join(names)} := {function}({self.leaf()}, {self.name()})")
            self.names += names
            for name in names:
                self.shown(name)

    def multiplied(self, depth: int) -> None:
        """Products of words that are not zero may be."""
        one, other = self.name(), self.name()

        def asked() -> None:
            product = self.let(f"mul({one}, {other})")
            self.shown(f"iszero({product})")
            self.shown(f"{self.random.choice(_COMPARISONS)}({product}, {self.leaf()})")

        self.inside(f"if {self.random.choice((one, f'gt({one}, {self.number()})', f'and({one}, {other})'))}", asked)

    def crowded(self) -> None:
        """More words than the stack reaches, all used at the end; perhaps in a function that calls itself."""
        function = f"f{len(self.functions)}"
        count, taken = self.random.randrange(10, 22), self.random.randrange(1, 13)
        params = [f"p{number}" for number in range(taken)]
        words = [f"w{number}" for number in range(count)]
        known = [*params]
        body = []
        for word in words:
            made = self.random.choice((f"add({self.random.choice(known)}, {len(known)})", f"sload({len(known)})"))
            body.append(f"let {word} := {made}")
            known.append(word)
        if self.chance(2):
            body.append(f"sstore({self.random.choice(params)}, {words[-1]})")  # so that no load can wait
        if self.chance(2):
            arguments = [self.random.choice(known) for _ in params[1:]]
            inner = f"{function}({', '.join(['sub(p0, 1)', *arguments])})"
            body.append(f"if lt(p0, 3) {{ if p0 {{ r := {inner} }} }}")
        if self.chance(2):
            changed = self.random.sample(known, self.random.choice((1, 3, len(known) // 2, len(known))))
            moves = " ".join(f"{one} := xor({other}, i)" for one, other in zip(changed, changed[::-1], strict=True))
            body.append(f"for {{ let i := 0 }} lt(i, 2) {{ i := add(i, 1) }} {{ {moves} }}")
        self.random.shuffle(known)
        body += [f"r := add(mul(r, 3), {word})" for word in known]
        self.functions.append(f"function {function}({', '.join(params)}) -> r {{ {' '.join(body)} }}")
        for _ in range(self.random.choice((1, 2))):
            self.shown(f"{function}({', '.join(self.leaf() for _ in params)})")

    def handed_many(self) -> None:
        """As many arguments as the stack reaches, with words read before any is used: some are kept in memory."""
        function = f"f{len(self.functions)}"
        params = [f"p{number}" for number in range(self.random.randrange(12, 16))]
        words = [f"w{number}" for number in range(self.random.randrange(4, 9))]
        loads = [f"let {word} := sload({number})" for number, word in enumerate(words)]
        stores = [f"sstore({100 + number}, {param})" for number, param in enumerate(params)]
        sums = [
            f"sstore({200 + number}, add({param}, {self.random.choice(words)}))" for number, param in enumerate(params)
        ]
        self.functions.append(f"function {function}({', '.join(params)}) {{ {' '.join([*loads, *stores, *sums])} }}")
        for _ in range(2):  # called once, it would be inlined
            self.lines.append(f"{function}({', '.join(self.leaf() for _ in params)})")
