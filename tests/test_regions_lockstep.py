"""Lockstep with regions: what they leave is compared with the reference tier, and planted errors are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from llvmlite import ir

from fusevm import EVM
from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import Disagreement, Outcome, Status
from fusevm.chain.state import State
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.ir.values import FrameState, Value
from fusevm.native.host import engine as host
from fusevm.native.host.all_regions import Regions
from fusevm.native.host.engine import NativeEngine
from fusevm.native.host.lockstep import Lockstep
from fusevm.native.host.settings import Setting
from fusevm.native.host.tiers import of_threads
from fusevm.native.region import ops
from fusevm.native.region.choice import every_block
from fusevm.native.region.emit import FunctionEmitter
from fusevm.native.region.state import FunctionState
from programs import CALLER, HERE, OTHER
from regionprograms import SUM, TRIPLE

CALLS = f"PUSH1 @back PUSH1 5 PUSH1 @triple JUMP back: JUMPDEST PUSH0 MSTORE JUMPDEST STOP {TRIPLE}"
FAILS = "PUSH1 1 PUSH1 7 SSTORE PUSH1 9 PUSH2 0x4000 MSTORE PUSH1 5 PUSH1 6 SSTORE STOP"


def lockstep() -> Lockstep:
    return Lockstep(NativeEngine(Setting(compared=True), regions=Regions(every_block, 0)))


def execute(pair: Lockstep, program: str, gas: int = 100_000, data: bytes = b"", *, callee: str = "STOP") -> Outcome:
    state = State()
    code = assemble(program)
    state.set_code(HERE, code)
    state.set_code(OTHER, assemble(callee))
    state.set_balance(HERE, 1)
    state.begin_transaction()
    return pair.execute(Message(CALLER, HERE, code, data, gas=gas), state, Context(LATEST, Block()))


def test_a_loop_is_compared_where_it_is_left() -> None:
    pair = lockstep()
    assert execute(pair, SUM, data=(40).to_bytes(32, "big")).status is Status.SUCCESS
    assert pair.compared < 5  # not at each of its rounds
    assert pair.engine.reruns == 0


def test_a_region_that_fails_is_compared_where_its_failure_is_replayed_from() -> None:
    pair = lockstep()
    outcome = execute(pair, "JUMPDEST " + FAILS, 25_000)
    assert "out of gas" in str(outcome.failure)
    assert pair.failures == 1


def test_memory_that_grew_before_its_block_was_begun_again_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "JUMPDEST PUSH1 1 PUSH2 0x400 MSTORE JUMPDEST NUMBER POP NUMBER POP NUMBER POP JUMPDEST STOP"
    for gas in range(20, 160, 5):
        monkeypatch.setattr(host, "SLICE", gas)
        assert execute(lockstep(), program).status is Status.SUCCESS


def test_a_word_that_is_looked_at_in_part_is_whole_where_a_failure_is_replayed_from() -> None:
    program = (
        "PUSH1 @on JUMP on: JUMPDEST PUSH0 CALLDATALOAD DUP1 MUL PUSH2 0x4000 PUSH1 9 LOG0 "
        "PUSH1 255 AND PUSH1 @end JUMP end: JUMPDEST PUSH0 SSTORE STOP"
    )
    pair = lockstep()
    assert execute(pair, program, 5_000, data=bytes(range(1, 33))).status is Status.HALT
    assert pair.failures == 1


def test_a_callee_may_fail_in_a_region_before_its_caller_was_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "SLICE", 400)
    pair = lockstep()
    calls = f"PUSH0 PUSH0 PUSH0 PUSH0 PUSH1 1 PUSH20 0x{OTHER.hex()} PUSH0 CALL PUSH0 MSTORE PUSH1 32 PUSH0 RETURN"
    outcome = execute(pair, calls, callee="PUSH0 BALANCE JUMPDEST STOP")  # the stipend does not pay for BALANCE
    assert (outcome.status, outcome.output[-1]) == (Status.SUCCESS, 0)
    assert pair.failures == 1


def test_it_is_a_tier() -> None:
    evm = EVM(tier="lockstep-regions")
    evm.set_code(HERE, assemble(SUM))
    pair = of_threads(Setting(regions=True, compared=True)).lockstep()
    before = pair.compared
    assert evm.call(HERE, (10).to_bytes(32, "big")).output[-1] == 45
    assert pair.compared > before


def planted(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, change: Callable[..., object]) -> Lockstep:
    monkeypatch.setattr(owner, name, change)
    return lockstep()


def test_a_wrong_charge_of_gas_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FunctionEmitter._block

    def cheaper(self: FunctionEmitter, block: object) -> None:
        block.gas -= 1  # type: ignore[attr-defined]
        whole(self, block)  # type: ignore[arg-type]

    pair = planted(monkeypatch, FunctionEmitter, "_block", cheaper)
    with pytest.raises(Disagreement, match="gas differs at depth 0"):
        execute(pair, CALLS)


def test_a_word_that_is_not_written_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FunctionState.displaced
    pair = planted(monkeypatch, FunctionState, "displaced", lambda self, words: whole(self, words[:-1]))
    with pytest.raises(Disagreement, match="stack differs at depth 0"):
        execute(pair, "JUMPDEST NUMBER PUSH1 3 ADD NUMBER PUSH1 4 ADD JUMPDEST STOP")


def test_wrong_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def reversed_store(state: FunctionState, value: Value) -> None:
        offset, word = value.args
        place = state.build.gep(state.memory, [state.limb(offset)], source_etype=ir.IntType(8))
        state.build.store(state.word(word), place, align=1)

    pair = planted(monkeypatch, ops, "OPS", ops.OPS | {"MSTORE": reversed_store})
    with pytest.raises(Disagreement, match="memory differs"):
        execute(pair, CALLS)


def test_leaving_to_another_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FunctionState.continue_at
    first: list[int] = []

    def elsewhere(self: FunctionState, pc: int, words: tuple[Value, ...]) -> None:
        first.append(pc)
        whole(self, min(self.unpatched), words)

    pair = planted(monkeypatch, FunctionState, "continue_at", elsewhere)
    with pytest.raises(Disagreement):
        execute(pair, CALLS)
    assert first


def test_a_failure_that_leaves_too_much_gas_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FunctionState.fail
    kept: list[FrameState] = []

    def richer(self: FunctionState, state: FrameState, why: ir.Value) -> None:
        kept.append(state._replace(gas=state.gas + 1))
        whole(self, kept[-1], why)

    pair = planted(monkeypatch, FunctionState, "fail", richer)
    with pytest.raises(Disagreement, match="gas differs at depth 0"):
        execute(pair, "JUMPDEST " + FAILS, 25_000)
