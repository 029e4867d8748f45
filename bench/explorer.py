"""The explorer in a headless browser: how long it takes to open, and to answer a click, on small and large contracts.

python bench/explorer.py [--json] [--repeat N] [--pictures FOLDER]

Needs chromium and the extra `explorer`. Seconds to open are counted from the address being entered until lines are
drawn, with the server already listening; milliseconds to answer, inside the page, from a click on a line until all
panes are drawn again. `--pictures` makes the pictures of docs/explorer.md instead.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser import Browser, chromium  # noqa: E402
from explorerpages import answer_time, block_code, choose, jumpdests, open_page, select_line  # noqa: E402
from explorers import Explorer  # noqa: E402

CORPUS = ROOT.parent / "shared" / "fixtures" / "bench"


def contracts(folder: Path) -> list[tuple[str, Path, str]]:
    """Name, file, and the pane that is clicked in."""
    made = [("24 KB of JUMPDESTs", "jumpdests.hex", jumpdests()), ("3,000 blocks", "blocks.hex", block_code(3000))]
    found = [("examples/vault.yul", ROOT / "examples" / "vault.yul", "bytecode")]
    for name, file, text in made:
        (folder / file).write_text(text)
        found.append((name, folder / file, "bytecode"))
    real = CORPUS / "evmone-snailtracer.json"
    if real.exists():
        (folder / "snailtracer.hex").write_text(_code_of(real))
        found.append(("snailtracer", folder / "snailtracer.hex", "bytecode"))
    return found


def _code_of(path: Path) -> str:
    """The longest hex text in a bench file: its code."""
    texts: list[str] = []

    def visit(value: Any) -> None:
        if isinstance(value, str) and value.startswith("0x"):
            texts.append(value)
        elif isinstance(value, dict | list):
            for each in value.values() if isinstance(value, dict) else value:
                visit(each)

    visit(json.loads(path.read_text("utf-8")))
    return max(texts, key=len)


def measure(path: Path, pane: str, folder: Path) -> dict[str, float]:
    with Explorer(Path(sys.executable), str(path)) as explorer, Browser(chromium(), folder) as browser:
        opened = open_page(browser, explorer.url)
        lines = browser.js(f"window.fusevm.state.doc.panes.find(p => p.id === '{pane}').lines.length")
        answers = [answer_time(browser, pane, int(lines * share)) for share in (0.1, 0.3, 0.5, 0.7, 0.9)]
        return {"lines": lines, "open_s": opened, "answer_ms": statistics.median(answers), "worst_ms": max(answers)}


def pictures(folder: Path) -> None:
    """docs/images: the view of optimisations in light colours, that of runs in dark ones."""
    vault = ROOT / "examples" / "vault.yul"
    with tempfile.TemporaryDirectory() as name, Explorer(Path(sys.executable), str(vault)) as explorer:
        with Browser(chromium(), Path(name) / "light", width=1280, height=800) as browser:
            open_page(browser, explorer.url)
            chained = "panes.find(p => p.id === 'ir').lines.findIndex(l => (folds[l.value] || []).length > 1) + 1"
            select_line(browser, "ir", browser.js(f"(({{panes, folds}}) => {chained})(window.fusevm.state.doc)"))
            browser.js("document.querySelector('.chart').focus()")
            for _ in range(12):
                browser.key("ArrowLeft", modifiers=8)
            browser.js("document.activeElement.blur()")
            _picture(browser, folder / "explorer-light.png")
        with Browser(chromium(), Path(name) / "dark", width=1280, height=800, dark=True) as browser:
            open_page(browser, explorer.url)
            browser.click("#views .tabs button:nth-child(3)")
            choose(browser, ".call select", "deposit(uint256)")
            browser.click(".call button[type=submit]")
            browser.until("document.querySelector('.run-facts')")
            browser.js("document.activeElement.blur()")
            browser.key(">", ">")
            for _ in range(9):
                browser.key(",", ",")
            _picture(browser, folder / "explorer-dark.png")


def _picture(browser: Browser, path: Path) -> None:
    browser.until("!document.querySelector('.busy:not([hidden])')")
    time.sleep(0.5)
    browser.picture(path)
    print(f"{path}: {path.stat().st_size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    if given.pictures is not None:
        pictures(given.pictures)
        return
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for title, path, pane in contracts(Path(name)):
            runs = []
            for number in range(given.repeat):
                folder = Path(name) / f"{path.stem}-{number}"
                folder.mkdir()
                runs.append(measure(path, pane, folder))
            best = {key: min(run[key] for run in runs) for key in runs[0]}
            rows.append({"contract": title, **best})
            if not given.json:
                print(
                    f"{title:22} {best['lines']:8,.0f} lines  {best['open_s']:6.2f} s to open  "
                    f"{best['answer_ms']:6.0f} ms to answer, {best['worst_ms']:.0f} at most",
                    flush=True,
                )
    if given.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
