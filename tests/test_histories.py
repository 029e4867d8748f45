"""Random histories of machines with kept tables, lazy accounts and layers, against whole copies as the model."""

from __future__ import annotations

import pytest

from fusevm.evm.forks import Fork
from fusevm.lab.fuzz.histories import HistoryDifference, run_history
from fusevm.native.host.carryover import TransactionCarryover


@pytest.mark.parametrize("tier", ["reference", "native", "native-tiered", "auto"])
@pytest.mark.parametrize("fork", [Fork.OSAKA, Fork.CANCUN, Fork.BERLIN, Fork.BYZANTIUM])
def test_histories_are_those_of_the_model(fork: Fork, tier: str) -> None:
    for seed in range(5_000, 5_004):
        run_history(seed, fork, tier)


def test_a_planted_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots that a message warmed are not told to the transaction."""
    monkeypatch.setattr(TransactionCarryover, "apply", lambda carried, state: None)

    def search() -> None:
        for seed in range(40):
            run_history(seed, Fork.OSAKA, "native")

    with pytest.raises(HistoryDifference, match="seed"):
        search()
