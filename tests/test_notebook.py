"""The notebook of the examples runs from top to bottom, and shows tables and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "examples"


@pytest.fixture(scope="module")
def cells() -> list[Any]:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(FOLDER / "tour.ipynb", as_version=4)
    done = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
    ).execute()
    return [cell for cell in done.cells if cell.cell_type == "code"]


def shown(cells: list[Any], form: str) -> list[str]:
    outputs = [output for cell in cells for output in cell.outputs]
    return [output["data"][form] for output in outputs if form in output.get("data", {})]


def test_the_notebook_is_kept_without_outputs() -> None:
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(FOLDER / "tour.ipynb", as_version=4)
    assert not any(cell.outputs or cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


def test_results_and_contracts_are_tables(cells: list[Any]) -> None:
    tables = shown(cells, "text/html")
    assert any("ContractResult: success" in table and "Transfer(from=0x" in table for table in tables)
    assert any("ERC20InsufficientBalance(sender=0x" in table for table in tables)
    assert any(table.startswith("<table><caption>Contract 0x") for table in tables)


def test_control_flow_is_a_picture(cells: list[Any]) -> None:
    (picture,) = shown(cells, "image/svg+xml")
    assert "<svg" in picture


def test_nothing_is_written_to_standard_error(cells: list[Any]) -> None:
    assert [output for cell in cells for output in cell.outputs if output.get("name") == "stderr"] == []
