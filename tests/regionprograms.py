"""Small programs on regions and on the reference tier, which must agree on all that can be seen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import Executor, Outcome
from fusevm.chain.processing import warm_up
from fusevm.chain.state import State
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import fork_named
from fusevm.native.host.all_regions import Regions
from fusevm.native.host.engine import NativeEngine
from fusevm.native.region.build import Choose
from fusevm.native.region.choice import every_block
from fusevm.reference.interpreter import execute as execute_reference
from fusevm.schedule.build import Schedule
from programs import CALLER, HERE

# A function: [return address, argument] -> [argument * 3]
TRIPLE = "triple: JUMPDEST PUSH1 3 MUL SWAP1 JUMP"
ANSWER = " PUSH0 MSTORE PUSH1 32 PUSH0 RETURN "
SUM = (  # of the numbers below the first word of the data
    "PUSH0 CALLDATALOAD PUSH0 PUSH0 loop: JUMPDEST DUP3 DUP2 LT ISZERO PUSH2 @end JUMPI "
    "DUP1 DUP3 ADD SWAP2 POP PUSH1 1 ADD PUSH2 @loop JUMP end: JUMPDEST POP" + ANSWER
)


class Program:
    """A contract whose code is compiled to regions, and how it is called."""

    def __init__(
        self,
        code: str | bytes,
        *,
        data: bytes | int = b"",
        choose: Choose = every_block,
        speed: int = 0,
        static: bool = False,
        fork: str = "osaka",
        storage: dict[int, int] | None = None,
        others: dict[bytes, str] | None = None,
    ) -> None:
        self.fork = fork_named(fork)
        self.code = assemble(code, self.fork) if isinstance(code, str) else code
        self.data = data.to_bytes(32, "big") if isinstance(data, int) else data
        self.static, self.storage, self.others = static, storage or {}, others or {}
        self.engine = NativeEngine(regions=Regions(choose, speed))

    @property
    def schedule(self) -> Schedule:
        """Once it has run."""
        return self.engine.codes.schedules[self.code, self.fork]

    @property
    def patched(self) -> list[int]:
        """The places where regions are entered, once it has run."""
        made = self.schedule
        return [
            pc for pc, at in enumerate(made.jumps) if at and made.twin and made.words[at] != made.words[at + made.twin]
        ]

    def seen(self, execute: Executor, gas: int) -> tuple[Any, ...]:
        state = State()
        state.set_code(HERE, self.code)
        for address, code in self.others.items():
            state.set_code(address, assemble(code, self.fork))
        for key, value in self.storage.items():
            state.set_storage(HERE, key, value)
        state.begin_transaction()
        context = Context(self.fork, Block(number=300))
        warm_up(state, context, CALLER, HERE)
        message = Message(CALLER, HERE, self.code, self.data, gas=gas, static=self.static)
        found: Outcome = execute(message, state, context)
        state.settle()
        storage = {key: value for key, value in state.account(HERE).storage.items() if value}
        logs = [(log.address, tuple(log.topics), log.data) for log in state.logs]
        return found.status.name, found.gas_left, found.output, str(found.failure), state.refund, storage, logs

    def agreed(self, gas: int = 1_000_000) -> tuple[Any, ...]:
        expected = self.seen(execute_reference, gas)
        found = self.seen(self.engine.execute, gas)
        assert found == expected, f"gas {gas}, {self.code.hex()}: {found}, not {expected}"
        assert self.engine.reruns == 0
        return expected

    def agreed_at(self, limits: Iterable[int]) -> None:
        for gas in limits:
            self.agreed(gas)

    def agreed_at_every_gas(self, gas: int = 1_000_000) -> tuple[Any, ...]:
        """Also with every amount of gas that is not enough, and with one unit more than enough; of many, the least."""
        expected = self.agreed(gas)
        self.agreed_at(range(min(gas - expected[1] + 2, 700)))
        return expected


def word(seen: tuple[Any, ...]) -> int:
    return int.from_bytes(seen[2], "big")
