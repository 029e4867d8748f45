"""Ethereum's state tests: one transaction on a given state, judged by the state root and the logs it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fusevm.chain.environment import Block
from fusevm.chain.outcome import Executor
from fusevm.chain.processing import process
from fusevm.chain.reasons import Rejected
from fusevm.chain.state import Account, State, logs_hash
from fusevm.chain.transaction import Authorization, Transaction
from fusevm.evm.forks import Fork, UnknownFork, fork_named
from fusevm.evm.keccak import keccak256
from fusevm.evm.secp256k1 import address_of_key
from fusevm.lab.official.expected import is_expected


class MalformedTest(ValueError):
    """A state test file that does not say what it must; the message names the place."""


@dataclass(slots=True)
class StateCase:
    """One transaction at one fork, and what must come of it."""

    name: str
    fork: Fork
    test: dict[str, Any]
    post: dict[str, Any]


@dataclass(slots=True)
class CaseVerdict:
    passed: bool
    reason: str = ""


def cases_in(document: Any, fork: Fork | None = None) -> Iterator[StateCase]:
    """Every case of a parsed state test file, or those of one fork."""
    if not isinstance(document, dict) or not document:
        raise MalformedTest("expected an object of named tests")
    for name, test in document.items():
        if not isinstance(test, dict) or not isinstance(test.get("post"), dict):
            raise MalformedTest(f"{name}: no 'post' section")
        for part in ("env", "pre", "transaction"):
            if not isinstance(test.get(part), dict):
                raise MalformedTest(f"{name}: no '{part}' section")
        for fork_name, posts in test["post"].items():
            try:
                at = fork_named(fork_name)
            except UnknownFork as error:
                raise MalformedTest(f"{name}: {error}") from None
            if not isinstance(posts, list):
                raise MalformedTest(f"{name}: post of {fork_name} is not a list")
            if fork is None or at == fork:
                for index, post in enumerate(posts):
                    yield StateCase(f"{name}/{fork_name}/{index}", at, test, post)


def run_case(case: StateCase, execute: Executor, on_root: Callable[[bytes], None] | None = None) -> CaseVerdict:
    """Judges a case; `on_root` is told the state root that it leaves."""
    try:
        state = state_from(case.test["pre"])
        block = block_from(case.test["env"], case.test.get("config", {}), case.fork)
        tx = transaction_from(case.test["transaction"], case.post["indexes"])
        want_root, want_logs = data(case.post["hash"]), data(case.post["logs"])
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise MalformedTest(f"{case.name}: {problem(error)}") from None
    rejection = case.post.get("expectException")
    got_logs = logs_hash([])
    try:
        done = process(tx, state, block, case.fork, execute)
    except Rejected as rejected:
        if rejection is None:
            return CaseVerdict(False, f"rejected, but it is valid: {rejected}")
        if not is_expected(rejected, rejection):
            return CaseVerdict(False, f"rejected for {rejected.official_name}, expected {rejection}: {rejected}")
    else:
        if rejection is not None:
            return CaseVerdict(False, f"accepted, but it must be rejected: {rejection}")
        got_logs = logs_hash(done.logs)
    root = state.root()
    if on_root is not None:
        on_root(root)
    if got_logs != want_logs:
        return CaseVerdict(False, f"logs hash 0x{got_logs.hex()}, expected 0x{want_logs.hex()}")
    if root != want_root:
        return CaseVerdict(False, f"state root 0x{root.hex()}, expected 0x{want_root.hex()}")
    return CaseVerdict(True)


# -- reading the pieces


def quantity(text: Any) -> int:
    """A number, in 0x-hex or decimal. '0x:bigint 0x…' is how some tests spell numbers over 256 bits."""
    digits = str(text).removeprefix("0x:bigint ")
    try:
        number = int(digits, 16) if digits[:2].lower() == "0x" else int(digits)
    except ValueError:
        number = -1
    if number < 0:
        raise ValueError(f"{text!r} is not a number")
    return number


def word(text: Any, bits: int = 256) -> int:
    number = quantity(text)
    if number >> bits:
        raise ValueError(f"{text!r} is over {bits} bits")
    return number


def data(text: Any) -> bytes:
    try:
        return bytes.fromhex(str(text).removeprefix("0x"))
    except ValueError:
        raise ValueError(f"{text!r} is not hex") from None


def address(text: Any) -> bytes:
    try:
        raw = data(text)
    except ValueError:
        raw = b""
    if len(raw) != 20:
        raise ValueError(f"{text!r} is not an address")
    return raw


def problem(error: Exception) -> str:
    """What is wrong with a file, from what reading it raised."""
    return f"no {error}" if isinstance(error, KeyError) else str(error)


def state_from(pre: dict[str, Any]) -> State:
    state = State()
    for where, fields in pre.items():
        try:
            state.accounts[address(where)] = _account(fields)
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"account {where}: {error}") from None
    return state


def _account(fields: Any) -> Account:
    if not isinstance(fields, dict) or not isinstance(fields.get("storage", {}), dict):
        raise ValueError("an account and its storage must be objects")
    storage = {word(key): word(value) for key, value in fields.get("storage", {}).items()}
    return Account(
        word(fields.get("nonce", 0), bits=64),
        word(fields.get("balance", 0)),
        data(fields.get("code", "")),
        {key: value for key, value in storage.items() if value},
    )


def block_hash(number: int) -> bytes:
    """The hash of a past block, as state tests have it."""
    return keccak256(str(number).encode())


def block_from(env: dict[str, Any], config: dict[str, Any], fork: Fork) -> Block:
    block = Block(
        number=quantity(env["currentNumber"]),
        timestamp=quantity(env["currentTimestamp"]),
        coinbase=address(env["currentCoinbase"]),
        gas_limit=quantity(env["currentGasLimit"]),
        base_fee=quantity(env.get("currentBaseFee", 0)),
        prev_randao=quantity(env.get("currentRandom", 0)),
        difficulty=quantity(env.get("currentDifficulty", 0)),
        excess_blob_gas=quantity(env.get("currentExcessBlobGas", 0)),
        chain_id=quantity(config.get("chainid", 1)),
        hashes=block_hash,
    )
    for name, schedule in config.get("blobSchedule", {}).items():
        if fork_named(name) == fork:
            block.blob_base_fee_fraction = quantity(schedule["baseFeeUpdateFraction"])
            block.blob_max = quantity(schedule["max"])
    return block


def transaction_from(fields: dict[str, Any], indexes: dict[str, int]) -> Transaction:
    payload = data(fields["data"][indexes["data"]])
    sender = address(fields["sender"]) if fields.get("sender") else address_of_key(data(fields["secretKey"]))
    access_lists = fields.get("accessLists")
    access_list = access_lists[indexes["data"]] if access_lists else None
    blobs = fields.get("blobVersionedHashes")
    authorizations = fields.get("authorizationList")
    return Transaction(
        sender=sender,
        to=address(fields["to"]) if fields.get("to") else None,
        data=payload,
        value=quantity(fields["value"][indexes["value"]]),
        gas_limit=quantity(fields["gasLimit"][indexes["gas"]]),
        nonce=quantity(fields["nonce"]),
        gas_price=quantity(fields["gasPrice"]) if "gasPrice" in fields else None,
        max_fee=quantity(fields["maxFeePerGas"]) if "maxFeePerGas" in fields else None,
        max_priority_fee=quantity(fields["maxPriorityFeePerGas"]) if "maxPriorityFeePerGas" in fields else None,
        access_list=None if access_list is None else tuple(map(_access, access_list)),
        blob_hashes=None if blobs is None else tuple(map(data, blobs)),
        max_blob_fee=quantity(fields.get("maxFeePerBlobGas", 0)),
        authorizations=None if authorizations is None else tuple(map(_authorization, authorizations)),
    )


def _access(entry: dict[str, Any]) -> tuple[bytes, tuple[int, ...]]:
    return address(entry["address"]), tuple(map(quantity, entry["storageKeys"]))


def _authorization(entry: dict[str, Any]) -> Authorization:
    return Authorization(
        chain_id=quantity(entry["chainId"]),
        address=address(entry["address"]),
        nonce=quantity(entry["nonce"]),
        y_parity=quantity(entry.get("yParity", entry.get("v"))),
        r=quantity(entry["r"]),
        s=quantity(entry["s"]),
    )
