"""The IR as plain functions: dependency blocks of bytecode, its functions, and their text."""

from __future__ import annotations

from collections.abc import Iterable

from fusevm.codegen.pipeline import OPTIMISE, Work, run_passes
from fusevm.evm.bytecode import basic_blocks
from fusevm.evm.forks import LATEST, Fork, fork_named
from fusevm.ir.fold.stages import EVERYTHING, Stage
from fusevm.ir.fold.stats import Stats
from fusevm.ir.functions import DependencyBlock, Unit
from fusevm.ir.lift import lift_block
from fusevm.ir.parse import parse
from fusevm.ir.recovery.unit import recover
from fusevm.ir.regions.build import RegionUnit
from fusevm.ir.text import block_text, unit_text
from fusevm.values import BytesLike, to_bytes


def lifted(code: BytesLike, fork: str | Fork = LATEST) -> list[DependencyBlock]:
    """The dependency blocks of bytecode, each on its own, as the code has them.

    >>> len(lifted("0x600160020160005500"))
    1
    """
    rules = fork_named(fork)
    return [lift_block(each, rules) for each in basic_blocks(to_bytes(code, "code"), rules)]


def folded(
    code: BytesLike, fork: str | Fork = LATEST, *, optimise: bool = False, stages: Stage = EVERYTHING
) -> tuple[RegionUnit | Unit, Stats]:
    """The functions of bytecode, folded, and what each stage did.

    Gas stays exact, as native code needs it; or `optimise` allows it to fall, as `fusevm.optimize` does. That raises
    RecoveryFailed for code that cannot be followed with certainty. Where gas stays exact, `stages` says what is done.

    >>> functions, stats = folded("0x600160020160005500", optimise=True)
    >>> print(written(functions), end="")
    function main()
      block 0():
        $0 = SStore #0 #3
        Stop
    """
    data, rules = to_bytes(code, "code"), fork_named(fork)
    if optimise:
        work = Work(recover(data, rules).unit)
        run_passes(work, OPTIMISE)
        return work.unit, work.stats
    from fusevm.native.region.build import placed_schedule, regions_of  # and with it LLVM
    from fusevm.native.region.choice import functions_and_loops

    region = regions_of(placed_schedule(data, rules), rules, functions_and_loops, stages)
    return region, region.stats


def written(found: Iterable[DependencyBlock] | RegionUnit | Unit) -> str:
    """Blocks as `read` reads them, or functions.

    >>> "SStore" in written(lifted("0x600160020160005500"))
    True
    """
    if isinstance(found, RegionUnit):
        return unit_text(found.unit, region=True)
    return unit_text(found) if isinstance(found, Unit) else "\n".join(map(block_text, found))


def read(source: str) -> list[DependencyBlock]:
    """The blocks of a text. Raises `IrSyntaxError` with the line of a mistake.

    >>> [block.start for block in read(written(lifted("0x600160020160005500")))]
    [0]
    """
    return list(parse(source))
