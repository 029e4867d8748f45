"""ape on fusevm: a session through ape's accounts, contracts and chain, on its own test chain and on fusevm."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments import FOREIGN, ROOT, environment, pytest_inside
from fusevm import yul

pytestmark = pytest.mark.long  # real tools, installed for it

PLUGIN = ROOT / "plugins" / "ape-fusevm"


def test_a_session_through_ape_is_the_same_on_its_own_chain_and_on_fusevm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = environment("ape")
    code = yul.compile((FOREIGN / "counter.yul").read_text("utf-8")).code
    monkeypatch.setenv("COUNTER_CODE", "0x" + code.hex())
    monkeypatch.setenv("APE_DATA_FOLDER", str(tmp_path / "data"))
    found = tmp_path / "installed" / "ape_fusevm-0.1.0.dist-info"  # as pip would leave it: ape looks for the name
    found.mkdir(parents=True)
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: ape-fusevm\nVersion: 0.1.0\n")
    (found / "top_level.txt").write_text("ape_fusevm\n")
    counts = pytest_inside(python, str(FOREIGN / "check_ape.py"), cwd=tmp_path, paths=(PLUGIN, found.parent))
    assert counts == {"passed": 15}
