"""The node's state file and journal: what was kept is there again, whatever happened and wherever it was cut off."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import fusevm.node.saving as saving
from fusevm.chain.diffs import Diff, FieldChange
from fusevm.chain.state import State
from fusevm.node.journal import JournalChanges, journal_of
from fusevm.node.saving import StateFile, alone, load, restore_pending
from fusevm.rpc import Config, RpcError, Session
from fusevm.rpc.editing import dump
from fusevm.values import BadValue

ALICE, BOB = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
KEEPER, KILLED = "0x" + "c0" * 20, "0x" + "dd" * 20
# Stores the first word of the calldata at the second.
STORES = "5f35602035555f5ff3"[:-6] + "00"
# Init code that deploys STORES after it has stored 7 at 1.
DEPLOYS = "6007600155" + "66" + STORES.ljust(14, "0") + "5f5260076019f3"
DESTROYS = "33ff"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def a_session() -> Session:
    return Session(Config(timestamp=1_700_000_000))


def again(file: Path) -> Session:
    """A node started on what is there."""
    saved = load(file)
    session = Session(Config(timestamp=1_700_000_000), saved=saved)
    if saved is not None:
        restore_pending(session, saved)
    return session


def seen(session: Session) -> tuple[Any, ...]:
    return dump(session), [(each.hash, each.sender) for each in session.dev.chain.pending]


def send(session: Session, value: int = 1, **more: Any) -> str:
    form = {"from": ALICE, "to": BOB, "value": hex(value), "gas": "0x30000", **more}
    found: str = session.request("eth_sendTransaction", [form])
    return found


class Driver:
    """Random requests of all kinds that change what is kept."""

    def __init__(self, seed: int) -> None:
        self.random, self.session = random.Random(seed), a_session()
        self.snapshots: list[str] = []

    def step(self) -> None:
        act = self.random.choice([
            self.transfer, self.transfer, self.store, self.store, self.deploy, self.destroy, self.edit, self.mine,
            self.snapshot, self.revert, self.back, self.automine, self.impersonated, self.drop, self.load,
        ])  # fmt: skip
        with suppress(RpcError):  # a snapshot that is gone, a transaction that waits already
            act()

    def ask(self, method: str, *params: Any) -> Any:
        return self.session.request(method, params)

    def transfer(self) -> None:
        send(self.session, self.random.randrange(10**18), to="0x" + self.random.randbytes(1).hex() * 20)

    def store(self) -> None:
        self.ask("anvil_setCode", KEEPER, "0x" + STORES)
        words = (self.random.randrange(3), self.random.randrange(5))
        send(self.session, 0, to=KEEPER, data="0x" + "".join(f"{each:064x}" for each in words))

    def deploy(self) -> None:
        form = {"from": ALICE, "data": "0x" + DEPLOYS, "gas": "0x30000"}
        self.ask("eth_sendTransaction", form)

    def destroy(self) -> None:
        """An account goes, in the transaction that created it or by hand; another is in its place."""
        self.ask("eth_sendTransaction", {"from": ALICE, "data": "0x6001600255" + DESTROYS, "gas": "0x30000"})
        self.ask("anvil_setCode", KILLED, "0x" + self.random.choice(("", STORES, DESTROYS)))

    def edit(self) -> None:
        where = self.random.choice((BOB, KEEPER, KILLED, "0x" + self.random.randbytes(20).hex()))
        self.ask("anvil_setBalance", where, hex(self.random.choice((0, 5))))
        self.ask("anvil_setNonce", where, hex(self.random.choice((0, 1))))
        self.ask("anvil_setStorageAt", where, hex(self.random.randrange(3)), f"0x{self.random.randrange(3):064x}")

    def mine(self) -> None:
        self.ask("evm_mine")

    def snapshot(self) -> None:
        self.snapshots.append(self.ask("evm_snapshot"))

    def revert(self) -> None:
        if self.snapshots:
            self.ask("evm_revert", self.random.choice(self.snapshots))

    def back(self) -> None:
        self.ask("anvil_reorg" if self.random.random() < 0.5 else "anvil_rollback", 1)

    def automine(self) -> None:
        self.ask("evm_setAutomine", self.random.random() < 0.5)

    def impersonated(self) -> None:
        self.ask("anvil_setBalance", KILLED, hex(10**19))
        self.ask("anvil_impersonateAccount", KILLED)
        send(self.session, 3, **{"from": KILLED})

    def drop(self) -> None:
        if self.random.random() < 0.3:
            self.ask("anvil_dropAllTransactions")

    def load(self) -> None:
        other = a_session()
        other.request("anvil_setStorageAt", [KEEPER, "0x1", f"0x{9:064x}"])
        if self.random.random() < 0.3:
            self.ask("anvil_loadState", other.request("anvil_dumpState"))
        if self.random.random() < 0.1:
            self.ask("anvil_reset")
            self.snapshots = []


@pytest.mark.parametrize("seed", range(6))
def test_after_any_request_what_is_kept_is_what_there_is(file: Path, seed: int) -> None:
    driver = Driver(seed)
    kept = StateFile(file, driver.session)
    for _ in range(60):
        driver.step()
        kept.keep()
        if driver.random.random() < 0.3 and file.exists():
            assert seen(again(file)) == seen(driver.session)
    kept.close()
    assert seen(again(file)) == seen(driver.session)


def test_a_change_is_a_line_and_not_the_whole_state(file: Path) -> None:
    session = a_session()
    kept = StateFile(file, session)
    send(session)
    kept.keep()
    whole, before = file.read_bytes(), journal_of(file).stat().st_size
    send(session)
    kept.keep()
    assert file.read_bytes() == whole
    assert before < journal_of(file).stat().st_size < before + 2000
    assert seen(again(file)) == seen(session)


def test_the_identity_of_an_object_that_is_gone_is_not_believed() -> None:
    state = State()
    state.set_balance(b"\1" * 20, 1)
    changes = JournalChanges(state)
    state.set_balance(b"\2" * 20, 2)
    changes._owners[id(state.account(b"\2" * 20))] = b"\1" * 20  # as if one of that address had been there in memory
    found = Diff([FieldChange(state.account(b"\2" * 20), "balance", 0, 2)], [], [])
    changes.add(found)
    assert list(changes.accounts()) == ["0x" + "02" * 20]


def test_nothing_is_written_where_nothing_has_changed(file: Path) -> None:
    session = a_session()
    kept = StateFile(file, session)
    kept.keep()
    assert not file.exists()
    send(session)
    kept.keep()
    size = journal_of(file).stat().st_size
    session.request("eth_call", [{"to": BOB}, "latest"])
    kept.keep()
    assert journal_of(file).stat().st_size == size


def test_a_long_journal_begins_anew_after_the_state_is_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "SHORTEST", 2_000)
    monkeypatch.setattr(saving, "TIMES", 0)
    session = a_session()
    kept = StateFile(file, session)
    for _ in range(30):
        send(session)
        kept.keep()
        assert journal_of(file).stat().st_size < 4_000
        assert seen(again(file)) == seen(session)


def test_a_stopped_node_leaves_one_file(file: Path) -> None:
    session = a_session()
    kept = StateFile(file, session)
    send(session)
    kept.keep()
    kept.close()
    assert [each.name for each in file.parent.iterdir()] == ["state.json"]
    assert json.loads(file.read_text())["best_block_number"] == 1


def test_a_line_that_was_being_written_is_left_out_wherever_it_was_cut(file: Path) -> None:
    session = a_session()
    kept = StateFile(file, session)
    states, ends = [], []
    for _ in range(4):
        send(session)
        kept.keep()
        states.append(seen(session))
        ends.append(journal_of(file).stat().st_size)
    whole = journal_of(file).read_bytes()
    for cut in range(ends[0], len(whole) + 1, 37):
        journal_of(file).write_bytes(whole[:cut])
        assert seen(again(file)) == states[max(at for at, end in enumerate(ends) if end <= cut)]


def test_a_damaged_journal_is_refused_in_one_line_wherever_the_damage_is(file: Path) -> None:
    session = a_session()
    kept = StateFile(file, session)
    for _ in range(3):
        send(session)
        kept.keep()
    whole = journal_of(file).read_bytes()
    for place in range(0, len(whole) - 1, 41):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        journal_of(file).write_bytes(damaged)
        with pytest.raises(BadValue, match=r"state.json.journal.*; delete the file and state.json.journal") as error:
            load(file)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("how", ["no file", "another file", "no lines"])
def test_a_journal_that_is_not_of_the_file_is_refused(file: Path, how: str) -> None:
    session = a_session()
    kept = StateFile(file, session)
    send(session)
    kept.keep()
    if how == "no file":
        file.unlink()
    elif how == "no lines":
        journal_of(file).write_bytes(b"")
    else:
        file.write_text(json.dumps(dump(session)))
    with pytest.raises(BadValue, match=r"state.json.journal is .*; delete the file and state.json.journal"):
        load(file)


def test_a_crash_between_the_new_file_and_the_new_journal_loses_nothing(file: Path, tmp_path: Path) -> None:
    session = a_session()
    kept = StateFile(file, session)
    for _ in range(2):
        send(session)
        kept.keep()
    old = tmp_path / "old"
    shutil.copy(journal_of(file), old)
    started = again(file)
    kept = StateFile(file, started)
    send(started)
    kept.keep()
    shutil.copy(old, journal_of(file))  # as if the node had ended before it began the new one
    assert seen(again(file)) == seen(started)


def test_what_cannot_be_written_is_said_and_written_whole_the_next_time(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = a_session()
    kept = StateFile(file, session)
    send(session)
    kept.keep()
    before = seen(session)
    writes = os.write

    def half(handle: int, content: bytes) -> int:
        if len(content) < 100:
            raise OSError(28, "No space left on device")
        return writes(handle, content[: len(content) // 2])

    monkeypatch.setattr(os, "write", half)
    send(session)
    with pytest.raises(OSError, match="No space"):
        kept.keep()
    assert seen(again(file)) == before
    with pytest.raises(OSError, match="No space"):  # now the file is written, and its journal cannot begin
        kept.keep()
    assert seen(again(file)) == seen(session)
    send(session)
    monkeypatch.setattr(os, "write", writes)
    kept.keep()
    assert seen(again(file)) == seen(session)


def test_transactions_that_wait_wait_again(file: Path) -> None:
    session = a_session()
    session.automine = False
    kept = StateFile(file, session)
    for _ in range(3):
        send(session)
        kept.keep()
    session.request("anvil_setBalance", [KILLED, hex(10**19)])
    session.request("anvil_impersonateAccount", [KILLED])
    send(session, **{"from": KILLED})
    kept.keep()
    started = again(file)
    started.mine()
    assert len(started.dev.head.transactions) == 4
    assert started.request("eth_getTransactionCount", [KILLED, "latest"]) == "0x1"


def test_with_sync_a_change_is_on_the_disk_before_it_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = a_session()
    kept = StateFile(file, session, sync=True)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    for expected in (3, 4):  # the file, its folder and the journal; then a line
        send(session)
        kept.keep()
        assert len(synced) == expected


def test_a_file_that_a_node_uses_is_refused_to_another_until_that_one_ends(file: Path) -> None:
    with alone(file):
        with pytest.raises(BadValue, match="another node uses it"), alone(file):
            raise AssertionError
        assert file.with_name("state.json.lock").exists()
    with pytest.raises(BadValue, match="wrong"), alone(file):
        raise BadValue("something else is wrong")
    assert not list(file.parent.iterdir())


def test_a_node_that_was_killed_leaves_no_lock_behind(file: Path) -> None:
    script = f"from pathlib import Path; from fusevm.node.saving import alone\nwith alone(Path({str(file)!r})): "
    command = [sys.executable, "-c", script + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    with alone(file):
        pass
