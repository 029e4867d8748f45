"""The example of a sweep over an AMM: its contract computes what it should, and its picture is one."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from fusevm.evm.keccak import keccak256

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

import amm_sweep as example


def bought(size: int, fee: int) -> int:
    """The constant-product formula, by hand."""
    first, second = example.RESERVES
    given = size * (10_000 - fee)
    return given * second // (first * 10_000 + given)


def test_the_pool_answers_by_the_formula() -> None:
    evm, address = example.pool()
    words = example.sweep(evm, address).words()
    places = range(5, 100_000, 997)
    expected = [bought(example.SIZES[place % 1_000], example.FEES[place // 1_000]) for place in places]
    assert [words[place] for place in places] == expected
    assert len(words) == 100_000
    assert evm.get_storage(address, example.FEE_SLOT) == 0


def test_there_are_a_hundred_thousand_combinations() -> None:
    assert len(example.FEES) * len(example.SIZES) == 100_000


def test_the_selectors_of_the_contract_are_those_of_its_functions() -> None:
    source = example.SOURCE.read_text(encoding="utf-8")
    for signature in ("swap(uint256)", "getReserves()"):
        assert f"case 0x{keccak256(signature.encode())[:4].hex()} /* {signature}" in source


def test_the_picture_is_drawn_of_what_was_lost() -> None:
    lost = [[fee / 100 + place / 10 for place in range(len(example.SIZES))] for fee in example.FEES]
    picture = ET.fromstring(example.picture(lost))
    kinds = [each.tag.rpartition("}")[2] for each in picture]
    assert kinds.count("polyline") == len(example.SHOWN)
    assert kinds.count("rect") == 100 * len(example.FEES) + 2
