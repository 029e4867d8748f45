"""`enable()` holds for every way in which boa, moccasin and tests make environments, until `disable()`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import boa
import pytest
from boa.environment import Env
from boa.vm.py_evm import PyEVM
from boa_sessions import TOKEN

from fusevm.adapters.boa import FusevmEnv, disable, enable
from fusevm.adapters.boa.computation import NativeComputation
from fusevm.adapters.boa.engine import FusevmEVM


@pytest.fixture(autouse=True)
def on_py_evm() -> Iterator[None]:
    """As a program begins."""
    boa.set_env(Env())
    yield
    disable()


def engine() -> type:
    """What the code of a contract runs on now."""
    token = boa.loads(TOKEN, 1000)
    assert token.balanceOf(boa.env.eoa) == 1000
    assert boa.env is Env.get_singleton()
    ran = type(token._computation) is NativeComputation
    kind = type(boa.env.evm)
    assert ran == (kind is FusevmEVM)
    return kind


def with_swapped() -> None:
    with boa.swap_env(boa.Env()):
        assert engine() is FusevmEVM


def with_env_set_for_a_while() -> None:
    with boa.set_env(Env(fork_try_prefetch_state=True, fast_mode_enabled=True)):
        assert engine() is FusevmEVM


def as_moccasin_activates_a_network() -> None:
    boa.set_env(Env())
    assert boa.env.nickname == "pyevm"  # by which moccasin knows that nothing is real


def from_the_singleton() -> None:
    Env._singleton = None
    boa.set_env(Env.get_singleton())


def as_a_fixture() -> None:
    with contextlib.ExitStack() as stack:
        env = stack.enter_context(boa.swap_env(Env()))
        assert env is None or type(env.evm) is FusevmEVM
        stack.enter_context(boa.env.anchor())
        assert engine() is FusevmEVM


WAYS: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "reset_env": boa.reset_env,
    "set_env(boa.Env())": lambda: boa.set_env(boa.Env()),
    "set_env for a while": with_env_set_for_a_while,
    "swap_env": with_swapped,
    "moccasin": as_moccasin_activates_a_network,
    "the singleton": from_the_singleton,
    "a fixture": as_a_fixture,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_new_environment_is_fusevms_until_disable(way: str) -> None:
    assert engine() is PyEVM
    enable()
    assert engine() is FusevmEVM
    WAYS[way]()
    assert engine() is FusevmEVM
    disable()
    assert engine() is PyEVM
    WAYS["reset_env"]()
    assert engine() is PyEVM
    assert type(Env(True, True)) is Env


def test_a_with_block_ends_it() -> None:
    before = boa.env
    with enable() as env:
        assert env is boa.env
        assert type(env) is FusevmEnv
        boa.reset_env()
        assert engine() is FusevmEVM
    assert boa.env is before
    boa.reset_env()
    assert engine() is PyEVM


def test_blocks_can_be_nested() -> None:
    with enable(tier="native") as outer:
        with enable(tier="reference"):
            assert FusevmEnv.default_tier == "reference"
        assert boa.env is outer
        assert FusevmEnv.default_tier == "native"
        boa.reset_env()
        assert engine() is FusevmEVM
    assert engine() is PyEVM


def test_disable_ends_all_and_may_come_twice() -> None:
    before = boa.env
    enable()
    inner = enable()
    disable()
    disable()
    inner.end()
    assert boa.env is before


def test_a_wrong_tier_changes_nothing() -> None:
    before = boa.env
    with pytest.raises(ValueError, match="no-such-tier"):
        enable(tier="no-such-tier")
    assert boa.env is before
    assert type(Env()) is Env


def test_an_environment_that_was_made_before_stays_what_it_is() -> None:
    made = boa.Env()
    with enable(), boa.set_env(made):
        assert engine() is PyEVM


def test_subclasses_stay_what_they_are() -> None:
    class Own(Env):  # type: ignore[misc]
        pass

    with enable():
        assert type(Own()) is Own
