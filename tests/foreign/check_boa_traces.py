"""Calls that are looked into afterwards, and storage dumps: with py-evm and with fusevm the same."""

from __future__ import annotations

import gc
from typing import Any

import boa
import pytest
from boa_sessions import CALLER, TOKEN, fusevm, plain, same

from fusevm.adapters.boa import FusevmEnv, history, notes
from fusevm.adapters.boa.computation import NativeComputation
from fusevm.adapters.boa.history import History, TraceLost

__all__ = ["fusevm"]  # a fixture


def test_storage_dumps_know_the_keys_of_maps() -> None:
    def session() -> Any:
        token = boa.loads(TOKEN, 1000)
        others = [boa.env.generate_address() for _ in range(5)]
        for place, other in enumerate(others):
            token.transfer(other, place + 1)
            token.approve(other, place)
            token.note(f"note {place}")
        return token._storage.balanceOf.get(), token._storage.allowance.get(), token._storage.notes.get(), repr(token)

    assert len(same(session)[0]) == 6


def test_call_traces_are_the_same() -> None:
    def session() -> Any:
        token, other = boa.loads(TOKEN, 1000), boa.env.generate_address()
        caller = boa.loads(CALLER, token)
        token.transfer(caller, 10)
        caller.send(other, 4)
        return plain(caller.call_trace()), len(caller._computation.children)

    assert same(session)[1] == 2


def test_an_older_call_can_be_traced_when_the_state_has_moved_on() -> None:
    token, other = boa.loads(TOKEN, 1000), boa.env.generate_address()
    caller = boa.loads(CALLER, token)
    token.transfer(caller, 10)
    caller.send(other, 4)
    first = caller._computation
    for _ in range(3):
        caller.send(other, 1)
    token.transfer(other, 100)
    boa.env.set_balance(other, 5)
    trace = str(first.call_trace)
    assert "=> 4" in trace
    assert (token.balanceOf(other), caller.calls(), boa.env.get_balance(other)) == (107, 4, 5)


def test_a_traced_run_has_the_gas_the_output_and_the_logs_of_the_native_one() -> None:
    token, other = boa.loads(TOKEN, 1000), boa.env.generate_address()
    caller = boa.loads(CALLER, token)
    token.transfer(caller, 100)
    runs = [
        (caller, lambda: caller.send(other, 4)),
        (caller, lambda: caller.send(other, 4)),
        (token, lambda: token.transfer(other, 900)),
        (token, lambda: token.note("something")),
        (token, lambda: token.spin(50)),
    ]
    for contract, run in runs:
        run()
        done = contract._computation
        assert isinstance(done, NativeComputation)
        traced = done.traced
        assert traced.get_gas_used() == done.get_gas_used()
        assert traced.get_gas_refund() == done.get_gas_refund()
        assert traced.output == done.output
        logs = [[each[1:] for each in way.get_raw_log_entries()] for way in (traced, done)]
        assert logs[0] == logs[1]


def test_a_deployment_can_be_traced_and_costs_the_same() -> None:
    token = boa.loads(TOKEN, 1000)
    done = token._computation
    assert isinstance(done, NativeComputation)
    assert done.traced.get_gas_used() == done.get_gas_used()
    assert done.traced.output == done.output == boa.env.get_code(token.address)


SPENDS = """
interface Token:
    def transfer(to: address, amount: uint256) -> bool: nonpayable

steps: public(HashMap[uint256, uint256])
last: public(uint256)

@external
def run(token: address):
    for i: uint256 in range(3):
        self.steps[i] += 1
    data: Bytes[68] = abi_encode(self, empty(uint256), method_id=method_id("transfer(address,uint256)"))
    success: bool = raw_call(token, data, revert_on_failure=False)
    for i: uint256 in range(3):
        self.steps[i] += 1
    self.last = 7
    assert success, "the token refused"
"""


def test_looking_at_storage_in_the_middle_of_a_failing_call_changes_nothing_of_it() -> None:
    """A frame that fails makes boa dump storage while another frame runs."""

    def failing(traced_before: bool) -> Any:
        with boa.set_env(FusevmEnv()):
            boa.env.set_random_seed(7)
            boa.env.eoa = boa.env.generate_address()
            token = boa.loads(TOKEN, 1000)
            contract = boa.loads(SPENDS)
            for place in range(3):
                token.transfer(boa.env.generate_address(), place + 1)
            if traced_before:
                assert boa.env.sha3_trace
            with pytest.raises(boa.BoaError) as raised:
                contract.run(token)
            return str(raised.value), token._storage.balanceOf.get(), contract.steps(0)

    first, second = failing(False), failing(True)
    assert first == second
    assert "the token refused" in first[0]


def test_what_anchors_have_undone_can_be_traced() -> None:
    def session() -> Any:
        token, other, third = boa.loads(TOKEN, 1000), boa.env.generate_address(), boa.env.generate_address()
        caller = boa.loads(CALLER, token)
        token.transfer(caller, 50)
        done = []
        with boa.env.anchor():
            boa.env.set_balance(other, 9)
            caller.send(other, 1)
            token.transfer(third, 6)
            with boa.env.anchor():
                boa.env.time_travel(blocks=3)
                caller.send(other, 2)
                done.append(caller._computation)
                token.balanceOf(third)
                done.append(token._computation)
                made = boa.loads(TOKEN, 900)
                done.append(made._computation)
                made.transfer(other, 10)
                done.append(made._computation)
            caller.send(other, 4)
            done.append(caller._computation)
        token.transfer(other, 3)  # the state moves on
        traces = [plain(each.call_trace.to_dict()["text"]) for each in done]
        outputs = [[child.output for child in each.children] for each in done]
        return traces, outputs, token.balanceOf(other), caller.calls(), boa.env.get_balance(other)

    traces, outputs, *state = same(session)
    assert "=> 3" in traces[0]  # 1 before it and 2, both undone since
    assert "=> 6" in traces[1]  # from the outer anchor, after changes in the inner one
    assert "=> 5" in traces[4]
    assert len(outputs[0]) == 2
    assert state == [3, 0, 0]


def test_a_simulated_call_can_be_looked_into() -> None:
    def session() -> Any:
        token, other = boa.loads(TOKEN, 1000), boa.env.generate_address()
        token.transfer(other, 5, simulate=True)
        trace = plain(token.call_trace())
        return trace, str(token.get_logs()), str(token.get_logs(include_child_logs=False)), token.balanceOf(other)

    assert "=> True" in same(session)[0]


def test_what_was_hashed_and_stored_is_known_though_it_was_undone() -> None:
    def session() -> Any:
        token, others = boa.loads(TOKEN, 1000), [boa.env.generate_address() for _ in range(4)]
        with boa.env.anchor():
            for other in others:
                token.transfer(other, 7)
            inside = token._storage.balanceOf.get()
        boa.env.set_storage(token.address, max(boa.env.sstore_trace[token.address]), 70)
        stored = {str(address): sorted(slots) for address, slots in boa.env.sstore_trace.items()}
        return inside, token._storage.balanceOf.get(), stored, sorted(boa.env.sha3_trace.items())

    inside, after, *_ = same(session)
    assert (len(inside), len(after)) == (5, 2)


def test_a_failing_call_does_not_trace_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    token, other = boa.loads(TOKEN, 1000), boa.env.generate_address()
    for _ in range(5):
        token.transfer(other, 1)
    monkeypatch.setattr(History, "trace", lambda self, call: pytest.fail("a call was traced"))
    with pytest.raises(boa.BoaError) as raised:
        token.transfer(other, 0)
    assert f"'{other}': 5" in str(raised.value)


def test_notes_of_many_calls_are_decoded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MAX_GAS", 200_000)
    token = boa.loads(TOKEN, 1000)
    for _ in range(10):
        token.transfer(boa.env.generate_address(), 1)
        assert boa.env.notes._waiting <= 200_000
    assert len(token._storage.balanceOf.get()) == 11


def test_computations_that_nobody_holds_are_forgotten() -> None:
    token = boa.loads(TOKEN, 1000)
    for _ in range(20):
        token.totalSupply()
    gc.collect()
    assert len(boa.env.evm.history._calls) == 1


def test_a_call_before_an_anchor_can_be_traced_after_it() -> None:
    token, other = boa.loads(TOKEN, 1000), boa.env.generate_address()
    token.balanceOf(boa.env.eoa)  # changes nothing, so that the anchor begins where this call did
    before = token._computation
    with boa.env.anchor():
        token.transfer(other, 1)
    assert "=> 1000" in str(before.call_trace)
    assert token.balanceOf(other) == 0


DESTROYS = """
interface Victim:
    def kill() -> uint256: nonpayable

@external
def kill() -> uint256:
    selfdestruct(msg.sender)

@external
def kill_other(victim: address) -> uint256:
    raw_call(victim, method_id("kill()"))
    return 7
"""


def test_only_a_call_that_ends_in_selfdestruct_returns_nothing() -> None:
    def session() -> Any:
        one, other = boa.loads(DESTROYS), boa.loads(DESTROYS)
        return one.kill_other(other), one.kill(simulate=True), one.kill()

    assert same(session) == (7, None, None)


def test_long_histories_are_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_ENTRIES", 200)
    with boa.set_env(FusevmEnv()):  # without the anchor that boa's pytest plugin has around a test
        token, other = boa.loads(TOKEN, 10**6), boa.env.generate_address()
        first = token._computation
        for _ in range(200):
            token.transfer(other, 1)
        assert len(boa.env.evm.state.journal) < 400
        assert token.balanceOf(other) == 200
        with pytest.raises(TraceLost):
            _ = first.call_trace
