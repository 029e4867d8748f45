"""What the project is published with: workflows that name what exists, templates, the lock, the sdist."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fusevm.cli.main import COMMANDS
from fusevm.native.cache import ready

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


# -- wheels -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheels() -> Any:
    """The script that builds them."""
    spec = importlib.util.spec_from_file_location("wheels", ROOT / ".ci" / "wheels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pure(tmp_path: Path, wheels: Any) -> Path:
    """A wheel of one module, as a build backend would write it."""
    path = tmp_path / "fusevm-1.0-py3-none-any.whl"
    contents = {
        "fusevm/__init__.py": "answer = 42\n",
        "fusevm-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: fusevm\nVersion: 1.0\n",
        "fusevm-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{name},{wheels._digest(text.encode())},{len(text)}" for name, text in contents.items()]
    contents["fusevm-1.0.dist-info/RECORD"] = "\n".join([*lines, "fusevm-1.0.dist-info/RECORD,,", ""])
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in contents.items():
            archive.writestr(name, text)
    return path


@pytest.fixture
def objects(tmp_path: Path) -> Callable[[str], list[Path]]:
    """Files as if handlers for all levels of a platform had been made."""

    def made(platform: str) -> list[Path]:
        levels = [name for name, level in ready.LEVELS.items() if level.platform == platform]
        paths = [tmp_path / f"{'0' * 32}-{level}.xz" for level in levels]
        for path in paths:
            path.write_bytes(path.name.encode())
        return paths

    return made


@pytest.mark.parametrize("platform", ready.TRIPLES)
def test_a_platforms_wheel_has_its_tags_its_handlers_and_a_record_of_them(
    platform: str, pure: Path, objects: Callable[[str], list[Path]], wheels: Any
) -> None:
    made = wheels.platform_wheel(pure, platform, objects(platform), pure.parent)
    wheels.checked(made)
    assert made.name == f"fusevm-1.0-py3-none-{'.'.join(wheels.TAGS[platform])}.whl"
    with zipfile.ZipFile(made) as archive:
        assert archive.testzip() is None
        about = archive.read("fusevm-1.0.dist-info/WHEEL").decode()
        record = archive.read("fusevm-1.0.dist-info/RECORD").decode()
    assert re.findall(r"Tag: (\S+)", about) == [f"py3-none-{tag}" for tag in wheels.TAGS[platform]]
    assert record.count("fusevm/native/cache/ready/") == len(objects(platform)) > 0


@pytest.mark.long
def test_pip_installs_a_platforms_wheel_on_that_platform_alone(
    pure: Path, objects: Callable[[str], list[Path]], wheels: Any, tmp_path: Path
) -> None:
    names = ["linux-aarch64", "macos-aarch64", "windows-x86-64"]
    for number, platform in enumerate(names):
        made = wheels.platform_wheel(pure, platform, objects(platform), pure.parent)
        for other in (platform, names[number - 1]):
            tag = wheels.TAGS[other][0]
            place = tmp_path / f"{platform} on {other}"
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", place]
            options = ["--disable-pip-version-check", "--only-binary=:all:", "--platform", tag, made]
            done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120)
            assert (done.returncode == 0) == (other == platform), done.stderr
            assert (place / wheels.INSIDE).is_dir() == (other == platform)


def test_a_wheel_without_its_handlers_or_with_anothers_is_refused(
    pure: Path, objects: Callable[[str], list[Path]], wheels: Any
) -> None:
    wheels.checked(pure)
    for given in ([], objects("linux-aarch64"), objects("macos-x86-64")[:1]):
        with pytest.raises(SystemExit, match="it has handlers for"):
            wheels.checked(wheels.platform_wheel(pure, "macos-x86-64", given, pure.parent))
    damaged = wheels.platform_wheel(pure, "linux-aarch64", objects("linux-aarch64"), pure.parent)
    with zipfile.ZipFile(damaged, "a") as archive:
        archive.writestr("fusevm/other.py", "")
    with pytest.raises(SystemExit, match="RECORD does not fit"):
        wheels.checked(damaged)


def test_every_platform_that_code_is_made_for_has_a_wheel(wheels: Any) -> None:
    assert wheels.TAGS.keys() == ready.TRIPLES.keys() == {level.platform for level in ready.LEVELS.values()}
