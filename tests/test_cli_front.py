"""The command line as people meet it: artifacts, blocks, paths, limits, completion, interrupts, the doctor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import Command, fusevm_command  # noqa: F401
from conftest import first
from fusevm.chain.addresses import checksummed
from fusevm.chain.environment import DEFAULT_CALLER
from fusevm.cli.inputs import MAX_ANALYSED
from fusevm.cli.main import COMMANDS
from fusevm.lab import samples
from fusevm.lab.processes import in_processes
from fusevm.version import __version__
from tokens import artifacts

BOB = "0x" + "b0" * 20
FUSEVM = [sys.executable, "-c", "from fusevm.cli.start import main; main()"]


@pytest.fixture
def token(tmp_path: Path) -> str:
    path = tmp_path / "Token.json"
    path.write_text(json.dumps(artifacts()["foundry"]))
    return str(path)


# -- artifacts and blocks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", artifacts())
def test_an_artifact_of_any_tool_is_deployed_and_called(fusevm: Command, tmp_path: Path, form: str) -> None:
    path = tmp_path / "Token.json"
    path.write_text(json.dumps(artifacts()[form]))
    ran = fusevm("run", str(path), "--constructor", "1000", "--sig", "totalSupply", "--json")
    assert json.loads(ran.out)["decoded"] == ["1000"]


def test_results_events_and_errors_are_those_of_the_abi(fusevm: Command, token: str) -> None:
    asked = ("run", token, "--constructor", "1000", "--sig", "transfer", "--args", BOB)
    ran = fusevm(*asked, "7")
    assert "true" in ran.out
    assert "Transfer(from=0x" in ran.out
    assert json.loads(fusevm(*asked, "7", "--json").out)["events"][0].endswith("value=7)")
    failed = fusevm(*asked, "1001")
    assert failed.code == 1
    assert f"ERC20InsufficientBalance(sender={checksummed(DEFAULT_CALLER)}, balance=1000" in failed.out


def test_an_overload_is_chosen_by_the_number_of_arguments(fusevm: Command, token: str) -> None:
    assert fusevm("run", token, "--constructor", "9", "--sig", "burn", "--args", "5").code == 0
    assert "not your tokens" in fusevm("run", token, "--constructor", "9", "--sig", "burn", "--args", BOB, "5").out


def test_without_a_call_the_constructor_is_run(fusevm: Command, token: str) -> None:
    made = json.loads(fusevm("run", token, "--constructor", "9", "--json").out)
    assert made["address"] is not None
    assert made["events"][0].startswith("Transfer(from=0x0000")
    assert "CODECOPY" in fusevm("trace", token, "--constructor", "9").out


def test_regions_of_an_artifact_are_those_of_what_it_deploys(fusevm: Command, token: str) -> None:
    asked = ("regions", token, "--constructor", "9", "--sig", "totalSupply")
    assert json.loads(fusevm(*asked, "--all", "--json").out)[0]["entries"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sig", "transfer"], "the constructor of Token takes 1 argument, 0 given"),
        (["--constructor", "x"], "argument 1 (uint256): 'x' is not a value of this type"),
        (["--constructor", "1", "--sig", "mint"], "no function 'mint' in the ABI; it has balanceOf, burn, name, "),
        (["--contract", "Other"], "{token}: no contract 'Other'; it has one without a name"),
    ],
)
def test_a_wrong_call_of_an_artifact_is_one_line(fusevm: Command, token: str, words: list[str], message: str) -> None:
    ran = fusevm("run", token, *words)
    assert ran.code == 2
    assert ran.err.startswith(f"fusevm: {message.replace('{token}', token)}")
    assert ran.err.count("\n") == 1


def test_the_blocks_fields_can_be_set(fusevm: Command) -> None:
    def word(code: str, *fields: str) -> int:
        words = [each for field in fields for each in ("--block", field)]
        return int(json.loads(fusevm("run", code + "5f5260205ff3", *words, "--json").out)["output"], 16)

    assert word("43", "number=77") == 77
    assert word("42", "timestamp=0x10") == 16
    assert word("41", f"coinbase={BOB}") == int(BOB, 16)
    assert word("46", "chain-id=5", "number=3") == 5


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("moon=5", "--block: 'moon=5' is not NAME=VALUE; the names are number, timestamp, coinbase"),
        ("number", "--block: 'number' is not NAME=VALUE"),
        ("number=x", "--block: number: 'x' is not a number"),
        ("number=-1", "--block: block number: -1 is not a number of 256 bits"),
        ("coinbase=0x12", "--block: block coinbase: expected 20 bytes, got 1"),
    ],
)
def test_a_wrong_field_of_the_block_is_one_line(fusevm: Command, field: str, message: str) -> None:
    ran = fusevm("run", "0x00", "--block", field)
    assert ran.code == 2
    assert ran.err.startswith(f"fusevm: {message}")


def test_constructor_options_need_an_artifact(fusevm: Command) -> None:
    assert "need an artifact" in fusevm("run", "0x00", "--constructor", "1").err
    assert "code is empty" in fusevm("run", "").err


# -- paths and limits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["asm", "nosuch.asm"],
        ["asm", "no/such"],
        ["run", "nosuch.hex"],
        ["cfg", "nosuch.bin"],
        ["yul", "check", "nosuch.yul"],
        ["fusions", "--count", "nosuch.hex"],
        ["trace", "nosuch.json"],
    ],
)
def test_a_path_that_leads_nowhere_is_called_that(fusevm: Command, words: list[str]) -> None:
    ran = fusevm(*words)
    assert (ran.code, ran.err) == (2, f"fusevm: no such file: {words[-1]}\n")


def test_a_folder_is_not_taken_for_text(fusevm: Command, tmp_path: Path) -> None:
    assert "is a folder" in fusevm("asm", str(tmp_path)).err


@pytest.mark.parametrize("command", ["cfg", "ir", "schedule", "loops", "fusions", "optimize"])
def test_more_code_than_can_be_analysed_is_refused_at_once(fusevm: Command, tmp_path: Path, command: str) -> None:
    path = tmp_path / "code.hex"
    path.write_text("5b" * 2_500_000)
    started = time.monotonic()
    ran = fusevm(command, str(path))
    assert ran.code == 2
    assert ran.err.startswith(f"fusevm: the code has 2,500,000 bytes; at most {MAX_ANALYSED:,} are analysed")
    assert time.monotonic() - started < 60


def test_a_long_schedule_is_a_list_and_not_a_table(fusevm: Command) -> None:
    ran = fusevm("schedule", "6001600155" * 6_000)
    assert ran.code == 0
    assert "30000 reachable instructions" in ran.out or "reachable instructions by" in ran.out
    assert len(ran.out.splitlines()) > 4_000


@pytest.mark.parametrize(
    "command", [name for name in COMMANDS if name not in ("yul", "doctor", "profile", "coverage", "passes")]
)
def test_every_command_takes_a_fork(command: str) -> None:
    from typer.main import get_command

    from fusevm.cli.main import build_app

    options = [text for each in get_command(build_app([command])).commands[command].params for text in each.opts]
    assert "--fork" in options
    assert "-f" in options


# -- the project's own data -------------------------------------------------------------------------------------------


def test_state_tests_run_where_there_are_no_others(fusevm: Command) -> None:
    ran = fusevm("statetest", "-j", "1")
    assert (ran.code, ran.out) == (0, "27 passed, 0 failed\n")
    assert "github.com/ethereum/execution-spec-tests" in ran.err


def test_bench_files_run_where_there_are_no_others(
    fusevm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FUSEVM_FIXTURES", raising=False)
    ran = fusevm("bench", "--repeat", "1", "--cold", "--tier", "native")
    assert ran.code == 0
    assert "5 right, 0 wrong" in ran.out
    assert "docs/files.md" in ran.out
    assert "no bench file of berlin" in fusevm("bench", "--fork", "berlin").err


def test_the_projects_own_data_is_what_the_specification_says(tmp_path: Path) -> None:
    """Made anew, the files are the same."""
    pytest.importorskip("ethereum.forks.osaka")
    root = Path(__file__).resolve().parent.parent
    subprocess.run([sys.executable, str(root / "bench" / "samples.py"), str(tmp_path)], check=True, capture_output=True)
    made = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.json")}
    kept = {path.relative_to(samples.FOLDER): path.read_text() for path in samples.FOLDER.rglob("*.json")}
    assert made == kept


# -- shells -----------------------------------------------------------------------------------------------------------


def test_the_package_runs_as_the_command() -> None:
    told = subprocess.run([sys.executable, "-m", "fusevm", "--version"], capture_output=True, text=True, check=True)
    assert told.stdout == f"fusevm {__version__}\n"


@pytest.mark.parametrize(
    ("line", "word", "offered"),
    [("fusevm sta", 1, "statetest"), ("fusevm run --bl", 2, "--block"), ("fusevm yul comp", 2, "compile")],
)
def test_shells_can_complete_commands_and_options(line: str, word: int, offered: str) -> None:
    asked = {"_FUSEVM_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(word)}
    code = "import sys; sys.argv[0] = 'fusevm'; from fusevm.cli.start import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True)
    assert offered in done.stdout.split()


def _interruptible() -> None:
    """A shell starts what is in the background with interrupts ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(os.name != "posix", reason="signals to a group of processes")
@pytest.mark.parametrize(
    ("words", "seconds"),
    first(
        2,
        [
            (["fuzz", "-j", "2", "--programs", "5000"], 2),  # while processes start
            (["statetest", "-j", "2", "FIXTURES"], 3),
            (["fuzz", "-j", "2", "--programs", "5000"], 6),
            (["fuzz", "--programs", "5000"], 4),
        ],
    ),
)
def test_an_interrupt_is_one_line(words: list[str], seconds: float, fixtures_dir: Path) -> None:
    words = [str(fixtures_dir / "state_tests.tar.xz") if each == "FIXTURES" else each for each in words]
    code, errors = -signal.SIGINT, ""
    while code == -signal.SIGINT and not errors and seconds < 60:  # on a busy machine it has not even begun
        code, errors = _interrupted(words, seconds)
        seconds *= 2
    assert errors.strip().splitlines()[-1:] == ["fusevm: interrupted"]
    assert "Traceback" not in errors
    assert code == 130


@pytest.mark.skipif(os.name != "posix", reason="signals that are held")
def test_an_interrupt_while_processes_are_given_work_is_not_lost() -> None:
    def items() -> Iterator[int]:
        yield 1
        signal.raise_signal(signal.SIGINT)
        yield 2

    with pytest.raises(KeyboardInterrupt):
        list(in_processes(abs, items(), 2))


def _interrupted(words: list[str], seconds: float) -> tuple[int, str]:
    started = subprocess.Popen(
        [*FUSEVM, *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=_interruptible,
    )
    time.sleep(seconds)
    assert started.poll() is None
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does: to all processes of the group
    _, errors = started.communicate(timeout=60)
    return started.returncode, errors.decode()


# -- the doctor -------------------------------------------------------------------------------------------------------


def test_the_doctor_tells_versions_platform_cache_handlers_and_speeds(fusevm: Command) -> None:
    from fusevm import __version__

    ran = fusevm("doctor")
    assert ran.code == 0
    told = " ".join(ran.out.split())
    for text in (f"fusevm {__version__} on ", "llvmlite ", "The native tier runs: ", " handlers for ", "Cache: /"):
        assert text in told
    found = json.loads(fusevm("doctor", "--json").out)
    assert found["native"] == "runs"
    for tier in ("native", "reference"):
        assert found["speeds"][tier]["call_microseconds"] > 0
    assert found["cache"]["usable"] is True


def test_the_doctor_says_that_a_cache_cannot_be_used(
    fusevm: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FUSEVM_CACHE", str(tmp_path / "file" / "cache"))
    told = " ".join(fusevm("doctor").out.split())
    assert "NOT usable: every process builds its handlers anew (see FUSEVM_CACHE)" in told


def test_the_doctor_says_why_the_native_tier_does_not_run(fusevm: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from fusevm.native.emit import build

    def broken() -> None:
        raise OSError("no memory that may be executed")

    monkeypatch.setattr(build, "library", broken)
    ran = fusevm("doctor")
    assert ran.code == 1
    assert "The native tier does not run: no memory that may be executed." in " ".join(ran.out.split())
