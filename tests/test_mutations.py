"""The list of deliberate errors stays in step with the code they are made in."""

from __future__ import annotations

import pytest

from fusevm.lab.mutations import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.file}: {mutation.old[:40]}")
def test_a_deliberate_error_has_its_place_in_the_code(mutation: Mutation) -> None:
    text = (ROOT / "src" / "fusevm" / mutation.file).read_text()
    assert mutation.old in text
    assert mutation.new != mutation.old


def test_there_are_forty_and_more() -> None:
    assert len(set(MUTATIONS)) == len(MUTATIONS) >= 40
