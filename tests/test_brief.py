"""New code is first tried in the reference tier, if it ends soon; whoever asks for a tier by name gets that tier."""

from __future__ import annotations

import pytest

from fusevm import EVM
from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import EngineLimit, Status
from fusevm.chain.state import State
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.native.engine import engine
from fusevm.reference.brief import execute_briefly
from programs import HERE, NOBODY, OTHER, call, deployer

SPIN = "PUSH2 {times} loop: JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH1 @loop JUMPI POP "
PADDING = bytes(600)
EFFECTS = f"PUSH1 7 PUSH1 1 SSTORE PUSH1 8 PUSH1 2 TSTORE PUSH0 PUSH0 LOG0 {call(NOBODY, value=1)} POP "


def scheduled(code: bytes) -> bool:
    return (code, LATEST) in engine().codes.schedules


def test_the_first_call_of_large_code_prepares_nothing_and_the_second_does() -> None:
    code = assemble("PUSH1 5 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN") + PADDING + b"first"
    evm = EVM()
    evm.set_code(HERE, code)
    first = evm.call(HERE)
    assert not scheduled(code)
    assert evm.call(HERE) == first
    assert scheduled(code)


def test_a_tier_asked_for_by_name_runs_at_once() -> None:
    code = assemble("PUSH1 5 PUSH0 MSTORE PUSH1 32 PUSH0 RETURN") + PADDING + b"named"
    evm = EVM(tier="native")
    evm.set_code(HERE, code)
    assert evm.call(HERE).ok
    assert scheduled(code)


@pytest.mark.parametrize("times", [1, 900, 1_100, 20_000])
@pytest.mark.parametrize("ending", ["STOP", "PUSH0 PUSH0 REVERT", "INVALID"])
def test_however_long_it_takes_the_first_call_is_as_on_the_reference_tier(times: int, ending: str) -> None:
    code = assemble(EFFECTS + SPIN.format(times=times) + EFFECTS + ending) + PADDING + times.to_bytes(4, "big")
    seen = []
    for tier in ("reference", "auto"):
        evm = EVM(tier=tier)
        evm.set_code(HERE, code)
        evm.set_balance(HERE, 10)
        result = evm.call(HERE, gas=3_000_000)
        seen.append((result, list(result.logs), evm.state_root))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("times", [1, 5_000])
def test_a_deployment_is_as_on_the_reference_tier(times: int) -> None:
    init = assemble(EFFECTS + SPIN.format(times=times)) + deployer(assemble("PUSH1 1 POP"))
    seen = []
    for tier in ("reference", "auto", "native"):
        evm = EVM(tier=tier)
        evm.set_balance(OTHER, 100)
        result = evm.deploy(init, caller=OTHER, value=50)
        seen.append((result, list(result.logs), evm.state_root))
    assert seen[0] == seen[1] == seen[2]


def test_with_gas_for_more_memory_than_there_may_be_native_code_keeps_the_cap() -> None:
    evm = EVM()
    evm.set_code(HERE, assemble("PUSH1 1 PUSH5 0x2000000000 MSTORE") + PADDING)
    for run in (lambda: evm.call(HERE, gas=1 << 62), lambda: evm.deploy(evm.get_code(HERE), gas=1 << 62)):
        with pytest.raises(EngineLimit):
            run()


def test_a_run_that_is_not_brief_leaves_no_trace() -> None:
    state = State()
    code = assemble(EFFECTS + SPIN.format(times=50))
    state.set_code(HERE, code)
    state.set_balance(HERE, 10)
    state.begin_transaction()
    before = state.root()
    message = Message(OTHER, HERE, code, gas=1_000_000, code_address=HERE)
    context = Context(LATEST, Block())
    assert execute_briefly(message, state, context, 30) is None
    assert (state.root(), list(state.logs), state.refund, state.transient) == (before, [], 0, {})
    outcome = execute_briefly(message, state, context, 60)
    assert outcome is not None
    assert outcome.status is Status.SUCCESS
