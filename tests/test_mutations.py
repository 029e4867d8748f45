"""The lists of deliberate errors stay in step with the code they are made in."""

from __future__ import annotations

import pytest

from fusevm.lab import mutations, recording_mutations, tier_mutations
from fusevm.lab.mutations import ROOT, Mutation
from fusevm.lab.regions import mutations as region_mutations

LISTS = (mutations.MUTATIONS, recording_mutations.MUTATIONS, region_mutations.MUTATIONS, tier_mutations.MUTATIONS)


@pytest.mark.parametrize("mutation", sum(LISTS, ()), ids=lambda mutation: f"{mutation.file}: {mutation.old[:40]}")
def test_a_deliberate_error_has_its_place_in_the_code(mutation: Mutation) -> None:
    text = (ROOT / "src" / "fusevm" / mutation.file).read_text()
    assert mutation.old in text
    assert mutation.new != mutation.old


def test_there_are_as_many_as_were_asked_for() -> None:
    for found, least in zip(LISTS, (40, 30, 30, 30), strict=True):
        assert len(set(found)) == len(found) >= least
