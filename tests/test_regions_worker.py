"""The process that compiles regions: missing, killed, answering nonsense; and damaged files. Calls go on regardless."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusevm import EVM
from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.native.emit.build import library
from fusevm.native.host import code_cache
from fusevm.native.host import compiler as compiling
from fusevm.native.host.compiler import Asked, Compiler, keep, kept
from fusevm.native.host.regions import patched
from fusevm.native.host.tier_policy import Answer
from fusevm.native.host.tiers import engine
from fusevm.native.region import build as building
from fusevm.native.region.build import compile_regions
from fusevm.native.region.choice import every_block
from fusevm.native.region.compiled import Compiled
from fusevm.native.region.worker import MADE, NICE, NOTHING, REFUSED, SIZE, answer, receive, request, send
from fusevm.schedule.build import build_schedule
from programs import HERE

CODE = assemble("PUSH0 loop: JUMPDEST PUSH1 1 ADD DUP1 PUSH2 500 GT PUSH1 @loop JUMPI STOP")
COUNTS = {0: 1, 1: 500}
ASKED = Asked(CODE, LATEST)


class Asking:
    """A compiler of its own, and what it answered."""

    def __init__(self) -> None:
        self.compiler = Compiler()
        self.answers: list[Compiled] = []
        self.told_of_none = 0  # answers that there are no regions
        self.answered = threading.Event()

    def done(self, answer: Compiled | Answer) -> None:
        if isinstance(answer, Answer):
            self.told_of_none += 1
        else:
            self.answers.append(answer)
            self.answered.set()

    def ask(self, code: bytes = CODE, counts: dict[int, int] = COUNTS, heat: float = 1.0) -> bool:
        """Whether it will be answered."""
        self.answered.clear()
        return self.compiler.ask(Asked(code, LATEST), counts, heat, self.done) is None

    def wait_for_none(self, count: int) -> None:
        ends = time.monotonic() + 30
        while self.told_of_none < count and time.monotonic() < ends:
            time.sleep(0.01)
        assert self.told_of_none == count

    def wait_for_failures(self, count: int) -> None:
        ends = time.monotonic() + 30
        while self.compiler.failed < count and time.monotonic() < ends:
            time.sleep(0.01)
        assert self.compiler.failed == count


@pytest.fixture(name="cache")
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    library()  # of the common cache
    compiling._fingerprint()
    monkeypatch.setenv("FUSEVM_CACHE", str(tmp_path))
    compiling.region_names.cache_clear()
    yield tmp_path
    compiling.region_names.cache_clear()


@pytest.fixture(name="asking")
def asking_compiler(cache: Path) -> Iterator[Asking]:
    made = Asking()
    yield made
    made.compiler.stop()


def executable(folder: Path, script: str) -> str:
    path = folder / "worker"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_regions_come_back_from_the_process_and_are_kept(asking: Asking, cache: Path) -> None:
    assert asking.ask()
    assert asking.answered.wait(60)
    (made,) = asking.answers
    assert [pc for pc, _ in made.entries] == [1]
    assert kept(ASKED) == made
    assert patched(build_schedule(CODE, LATEST, library().handlers), made) is not None


def test_nothing_is_asked_where_there_is_no_executable(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    assert not asking.ask()


def test_an_executable_that_cannot_be_started_is_no_harm(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    working = sys.executable
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert asking.ask()
    time.sleep(0.1)
    monkeypatch.setattr(sys, "executable", working)
    assert asking.ask()
    assert asking.answered.wait(60)


def test_a_process_that_dies_is_started_again(asking: Asking, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    working = sys.executable
    monkeypatch.setattr(sys, "executable", executable(cache, "exit 3"))
    assert asking.ask()
    asking.wait_for_failures(1)
    monkeypatch.setattr(sys, "executable", working)
    assert asking.ask()
    assert asking.answered.wait(60)


def test_a_process_that_takes_too_long_is_killed(asking: Asking, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "PATIENCE", 0.2)
    monkeypatch.setattr(sys, "executable", executable(cache, "exec sleep 1000"))
    assert asking.ask()
    asking.wait_for_failures(1)
    asking.wait_for_none(1)  # so that nobody waits for it
    assert asking.answers == []


@pytest.mark.skipif(not hasattr(signal, "SIGXCPU"), reason="no limit of processor time here")
@pytest.mark.long
def test_a_request_that_takes_too_much_processor_time_ends_the_process() -> None:
    """However busy the machine is: the first one takes longer by the clock, and is answered."""
    worker = """
from time import sleep
from fusevm.native.region import worker
def slow(asked):
    sleep(2.5)
    while asked == b"work":
        pass
    return asked
worker.MAX_SECONDS, worker.answer = 1, slow
worker.main()
"""
    with subprocess.Popen([sys.executable, "-c", worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        send(process.stdin, b"sleep")
        assert receive(process.stdout) == b"sleep"
        send(process.stdin, b"work")
        assert receive(process.stdout) is None
        assert process.wait(60) == -signal.SIGXCPU


@pytest.mark.skipif(not hasattr(os, "getpriority"), reason="no priorities here")
def test_callers_come_before_the_process_that_compiles(asking: Asking) -> None:
    assert asking.ask()
    assert asking.answered.wait(60)
    pid, least = asking.compiler.pid, 19
    assert pid is not None
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(own + NICE, least)


@pytest.mark.parametrize(
    "said", [r"\001\000\000\000x", r"\014\000\000\000aaaabbbbcccc", r"\377\377\377\377nonsense", r"\003\000"]
)
def test_nonsense_is_neither_used_nor_kept_and_the_next_request_is_served(
    said: str, asking: Asking, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = sys.executable
    monkeypatch.setattr(sys, "executable", executable(cache, f"head -c 4 > /dev/null; printf '{said}'"))
    assert asking.ask()
    asking.wait_for_none(1)
    monkeypatch.setattr(sys, "executable", working)
    asking.compiler.stop()
    assert asking.ask()
    assert asking.answered.wait(60)
    assert len(asking.answers) == 1
    assert kept(ASKED) == asking.answers[0]


def test_object_code_that_is_none_is_not_loaded() -> None:
    schedule = build_schedule(CODE, LATEST, library().handlers)
    made = compile_regions(CODE, LATEST, every_block, 0)
    assert made is not None
    assert patched(schedule, made) is not None
    assert patched(schedule, made._replace(code=b"nonsense")) is None
    assert patched(schedule, made._replace(code=made.code[:100])) is None
    assert patched(schedule, made._replace(entries=((77, 3),))) is None
    assert patched(schedule, made._replace(words=made.words + 1)) is None


def test_packed_regions_that_were_cut_or_lengthened_are_refused() -> None:
    made = Compiled(10, ((1, 2), (3, 4)), b"object code").packed()
    assert Compiled.unpacked(made).entries == ((1, 2), (3, 4))
    for wrong in (b"", made[:5], made[:-1], made + b"x", b"\xff" * 40):
        with pytest.raises(ValueError, match="cut short"):
            Compiled.unpacked(wrong)


def test_a_damaged_file_counts_as_none(cache: Path) -> None:
    made = compile_regions(CODE, LATEST, every_block, 0)
    assert made is not None
    keep(ASKED, made.packed())
    assert kept(ASKED) == made
    (path,) = (cache / "regions").iterdir()
    content = path.read_bytes()
    for wrong in (b"", content[:-1], content[:50] + bytes([content[50] ^ 1]) + content[51:], b"x" * 4_000):
        path.write_bytes(wrong)
        assert kept(ASKED) is None


@pytest.mark.usefixtures("cache")
def test_regions_on_disk_are_put_in_place_once_code_has_run_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linking them takes longer than a short run."""
    made = compile_regions(CODE, LATEST, every_block, 0)
    assert made is not None
    keep(ASKED, made.packed())
    known = engine(tiered=True).codes
    known.forget()
    monkeypatch.setattr(known.hot_code, "policy", known.hot_code.new_policy())
    monkeypatch.setattr(known.hot_code, "worked", lambda *_: None)  # nothing is counted
    before, evm = known.hot_code.installed, EVM(tier="native-tiered")
    evm.set_code(HERE, CODE)
    monkeypatch.setattr(code_cache, "PREPARING", 1e9)
    first = evm.call(HERE)
    assert known.hot_code.installed == before
    monkeypatch.setattr(code_cache, "PREPARING", 0.0)
    assert evm.call(HERE) == evm.call(HERE) == first
    assert known.hot_code.installed == before + 1
    assert known.hot_code.schedules[CODE, LATEST].held is not None
    known.forget()


def test_no_disk_is_no_harm(asking: Asking, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "file").write_text("")
    monkeypatch.setenv("FUSEVM_CACHE", str(cache / "file" / "cache"))
    with pytest.warns(UserWarning, match="cannot be used as a cache"):
        compiling.region_names()
    assert asking.ask()
    assert asking.answered.wait(60)
    assert kept(ASKED) is None


def test_the_worker_answers_why_there_are_none() -> None:
    assert answer(request(CODE, LATEST.name, (), {})) == REFUSED + NOTHING
    assert answer(request(b"\x00", LATEST.name, (), {0: 5})) == REFUSED + NOTHING
    assert answer(b"[]").startswith(REFUSED + b"the compiler failed: ValueError: ")


def test_an_error_in_the_compiler_is_an_answer_and_the_process_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise KeyError("f_17")

    with monkeypatch.context() as broken:
        broken.setattr(building, "compile_hot", fails)
        assert answer(request(CODE, LATEST.name, (), COUNTS)).startswith(
            REFUSED + b"the compiler failed: KeyError: 'f_17'"
        )
    assert answer(request(CODE, LATEST.name, (), COUNTS)).startswith(MADE)


def test_what_was_refused_is_not_asked_for_again(asking: Asking) -> None:
    """A STOP cannot be in a region."""
    assert asking.ask(b"\x00", {0: 5})
    asking.wait_for_none(1)
    assert list(asking.compiler.refused.values()) == [NOTHING.decode()]
    assert not asking.ask(b"\x00", {0: 5})
    assert asking.ask()  # the same process
    assert asking.answered.wait(60)
    assert asking.compiler.failed == 0


def test_what_processes_die_of_is_tried_twice_and_they_are_replaced_so_often_and_no_more(
    asking: Asking, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "MAX_FAILED", 3)
    monkeypatch.setattr(sys, "executable", executable(cache, "exit 3"))
    for number in (1, 2):
        assert asking.ask()
        asking.wait_for_none(number)
    assert not asking.ask()
    assert asking.ask(CODE + b"\x00")
    asking.wait_for_none(3)
    assert asking.compiler.failed == 3
    assert not asking.ask(CODE + b"\x01")


def test_whoever_asked_is_told_where_the_answer_cannot_be_waited_for(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading, "Timer", no_thread)
        assert asking.ask()
        asking.wait_for_none(1)
    assert asking.ask()
    assert asking.answered.wait(60)


def test_a_message_that_ends_early_is_none() -> None:
    from io import BytesIO

    assert receive(BytesIO(SIZE.pack(3) + b"abc")) == b"abc"
    assert receive(BytesIO(SIZE.pack(3) + b"ab")) is None
    assert receive(BytesIO(b"")) is None


def test_a_schedule_with_regions_is_told_from_the_one_it_was_made_of() -> None:
    """By the table of jumps: a frame that runs long would be sent to the same schedule with every slice of gas."""
    fused = build_schedule(CODE, LATEST, library().handlers)
    compiled = compile_regions(CODE, LATEST, every_block)
    assert compiled is not None
    made = patched(fused, compiled)
    assert made is not None
    assert made.jumps == fused.jumps
    assert made.jumps_base != fused.jumps_base
