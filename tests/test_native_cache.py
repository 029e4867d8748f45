"""Object code in the user's cache folder: written once, loaded afterwards, and never trusted blindly."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fusevm.evm.assembly import assemble
from fusevm.evm.forks import LATEST
from fusevm.native.cache import folder as cache
from fusevm.native.cache import ready
from fusevm.native.cache.folder import MAGIC, cache_folder, cached, read, write
from fusevm.native.cache.sources import digest_of_sources
from fusevm.native.emit.build import library
from fusevm.native.host.schedule_cache import ScheduleStore
from fusevm.schedule.build import PLACE

ROOT = Path(__file__).resolve().parent.parent
ON_POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX has them")

# A process that compiles one small function, or finds it, and runs it.
PROCESS = """
import ctypes, sys, time
from llvmlite import ir
from fusevm.native.cache.folder import cached
from fusevm.native.emit.jit import Loaded, object_code

def make():
    print("built", flush=True)
    time.sleep(float(sys.argv[1]))
    module = ir.Module("answer")
    kind = ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(kind, []), "answer")
    ir.IRBuilder(function.append_basic_block()).ret(ir.Constant(kind, 42))
    return object_code(module)

loaded = Loaded(cached("answer.o", make))
print(ctypes.CFUNCTYPE(ctypes.c_uint64)(loaded.address("answer"))())
"""


@pytest.fixture(scope="module", autouse=True)
def _handlers() -> None:
    """Loaded before any test has a cache of its own, where they would be built."""
    library()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUSEVM_CACHE", str(tmp_path / "cache"))
    cache._warn.cache_clear()
    return tmp_path / "cache"


def start(delay: float = 0) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", PROCESS, str(delay)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ)


def answers(process: subprocess.Popen[str]) -> list[str]:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out.split()


class Maker:
    """Counts how often something had to be made."""

    def __init__(self, content: bytes = b"content") -> None:
        self.content, self.times = content, 0

    def __call__(self) -> bytes:
        self.times += 1
        return self.content


def test_object_code_is_built_once_and_loaded_by_the_next_process(folder: Path) -> None:
    assert answers(start()) == ["built", "42"]
    assert answers(start()) == ["42"]
    assert [path.name for path in folder.iterdir() if path.suffix == ".o"] == ["answer.o"]


def test_two_processes_at_once_build_once(folder: Path) -> None:
    both = [start(0.5), start(0.5)]
    assert sorted(word for process in both for word in answers(process)) == ["42", "42", "built"]


def test_the_folder_is_the_users_own_or_the_one_the_environment_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_folder() == folder
    monkeypatch.delenv("FUSEVM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "xdg"))
    if sys.platform == "linux":
        assert cache_folder() == folder / "xdg" / "fusevm"


def test_what_is_kept_comes_back(folder: Path) -> None:
    make = Maker()
    assert cached("name", make) == cached("name", make) == b"content"
    assert make.times == 1


@ON_POSIX
def test_folder_and_files_belong_to_the_owner_alone(folder: Path) -> None:
    cached("name", Maker())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())


DAMAGES = {
    "one byte changed": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "cut short": lambda data: data[:-3],
    "cut into the header": lambda data: data[:10],
    "emptied": lambda data: b"",
    "longer": lambda data: data + b"\0",
    "another magic": lambda data: b"F" + data[1:],
    "hash zeroed": lambda data: MAGIC + bytes(32) + data[len(MAGIC) + 32 :],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_rebuilt_and_not_loaded(damage: str, folder: Path) -> None:
    cached("name", Maker())
    path = folder / "name"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert read(path) is None
    make = Maker()
    assert cached("name", make) == b"content"
    assert make.times == 1
    assert read(path) == b"content"


def test_damaged_object_code_is_rebuilt_by_the_next_process(folder: Path) -> None:
    assert answers(start()) == ["built", "42"]
    path = folder / "answer.o"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    assert answers(start()) == ["built", "42"]
    assert answers(start()) == ["42"]


@ON_POSIX
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_others_may_write_to_is_not_trusted(mode: int, folder: Path) -> None:
    cached("name", Maker())
    (folder / "name").chmod(mode)
    make = Maker()
    assert cached("name", make) == b"content"
    assert make.times == 1
    assert stat.S_IMODE((folder / "name").stat().st_mode) == 0o600


@ON_POSIX
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_others_may_write_to_is_not_used(mode: int, folder: Path) -> None:
    folder.mkdir()
    folder.chmod(mode)
    make = Maker()
    assert cached("name", make) == cached("name", make) == b"content"
    assert make.times == 2
    assert list(folder.iterdir()) == []


@ON_POSIX
def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    cached("good", Maker(b"other"))
    (folder / "name").symlink_to(folder / "good")
    make = Maker()
    assert cached("name", make) == b"content"
    assert make.times == 1
    assert not (folder / "name").is_symlink()
    assert read(folder / "good") == b"other"


@ON_POSIX
def test_a_folder_that_is_a_link_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("FUSEVM_CACHE", str(tmp_path / "link"))
    assert cached("name", Maker()) == b"content"
    assert list((tmp_path / "real").iterdir()) == []


@ON_POSIX
def test_a_lock_file_that_is_a_link_is_not_opened(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / "name.lock").symlink_to(tmp_path / "elsewhere")
    assert cached("name", Maker()) == b"content"
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FUSEVM_CACHE", str(tmp_path / "file" / "cache"))
    assert cached("name", Maker()) == b"content"


def test_a_disk_that_cannot_be_written_is_one_warning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    cache._warn.cache_clear()
    with pytest.warns(UserWarning, match="cannot be used as a cache: no space left .*FUSEVM_CACHE") as warned:
        made = [cached(name, Maker()) for name in ("name", "other")]
    assert made == [b"content", b"content"]
    assert len(warned) == 1, "one warning for the folder, however much cannot be kept"
    assert sorted(path.name for path in folder.iterdir()) == ["name.lock", "other.lock"]


@ON_POSIX
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_no_error(folder: Path) -> None:
    folder.mkdir(mode=0o500)
    assert cached("name", Maker()) == b"content"


@ON_POSIX
def test_a_file_of_another_user_is_not_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached("name", Maker())
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert read(folder / "name") is None


def test_a_builder_that_fails_leaves_nothing_and_the_next_one_builds(folder: Path) -> None:
    def broken() -> bytes:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cached("name", broken)
    assert cached("name", Maker()) == b"content"


def test_a_reader_never_sees_half_a_file(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for size in (10, 100_000, 50):
        write(folder / "name", b"x" * size)
        assert read(folder / "name") == b"x" * size
    assert [path.name for path in folder.iterdir()] == ["name"]


def test_the_handlers_themselves_are_known_by_version_compiler_processor_and_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fusevm.native.emit import build

    sequences = build.all_sequences()
    name = build._fingerprint(sequences)
    assert name == build._fingerprint(sequences)
    assert name != build._fingerprint(sequences[:-1])
    monkeypatch.setattr(build, "target", lambda: ("another", "processor"))
    assert name != build._fingerprint(sequences)


def test_every_module_that_the_handlers_are_made_from_is_part_of_their_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by following imports: a constant that moves to a module of its own is followed there."""
    before = digest_of_sources(["native.emit.build"])
    read_bytes = Path.read_bytes

    def change(part: str) -> None:
        monkeypatch.setattr(Path, "read_bytes", lambda path: read_bytes(path) + (b"#" if part in str(path) else b""))

    for part in ("evm/words.py", "evm/opcodes.py", "runtime/calls.py", "lang/types.py", "schedule/fusions.py"):
        change(part)
        assert digest_of_sources(["native.emit.build"]) != before, part
    change("fusevm/yul/")
    assert digest_of_sources(["native.emit.build"]) == before


# -- handlers delivered with the sources ------------------------------------------------------------------------------

# One handler per opcode: LLVM takes ten times as long for the fused ones, which are delivered no differently.
FEWER = """
from fusevm.schedule import fusions
fusions.fused_sequences = lambda: []
"""
MAKES = f"""{FEWER}
import sys
from pathlib import Path
from fusevm.native.emit.ready import make
make(sys.argv[1], Path(sys.argv[2]))
"""
USES = f"""{FEWER}
import sys
from pathlib import Path
from fusevm import EVM
from fusevm.native.emit import build
from fusevm.native.cache import ready
from fusevm.native.emit import crypto
ready.FOLDER = Path(sys.argv[1])
build._build = lambda sequences: sys.exit("built")
crypto.build = lambda family: sys.exit("built")
evm = EVM(tier="native")
evm.set_code(b"\\1" * 20, "0x600160020160005260206000f3")
for number in (5, 6, 9):
    assert evm.call(number.to_bytes(20, "big"), bytes(213)).ok  # none of them is built either
print(evm.call(b"\\1" * 20).output[-1])
"""


def process(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ, timeout=120)


@pytest.mark.long
@pytest.mark.skipif(ready.level_of_host() is None, reason="no handlers are delivered for this processor")
def test_handlers_delivered_with_the_sources_are_used_and_damaged_ones_are_not(folder: Path, tmp_path: Path) -> None:
    level, delivered = str(ready.level_of_host()), tmp_path / "ready"
    assert process(MAKES, level, str(delivered)).returncode == 0
    assert process(USES, str(delivered)).stdout == "3\n"
    for path in delivered.iterdir():
        path.write_bytes(path.read_bytes()[:-8] + bytes(8))
    assert process(USES, str(delivered)).stdout == "3\n"  # from the cache
    for kept in folder.glob("*.o"):
        kept.unlink()
    assert process(USES, str(delivered)).stderr == "built\n"


def test_handlers_made_from_other_sources_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "FOLDER", tmp_path)
    assert ready.ready_made("0" * 32) is None


# -- schedules of large contracts -------------------------------------------------------------------------------------

LARGE_CODE = assemble(
    "PUSH1 1 PUSH1 2 NUMBER ADD POP POP " * 400 + "PUSH2 @end JUMP INVALID end: JUMPDEST PUSH1 9 PUSH0 MSTORE"
)


def run_with(store: ScheduleStore, code: bytes) -> list[int]:
    """The words of the schedule as if it stood at zero."""
    schedule = store.get(code, LATEST)
    base = schedule.base
    return [word - base if kind == PLACE else word for word, kind in zip(schedule.words, schedule.kinds, strict=True)]


def test_a_schedule_from_disk_is_the_one_that_was_built(folder: Path) -> None:
    store = ScheduleStore(library(), library().handlers)
    built = run_with(store, LARGE_CODE)
    assert len(list((folder / "schedules").iterdir())) == 1
    assert run_with(store, LARGE_CODE) == built
    assert run_with(ScheduleStore(library(), library().handlers), LARGE_CODE) == built


def test_schedules_made_with_other_fusions_are_other_schedules(folder: Path) -> None:
    one, other = (library().handlers.only(frozenset([each])) for each in (("PUSH", "PUSH"), ("POP", "POP")))
    assert len(one.addresses) == len(other.addresses)
    assert run_with(ScheduleStore(library(), one), LARGE_CODE) != run_with(ScheduleStore(library(), other), LARGE_CODE)
    assert run_with(ScheduleStore(library(), one), LARGE_CODE) == run_with(ScheduleStore(library(), one), LARGE_CODE)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_schedule_is_built_anew(damage: str, folder: Path) -> None:
    store = ScheduleStore(library(), library().handlers)
    built = run_with(store, LARGE_CODE)
    (path,) = (folder / "schedules").iterdir()
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert run_with(store, LARGE_CODE) == built
    assert read(path) is not None


@ON_POSIX
def test_schedules_are_not_kept_where_others_may_write(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    run_with(ScheduleStore(library(), library().handlers), LARGE_CODE)
    assert list(folder.rglob("*.schedule")) == []


def test_small_code_is_not_kept_on_disk(folder: Path) -> None:
    run_with(ScheduleStore(library(), library().handlers), b"\x60\x01")
    assert not (folder / "schedules").exists()


# -- what does not belong there ---------------------------------------------------------------------------------------


def put_directory(path: Path) -> None:
    path.mkdir()


def put_pipe(path: Path) -> None:
    os.mkfifo(path)


def put_socket(path: Path) -> None:
    import socket

    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def put_link_to_itself(path: Path) -> None:
    path.symlink_to(path)


FOREIGN = [put_directory, put_pipe, put_socket, put_link_to_itself]


@ON_POSIX
@pytest.mark.parametrize("put", FOREIGN)
@pytest.mark.parametrize("name", ["thing.o", "thing.o.lock"])
def test_what_is_not_a_file_is_passed_by_with_one_warning(
    put: Callable[[Path], None], name: str, folder: Path, recwarn: pytest.WarningsRecorder
) -> None:
    folder.mkdir(mode=0o700)
    put(folder / name)
    make = Maker()
    assert [cached("thing.o", make), cached("thing.o", make)] == [b"content"] * 2
    warned = [str(each.message) for each in recwarn]
    if name == "thing.o":
        assert len(warned) == 1
        assert warned[0].startswith(f"fusevm: {folder / name} cannot be used as a cache")


@ON_POSIX
@pytest.mark.parametrize("put", FOREIGN)
def test_a_folder_that_is_something_else_is_passed_by_with_one_warning(
    put: Callable[[Path], None], folder: Path, recwarn: pytest.WarningsRecorder
) -> None:
    put(folder)
    if put is put_directory:
        folder.chmod(0o777)
    assert cached("thing.o", Maker()) == cached("thing.o", Maker()) == b"content"
    assert len(recwarn) == 1


@ON_POSIX
def test_a_builder_that_was_stopped_is_not_waited_for_without_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    builder = start(60)
    assert builder.stdout is not None
    assert builder.stdout.readline() == "built\n"
    os.kill(builder.pid, signal.SIGSTOP)
    monkeypatch.setattr(cache, "PATIENCE", 0.3)
    started = time.monotonic()
    try:
        assert cached("answer.o", Maker()) == b"content"
    finally:
        builder.kill()
        builder.communicate()
    assert time.monotonic() - started < 10
    assert "another process has held it" in str(recwarn.pop().message)


def test_the_cache_is_bounded_by_bytes(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for number in range(10):
        (folder / f"{number}").write_bytes(bytes(1000))
        os.utime(folder / f"{number}", (number, number))
    cache.keep_newest(folder, 10_000)
    assert len(list(folder.iterdir())) == 10
    cache.keep_newest(folder, 9_999)
    assert sorted(path.name for path in folder.iterdir()) == ["6", "7", "8", "9"]


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("FUSEVM_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert cached("thing.o", Maker()) == b"content"
    assert len(recwarn) == 1
