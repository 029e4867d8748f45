"""titanoboa's features on py-evm and on fusevm: the same session in both environments, compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boa
import pytest
from boa.vm.gas_meters import ProfilingGasMeter
from boa_sessions import CALLER, TOKEN, failure, fusevm, measure_coverage, plain, same
from eth_utils import ValidationError
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fusevm.adapters.boa.computation import NativeComputation

__all__ = ["fusevm"]  # a fixture


def test_transfers_logs_and_balances() -> None:
    def session() -> Any:
        token, other = boa.loads(TOKEN, 1000), boa.env.generate_address()
        seen: list[Any] = [token.transfer(other, 30), str(token.get_logs()), token.balanceOf(other)]
        token.approve(other, 5)
        return [*seen, token.allowance(boa.env.eoa, other), token.totalSupply()]

    assert same(session)[0] is True


def test_calls_run_natively() -> None:
    token = boa.loads(TOKEN, 1000)
    token.transfer(boa.env.generate_address(), 1)
    assert isinstance(token._computation, NativeComputation)


def test_stack_traces_are_the_same_to_the_letter() -> None:
    def session() -> Any:
        token, other = boa.loads(TOKEN, 1000), boa.env.generate_address()
        caller = boa.loads(CALLER, token)
        token.transfer(caller, 10)
        caller.send(other, 4)
        return [
            failure(lambda: token.transfer(other, 0)),
            failure(lambda: token.transfer(other, 10**9)),
            failure(lambda: caller.send(other, 0)),
            failure(lambda: caller.send(other, 100)),
        ]

    told = same(session)
    assert "nothing to send" in told[0]
    assert "balanceOf={" in told[1]


def test_reverts_can_be_expected_by_reason() -> None:
    token = boa.loads(TOKEN, 1000)
    with boa.reverts("nothing to send"):
        token.transfer(boa.env.eoa, 0)
    with boa.reverts(compiler="safesub"):
        token.transfer(boa.env.generate_address(), 10**9)


def test_a_failed_call_changes_nothing() -> None:
    token = boa.loads(TOKEN, 1000)
    caller = boa.loads(CALLER, token)
    with boa.reverts():
        caller.send(boa.env.eoa, 5)
    assert (caller.calls(), token.balanceOf(boa.env.eoa)) == (0, 1000)


def test_failed_constructors_tell_why() -> None:
    assert "too much" in same(lambda: failure(lambda: boa.loads(TOKEN, 2**250)))


def test_a_contract_made_by_another_prints_too(capsys: pytest.CaptureFixture[str]) -> None:
    blueprint = boa.loads_partial("@external\ndef greet():\n    print('made')\n").deploy_as_blueprint()
    maker = boa.loads("@external\ndef make(b: address) -> address:\n    return create_from_blueprint(b)\n")
    made = boa.loads_partial("@external\ndef greet():\n    print('made')\n").at(maker.make(blueprint.address))
    made.greet()
    assert "made" in capsys.readouterr().err


def test_anchors_undo_state_and_time() -> None:
    def session() -> Any:
        token, other = boa.loads(TOKEN, 1000), boa.env.generate_address()
        seen = []
        start = boa.env.timestamp, boa.env.evm.patch.block_number
        with boa.env.anchor():
            token.transfer(other, 1)
            boa.env.time_travel(blocks=5)
            with boa.env.anchor():
                token.transfer(other, 2)
                seen.append(token.balanceOf(other))
            seen.append(token.balanceOf(other))
        after = boa.env.timestamp, boa.env.evm.patch.block_number
        return [*seen, token.balanceOf(other), after == start, token._storage.balanceOf.get() is not None]

    assert same(session) == [3, 1, 0, True, True]


def test_contracts_see_the_block() -> None:
    def session() -> Any:
        caller = boa.loads(CALLER, boa.env.generate_address())
        boa.env.evm.patch.timestamp = 1_700_000_000
        seen = [caller.surroundings()]
        boa.env.time_travel(seconds=1200)
        boa.env.evm.patch.coinbase = bytes(range(20))
        boa.env.evm.patch.chain_id = 31337
        return [*seen, caller.surroundings()]

    assert same(session)[1][1] == 1_700_001_200


def test_pranks_and_values() -> None:
    def session() -> Any:
        token, rich = boa.loads(TOKEN, 1000), boa.env.generate_address()
        token.transfer(rich, 50)
        boa.env.set_balance(rich, 10**18)
        with boa.env.prank(rich):
            token.transfer(boa.env.generate_address(), 20)
            paid = token.pay(value=7)
        return paid, token.balanceOf(rich), boa.env.get_balance(token.address), boa.env.get_balance(rich)

    assert same(session)[0] == 7


def test_deal_finds_the_slots() -> None:
    def session() -> Any:
        token, other = boa.loads(TOKEN, 1000), boa.env.generate_address()
        boa.deal(token, other, 77)
        return token.balanceOf(other), token.totalSupply()

    assert same(session) == (77, 1077)


def test_internal_functions_and_expressions_can_be_called() -> None:
    def session() -> Any:
        token = boa.loads(TOKEN, 1000)
        token.inject_function("@external\ndef tenth() -> uint256:\n    return self.totalSupply // 10")
        return token.internal._double(21), token.eval("self.totalSupply + 1"), token.inject.tenth()

    assert same(session) == (42, 1001, 100)


def test_created_contracts_are_known_with_their_source() -> None:
    def session() -> Any:
        blueprint = boa.loads_partial(TOKEN).deploy_as_blueprint()
        token = boa.loads(TOKEN, 1000)
        caller = boa.loads(CALLER, token)
        made = caller.from_blueprint(blueprint.address, 500)
        proxy = caller.proxied(token.address)
        known = [type(boa.env.lookup_contract(each)).__name__ for each in (made, proxy)]
        at = boa.loads_partial(TOKEN).at(made)
        return known, at.totalSupply(), failure(lambda: at.transfer(caller.address, 0))

    assert same(session)[1] == 500


def test_prints_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    source = "@external\ndef greet(n: uint256):\n    print('hello', n)\n"
    prints = boa.loads(source)
    prints.greet(5)
    assert "hello 5" in capsys.readouterr().err


def test_python_precompiles_are_called() -> None:
    from boa.vm import py_evm

    before = dict(py_evm._precompiles)

    def squared(computation: Any) -> Any:
        x = int.from_bytes(computation.msg.data_as_bytes, "big")
        computation.output = (x * x).to_bytes(32, "big")
        return computation

    where = "0x" + "5c" * 20
    source = """
@external
@view
def f(target: address, x: uint256) -> uint256:
    return convert(raw_call(target, abi_encode(x), max_outsize=32, is_static_call=True), uint256)
"""
    try:
        contract = boa.loads(source)
        py_evm.register_raw_precompile(where, squared)
        assert contract.f(where, 12) == 144
    finally:
        py_evm._precompiles.clear()
        py_evm._precompiles.update(before)


def test_gas_profiles_have_the_same_lines() -> None:
    from boa.profiling import global_profile

    def session() -> Any:
        profile = global_profile()
        profile.call_profiles.clear()
        profile.line_profiles.clear()
        token, other = boa.loads(TOKEN, 1000), boa.env.generate_address()
        with boa.env.gas_meter_class(ProfilingGasMeter):
            token.transfer(other, 1)
            token.spin(3)
        return sorted(str(each.fn_name) for each in profile.call_profiles)

    assert same(session) == ["spin", "transfer"]


def test_coverage_sees_the_lines_that_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[int] = []

    def session() -> Any:
        lines.clear()
        token = boa.loads(TOKEN, 1000)
        with monkeypatch.context() as patch:
            measure_coverage(patch, lines)
            token.transfer(boa.env.generate_address(), 1)
        return sorted(set(lines))

    assert len(same(session)) > 3


def test_raw_calls_and_code() -> None:
    def session() -> Any:
        target = boa.env.generate_address()
        boa.env.set_code(target, bytes.fromhex("5f355f555f5460005260206000f3"))
        done = boa.env.raw_call(target, data=(9).to_bytes(32, "big"))
        boa.env.set_storage(target, 3, 8)
        return done.output, boa.env.get_storage(target, 0), boa.env.get_storage(target, 3), boa.env.get_code(target)

    assert same(session)[1:3] == (9, 8)


def test_a_simulated_call_leaves_nothing() -> None:
    token, other = boa.loads(TOKEN, 1000), boa.env.generate_address()
    token.transfer(other, 5, simulate=True)
    assert token.balanceOf(other) == 0


def test_out_of_gas_is_told() -> None:
    def session() -> Any:
        token = boa.loads(TOKEN, 1000)
        return "OutOfGas" in failure(lambda: token.spin(100_000, gas=50_000))

    assert same(session) is True


def test_no_gas_metering_runs() -> None:
    token = boa.loads(TOKEN, 1000)
    boa.env.disable_gas_metering()
    assert token.spin(10) > 0
    boa.env.reset_gas_metering_behavior()
    assert token.spin(10) > 0


POOL = """
reserves: public(uint256[2])
shares: public(uint256)

@deploy
def __init__(a: uint256, b: uint256):
    self.reserves = [a, b]
    self.shares = a

@external
def swap(amount: uint256) -> uint256:
    # rounds in favour of whoever swaps, which is wrong
    out: uint256 = (self.reserves[1] * amount + self.reserves[0] + amount - 1) // (self.reserves[0] + amount)
    self.reserves[0] += amount
    self.reserves[1] -= out
    return out
"""


def test_a_fuzz_test_finds_the_rounding_error_of_a_pool() -> None:
    pool = boa.loads(POOL, 10**6, 10**6)
    found = []

    @settings(max_examples=60, deadline=None, database=None, phases=[Phase.generate])
    @given(st.lists(st.integers(1, 10**4), min_size=1, max_size=5))
    def check(amounts: list[int]) -> None:
        with boa.env.anchor():
            before = pool.reserves(0) * pool.reserves(1)
            for amount in amounts:
                pool.swap(amount)
            if pool.reserves(0) * pool.reserves(1) < before:
                found.append(amounts)

    check()
    assert found
    assert pool.reserves(0) == 10**6


@settings(max_examples=15, deadline=None, database=None, phases=[Phase.generate])
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 60)), min_size=1, max_size=12))
def test_random_sessions_are_the_same(steps: list[tuple[int, int, int]]) -> None:
    def session() -> Any:
        token = boa.loads(TOKEN, 100)
        people = [boa.env.eoa, *(boa.env.generate_address() for _ in range(3))]
        seen: list[Any] = []
        for kind, who, amount in steps:
            person = people[who]
            if kind == 0:
                run = lambda person=person, amount=amount: token.transfer(person, amount)  # noqa: E731
            elif kind == 1:
                run = lambda person=person, amount=amount: token.transfer(people[0], amount, sender=person)  # noqa: E731
            elif kind == 2:
                run = lambda person=person, amount=amount: token.approve(person, amount)  # noqa: E731
            elif kind == 3:
                run = lambda amount=amount: token.note(f"n{amount}")  # noqa: E731
            else:
                run = lambda: plain(token.call_trace()) if token._computation is not None else None  # noqa: E731
            try:
                seen.append(run())
            except boa.BoaError as error:
                seen.append(plain(error))
        return seen, repr(token), [token.balanceOf(person) for person in people]

    same(session)


def told(run: Callable[[], Any]) -> str:
    """What it answers, or the error that it raises."""
    try:
        return repr(run())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


SOMEWHERE = "0x" + "51" * 20
COUNTS_INPUT = bytes.fromhex("365f5260205ff3")
MISTAKES: dict[str, Callable[[], Any]] = {
    "a large balance": lambda: boa.env.set_balance(SOMEWHERE, 1 << 256),
    "a negative balance": lambda: boa.env.set_balance(SOMEWHERE, -1),
    "a large value": lambda: boa.env.set_storage(SOMEWHERE, 0, 1 << 256),
    "a negative slot": lambda: boa.env.set_storage(SOMEWHERE, -3, 1),
    "code as text": lambda: boa.env.set_code(SOMEWHERE, "6001"),
    "init code as text": lambda: boa.env.deploy(bytecode="6001"),
    "data as text": lambda: boa.env.execute_code(SOMEWHERE, data="6001"),
    "data as an array": lambda: boa.env.execute_code(SOMEWHERE, data=bytearray(b"abc")),
    "too much init code": lambda: boa.env.deploy(bytecode=bytes(49_153)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_refused_in_the_same_words(mistake: str) -> None:
    assert same(lambda: told(MISTAKES[mistake])).startswith(("ValidationError", "OutOfGas"))


def test_data_may_be_a_view_of_bytes() -> None:
    def session() -> Any:
        done = boa.env.execute_code(SOMEWHERE, override_bytecode=COUNTS_INPUT, data=memoryview(b"abc"))
        return done.output

    assert same(session) == bytes(31) + b"\x03"


def test_gas_may_be_more_than_64_bits() -> None:
    def session() -> Any:
        token = boa.loads(TOKEN, 1000)
        return [token.spin(10, gas=gas) for gas in (2**63, 2**64 - 1, 2**64, 10**30)]

    assert len(set(same(session))) == 1


@pytest.mark.parametrize("limit", [10, 0x6000, 0x8000])
def test_the_limit_of_code_can_be_patched(limit: int) -> None:
    def session() -> Any:
        with boa.env.evm.patch.anchor():
            boa.env.evm.patch.code_size_limit = limit
            return [told(lambda size=size: len(boa.env.deploy_code(bytecode=size)[1])) for size in sizes]

    sizes = [bytes.fromhex(f"61{size:04x}5ff3") for size in (9, 11, 0x6000, 0x6001, 0x8001)]
    assert sum(each.isdigit() for each in same(session)) == {10: 1, 0x6000: 3, 0x8000: 4}[limit]


def test_a_state_is_dirty_until_what_was_done_is_undone() -> None:
    def session() -> Any:
        seen = [boa.env.evm.is_state_dirty]
        for change in (lambda: boa.env.set_balance(SOMEWHERE, 5), lambda: boa.loads(TOKEN, 5)):
            with boa.env.anchor():
                change()
                seen.append(boa.env.evm.is_state_dirty)
            seen.append(boa.env.evm.is_state_dirty)
        boa.env.time_travel(blocks=3)
        boa.env.get_balance(SOMEWHERE)
        return [*seen, boa.env.evm.is_state_dirty]

    assert same(session) == [False, True, False, True, False, False]


def test_a_snapshot_is_good_once() -> None:
    def session() -> Any:
        engine, seen = boa.env.evm, []
        outer, inner = engine.snapshot(), engine.snapshot()
        boa.env.set_balance(SOMEWHERE, 1)
        engine.revert(outer)
        assert not getattr(engine.vm.state._account_db, "_opened", None)
        for snapshot in (outer, inner):
            with pytest.raises(ValidationError, match="No checkpoint"):
                engine.revert(snapshot)
            seen.append(boa.env.get_balance(SOMEWHERE))
        return seen

    assert same(session) == [0, 0]


def test_logs_are_plain_tuples() -> None:
    def session() -> Any:
        boa.env.set_code(SOMEWHERE, bytes.fromhex("60aa5f5260bb60cc60205fa2"))
        done = boa.env.raw_call(SOMEWHERE)
        return repr(done.get_raw_log_entries()), repr(done.get_log_entries())

    assert same(session)


def test_the_state_of_py_evm_answers() -> None:
    def session() -> Any:
        state, where = boa.env.evm.vm.state, boa.loads(TOKEN, 5).address.canonical_address
        boa.env.set_balance(SOMEWHERE, 3)
        state.persist()
        return [
            *((state.get_code_hash(each), state.account_exists(each)) for each in (where, bytes(20))),
            *(state.account_is_empty(each) for each in (where, bytes(20))),
            state.get_nonce(where),
            boa.env.get_balance(SOMEWHERE),
        ]

    assert same(session)[-2:] == [1, 3]
