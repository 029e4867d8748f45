"""Is compiled Yul as cheap as solc's? Random programs are compiled by both optimisers from the same text, and run.

`python -m fusevm.lab.yul.beside_solc [--programs N] [--seed S] [--runs R] [--deep] [--solc FOLDER]` asks solc's npm
package, which the folder (`FUSEVM_SOLC`) has in `node_modules`, and needs node. `--deep` asks programs that hardly fit
on the stack (`generate_deep.py`). A program that solc compiles and fusevm does not, that does something else, or that
costs more than `WORST` times solc's gas is a finding. Where solc's code does not do what the program says (it drops
stores at which a static call halts), nothing is compared.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fusevm.chain.outcome import Status
from fusevm.codegen.yul import compile_object
from fusevm.lab.peers.bench import geometric_mean
from fusevm.lab.yul.compiled import GAS, MOVES, CompiledRun, difference, random_case, run_code
from fusevm.lab.yul.exact import Solc, SolcFailed
from fusevm.lab.yul.generate_contracts import YulContract
from fusevm.lab.yul.generate_deep import deep_contract
from fusevm.yul.generate import StackTooDeep
from fusevm.yul.syntax.dialect import Dialect, dialect_for
from fusevm.yul.syntax.parser import parse_object

FORK, WORST = "osaka", 1.05
CHEAP = 2 * MOVES  # gas of a call that says nothing: the code of the smallest programs is little else than moves


@dataclass(slots=True)
class SolcTally:
    done: Counter[str] = field(default_factory=Counter)
    ratios: list[float] = field(default_factory=list)  # of gas, of every program
    findings: list[str] = field(default_factory=list)


def compare(name: str, contract: YulContract, solc: Solc, runs: int, tally: SolcTally) -> None:
    dialect, done = dialect_for(FORK), tally.done
    source = contract.source
    obj = parse_object(source, dialect)
    if not source.lstrip().startswith("object"):
        source = f'object "object" {{ code {source} }}'
    done["programs"] += 1
    try:
        theirs = solc.bytecode(source, runs)
    except SolcFailed:
        theirs = None
    try:
        compiled = compile_object(obj, dialect, runs=runs)
    except StackTooDeep as error:
        done["refused by both" if theirs is None else "refused by us"] += 1
        if theirs is not None:
            tally.findings.append(f"{name}: solc compiles it, fusevm does not: {error}")
        return
    done["translated as they stand"] += any("translated as it stands" in note for note in compiled.notes)
    if theirs is None:
        done["refused by solc"] += 1
        return
    plain = _plain(contract, dialect)
    # Where nobody can say what the program does, solc may have changed what a static call does.
    static = plain is not None
    ours_ran, theirs_ran = (run_code(code, contract, dialect, static=static) for code in (compiled.code, theirs))
    if plain is not None and (difference(plain, theirs_ran) is not None or _starves_alone(plain, theirs_ran)):
        done["changed by solc"] += 1
        return
    reason = difference(theirs_ran, ours_ran)
    if reason is not None:
        tally.findings.append(f"{name}: {reason}")
        return
    pairs = [pair for pair in zip(ours_ran, theirs_ran, strict=True) if all(map(_says_something, pair))]
    ours_gas, theirs_gas = (sum(pair[at].gas for pair in pairs) for at in (0, 1))
    done.update({"gas": ours_gas, "gas of solc": theirs_gas, "bytes": len(compiled.code), "bytes of solc": len(theirs)})
    if not theirs_gas:
        return
    tally.ratios.append(max(ours_gas, 1) / theirs_gas)
    if ours_gas > WORST * theirs_gas and ours_gas - theirs_gas > CHEAP * len(pairs):
        tally.findings.append(
            f"{name}: gas {ours_gas:,}, solc {theirs_gas:,} (×{ours_gas / theirs_gas:.2f}) {'; '.join(compiled.notes)}"
        )


def _plain(contract: YulContract, dialect: Dialect) -> list[CompiledRun] | None:
    """What the program does, translated as it stands."""
    obj = parse_object(contract.source, dialect)
    for options in ({"runs": None}, {"exact": True}):
        with suppress(StackTooDeep):
            return run_code(compile_object(obj, dialect, **options).code, contract, dialect, static=True)
    return None


def _starves_alone(plain: list[CompiledRun], theirs: list[CompiledRun]) -> bool:
    """Whether the program lacks gas where solc's code does not: it drops stores to memory that nothing can pay for."""
    return any(other.conclusive and not one.conclusive for one, other in zip(plain, theirs, strict=True))


def _says_something(run: CompiledRun) -> bool:
    """Frames that halt cost what they were given."""
    return run.conclusive and run.effects.status is not Status.HALT and run.gas < GAS // 8


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fusevm.lab.yul.beside_solc", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the others follow")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--deep", action="store_true", help="programs that hardly fit on the stack")
    parser.add_argument(
        "--solc", type=Path, default=os.environ.get("FUSEVM_SOLC"), help="a folder with the npm package"
    )
    options = parser.parse_args(arguments)
    if options.solc is None:
        parser.error("--solc or FUSEVM_SOLC must name a folder with solc's npm package")
    tally, program = SolcTally(), deep_contract if options.deep else random_case
    with Solc(options.solc) as solc:
        for seed in range(options.seed, options.seed + options.programs):
            known = len(tally.findings)
            compare(f"program {seed}", program(seed), solc, options.runs, tally)
            print(*tally.findings[known:], sep="\n", end="\n" if tally.findings[known:] else "", flush=True)
            if tally.done["programs"] % 100 == 0:
                print(f"{tally.done['programs']:,} of {options.programs:,}", file=sys.stderr, flush=True)
    print(summary(tally))
    return int(bool(tally.findings))


def summary(tally: SolcTally) -> str:
    done, ratios = tally.done, tally.ratios
    mean = geometric_mean(ratios)
    counts = "refused by us", "refused by solc", "refused by both", "changed by solc", "translated as they stand"
    gas = done["gas"] / max(done["gas of solc"], 1)
    size = done["bytes"] / max(done["bytes of solc"], 1)
    return (
        f"{done['programs']} programs: {', '.join(f'{done[name]} {name}' for name in counts)}; {len(ratios)} run: gas "
        f"×{gas:.3f} in sum, ×{mean:.3f} in the mean, ×{max(ratios, default=1.0):.2f} at worst, bytes ×{size:.3f}; "
        f"{len(tally.findings)} findings"
    )


if __name__ == "__main__":
    sys.exit(main())
