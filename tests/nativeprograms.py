"""The same small programs on the native tiers and the reference tier, which must agree on all that can be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from fusevm import EVM, Block, Hooks, Result
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import fork_named
from programs import CALLER, HERE

NATIVE = ("native", "native-unfused")
Programs = Mapping[bytes, str | bytes]


class Seen(NamedTuple):
    """All a caller can see of a call."""

    status: str
    gas_used: int
    refund: int
    output: bytes
    error: str | None  # with reason and pc
    address: bytes | None
    logs: list[Any]
    accounts: dict[bytes, tuple[int, int, bytes, dict[int, int]]]

    @property
    def word(self) -> int:
        """The first word of the output."""
        return int.from_bytes(self.output[:32], "big")


class Case:
    """Some contracts and how the first of them is called."""

    def __init__(
        self,
        program: str | bytes,
        others: Programs | None = None,
        *,
        fork: str = "osaka",
        data: bytes = b"",
        value: int = 0,
        static: bool = False,
        block: Block | None = None,
        prepare: Callable[[EVM], object] | None = None,
        transact: dict[str, Any] | None = None,
    ) -> None:
        rules = fork_named(fork)
        programs = {HERE: program, **(others or {})}
        self.codes = {to: code if isinstance(code, bytes) else assemble(code, rules) for to, code in programs.items()}
        self.fork, self.data, self.value, self.static, self.block = fork, data, value, static, block
        self.prepare = prepare
        self.transact = transact

    def machine(self, tier: str, hooks: Hooks | None = None) -> EVM:
        evm = EVM(self.fork, tier, block=self.block, hooks=hooks)
        for address, code in self.codes.items():
            evm.set_code(address, code)
        evm.set_balance(CALLER, 10**30)
        if self.prepare is not None:
            self.prepare(evm)
        return evm

    def call(self, evm: EVM, gas: int) -> Result:
        if self.transact is not None:
            return evm.transact(CALLER, HERE, self.data, value=self.value, gas=gas, **self.transact)
        return evm.call(HERE, self.data, caller=CALLER, value=self.value, gas=gas, static=self.static)

    def seen(self, tier: str, gas: int) -> Seen:
        evm = self.machine(tier)
        return seen(evm, self.call(evm, gas))

    def critical_gas(self, gas: int) -> list[int]:
        """The limits at which each instruction of the first frame can just be paid, one less, and one more."""
        steps: list[int] = []
        evm = self.machine(
            "reference", Hooks(on_opcode=lambda step: steps.append(step.gas) if not step.depth else None)
        )
        used = self.call(evm, gas).gas_used
        costs = {gas - left for left in steps} | {used}
        return sorted({cost + by for cost in costs for by in (-1, 0, 1) if 0 <= cost + by <= gas})


def seen(evm: EVM, result: Result) -> Seen:
    accounts = {
        address: (each.nonce, each.balance, each.code, dict(each.storage)) for address, each in evm.state.items()
    }
    return Seen(
        result.status.name,
        result.gas_used,
        result.gas_refunded,
        result.output,
        result.error,
        result.address,
        [tuple(log) for log in result.logs],
        accounts,
    )


def agreed(case: Case | str | bytes, gas: int = 1_000_000, tiers: Iterable[str] = NATIVE) -> Seen:
    """What the reference tier and all the others see."""
    case = case if isinstance(case, Case) else Case(case)
    expected = case.seen("reference", gas)
    for tier in tiers:
        found = case.seen(tier, gas)
        for name, ours, theirs in zip(Seen._fields, found, expected, strict=True):
            assert ours == theirs, f"{name} on {tier} with gas {gas}: {ours}, not {theirs}; {_listed(case)}"
    return expected


def agreed_at_every_gas(case: Case | str | bytes, gas: int = 1_000_000, most: int = 700) -> Seen:
    """Also where it falls short of gas: at every unit, or around every instruction where that would be too many."""
    case = case if isinstance(case, Case) else Case(case)
    expected = agreed(case, gas)
    used = expected.gas_used
    limits: Iterable[int] = range(used + 2) if used <= most else case.critical_gas(gas)
    for limit in limits:
        agreed(case, limit)
    return expected


def _listed(case: Case) -> str:
    return ", ".join(f"0x{address.hex()[:8]}: {code.hex()}" for address, code in case.codes.items())
