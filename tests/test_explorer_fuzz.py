"""The explorer's page with 200 codes that nobody would write: every view is visited, and says what it means to say.

No exception in the console, no `undefined`, `null` or `NaN` on the page, whatever is opened in it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from anvil import npm_folder
from browser import Browser, chromium
from conftest import WHOLE
from explorercodes import COUNT, VISIT, Code, Real, codes, odd_codes
from explorerpages import open_page
from explorers import Explorer
from realcontracts import PACKAGES, Built, compile_sources

FEW = ("nothing", "unnamed selectors", "every byte", "wrong Yul")
HEAVY = 6_000  # characters of source from which on no machine code is asked for
SLICES = 10


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    pytest.importorskip("aiohttp", reason="the explorer's server needs aiohttp")
    program = chromium()
    with Explorer(Path(sys.executable)) as explorer, Browser(program, tmp_path_factory.mktemp("fuzz")) as browser:
        open_page(browser, explorer.url)
        yield browser


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> list[Real]:
    folder = npm_folder(tmp_path_factory, "FUSEVM_CONTRACTS", PACKAGES)
    found = [of_build(name, built) for name, built in compile_sources(folder).items()]
    pool = Path("node_modules/@uniswap/v3-core/artifacts/contracts/UniswapV3Pool.sol/UniswapV3Pool.json")
    if (folder / pool).exists():
        form = json.loads((folder / pool).read_text())
        found.append(Real("UniswapV3Pool", form["abi"], form["bytecode"][2:], form["deployedBytecode"][2:]))
    return found


def of_build(name: str, built: Built) -> Real:
    return Real(name, built.abi, built.creation.hex(), built.runtime.hex())


def visit(page: Browser, code: Code) -> None:
    before = len(page.errors)
    heavy = len(code.text) > HEAVY
    found = page.js(VISIT % (json.dumps(code.text), json.dumps(code.name[:60]), json.dumps(heavy)))
    assert page.errors[before:] == [], code.name
    assert found == [], code.name


@pytest.mark.parametrize("name", FEW)
def test_no_view_breaks_on_an_odd_code(page: Browser, name: str) -> None:
    visit(page, next(each for each in odd_codes() if each.name == name))


ALL_PAGES = pytest.mark.skipif(not os.environ.get("FUSEVM_ALL_PAGES"), reason="takes long: set FUSEVM_ALL_PAGES for it")


@pytest.mark.long
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=ALL_PAGES) for part in range(1, SLICES))])
def test_no_view_breaks_on_mutated_contracts_and_garbage(page: Browser, real: list[Real], part: int) -> None:
    wrong = []
    for code in codes(real)[part::SLICES]:
        try:
            visit(page, code)
        except AssertionError as error:
            wrong.append(str(error))
    assert wrong == []


@pytest.mark.skipif(not WHOLE, reason="takes long: set FUSEVM_WHOLE_CORPUS for it")
def test_there_are_as_many_codes_as_said(real: list[Real]) -> None:
    found = codes(real)
    assert len({each.name for each in found}) == len(found) == COUNT
