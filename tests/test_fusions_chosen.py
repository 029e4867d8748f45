"""What is fused is what real contracts have: every sequence of the table stands in some contract's schedule."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusevm.evm.assembly import assemble
from fusevm.lab.fusions import LEAST, Stream, choose, counted, handlers_of, main, picked, written
from fusevm.lab.real_code import RealCode, corpus_code, hex_code, unmeasured
from fusevm.native.emit.build import library
from fusevm.schedule.build import Handlers
from fusevm.schedule.fusions import SEED, chosen, fusions


def unpicked(handlers: Handlers, codes: list[RealCode]) -> list[str]:
    """Lines of the table that the corpus should pick, and does not."""
    found = picked(codes, handlers)
    return [" ".join(row.sequence) for row in chosen() if row.corpus and not found[row.sequence]]


@pytest.fixture(scope="module")
def corpus(fixtures_dir: Path) -> list[RealCode]:
    return list(corpus_code(fixtures_dir))


def test_every_fusion_is_picked_by_the_corpus_or_is_counted_in_other_real_code(corpus: list[RealCode]) -> None:
    assert {row.sequence for row in chosen()} == {fusion.sequence for fusion in fusions()}
    rare = [row for row in chosen() if row.corpus + row.elsewhere < LEAST]
    assert {row.sequence for row in rare} <= {fusion.sequence for fusion in SEED}
    assert all(row.corpus + row.elsewhere for row in chosen())
    assert unpicked(library().handlers, corpus) == []


def test_most_of_the_table_is_picked_by_the_corpus() -> None:
    assert sum(row.corpus > 0 for row in chosen()) > 0.8 * len(chosen())


def test_a_fusion_that_is_hidden_by_another_is_noticed(corpus: list[RealCode]) -> None:
    """One that begins like every PUSH ADD and is longer: what stood there is picked less."""
    handlers = library().handlers
    hidden = {each: at for each, at in handlers.addresses.items() if each != ("SECTION", "PUSH", "PUSH", "REVERT")}
    assert "SECTION PUSH PUSH REVERT" in unpicked(Handlers(hidden), corpus)


def test_the_pair_that_weighs_most_is_merged_first_and_then_grows() -> None:
    streams = [Stream((("A",), ("B",), ("C",)), 3), Stream((("B",), ("C",)), 2), Stream((("A",), ("B",)), 1)]
    assert choose(streams, 5) == [("B", "C"), ("A", "B", "C"), ("A", "B")]


def test_no_merge_is_longer_than_may_be() -> None:
    units = tuple((f"T{n}",) for n in range(12))
    assert max(map(len, choose([Stream(units, 1)], 100))) == 8


def test_what_hardly_any_code_picks_is_dropped_from_the_table() -> None:
    code = [RealCode("one", assemble("CALLER ORIGIN STOP " + "JUMPDEST ADDRESS POP STOP " * 15))]
    table = counted([("CALLER", "ORIGIN"), ("ADDRESS", "POP"), ("ORIGIN", "ORIGIN")], code, [])
    chosen_there = {row.sequence: (row.corpus, row.elsewhere) for row in table if row.corpus}
    assert chosen_there == {("ADDRESS", "POP"): (15, 0)}
    assert written(table).splitlines()[:2] == ["sequence\tcorpus\telsewhere", "ADDRESS POP\t15\t0"]


def test_code_in_hex_is_a_source_per_file(tmp_path: Path) -> None:
    (tmp_path / "some.hex").write_text("0x6001\n5b00\n")
    assert list(hex_code(tmp_path)) == [RealCode("some", b"\x60\x01"), RealCode("some", b"\x5b\x00")]


def test_code_that_the_bench_runs_is_not_counted(tmp_path: Path) -> None:
    measured, other = bytes(range(40)), bytes(range(50))
    (tmp_path / "one.json").write_text(f'{{"code": "0xAA{measured.hex().upper()}BB"}}')
    codes = [RealCode("some", measured), RealCode("some", other), RealCode("some", b"")]
    assert list(unmeasured(codes, tmp_path)) == codes[1:]


def test_the_table_is_not_written_without_other_contracts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sequences that only they use would be dropped."""
    monkeypatch.setattr("sys.argv", ["fusions", str(tmp_path), str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    assert "holds no *.hex files" in capsys.readouterr().err


def test_handlers_for_counting_are_laid_out_like_those_that_run() -> None:
    assert handlers_of([("CALLER", "ORIGIN")]).native == library().handlers.native
