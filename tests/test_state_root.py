"""The state root, kept up to date: as if it were computed from nothing, whatever was done, undone or copied."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from fusevm import EVM
from fusevm.chain import patricia, roots, slots
from fusevm.chain.rlp import encode, natural
from fusevm.chain.slots import Slots, encoded_word
from fusevm.chain.sources.lazy import LazySlots
from fusevm.chain.state import Account, State, put_slot
from fusevm.chain.trie import EMPTY_ROOT, storage_root, trie_root
from fusevm.evm.assembly import assemble
from fusevm.evm.keccak import keccak256
from fusevm.native.emit import merkle, tries

ADDRESSES = [bytes([number]) * 20 for number in range(1, 7)]
WRITER = assemble("PUSH1 32 CALLDATALOAD PUSH0 CALLDATALOAD SSTORE STOP")  # storage[data[0]] = data[1]
REVERTS = WRITER[:-1] + assemble("PUSH0 PUSH0 REVERT")
ENDS = assemble("PUSH0 SELFDESTRUCT")
CODES = (WRITER, REVERTS, ENDS, b"")


def from_nothing(state: State) -> bytes:
    """By the functions that keep nothing, over plain dictionaries."""
    entries = {}
    for address, account in state.items():
        root = storage_root(dict(account.storage))
        fields = [natural(account.nonce), natural(account.balance), root, account.code_hash()]
        entries[keccak256(address)] = encode(fields)
    return trie_root(entries)


def word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def change(evm: EVM, rng: random.Random, *, undone: bool = False) -> None:
    address = rng.choice(ADDRESSES)
    kind = rng.randrange(9)
    if kind == 0:
        evm.set_balance(address, rng.choice((0, 1, 10**18)))
    elif kind == 1:
        evm.set_nonce(address, rng.randrange(3))
    elif kind == 2:
        evm.set_code(address, rng.choice(CODES))
    elif kind == 3:
        evm.set_storage(address, rng.randrange(60), rng.choice((0, 1, 2**255)))
    elif kind == 4:
        evm.state.delete(address)
    elif kind == 5:
        evm.deploy(rng.choice(("0x", "0x60fe60005360016000f3")), caller=address)
    elif kind == 6 and not undone:  # no snapshot undoes it
        for account in evm.state.accounts.values():  # whoever has them may write to them
            account.storage[rng.randrange(60)] = 7
            account.balance += 1
    else:
        for _ in range(rng.choice((1, 3, 40))):
            evm.call(address, word(rng.randrange(100)) + word(rng.choice((0, 1, 2**200))), caller=rng.choice(ADDRESSES))


def play(evm: EVM, rng: random.Random, turns: int, depth: int = 0) -> None:
    for _ in range(turns):
        kind = rng.randrange(8)
        if kind == 0 and depth < 3:
            before = from_nothing(evm.state)
            with evm.snapshot():
                play(evm, rng, 4, depth + 1)
            assert evm.state_root == before
        elif kind == 1:
            mark = evm.state.mark()
            evm.state.set_storage(rng.choice(ADDRESSES), rng.randrange(60), 5)
            assert evm.state.root() == from_nothing(evm.state)
            evm.state.revert(mark)
        elif kind == 2 and depth == 0:
            twin = rng.choice((copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))))(evm)
            change(twin, rng)
            assert twin.state_root == from_nothing(twin.state)
        else:
            change(evm, rng, undone=depth > 0)
        if rng.random() < 0.7:
            assert evm.state_root == from_nothing(evm.state)


@pytest.mark.parametrize("tier", ["reference", "native", "auto"])
@pytest.mark.parametrize("seed", range(4))
def test_the_root_is_that_from_nothing_after_any_history(tier: str, seed: int) -> None:
    evm = EVM("shanghai" if seed % 2 else "osaka", tier)  # before Cancun contracts can end
    play(evm, random.Random(seed), 40)
    assert evm.state_root == from_nothing(evm.state)


def test_storage_that_was_undone_after_its_root_was_asked_for_is_undone_in_the_root() -> None:
    evm = EVM(tier="native")
    address = ADDRESSES[0]
    for key in range(200):
        evm.set_storage(address, key, 1)
    before = evm.state_root
    with evm.snapshot():
        evm.set_storage(address, 5, 2)
        assert evm.state_root != before
    assert evm.state_root == before == from_nothing(evm.state)


def test_a_copy_shares_the_tries_and_changes_alone() -> None:
    state = State()
    for key in range(500):
        state.set_storage(ADDRESSES[0], key, 1)
    before = state.root()
    twin = state.copy()
    twin.set_storage(ADDRESSES[0], 7, 0)
    assert twin.root() == from_nothing(twin) != before
    assert state.root() == before
    storage = twin.account(ADDRESSES[0]).storage
    assert isinstance(storage, Slots)
    assert storage.trie.changed({})._node is storage.trie._node


WRITES: dict[str, Any] = {
    "setitem": lambda slots: slots.__setitem__(3, 9),
    "delitem": lambda slots: slots.__delitem__(3),
    "pop": lambda slots: slots.pop(3, None),
    "pop of nothing": lambda slots: slots.pop(1000, None),
    "popitem": lambda slots: slots.popitem(),
    "setdefault": lambda slots: slots.setdefault(1000, 5),
    "update": lambda slots: slots.update({3: 9, 1000: 5}),
    "ior": lambda slots: slots.__ior__({3: 9}),
    "clear": lambda slots: slots.clear(),
}


@pytest.mark.parametrize("write", WRITES)
def test_whatever_writes_to_storage_is_seen_by_the_root(write: str) -> None:
    slots = Slots({key: key + 1 for key in range(100)})
    assert slots.root == storage_root(dict(slots))
    WRITES[write](slots)
    assert slots.root == storage_root(dict(slots))


def test_a_plain_dictionary_as_storage_has_the_same_root() -> None:
    state = State()
    account = state.ensure(ADDRESSES[0])
    account.storage = {1: 2}
    first = state.root()
    account.storage[3] = 4
    assert state.root() == from_nothing(state) != first


@pytest.mark.parametrize("value", [1, 127, 128, 255, 256, 2**64, 2**248 - 1, 2**256 - 1])
def test_a_word_is_encoded_as_rlp_has_it(value: int) -> None:
    assert encoded_word(value) == encode(natural(value))


def test_storage_survives_pickling_and_copying() -> None:
    slots = Slots({1: 2})
    assert slots.root != EMPTY_ROOT
    for twin in (pickle.loads(pickle.dumps(slots)), copy.copy(slots), copy.deepcopy(slots)):
        assert type(twin) is Slots
        twin[1] = 3
        assert twin.root == storage_root({1: 3})
    assert slots.root == storage_root({1: 2})


@pytest.mark.parametrize("seed", range(6))
def test_a_root_that_was_computed_ahead_is_taken_only_where_what_was_expected_came(seed: int) -> None:
    rng = random.Random(seed)
    slots = Slots({key: key + 1 for key in range(40)})
    taken = 0
    for _ in range(300):
        assert slots.root == storage_root(dict(slots))
        expected = {rng.randrange(60): rng.choice((0, 1, 5, 2**255)) for _ in range(rng.choice((1, 2)))}
        slots.expect(expected)
        ahead = slots._ahead
        written = dict(expected)
        kind = rng.randrange(5)
        if kind == 0:  # something else, or more, or less
            written[rng.randrange(60)] = 7
        elif kind == 1:
            written.popitem()
        elif kind == 2:
            slots[1] = 9  # and it was asked for in between
            assert slots.root == storage_root(dict(slots))
        for key, value in written.items():
            put_slot(slots, key, value)
        assert slots.root == storage_root(dict(slots))
        taken += ahead is not None and slots._trie is ahead[2]
    assert 50 < taken < 250


# -- proofs -----------------------------------------------------------------------------------------------------------


def verified(root: bytes, proof: dict[str, Any]) -> None:
    """By py-trie: the account from the root, its slots from the root of its storage."""
    hexary, rlp = pytest.importorskip("trie").HexaryTrie, pytest.importorskip("rlp")

    def value_of(root: bytes, key: bytes, nodes: list[str]) -> bytes:
        listed = [rlp.decode(bytes.fromhex(node[2:])) for node in nodes]
        if not listed:
            assert root == EMPTY_ROOT
            return b""
        found: bytes = hexary.get_from_proof(root, keccak256(key), listed)
        return found

    account = value_of(root, bytes.fromhex(proof["address"][2:]), proof["accountProof"])
    numbers = [int(proof["nonce"], 16), int(proof["balance"], 16)]
    hashes = [bytes.fromhex(proof[name][2:]) for name in ("storageHash", "codeHash")]
    assert account in (b"", rlp.encode([*numbers, *hashes]))
    if not account:
        assert (numbers, hashes) == ([0, 0], [EMPTY_ROOT, keccak256(b"")])
    for slot in proof["storageProof"]:
        value = int(slot["value"], 16)
        found = value_of(hashes[0], word(int(slot["key"], 16)), slot["proof"])
        assert found == (rlp.encode(value) if value else b"")


def test_proofs_of_accounts_and_slots_are_verified_by_py_trie() -> None:
    rng = random.Random("proofs")
    state = State()
    for number in range(300):
        address = keccak256(word(number))[:20]
        state.set_balance(address, number)
        for key in range(rng.choice((0, 1, 3, 200))):
            state.set_storage(address, key, rng.choice((1, 2**255)))
    for number in range(0, 330, 7):  # some are not there
        address = keccak256(word(number))[:20]
        proof = state.proof(address, [0, 5, 199, 10_000])
        verified(state.root(), proof)
        assert int(proof["balance"], 16) == state.account(address).balance
    verified(State().root(), State().proof(ADDRESSES[0], [1]))


def test_a_proof_follows_a_change() -> None:
    state = State()
    state.set_storage(ADDRESSES[0], 1, 5)
    first = state.proof(ADDRESSES[0], [1])
    state.set_storage(ADDRESSES[0], 1, 6)
    second = state.proof(ADDRESSES[0], [1])
    assert (first["storageProof"][0]["value"], second["storageProof"][0]["value"]) == ("0x5", "0x6")
    verified(state.root(), second)
    with pytest.raises(AssertionError):
        verified(state.root(), first | {"accountProof": second["accountProof"]})


def test_the_machine_gives_proofs_too() -> None:
    evm = EVM()
    evm.set_storage("0x" + "11" * 20, "0x1", 5)
    proof = evm.proof("0x" + "11" * 20, ["0x1", 2])
    assert [each["value"] for each in proof["storageProof"]] == ["0x5", "0x0"]
    verified(evm.state_root, proof)


# -- work, not time ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["python", "native"])
def test_after_a_change_the_root_costs_what_the_change_does(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is, few branches are written again; native tries are given what has changed alone."""
    merkle.load()
    monkeypatch.setattr(patricia, "_native", list(patricia._native) if kind == "native" else [])
    monkeypatch.setattr(patricia, "_loader", [])
    state = State()
    account = state.ensure(ADDRESSES[0])
    account.storage.update(dict.fromkeys(range(20000), 1))
    state.root()
    bodies, given = [], list[int]()
    kept, changed = patricia.Branch.body, tries.NativeTrie._with
    monkeypatch.setattr(patricia.Branch, "body", lambda self: bodies.append(1) or kept(self))
    monkeypatch.setattr(
        tries.NativeTrie, "_with", lambda self, keys, values: given.append(len(keys)) or changed(self, keys, values)
    )
    state.root()
    assert (bodies, given) == ([], []), "nothing has changed"
    state.set_storage(ADDRESSES[0], 77, 5)
    state.root()
    assert 0 < len(bodies) <= 5 if kind == "python" else given == [1, 1]  # a slot, then its account


MANY = 500


@pytest.fixture
def crowd() -> State:
    """Many accounts whose root was asked for."""
    state = State()
    for number in range(MANY):
        state.set_balance(keccak256(word(number))[:20], number)
    for key in range(MANY):
        state.set_storage(ADDRESSES[0], key, 1)
    assert state.root() == from_nothing(state)
    return state


@pytest.fixture
def looks(crowd: State, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each account that a root looks at."""
    seen: list[int] = []
    kept = roots.root_of
    monkeypatch.setattr(roots, "root_of", lambda storage: seen.append(1) or kept(storage))
    return seen


CHANGES: dict[str, Any] = {
    "nothing": lambda state: None,
    "a balance": lambda state: state.set_balance(keccak256(word(5))[:20], 10**18),
    "a balance, undone": lambda state: (mark := state.mark(), CHANGES["a balance"](state), state.revert(mark)),
    "a nonce": lambda state: state.set_nonce(keccak256(word(5))[:20], 7),
    "code": lambda state: state.set_code(keccak256(word(5))[:20], b"\1"),
    "a slot": lambda state: state.set_storage(ADDRESSES[0], 5, 7),
    "a first slot": lambda state: state.set_storage(keccak256(word(5))[:20], 5, 7),
    "all storage": lambda state: state.replace_storage(ADDRESSES[0], {1: 2}),
    "a new account": lambda state: state.set_balance(ADDRESSES[1], 5),
    "an account less": lambda state: state.delete(keccak256(word(5))[:20]),
    "a field by hand": lambda state: setattr(state.accounts[keccak256(word(5))[:20]], "balance", 3),
    "a slot by hand": lambda state: state.accounts[ADDRESSES[0]].storage.update({3: 4}),
}
TAKEN: dict[str, Any] = {
    "itself": lambda state: state,
    "a copy": State.copy,
    "a layer": State.branch,
    "what is under a layer": lambda state: (state, state.branch())[0],
    "a layer over a layer": lambda state: state.branch().branch(),
    "a layer over one whose root is known": lambda state: (layer := state.branch(), layer.root()) and layer.branch(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("taken", TAKEN)
def test_a_root_looks_at_the_accounts_that_have_changed(
    taken: str, change: str, crowd: State, looks: list[int]
) -> None:
    state = TAKEN[taken](crowd)
    before = state.root()
    looks.clear()
    for _ in range(2):
        CHANGES[change](state)
        root = state.root()
        assert len(looks) <= 4
    assert root == from_nothing(state)
    assert (root == before) == (change in ("nothing", "a balance, undone"))


def test_a_change_that_was_not_yet_in_the_root_is_in_that_of_copies_and_layers(crowd: State) -> None:
    crowd.set_balance(ADDRESSES[1], 5)
    crowd.set_storage(ADDRESSES[0], 1, 0)
    crowd.delete(keccak256(word(5))[:20])
    wanted = from_nothing(crowd)
    copied, layer = crowd.copy(), crowd.branch()
    deeper = layer.branch()
    assert {each.root() for each in (copied, layer, deeper, crowd)} == {wanted}


@pytest.mark.parametrize("taken", ["a copy", "a layer"])
def test_the_root_of_storage_in_a_copy_costs_what_the_change_does(
    taken: str, crowd: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = TAKEN[taken](crowd)
    encoded: list[int] = []
    kept = slots.encoded_word
    monkeypatch.setattr(slots, "encoded_word", lambda value: encoded.append(value) or kept(value))
    for key in range(3):
        state.set_storage(ADDRESSES[0], key, 9)
        state.root()
    assert encoded == [9, 9, 9]


def test_an_account_that_two_states_share_is_right_in_both() -> None:
    first, second = State(), State()
    first.set_balance(ADDRESSES[0], 5)
    first.set_storage(ADDRESSES[0], 1, 1)
    first.root()
    second.accounts[ADDRESSES[1]] = first.accounts[ADDRESSES[0]]
    for value in range(2, 6):
        assert (first.root(), second.root()) == (from_nothing(first), from_nothing(second))
        (first, second)[value % 2].set_storage(ADDRESSES[value % 2], 1, value)
        first.set_balance(ADDRESSES[0], value)


def other_history(rng: random.Random, states: list[State]) -> None:
    """A change of one of several states, of which some were copied from others."""
    state, address = rng.choice(states), rng.choice(ADDRESSES)
    kind = rng.randrange(14)
    if kind == 0:
        states[rng.randrange(len(states))] = state.branch()
    elif kind == 1:
        states[rng.randrange(len(states))] = rng.choice((State.copy, lambda each: pickle.loads(pickle.dumps(each))))(
            state
        )
    elif kind == 2:
        mark = state.mark()
        for _ in range(3):
            state.set_balance(rng.choice(ADDRESSES), rng.randrange(5))
            state.set_storage(rng.choice(ADDRESSES), rng.randrange(9), rng.randrange(2))
            state.delete(rng.choice(ADDRESSES))
            if rng.randrange(3) == 0:
                state.root()
        state.revert(mark)
    elif kind == 3:
        state.delete(address)
    elif kind == 4:
        state.replace_storage(address, {rng.randrange(9): 1})
    elif kind == 5 and rng.randrange(4) == 0:  # from now on it is copied whole
        write = rng.choice(list(WRITES.values()))
        for account in state.accounts.values():
            if not isinstance(account.storage, LazySlots) and account.storage.get(3) is not None:
                write(account.storage)
            account.nonce += 1
    elif kind == 6 and rng.randrange(4) == 0:
        state.ensure(address).storage = {2: 5}
    elif kind < 10:
        state.set_storage(address, rng.randrange(9), rng.randrange(3))
    elif kind < 12:
        state.set_balance(address, rng.randrange(3))
    else:
        state.set_code(address, rng.choice(CODES))


@pytest.mark.parametrize("seed", range(15))
def test_roots_of_states_that_were_copied_from_each_other_are_those_from_nothing(seed: int) -> None:
    rng = random.Random(seed)
    states = [State() for _ in range(3)]
    for _ in range(150):
        other_history(rng, states)
        state = rng.choice(states)
        if rng.random() < 0.6:
            assert state.root() == from_nothing(state.copy())
    for state in states:
        assert state.root() == from_nothing(state)


def test_official_roots_are_met(fixtures_dir: Path) -> None:
    """A few state tests, whose expected root is of a state that is given whole."""
    import json
    import tarfile

    from fusevm.lab.official.statetest import state_from

    seen = 0
    with tarfile.open(fixtures_dir / "state_tests.tar.xz") as archive:
        for member in archive:
            if not member.name.endswith(".json") or member.size > 2_000_000:
                continue
            file = archive.extractfile(member)
            assert file is not None
            for case in json.load(file).values():
                for posts in case["post"].values():
                    for post in posts:
                        if "state" in post:
                            state = state_from(post["state"])
                            assert "0x" + state.root().hex() == post["hash"], member.name
                            seen += 1
            if seen > 400:
                break
    assert seen > 400


def test_accounts_keep_storage_of_their_own() -> None:
    given = {1: 2}
    account = Account(storage=given)
    given[3] = 4
    assert account.storage == {1: 2}


@pytest.mark.parametrize("seed", range(20))
def test_with_marks_kept_and_undone_the_root_is_the_same(seed: int) -> None:
    """As a chain does it: marks that are kept or undone, transactions, roots in the middle and after."""
    rng, evm = random.Random(seed), EVM()
    state = evm.state
    for address in ADDRESSES:
        evm.set_balance(address, 10**20)
    assert state.root() == from_nothing(state)
    for _ in range(60):
        opened, mark = state.open_marks, state.mark()
        state.open_mark(mark)
        for _ in range(rng.randrange(4)):
            change(evm, rng, undone=True)
            if rng.random() < 0.3:
                assert state.root() == from_nothing(state)
        if rng.random() < 0.6:
            if rng.random() < 0.8:
                assert state.root() == from_nothing(state)
            state.keep_since(keep=opened)
        else:
            state.close_mark(mark, keep=opened)
        if rng.random() < 0.5:
            assert state.root() == from_nothing(state)


def test_a_root_after_a_small_change_looks_at_few_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    state = State()
    for number in range(1_000):
        state.set_balance(number.to_bytes(20, "big"), 1)
    state.root()
    looked: list[Account] = []
    encoded = roots.encoded_account
    monkeypatch.setattr(roots, "encoded_account", lambda account: looked.append(account) or encoded(account))
    for number in range(5):
        state.open_mark(state.mark())
        state.set_balance(number.to_bytes(20, "big"), 2)
        state.set_storage(number.to_bytes(20, "big"), 1, 2)
        state.set_balance((2_000 + number).to_bytes(20, "big"), 2)
        assert state.root() == from_nothing(state)
        state.keep_since(keep=0)
    assert len(looked) == 10


def test_a_root_that_ctrl_c_interrupts_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    state = State()
    state.set_balance(ADDRESSES[0], 1)
    state.root()
    state.set_balance(ADDRESSES[1], 1)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(roots, "hashed_keys", interrupted)
        with pytest.raises(KeyboardInterrupt):
            state.root()
    assert state.root() == from_nothing(state)
