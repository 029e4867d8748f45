"""`fusevm blocktest`: reading, judging and counting blockchain tests, and a fixed sample of the official ones."""

from __future__ import annotations

import json
import tarfile
import zlib
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands import Command, fusevm_command  # noqa: F401
from fusevm.chain.alloc import alloc_of
from fusevm.lab.official.blocktest import BlockCase, block_cases_in, run_block_case
from fusevm.lab.official.statetest import MalformedTest
from test_chain import COUNTER, chain_at, pay


def own_test() -> dict[str, Any]:
    """Two blocks, and between them one that must be refused."""
    chain = chain_at("osaka")
    pre = alloc_of(chain.state)
    first = chain.build([pay(0)])
    wrong = replace(first, header=replace(first.header, gas_used=1))
    second = chain.build([pay(1)])
    blocks = [
        {"rlp": "0x" + first.encoded.hex()},
        {"rlp": "0x" + wrong.encoded.hex(), "expectException": "BlockException.X|BlockException.INVALID_GAS_USED"},
        {"rlp": "0x" + second.encoded.hex()},
    ]
    return {
        "network": "Osaka",
        "genesisBlockHeader": {},
        "genesisRLP": "0x" + chain.block(0).encoded.hex(),
        "pre": pre,
        "postState": alloc_of(chain.state),
        "lastblockhash": "0x" + second.hash.hex(),
        "blocks": blocks,
        "config": {"chainid": "0x01"},
    }


OWN = own_test()


@pytest.fixture
def document() -> dict[str, Any]:
    return {"own": deepcopy(OWN)}


def verdict(document: dict[str, Any]) -> str:
    """What the one case of a document comes to: nothing if it has passed."""
    (case,) = block_cases_in(document)
    return run_block_case(case, "reference").reason


def written(folder: Path, document: Any) -> str:
    path = folder / "own.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


def test_a_chain_that_comes_out_as_expected_passes(document: dict[str, Any]) -> None:
    assert verdict(document) == ""


def test_a_block_that_must_be_refused_fails_if_it_is_accepted(document: dict[str, Any]) -> None:
    document["own"]["blocks"][0]["expectException"] = "BlockException.INVALID_GAS_USED"
    assert verdict(document) == "block 0 accepted, but it must be refused: BlockException.INVALID_GAS_USED"


def test_a_block_refused_for_another_reason_fails(document: dict[str, Any]) -> None:
    document["own"]["blocks"][1]["expectException"] = "BlockException.INVALID_STATE_ROOT"
    assert verdict(document).startswith(
        "block 1 refused for BlockException.INVALID_GAS_USED, expected BlockException.INVALID_STATE_ROOT: "
    )


def test_a_valid_block_that_is_refused_fails(document: dict[str, Any]) -> None:
    del document["own"]["blocks"][1]["expectException"]
    assert verdict(document).startswith("block 1 refused, but it is valid: block refused: wrong gas used")


def test_another_last_block_fails(document: dict[str, Any]) -> None:
    document["own"]["lastblockhash"] = "0x" + "11" * 32
    assert verdict(document).endswith(f"expected 0x{'11' * 32}")


def test_another_state_fails_with_the_first_account_that_differs(document: dict[str, Any]) -> None:
    document["own"]["postState"]["0x" + COUNTER.hex()]["storage"] = {"0x00": "0x07"}
    assert verdict(document).startswith(f"account 0x{COUNTER.hex()}: (1, 0, ")
    document["own"]["postState"] = None
    document["own"]["postStateHash"] = "0x" + "11" * 32
    assert verdict(document).startswith("state root 0x")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("blocks",), None, "own: no 'blocks' list"),
        (("pre",), 5, "own: no 'pre' section"),
        (("network",), None, "own: no 'network'"),
        (("network",), "Moon", "own: unknown fork 'Moon'; known: "),
        (("genesisRLP",), "0xq", "own: '0xq' is not hex"),
        (("genesisRLP",), "0xc0", "own: block refused: not the encoding of a block"),
        (("pre",), {}, "own: block refused: wrong state root (genesis: "),
        (("blocks", 0), {}, "own: block 0: no 'rlp'"),
        (("blocks", 0), 5, "own: block 0: "),
        (("lastblockhash",), "0xq", "own: '0xq' is not hex"),
        (("config", "blobSchedule"), {"Osaka": {}}, "own: blobSchedule.Osaka: no 'target'"),
    ],
)
def test_a_malformed_test_is_told_with_its_place(
    document: dict[str, Any], path: tuple[Any, ...], value: Any, message: str
) -> None:
    place: Any = document["own"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(MalformedTest) as caught:
        verdict(document)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", ["reference", "native", "auto"])
def test_the_command_counts_cases(fusevm: Command, document: dict[str, Any], tmp_path: Path, tier: str) -> None:
    document["wrong"] = {**deepcopy(OWN), "lastblockhash": "0x" + "11" * 32}
    ran = fusevm("blocktest", written(tmp_path, document), "--tier", tier, "-j", "1")
    assert ran.code == 1
    assert ran.out.splitlines()[-1] == "1 passed, 1 failed"
    assert ran.out.startswith("FAILED wrong: last block 0x")


def test_networks_can_be_picked_and_json_has_the_same_figures(
    fusevm: Command, document: dict[str, Any], tmp_path: Path
) -> None:
    ran = fusevm("blocktest", written(tmp_path, document), "--network", "osaka", "-j", "1", "--json")
    assert (ran.code, json.loads(ran.out)["passed"]) == (0, 1)
    ran = fusevm("blocktest", written(tmp_path, document), "--network", "Prague", "-j", "1")
    assert ran.out == "0 passed, 0 failed\n"


def test_a_malformed_file_counts_as_a_failure(fusevm: Command, tmp_path: Path) -> None:
    path = written(tmp_path, '{"t": {}}')
    ran = fusevm("blocktest", path, "-j", "1")
    assert (ran.code, ran.out) == (1, f"FAILED {path}: malformed: t: no 'blocks' list\n0 passed, 1 failed\n")


def test_a_trace_has_a_line_per_step_and_the_state_root(
    fusevm: Command, document: dict[str, Any], tmp_path: Path
) -> None:
    document["own"]["blocks"] = document["own"]["blocks"][:1]
    ran = fusevm("blocktest", written(tmp_path, document), "--trace")
    lines = [json.loads(line) for line in ran.err.splitlines()]
    assert [line["opName"] for line in lines if line.get("opName") in ("SLOAD", "LOG1")] == ["SLOAD", "LOG1"]
    assert list(lines[-1]) == ["stateRoot"]
    assert len(lines[-1]["stateRoot"]) == 66


# -- the official suite -----------------------------------------------------------------------------------------------


def sample(archive: tarfile.TarFile) -> Iterator[BlockCase]:
    """Of every file one case, and those that must be refused for a reason not seen before."""
    seen: set[str] = set()
    for member in archive:
        if not member.name.endswith(".json"):
            continue
        content = archive.extractfile(member)
        assert content is not None
        cases = list(block_cases_in(json.load(content)))
        pick = zlib.crc32(member.name.encode())
        yield cases[pick % len(cases)]
        for case in cases:
            reasons = {block["expectException"] for block in case.test["blocks"] if "expectException" in block}
            if not reasons <= seen:
                seen |= reasons
                yield case
    assert len(seen) > 25


def test_a_fixed_sample_of_the_official_blockchain_tests_passes(fixtures_dir: Path) -> None:
    failures, networks = [], set()
    with tarfile.open(fixtures_dir / "blockchain_tests.tar.xz") as archive:
        for case in sample(archive):
            networks.add(case.network)
            found = run_block_case(case, "auto")
            if not found.passed:
                failures.append(f"{case.name}: {found.reason}")
    assert failures == []
    assert len(networks) > 12
