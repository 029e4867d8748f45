"""Random chains and damaged encodings: a few of each in every run, and proof that the campaigns see what is wrong."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from conftest import first
from fusevm.chain import rewards, signed
from fusevm.chain.diffs import Diff
from fusevm.chain.receipts import BlockReceipt
from fusevm.chain.rlp import Item, Trailing
from fusevm.chain.state import State
from fusevm.evm.forks import Fork
from fusevm.lab.chains.__main__ import main
from fusevm.lab.chains.campaign import run_chain
from fusevm.lab.chains.mutate import run_damage

needs_spec = pytest.mark.skipif(find_spec("ethereum") is None, reason="ethereum-execution is not installed")


@pytest.mark.parametrize("fork", list(Fork), ids=lambda fork: fork.label)
def test_what_one_tier_builds_another_imports(fork: Fork) -> None:
    found = run_chain(f"test/{fork.label}", fork, 6)
    assert found.differences == []
    assert found.blocks == 8
    assert found.transactions.total() > 5


@needs_spec
@pytest.mark.parametrize("fork", first(3, [Fork.FRONTIER, Fork.LONDON, Fork.OSAKA, Fork.SPURIOUS_DRAGON, Fork.CANCUN]))
def test_the_executable_specification_imports_them_too(fork: Fork) -> None:
    found = [run_chain(f"spec {n}/{fork.label}", fork, 3, with_spec=True) for n in range(3)]
    assert [each.differences for each in found] == [[], [], []]
    assert [each.judged for each in found] == [8, 8, 8]


@pytest.mark.parametrize("fork", [Fork.HOMESTEAD, Fork.SHANGHAI, Fork.OSAKA])
def test_damaged_encodings_are_refused_by_name(fork: Fork) -> None:
    seen = run_damage(f"test/{fork.label}", fork, 150)
    assert seen.crashes == []
    assert len(seen.reasons) > 15


def test_the_commands_print_what_they_saw(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "--chains", "1", "--transactions", "2", "--fork", "osaka"]) == 0
    assert "1 chains, 8 blocks" in capsys.readouterr().out
    assert main(["damage", "--inputs", "20", "--fork", "prague"]) == 0
    assert capsys.readouterr().out.startswith("20 inputs, ")


# -- errors planted, and found ----------------------------------------------------------------------------------------


def found_in_some(fork: Fork, *, with_spec: bool = False) -> bool:
    return any(run_chain(f"planted {n}", fork, 4, with_spec=with_spec).differences for n in range(4))


@pytest.mark.parametrize("part", ["fields", "slots", "presence"])
def test_a_change_that_is_not_undone_is_found(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    whole = Diff.undo

    def undo(self: Diff, state: State) -> None:
        whole(self._replace(**{part: getattr(self, part)[1:]}), state)

    monkeypatch.setattr(Diff, "undo", undo)
    assert found_in_some(Fork.SHANGHAI)


def test_receipts_that_depend_on_the_tier_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def different(self: BlockReceipt, other: object) -> bool:
        seen.append(other)
        return False

    monkeypatch.setattr(BlockReceipt, "__eq__", different)
    assert found_in_some(Fork.BERLIN)
    assert seen


@needs_spec
def test_a_wrong_reward_is_found_by_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rewards.REWARDS, Fork.FRONTIER, 4 * 10**18)
    assert not found_in_some(Fork.HOMESTEAD)
    assert found_in_some(Fork.HOMESTEAD, with_spec=True)


def test_a_crash_and_a_lax_decoder_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    strict = signed.decode

    def lax(data: bytes) -> Item:
        """Does not mind what comes after the item."""
        try:
            return strict(data)
        except Trailing:
            return lax(data[:-1])

    def crashing(data: bytes) -> Item:
        raise KeyError("nothing to see")

    monkeypatch.setattr(signed, "decode", lax)
    assert any("written back differently" in each for each in run_damage("lax", Fork.OSAKA, 1_500).crashes)
    monkeypatch.setattr(signed, "decode", crashing)
    assert any("KeyError" in each for each in run_damage("crash", Fork.OSAKA, 20).crashes)
