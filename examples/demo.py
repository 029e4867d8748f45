"""The main job in one go: compile a Yul contract, optimise it, run it on every tier, and show the figures."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fusevm import EVM
from fusevm.abi import Function
from fusevm.codegen.yul import compile_object
from fusevm.yul.optimise import optimize
from fusevm.yul.syntax.dialect import dialect_for
from fusevm.yul.syntax.parser import parse_object

SOURCE = Path(__file__).with_name("vault.yul")
ALICE = "0x" + "a1" * 20
CALLS: tuple[tuple[str, list[str | int]], ...] = (
    ("deposit(uint256)(uint256)", [1_000_000]),
    ("balanceOf(address)(uint256)", [ALICE]),
    ("totalSupply()(uint256)", []),
    ("compound(uint256,uint256)(uint256)", [1_000, 5_000]),
    ("digest(uint256)(uint256)", [5_000]),
)
TIERS = ("reference", "native-unfused", "native")


def main() -> None:
    console = Console(highlight=False)
    dialect = dialect_for("osaka")
    source = SOURCE.read_text(encoding="utf-8")
    plain = parse_object(source, dialect)
    started = time.perf_counter()
    better = optimize(plain, dialect)
    seconds = time.perf_counter() - started
    codes = {
        "as written": compile_object(plain, dialect, runs=None).code,
        "optimised": compile_object(better, dialect).code,
    }
    console.print(f"[bold]{SOURCE.name}[/]: compiled and optimised in {seconds:.2f} s")

    sizes, gas = Table(title="what the optimiser brought"), {}
    sizes.add_column("")
    for name, creation in codes.items():
        sizes.add_column(name, justify="right")
        gas[name] = measure(creation, "native")
    sizes.add_row("creation code, bytes", *(f"{len(code):,}" for code in codes.values()))
    for index, (signature, _) in enumerate(CALLS):
        sizes.add_row(f"gas of {signature.split('(')[0]}", *(f"{gas[name][index][0]:,}" for name in codes))
    console.print(sizes)

    times = Table(title="the optimised contract on every tier, same gas to the unit (times: best of several)")
    times.add_column("call")
    times.add_column("returns", justify="right", overflow="fold")
    for tier in TIERS:
        times.add_column(tier, justify="right")
    by_tier = {tier: measure(codes["optimised"], tier) for tier in TIERS}
    for index, (signature, arguments) in enumerate(CALLS):
        rows = [by_tier[tier][index] for tier in TIERS]
        if len({row[:2] for row in rows}) != 1:
            raise SystemExit(f"the tiers disagree on {signature}")
        shown = rows[0][1] if len(rows[0][1]) <= 20 else rows[0][1][:17] + "…"
        times.add_row(f"{signature.split('(')[0]}({', '.join(str(a)[:8] for a in arguments)})", shown,
                      *(f"{row[2] * 1e6:,.0f} µs" for row in rows))  # fmt: skip
    console.print(times)
    console.print("see what the optimiser did: [bold].venv/bin/fusevm explore examples/vault.yul[/]", soft_wrap=True)
    console.print("next: [bold].venv/bin/fusevm --help[/], README.md, docs/")


def measure(creation: bytes, tier: str) -> list[tuple[int, str, float]]:
    """Deploys, then makes every call: gas, decoded result, best time."""
    evm = EVM(tier=tier)
    address = evm.deploy(creation, caller=ALICE).check().address
    assert address is not None
    rows = []
    for text, arguments in CALLS:
        function = Function.parse(text)
        data = function.encode(*arguments)
        best = float("inf")
        for _ in range(5):
            started = time.perf_counter()
            result = evm.simulate(address, data, caller=ALICE).check()
            best = min(best, time.perf_counter() - started)
        evm.call(address, data, caller=ALICE)
        rows.append((result.gas_used, str(function.decode(result.output)), best))
    return rows


if __name__ == "__main__":
    main()
