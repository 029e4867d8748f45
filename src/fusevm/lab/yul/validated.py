"""Does `--validate` find wrong passes? Programs are compiled with every pass checked; what is dropped is a finding.

`python -m fusevm.lab.yul.validated --programs N --seed S [--folder F]` compiles the random programs of the campaign
(`lab/yul/compiled.py`), and after them the Yul texts of a folder. On sound code nothing is dropped; with a deliberate
error in a pass it says whether the validation sees it (`python -m fusevm.lab.mutations --validate`).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from fusevm.codegen.validation import Validation
from fusevm.codegen.yul import compile_object
from fusevm.lab.yul.compiled import RUNS, random_case
from fusevm.yul.generate import StackTooDeep
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object


def sources(folder: Path | None, programs: int, seed: int) -> Iterator[tuple[str, str]]:
    """Names and texts: random programs, then those of the folder."""
    for number in range(seed, seed + programs):
        yield f"seed {number}", random_case(number).source
    for path in sorted(folder.glob("*.yul")) if folder is not None else ():
        yield path.stem, path.read_text()


def findings(source: str, done: Counter[str]) -> Iterator[str]:
    """What the validation drops, and what ends in an exception."""
    dialect = dialect_for()
    for runs in RUNS:
        validation = Validation()
        try:
            compile_object(parse_object(source, dialect), dialect, runs=runs, validation=validation)
        except StackTooDeep:
            done["too deep"] += 1
        except Exception as error:
            yield f"{runs} runs: {type(error).__name__}: {error}"
        done["proved"] += validation.proved
        done["tried"] += validation.tried
        done["unchecked"] += validation.unchecked
        yield from (f"{runs} runs: {each}" for each in validation.dropped)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.yul.validated", description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="of Yul texts")
    parser.add_argument("--stop", type=int, default=0, help="after so many findings; 0: never")
    options = parser.parse_args(arguments)
    started, done, found = perf_counter(), Counter[str](), 0
    for name, source in sources(options.folder, options.programs, options.seed):
        done["texts"] += 1
        for finding in findings(source, done):
            found += 1
            print(f"{name}: {finding}", flush=True)
        if options.stop and found >= options.stop:
            break
    print(
        f"{done['texts']} texts: {done['proved']} changes proved, {done['tried']} tried, "
        f"{done['unchecked']} not checked, {found} findings, {perf_counter() - started:.0f} s"
    )
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
