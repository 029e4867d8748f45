"""What the project is published with: workflows that name what exists, templates, the lock, the sdist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fusevm.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def parsed(path: Path) -> Any:
    return pytest.importorskip("yaml").safe_load(path.read_text("utf-8"))


def steps(path: Path) -> str:
    jobs = parsed(path)["jobs"].values()
    return "\n".join(step.get("run", "") for job in jobs for step in job["steps"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_targets_and_commands_that_exist(path: Path) -> None:
    targets = set(re.findall(r"^([\w/.$()]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)) | {".venv/.ready"}
    text = steps(path)
    assert set(re.findall(r"^make ([\w./]+)", text, re.M)) <= targets
    assert set(re.findall(r"fusevm (\w+)", text)) <= set(COMMANDS)


def test_the_workflows_mirror_what_must_pass_here() -> None:
    """The tiers of `make conformance` are those that CI runs the official tests on."""
    makefile, text = (ROOT / "Makefile").read_text("utf-8"), steps(ROOT / ".github" / "workflows" / "ci.yml")
    for command in ("statetest", "blocktest"):
        wanted = re.findall(rf"fusevm {command} \S+ --tier (\S+)", makefile)
        (listed,) = re.findall(rf"for tier in (.*); do\n\s+\S+fusevm {command}", text)
        assert listed.split() == wanted


def test_the_pythons_that_are_tested_are_those_that_are_claimed() -> None:
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert parsed(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == claimed
    assert PROJECT["project"]["requires-python"] == f">={claimed[0]}"


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name
)
def test_an_issue_template_can_be_read(path: Path) -> None:
    form = parsed(path)
    if path.name != "config.yml":
        assert {"name", "description", "body"} <= form.keys()
        assert len({each["id"] for each in form["body"]}) == len(form["body"])


def test_what_the_sdist_lists_is_there() -> None:
    for name in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]:
        assert (ROOT / name).exists(), name


def test_the_lock_has_every_dependency() -> None:
    locked = {
        line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "requirements.lock").read_text().split()
    }
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *extras["dev"], *extras["docs"], *extras["prove"]]
    names = {re.split(r"[><=\[ ]", each)[0].lower().replace("_", "-") for each in wanted}
    assert names - locked == set()
