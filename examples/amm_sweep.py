"""An AMM's fee and trade size, swept over 100,000 combinations on the contract itself, and plotted.

python examples/amm_sweep.py [PICTURE.svg]

Each combination is one call of `swap`. Its fee is set once for all sizes: calls that differ in data alone
are read much faster than those with slots of their own. The picture shows what a trader loses against the price
before the trade: to the fee, and to the price that the trade itself moves.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from fusevm import EVM, Batch
from fusevm.abi import Function
from fusevm.codegen.yul import compile_object
from fusevm.yul.optimise import optimize
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object

SOURCE = Path(__file__).with_name("pool.yul")
RESERVES = 1_000 * 10**18, 3_000_000 * 10**6  # of an 18-decimal token and a 6-decimal one
FEE_SLOT = 2
FEES = range(100)  # hundredths of a percent: 0 to 0.99 %
SIZES = [round(10**15 * 10 ** (5.5 * step / 999)) for step in range(1_000)]  # from 0.001 to 316 tokens
SWAP = Function.parse("swap(uint256)(uint256)")
SHOWN = (0, 5, 30, 99)  # fees that get a curve


def pool() -> tuple[EVM, bytes]:
    """A machine with a pool, and the pool's address."""
    dialect = dialect_for("osaka")
    creation = compile_object(
        optimize(parse_object(SOURCE.read_text(encoding="utf-8"), dialect), dialect), dialect
    ).code
    evm = EVM()
    address = evm.deploy(creation).check().address
    assert address is not None
    for slot, reserve in enumerate(RESERVES):
        evm.set_storage(address, slot, reserve)
    return evm, address


def sweep(evm: EVM, address: bytes) -> Batch:
    """All sizes with the first fee, then with the next."""
    datas, batches = [SWAP.encode(size) for size in SIZES], []
    with evm.snapshot():
        for fee in FEES:
            evm.set_storage(address, FEE_SLOT, fee)
            batches.append(evm.simulate_many(datas, address))
    return Batch.joined(batches)


def losses(batch: Batch) -> list[list[float]]:
    """By fee and trade size: what of the trade's worth is lost, in percent."""
    price = RESERVES[1] / RESERVES[0]
    words = batch.words()
    rows = [words[start : start + len(SIZES)] for start in range(0, len(words), len(SIZES))]
    return [
        [100 * (1 - (bought or 0) / (size * price)) for size, bought in zip(SIZES, row, strict=True)] for row in rows
    ]


# -- the picture

WIDTH, HEIGHT, LEFT, GAP = 460, 320, 60, 90


def picture(lost: list[list[float]]) -> str:
    parts = [*_heat_map(lost), *_curves(lost)]
    size = f'width="{2 * WIDTH + LEFT + GAP + 30}" height="{HEIGHT + 110}"'
    style = 'font-family="sans-serif" font-size="12" fill="#333"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join(parts) + "\n</svg>\n"


def _heat_map(lost: list[list[float]]) -> Iterable[str]:
    """Fee upwards, trade size to the right; the darker, the more is lost."""
    yield from _frame(LEFT, "What a trader loses: fee and trade size", "fee, %", "0", "0.99")
    across, up = 100, len(FEES)
    width, height = WIDTH / across, HEIGHT / up
    for row, values in enumerate(lost):
        for column in range(across):
            value = values[column * len(values) // across]
            shade = min(1.0, math.log10(1 + max(0.0, value)) / math.log10(26))
            colour = f"rgb({round(255 - 215 * shade)},{round(250 - 170 * shade)},{round(235 - 85 * shade)})"
            x, y = LEFT + column * width, 50 + HEIGHT - (row + 1) * height
            size = f'width="{width + 0.3:.1f}" height="{height + 0.3:.1f}"'
            yield f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{colour}" shape-rendering="crispEdges"/>'


def _curves(lost: list[list[float]]) -> Iterable[str]:
    """One curve per fee, both axes logarithmic."""
    left, low, high = LEFT + WIDTH + GAP, math.log10(0.001), math.log10(100)
    yield from _frame(left, "The same for some fees", "lost, %", "0.001", "100")
    for fee, colour in zip(SHOWN, ("#1b9e77", "#7570b3", "#d95f02", "#e7298a"), strict=True):
        points = []
        for column, value in enumerate(lost[fee]):
            height = (math.log10(max(value, 0.001)) - low) / (high - low)
            points.append(f"{left + WIDTH * column / (len(SIZES) - 1):.1f},{50 + HEIGHT * (1 - height):.1f}")
        yield f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield f'<text x="{left + 12}" y="{68 + 16 * SHOWN.index(fee)}" fill="{colour}">fee {fee / 100:.2f} %</text>'


def _frame(left: float, title: str, label: str, low: str, high: str) -> Sequence[str]:
    bottom = 50 + HEIGHT
    return [
        f'<rect x="{left}" y="50" width="{WIDTH}" height="{HEIGHT}" fill="#fff" stroke="#999"/>',
        f'<text x="{left}" y="36" font-size="15" font-weight="bold">{title}</text>',
        f'<text x="{left - 6}" y="{bottom}" text-anchor="end">{low}</text>',
        f'<text x="{left - 6}" y="62" text-anchor="end">{high}</text>',
        f'<text x="{left - 14}" y="{50 + HEIGHT / 2}" text-anchor="end">{label}</text>',
        f'<text x="{left}" y="{bottom + 18}">0.001</text>',
        f'<text x="{left + WIDTH}" y="{bottom + 18}" text-anchor="end">316</text>',
        f'<text x="{left + WIDTH / 2}" y="{bottom + 36}" text-anchor="middle">trade size, tokens (pool: 1,000)</text>',
    ]


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "amm_sweep.svg")
    evm, address = pool()
    started = time.perf_counter()
    batch = sweep(evm, address)
    seconds = time.perf_counter() - started
    target.write_text(picture(losses(batch)), encoding="utf-8")
    print(f"{len(batch):,} calls in {seconds:.2f} s ({len(batch) / seconds:,.0f} per second); picture: {target}")


if __name__ == "__main__":
    main()
