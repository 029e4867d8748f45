"""pyrevm's interface on fusevm: the same programs through both, compared; and what pyrevm's own documents show."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import replace
from random import Random
from types import ModuleType
from typing import Any

import pytest

from fusevm.chain.state import Account
from fusevm.compat import pyrevm as ours
from fusevm.evm.forks import Fork
from fusevm.lab.fuzz.differential import fitted
from fusevm.lab.fuzz.generator import program
from fusevm.lab.peers.work import PeerWork
from fusevm.values import BadValue

theirs = pytest.importorskip("pyrevm")
BOTH = pytest.mark.parametrize("module", [theirs, ours], ids=["pyrevm", "fusevm"])

ALICE, BOB = "0x" + "a1" * 20, "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"
CONTRACT, OTHER = "0x" + "c0" * 20, "0x" + "d0" * 20
MAX_U64 = (1 << 64) - 1
ADDS = bytes.fromhex("600160020160005260206000f3")
REVERTS = bytes.fromhex("62123456600052600360" + "1dfd")
STORES_AND_LOGS = bytes.fromhex("5f355f55600760206000a1")  # sstore(0, calldata[0]) log1(0, 32, 7)
CLEARS = bytes.fromhex("5f5f55")
RETURNS_ADD = bytes.fromhex("600d600c600039600d6000f3") + ADDS  # creation code
FORKS = (Fork.BYZANTIUM, Fork.ISTANBUL, Fork.BERLIN, Fork.LONDON, Fork.SHANGHAI, Fork.CANCUN)


def outcome(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:
        kind = RuntimeError if isinstance(error, RuntimeError) else type(error)
        return kind, re.sub(r"OutOfGas\(\w+\)", "OutOfGas", str(error))


def facts(evm: Any) -> Any:
    """All that the last result tells; how a success without output ended is not known here."""
    result = evm.result
    if result is None:
        return None
    reason = re.sub(r"OutOfGas\(\w+\)", "OutOfGas", result.reason)
    if reason in ("Stop", "SelfDestruct", "Return"):
        reason = "ended"
    logs = [(log.address, log.topics, log.data) for log in result.logs]
    return result.is_success, result.is_halt, reason, result.gas_used, result.gas_refunded, logs


# -- random programs --------------------------------------------------------------------------------------------------


def machine(module: ModuleType, work: PeerWork) -> Any:
    from fusevm.lab.peers.revm import SPEC_IDS

    block, tx = work.block, work.transaction
    env = module.Env(
        module.CfgEnv(chain_id=block.chain_id),
        module.BlockEnv(
            number=block.number,
            coinbase="0x" + block.coinbase.hex(),
            timestamp=block.timestamp,
            difficulty=block.difficulty,
            prevrandao=block.prev_randao.to_bytes(32, "big"),
            excess_blob_gas=block.excess_blob_gas,
        ),
        module.TxEnv(
            access_list=[("0x" + address.hex(), list(keys)) for address, keys in tx.access_list or ()],
            blob_hashes=list(tx.blob_hashes or ()),
            max_fee_per_blob_gas=tx.max_blob_fee if tx.blob_hashes else None,
        ),
    )
    evm = module.EVM(env=env, gas_limit=block.gas_limit, spec_id=SPEC_IDS[work.fork])
    for address, account in work.accounts.items():
        info = module.AccountInfo(account.balance, account.nonce, code=account.code or None)
        evm.insert_account_info("0x" + address.hex(), info)
        for key, value in account.storage.items():
            if module is theirs:
                mark = evm.snapshot()
                evm.insert_account_storage("0x" + address.hex(), key, value)
                evm.revert(mark)  # the value stays, and the slot is cold
            else:
                evm._engine.state.write_slot(address, key, value, keep_original=False)
    return evm


def run(module: ModuleType, work: PeerWork) -> Any:
    evm, tx = machine(module, work), work.transaction
    sender, price = "0x" + tx.sender.hex(), tx.gas_price
    if tx.to is None:
        answer = outcome(lambda: evm.deploy(sender, tx.data, tx.value, tx.gas_limit, price))
    else:
        to = "0x" + tx.to.hex()
        answer = outcome(lambda: evm.message_call(sender, to, tx.data, tx.value, tx.gas_limit, price))
    destroyed = module is theirs and "SelfDestructed" in evm.journal_str
    return evm, (answer, facts(evm)), destroyed


def accounts_of(evm: Any, work: PeerWork) -> Any:
    seen = {}
    for address, account in work.accounts.items():
        where = "0x" + address.hex()
        info = evm.basic(where)
        slots = {key: evm.storage(where, key) for key in account.storage}
        seen[where] = info.balance, info.nonce, (evm.get_code(where) or b"").rstrip(b"\x00"), slots
    return seen


@pytest.mark.parametrize("fork", FORKS, ids=lambda fork: fork.label)
def test_random_programs_give_the_same_answers_gas_logs_and_accounts(fork: Fork) -> None:
    from fusevm.lab.peers.engines import engine_named

    compared = 0
    for seed in range(60):
        work = fitted(program(f"pyrevm {seed}", fork).work(), [engine_named("pyrevm")])
        if work.transaction.authorizations is not None or 0xEF in work.transaction.data[:1]:
            continue
        their_evm, expected, destroyed = run(theirs, work)
        our_evm, found, _ = run(ours, work)
        if "CreateContractSizeLimit" in str(expected) and "StartingWithEF" in str(found):
            continue  # this revm has one name for both
        assert found == expected, seed
        if not destroyed:  # pyrevm does not end its transaction, so what destroyed itself is still there
            assert accounts_of(our_evm, work) == accounts_of(their_evm, work), seed
        compared += 1
    assert compared > 40


def test_a_program_that_differs_is_found() -> None:
    """A planted error: the comparison is not blind."""
    work = fitted(program("pyrevm 3", Fork.CANCUN).work(), [])
    _, expected, _ = run(ours, work)
    changed = dict(work.accounts)
    to = work.transaction.to or work.transaction.sender
    changed[to] = Account(1, 7, b"\xfe")
    _, found, _ = run(ours, replace(work, accounts=changed))
    assert found != expected


# -- one call after the other -----------------------------------------------------------------------------------------


def scenario(module: ModuleType) -> list[Any]:
    evm = module.EVM(spec_id="Cancun", gas_limit=10_000_000)
    seen: list[Any] = []

    def note(ask: Callable[[], Any]) -> None:
        seen.append((outcome(ask), facts(evm)))

    evm.insert_account_info(CONTRACT, module.AccountInfo(code=ADDS))
    evm.insert_account_info(OTHER, module.AccountInfo(code=REVERTS))
    note(lambda: evm.message_call(ALICE, CONTRACT))
    note(lambda: evm.message_call(ALICE, CONTRACT, value=5))
    evm.set_balance(ALICE, 10**18)
    note(lambda: evm.message_call(ALICE, CONTRACT, value=5))
    note(lambda: (evm.get_balance(ALICE), evm.get_balance(CONTRACT), evm.basic(ALICE).nonce))
    note(lambda: evm.message_call(ALICE, CONTRACT, gas=20_000))
    note(lambda: evm.message_call(ALICE, CONTRACT, gas=21_010))
    note(lambda: evm.message_call(ALICE, CONTRACT, gas=10_000_001))
    note(lambda: evm.message_call(ALICE, CONTRACT, gas=30_000, gas_price=7))
    note(lambda: evm.message_call(ALICE, CONTRACT, gas=30_000, gas_price=2**255))
    note(lambda: evm.message_call(CONTRACT, CONTRACT))
    note(lambda: evm.message_call(ALICE, OTHER))
    note(lambda: evm.deploy(ALICE, RETURNS_ADD))
    note(lambda: evm.deploy(ALICE, RETURNS_ADD, 3, 100_000, 5))
    note(lambda: evm.deploy(ALICE, REVERTS))
    note(lambda: evm.deploy(ALICE, bytes(50_000)))
    note(lambda: evm.deploy(BOB, b"", value=5))
    note(lambda: (evm.get_balance(ALICE), evm.basic(ALICE).nonce))
    for text in ("0x12", "zz", "0xg1" + "a1" * 19, b"\x01" * 20):
        note(lambda text=text: evm.message_call(text, CONTRACT))  # type: ignore[misc]
    note(lambda: evm.message_call(ALICE[2:], CONTRACT, [1, 2, 3]))
    note(lambda: evm.message_call(ALICE, CONTRACT, bytearray(b"12")))
    note(lambda: evm.set_balance(ALICE, -1))
    note(lambda: evm.set_balance(ALICE, 2**256))
    note(lambda: evm.storage("0x" + "11" * 20, 3))
    note(lambda: evm.get_code("0x" + "11" * 20))
    note(lambda: evm.basic("0x" + "11" * 20).code)
    note(lambda: evm.block_hash(5))
    note(lambda: (evm.insert_account_storage(OTHER, 7, 9), evm.storage(OTHER, 7)))
    env = evm.env
    note(lambda: (env.tx.caller, env.tx.to, env.tx.data, env.tx.gas_limit, env.block.gas_limit, env.block.basefee))
    return seen


def test_a_session_of_calls_deployments_and_mistakes_goes_the_same_way() -> None:
    assert scenario(ours) == scenario(theirs)


@pytest.mark.parametrize(
    ("code", "gas"),
    [
        ("fe", 50_000),
        ("0c", 50_000),
        ("5f", 50_000),
        ("01", 50_000),
        ("60ff56", 50_000),
        ("60015f5f3e", 50_000),
        ("5b5f5f56", 30_000),
        ("6001" + "7f" + "ff" * 32 + "52", 30_000),
        ("5b6001600056", 30_000),
        ("5f5f5ff0", 25_000),
    ],
)
@pytest.mark.parametrize("spec", ["Berlin", "Cancun"])
def test_halts_have_revms_names(code: str, gas: int, spec: str) -> None:
    seen = []
    for module in (theirs, ours):
        evm = module.EVM(spec_id=spec)
        evm.insert_account_info(CONTRACT, module.AccountInfo(code=bytes.fromhex(code)))
        seen.append((outcome(lambda evm=evm: evm.message_call(ALICE, CONTRACT, gas=gas)), facts(evm)))  # type: ignore[misc]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("code", ["6001600055", "60015f5d", "5f5fa0", "5f5f5ff0", "33ff"])
def test_static_calls_refuse_what_changes_state(code: str) -> None:
    seen = []
    for module in (theirs, ours):
        evm = module.EVM(spec_id="Cancun")
        evm.insert_account_info(CONTRACT, module.AccountInfo(code=bytes.fromhex(code)))
        seen.append(outcome(lambda evm=evm: evm.message_call(ALICE, CONTRACT, gas=99_999, is_static=True)))  # type: ignore[misc]
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "fields",
    [
        {"blob_hashes": [b"\x01" * 32]},
        {"blob_hashes": [b"\x01" * 32], "max_fee_per_blob_gas": 5},
        {"blob_hashes": [b"\x02" * 32], "max_fee_per_blob_gas": 5},
        {"blob_hashes": [b"\x01" * 32] * 7, "max_fee_per_blob_gas": 5},
        {"blob_hashes": [], "max_fee_per_blob_gas": 5},
        {"blob_hashes": [b"\x01" * 32], "max_fee_per_blob_gas": 0},
        {"nonce": 5},
        {"nonce": 0},
        {"chain_id": 5},
        {"access_list": [(CONTRACT, [0, 1]), (BOB, [])]},
    ],
    ids=str,
)
@pytest.mark.parametrize("balance", [0, 10**20])
def test_the_transaction_environment_is_looked_at_as_revm_does(fields: dict[str, Any], balance: int) -> None:
    seen = []
    for module in (theirs, ours):
        evm = module.EVM(spec_id="Cancun")
        evm.insert_account_info(CONTRACT, module.AccountInfo(code=bytes.fromhex("5f495f545f5260205ff3")))
        evm.insert_account_info(ALICE, module.AccountInfo(balance))
        evm.set_tx_env(module.TxEnv(**fields))
        answer = outcome(lambda evm=evm: evm.message_call(ALICE, CONTRACT))  # type: ignore[misc]
        seen.append((answer, facts(evm), evm.get_balance(ALICE), evm.env.tx.access_list))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("opcode", ["40", "41", "42", "43", "44", "45", "46", "48", "4a", "32", "3a", "34"])
def test_contracts_see_the_same_surroundings(opcode: str) -> None:
    seen = []
    for module in (theirs, ours):
        block = module.BlockEnv(
            number=300,
            coinbase=BOB,
            timestamp=99,
            difficulty=5,
            prevrandao=b"\x07" * 32,
            basefee=9,
            excess_blob_gas=2**24,
        )
        evm = module.EVM(module.Env(module.CfgEnv(chain_id=31337), block), gas_limit=10**7, spec_id="Cancun")
        code = ("61012b" if opcode == "40" else "") + opcode + "5f5260205ff3"
        evm.insert_account_info(CONTRACT, module.AccountInfo(code=bytes.fromhex(code)))
        evm.set_balance(ALICE, 10**18)
        seen.append(evm.message_call(ALICE, CONTRACT, value=3, gas=99_999, gas_price=4))
    assert seen[0] == seen[1]


def test_refunds_are_taken_off_and_told() -> None:
    seen = []
    for module in (theirs, ours):
        evm = module.EVM(spec_id="Cancun")
        evm.insert_account_info(CONTRACT, module.AccountInfo(code=CLEARS))
        evm.insert_account_storage(CONTRACT, 0, 5)
        outcome(lambda evm=evm: evm.message_call(ALICE, CONTRACT))  # type: ignore[misc]
        seen.append((evm.result.gas_used, evm.result.gas_refunded))
        evm.insert_account_storage(CONTRACT, 0, 5)  # now the account is loaded
        outcome(lambda evm=evm: evm.message_call(ALICE, CONTRACT))  # type: ignore[misc]
        seen.append((evm.result.gas_used, evm.result.gas_refunded))
    assert seen[:2] == seen[2:]
    assert seen[0] == (21_204, 4_800)


def spans(module: ModuleType) -> list[Any]:
    """Calls one after another: what is warm, original and transient goes on."""
    loads, stores, counts, looks = (f"0x{place:040x}" for place in (0xC1, 0xC2, 0xC3, 0xC4))
    evm = module.EVM(spec_id="Cancun")
    evm.insert_account_info(loads, module.AccountInfo(code=bytes.fromhex("5f545f5260205ff3")))
    evm.insert_account_info(stores, module.AccountInfo(code=bytes.fromhex("5f355f55")))
    evm.insert_account_info(counts, module.AccountInfo(code=bytes.fromhex("5f5c806001015f5d5f5260205ff3")))
    evm.insert_account_info(looks, module.AccountInfo(code=bytes.fromhex("5f3531")))
    seen: list[Any] = []

    def note(to: str, word: int = 0) -> None:
        answer = outcome(lambda: evm.message_call(ALICE, to, word.to_bytes(32, "big")))
        seen.append((answer, facts(evm)))

    for _ in range(2):
        note(loads)
    for value in (1, 2, 0, 0, 5, 1, 0):
        note(stores, value)
    for _ in range(3):
        note(counts)
    evm.reset_transient_storage()
    note(counts)
    for where in (0xE1, 0xE1, 0xE2):
        note(looks, where)
    made = evm.snapshot()
    for where in (0xE3, 0xE3):
        note(looks, where)
    note(stores, 9)
    note(counts)
    evm.revert(made)
    note(looks, 0xE3)
    note(stores, 9)
    note(counts)
    evm.get_balance(f"0x{0xE4:040x}")
    evm.storage(stores, 7)
    note(looks, 0xE4)
    made = evm.snapshot()
    note(looks, 0xE5)
    evm.commit()
    note(looks, 0xE5)
    return seen


def test_what_is_warm_original_and_transient_goes_on_from_call_to_call() -> None:
    assert spans(ours) == spans(theirs)


def test_a_long_session_keeps_no_journal() -> None:
    evm = ours.EVM()
    evm.insert_account_info(CONTRACT, ours.AccountInfo(code=STORES_AND_LOGS))
    for value in range(50):
        evm.message_call(ALICE, CONTRACT, value.to_bytes(32, "big"))
    assert len(evm._engine.state.journal) < 20
    assert len(evm._engine.state.logs) == 0


def test_what_destroyed_itself_is_still_there() -> None:
    seen = []
    for module in (theirs, ours):
        evm = module.EVM(spec_id="London")
        evm.insert_account_info(OTHER, module.AccountInfo(balance=7, code=bytes.fromhex("33ff")))
        calls = []
        for _ in range(2):
            calls.append((outcome(lambda evm=evm: evm.message_call(ALICE, OTHER)), facts(evm)))  # type: ignore[misc]
        seen.append((calls, evm.get_code(OTHER), evm.get_balance(OTHER), evm.get_balance(ALICE)))
    assert seen[0] == seen[1]


# -- snapshots --------------------------------------------------------------------------------------------------------


@BOTH
def test_revert_undoes_calls_since_the_snapshot(module: ModuleType) -> None:
    evm = module.EVM()
    evm.set_balance(BOB, 10_000)
    checkpoint = evm.snapshot()
    evm.message_call(caller=BOB, to=ALICE, value=10_000)
    assert evm.get_balance(ALICE) == 10_000
    evm.revert(checkpoint)
    assert (evm.get_balance(ALICE), evm.get_balance(BOB)) == (0, 10_000)


@BOTH
def test_commit_keeps_what_was_done(module: ModuleType) -> None:
    evm = module.EVM()
    evm.set_balance(BOB, 10)
    evm.snapshot()
    evm.message_call(BOB, ALICE, value=4)
    assert evm.journal_depth == 1
    evm.commit()
    assert (evm.get_balance(ALICE), evm.journal_depth) == (4, 0)


@BOTH
def test_without_a_snapshot_nothing_can_be_reverted(module: ModuleType) -> None:
    checkpoint = module.EVM().snapshot()
    with pytest.raises(OverflowError, match="No checkpoint to revert to"):
        module.EVM().revert(checkpoint)


def test_snapshots_nest_and_a_revert_drops_the_inner_ones() -> None:
    evm = ours.EVM()
    evm.set_balance(ALICE, 9)
    outer = evm.snapshot()
    evm.message_call(ALICE, BOB, value=1)
    inner = evm.snapshot()
    evm.message_call(ALICE, BOB, value=2)
    assert evm.checkpoint_ids == {outer, inner}
    evm.revert(outer)
    assert (evm.get_balance(ALICE), evm.checkpoint_ids) == (9, set())
    evm.snapshot()
    with pytest.raises(KeyError, match="Invalid checkpoint"):
        evm.revert(inner)


# -- forks ------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("block", [None, "latest", "0"])
def test_a_fork_of_a_node_answers_as_pyrevms_does(anvil: Any, block: str | None) -> None:
    where = "0x" + "f0" * 20
    if block != "0":
        anvil.ask("anvil_setCode", where, "0x" + STORES_AND_LOGS.hex())
        anvil.ask("anvil_setStorageAt", where, "0x" + "00" * 32, "0x" + "00" * 31 + "07")
        anvil.ask("anvil_setBalance", where, hex(5))
        anvil.ask("anvil_mine", "0x1")
    seen = []
    for module in (theirs, ours):
        evm = module.EVM(fork_url=anvil.url, fork_block=block, spec_id="Cancun")
        answer = outcome(lambda evm=evm: evm.message_call(ALICE, where, (9).to_bytes(32, "big")))  # type: ignore[misc]
        seen.append((answer, facts(evm), evm.storage(where, 0), evm.get_balance(where), evm.get_code(where)))
    assert seen[0] == seen[1]


@pytest.mark.long
@pytest.mark.parametrize("look", [lambda evm, where: None, lambda evm, where: evm.basic(where)], ids=["unseen", "seen"])
def test_a_slot_that_is_set_on_a_fork_had_the_value_that_pyrevm_says(anvil: Any, look: Any) -> None:
    where = "0x" + "f1" * 20
    anvil.ask("anvil_setStorageAt", where, "0x" + "00" * 32, "0x" + "00" * 31 + "07")
    anvil.ask("anvil_setCode", where, "0x" + STORES_AND_LOGS.hex())
    anvil.ask("anvil_mine", "0x1")
    seen = []
    for module in (theirs, ours):
        evm = module.EVM(fork_url=anvil.url)
        look(evm, where)
        seen.append((evm.insert_account_storage(where, 0, 10), evm.storage(where, 0)))
    assert seen[0] == seen[1]


# -- names, types, defaults -------------------------------------------------------------------------------------------


def public(thing: Any) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_every_public_name_of_pyrevm_is_here() -> None:
    assert public(theirs) - {"pyrevm"} <= public(ours)


@pytest.mark.parametrize(
    "name", ["EVM", "AccountInfo", "BlockEnv", "TxEnv", "CfgEnv", "Env", "ExecutionResult", "Log", "JournalCheckpoint"]
)
def test_every_type_has_the_same_members(name: str) -> None:
    assert public(getattr(theirs, name)) <= public(getattr(ours, name))


@pytest.mark.parametrize("name", ["EVM", "AccountInfo", "BlockEnv", "TxEnv", "CfgEnv", "Env"])
def test_constructors_take_the_same_parameters_in_the_same_order(name: str) -> None:
    expected = re.findall(r"(\w+)=", getattr(theirs, name).__text_signature__)
    parameters = inspect.signature(getattr(ours, name)).parameters.values()
    assert [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD] == expected


@pytest.mark.parametrize("name", ["message_call", "deploy"])
def test_methods_take_the_same_parameters_in_the_same_order(name: str) -> None:
    expected = re.findall(r"(\w+)(?:=|,|\))", getattr(theirs.EVM, name).__text_signature__.replace("$self, ", ""))
    found = [each for each in inspect.signature(getattr(ours.EVM, name)).parameters if each != "self"]
    assert found == [each for each in expected if not each.isdigit() and each not in ("None", "False", "self")]


@pytest.mark.parametrize("name", ["AccountInfo", "BlockEnv", "TxEnv", "CfgEnv"])
def test_defaults_are_the_same(name: str) -> None:
    one, other = getattr(theirs, name)(), getattr(ours, name)()
    assert {field: getattr(other, field) for field in public(one)} == {
        field: getattr(one, field) for field in public(one)
    }


def test_the_environment_of_a_new_evm_is_the_same() -> None:
    for part in ("block", "tx", "cfg"):
        one, other = getattr(theirs.EVM().env, part), getattr(ours.EVM().env, part)
        assert {each: getattr(other, each) for each in public(one)} == {
            each: getattr(one, each) for each in public(one)
        }


@BOTH
def test_what_cannot_be_set_raises(module: ModuleType) -> None:
    env = module.EVM().env
    for part, name in ((env.block, "coinbase"), (env.block, "gas_limit"), (env.tx, "caller"), (env.tx, "nonce")):
        with pytest.raises(AttributeError):
            setattr(part, name, 1)


@BOTH
def test_block_fields_can_be_set_and_given_back(module: ModuleType) -> None:
    evm = module.EVM()
    block = evm.env.block
    block.number, block.timestamp, block.excess_blob_gas = 20, 100, 200
    assert evm.env.block.number == 0
    evm.set_block_env(block)
    assert (evm.env.block.number, evm.env.block.timestamp, evm.env.block.excess_blob_gas) == (20, 100, 200)


@BOTH
def test_transaction_fields_can_be_set_and_given_back(module: ModuleType) -> None:
    evm = module.EVM()
    tx = evm.env.tx
    tx.blob_hashes = [b"1" * 32]
    tx.max_fee_per_blob_gas = 100
    evm.set_tx_env(tx)
    assert (evm.env.tx.blob_hashes, evm.env.tx.max_fee_per_blob_gas) == ([b"1" * 32], 100)


@BOTH
@pytest.mark.parametrize(("excess", "fee"), [(0, 1), (10**3, 1), (2**24, 152), (2**26, 537070730)])
def test_blob_base_fees_are_those_of_cancun(module: ModuleType, excess: int, fee: int) -> None:
    evm = module.EVM()
    evm.set_block_env(module.BlockEnv(excess_blob_gas=excess))
    evm.insert_account_info(CONTRACT, module.AccountInfo(code=bytes.fromhex("4a5f5260205ff3")))
    assert int.from_bytes(evm.message_call(ALICE, CONTRACT), "big") == evm.env.block.blob_gasprice == fee


def test_the_fake_exponential_is_the_same() -> None:
    rng = Random(5)
    for _ in range(200):
        arguments = rng.randrange(1, 50), rng.randrange(1 << 24), rng.randrange(1 << 20, 1 << 23)  # within 128 bits
        assert ours.fake_exponential(*arguments) == theirs.fake_exponential(*arguments)
    for arguments in ((-1, 5, 5), (1, 1 << 64, 5)):
        with pytest.raises(OverflowError):
            ours.fake_exponential(*arguments)


@BOTH
def test_a_deployed_contract_can_be_called(module: ModuleType) -> None:
    """The session that pyrevm's README and type stubs describe."""
    evm = module.EVM(env=module.Env(block=module.BlockEnv(timestamp=100)))
    before = evm.basic(ALICE)
    assert (before.nonce, before.balance, before.code) == (0, 0, b"\0")
    address = evm.deploy(ALICE, RETURNS_ADD)
    assert (evm.get_code(address) or b"").startswith(ADDS)
    assert int(evm.message_call(ALICE, address).hex(), 16) == 3
    assert evm.basic(ALICE).nonce == 1


@BOTH
def test_tracing_prints_a_line_per_step_and_a_summary(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    evm = module.EVM(tracing=True, spec_id="Cancun")
    evm.insert_account_info(CONTRACT, module.AccountInfo(code=ADDS))
    evm.message_call(ALICE, CONTRACT)
    *steps, last = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert [(step["pc"], step["opName"], int(step["gas"], 16)) for step in steps][:3] == [
        (0, "PUSH1", MAX_U64 - 21_000),
        (2, "PUSH1", MAX_U64 - 21_003),
        (4, "ADD", MAX_U64 - 21_006),
    ]
    assert len(steps) == 8
    assert (last["gasUsed"], last["pass"], last["fork"]) == (hex(21_024), True, "Cancun")
    assert int(last["output"], 16) == 3


def test_an_unknown_spec_is_refused() -> None:
    """pyrevm takes it for its latest fork without a word."""
    with pytest.raises(BadValue, match="nosuch"):
        ours.EVM(spec_id="nosuch")


@pytest.mark.parametrize("tier", ["reference", "native", "auto"])
def test_a_tier_can_be_chosen(tier: str) -> None:
    evm = ours.EVM(tier=tier)
    evm.insert_account_info(CONTRACT, ours.AccountInfo(code=STORES_AND_LOGS))
    evm.message_call(ALICE, CONTRACT, (5).to_bytes(32, "big"))
    assert evm.result is not None
    assert (evm.storage(CONTRACT, 0), len(evm.result.logs)) == (5, 1)
