"""pyrevm: revm through its Python binding, to Cancun.

Its `message_call` is a transaction without its ends: intrinsic gas, access list and refund are there, but no nonce is
counted and no fee is paid, so both are added here. Its `deploy` is a whole transaction. Neither closes the journal: the
accounts are read from it afterwards, since nothing else tells which have destroyed themselves.
"""

from __future__ import annotations

import re
from dataclasses import replace
from time import perf_counter
from typing import Any

from pyrevm import EVM, AccountInfo, BlockEnv, CfgEnv, Env, TxEnv

from fusevm import api
from fusevm.chain.state import Account, Log
from fusevm.chain.transaction import intrinsic_gas
from fusevm.evm.forks import Fork, rules_of
from fusevm.evm.precompiles import precompiles_of
from fusevm.lab.peers.work import Observation, PeerWork, Stopwatch, Timing
from fusevm.reference.hooks import Hooks, Step

# The binding takes any other spelling for its latest fork, without a word. It runs Constantinople as Petersburg.
SPEC_IDS = {
    Fork.FRONTIER: "Frontier",
    Fork.HOMESTEAD: "Homestead",
    Fork.TANGERINE_WHISTLE: "Tangerine",
    Fork.SPURIOUS_DRAGON: "Spurious",
    Fork.BYZANTIUM: "Byzantium",
    Fork.PETERSBURG: "Petersburg",
    Fork.ISTANBUL: "Istanbul",
    Fork.BERLIN: "Berlin",
    Fork.LONDON: "London",
    Fork.PARIS: "Merge",
    Fork.SHANGHAI: "Shanghai",
    Fork.CANCUN: "Cancun",
}

_ACCOUNT = re.compile(
    r"0x([0-9a-f]{40}): Account \{ info: AccountInfo \{ balance: (\d+), nonce: (\d+), code_hash: 0x[0-9a-f]{64}, "
    r"code: (?:None|Some\(Bytecode \{ bytecode: 0x([0-9a-f]*), "
    r"state: (?:Raw|\w+ \{ len: (\d+)[^}]*?(?:\{[^}]*\} )?\}) \}\)) \}, "
    r"storage: (.*?), status: AccountStatus\(([^)]*)\) \}"
)
_SLOT = re.compile(r"(\d+): StorageSlot \{ previous_or_original_value: \d+, present_value: (\d+) \}")
_OUTPUT = re.compile(r"output: 0x([0-9a-f]*)")
_account_info: Any = AccountInfo  # whose stub has no balance
_UNLIMITED = (1 << 63) - 1


class Revm:
    name = "pyrevm"

    def supports(self, fork: Fork) -> bool:
        return fork in SPEC_IDS

    def fit(self, work: PeerWork) -> PeerWork:
        """The binding has no base fee. Its database takes every account for existing, which shows before EIP-161:
        there the precompiles, the commonest of missing accounts, are put into the world."""
        tx, block = work.transaction, work.block
        price = tx.effective_gas_price(0) if tx.max_fee is not None else tx.gas_price
        accounts = work.accounts
        if work.fork < Fork.SPURIOUS_DRAGON:
            accounts = {**{address: Account(balance=1) for address in precompiles_of(work.fork)}, **accounts}
        return replace(
            work,
            accounts=accounts,
            block=replace(block, base_fee=0),
            transaction=replace(tx, gas_price=price, max_fee=None, max_priority_fee=None),
        )

    def excuse(self, work: PeerWork) -> str | None:
        if work.fork < Fork.SPURIOUS_DRAGON and _meets_missing_account(work):
            return "its database takes missing accounts for existing ones: the 25,000 gas for a new one is not charged"
        return None

    def run(self, work: PeerWork) -> Observation:
        tx = work.transaction
        price = tx.gas_price or 0
        # Only a call needs its fee paid by hand, and only a call can carry blobs.
        fee = tx.blob_gas * work.block.blob_base_fee(rules_of(work.fork)) if tx.blob_hashes else 0
        upfront = 0 if tx.to is None else tx.gas_limit * price + fee
        evm = _evm(work, work.block.gas_limit, paid=upfront, nonces=0 if tx.to is None else 1)
        sender = "0x" + tx.sender.hex()
        output: bytes | None = None
        reason = ""
        try:
            if tx.to is None:
                evm.deploy(sender, tx.data, tx.value, tx.gas_limit, price)
            else:
                output = evm.message_call(sender, "0x" + tx.to.hex(), tx.data, tx.value, tx.gas_limit, price)
        except RuntimeError as error:
            reason = str(error)
            if evm.result is None:
                return Observation("rejected", accounts=work.accounts, knows_empty=False, reason=reason)
            reverted = _OUTPUT.search(reason)
            output = bytes.fromhex(reverted.group(1)) if reverted else b""
        result = evm.result
        accounts, destroyed = _accounts(evm, work)
        if tx.to is not None:
            _settle(accounts, work, result.gas_used, price)
        for address in destroyed:
            accounts.pop(address, None)
        return Observation(
            _status(result),
            result.gas_used,
            result.gas_refunded,
            output,
            [_log(log) for log in result.logs],
            accounts,
            knows_empty=False,
            reason=reason,
        )

    def stopwatch(self, work: PeerWork) -> Stopwatch:
        """Only `message_call` is timed; a snapshot of the journal is reverted afterwards, off the clock."""
        tx = work.transaction
        assert tx.to is not None
        intrinsic = intrinsic_gas(rules_of(work.fork), tx.data)
        evm = _evm(work, _UNLIMITED)
        sender, to, data, value, gas = (
            "0x" + tx.sender.hex(),
            "0x" + tx.to.hex(),
            tx.data,
            tx.value,
            tx.gas_limit + intrinsic,
        )

        def measure() -> Timing:
            mark = evm.snapshot()
            start = perf_counter()
            try:
                output = evm.message_call(sender, to, data, value, gas)
            except RuntimeError as error:
                reverted = _OUTPUT.search(str(error))
                output = bytes.fromhex(reverted.group(1)) if reverted else b""
            seconds = perf_counter() - start
            result = evm.result
            evm.revert(mark)
            used = result.gas_used + result.gas_refunded - intrinsic
            return Timing(seconds, _status(result), used, result.gas_refunded, output)

        return measure


def _evm(work: PeerWork, gas_limit: int, paid: int = 0, nonces: int = 0) -> Any:
    block, tx = work.block, work.transaction
    # Given `gas_limit`, which is also what GASLIMIT answers; the block's own field is not looked at.
    environment = BlockEnv(
        number=block.number,
        coinbase="0x" + block.coinbase.hex(),
        timestamp=block.timestamp,
        difficulty=block.difficulty,
        prevrandao=block.prev_randao.to_bytes(32, "big"),
        excess_blob_gas=block.excess_blob_gas,
    )
    transaction = TxEnv(
        access_list=[("0x" + address.hex(), list(keys)) for address, keys in tx.access_list or ()],
        blob_hashes=list(tx.blob_hashes or ()),
        max_fee_per_blob_gas=tx.max_blob_fee if tx.blob_hashes else None,
    )
    environment_all = Env(CfgEnv(chain_id=block.chain_id), environment, transaction)
    evm = EVM(env=environment_all, gas_limit=gas_limit, spec_id=SPEC_IDS[work.fork])
    for address, account in work.accounts.items():
        balance, nonce = account.balance, account.nonce
        if address == tx.sender:
            balance, nonce = balance - paid, nonce + nonces
        evm.insert_account_info("0x" + address.hex(), _account_info(balance, nonce, code=account.code or None))
    for address, account in work.accounts.items():
        for key, value in account.storage.items():
            # The first slot goes to the database and warms the account; another would go to the journal alone.
            mark = evm.snapshot()
            evm.insert_account_storage("0x" + address.hex(), key, value)
            evm.revert(mark)
    return evm


def _status(result: Any) -> str:
    if result.is_success:
        return "success"
    return "halt" if result.is_halt else "revert"


def _log(log: Any) -> Log:
    topics, data = log.data
    return Log(bytes.fromhex(log.address[2:]), tuple(int.from_bytes(topic, "big") for topic in topics), bytes(data))


def _accounts(evm: Any, work: PeerWork) -> tuple[dict[bytes, Account], list[bytes]]:
    """The world and over it what the journal says, and which accounts have destroyed themselves."""
    destroyed: list[bytes] = []
    accounts = {address: account.copy() for address, account in work.accounts.items()}
    journal: str = evm.journal_str
    for match in _ACCOUNT.finditer(journal, 0, journal.index("}, transient_storage: ")):
        where, balance, nonce, code, length, slots, status = match.groups()
        address = bytes.fromhex(where)
        if "SelfDestructed" in status:
            destroyed.append(address)
        account = accounts.setdefault(address, Account())
        if "Created" in status:
            account.storage.clear()
        account.balance, account.nonce = int(balance), int(nonce)
        if code is not None:
            account.code = bytes.fromhex(code)[: None if length is None else int(length)]
        for key, value in _SLOT.findall(slots):
            account.storage[int(key)] = int(value)
        account.storage = {key: value for key, value in account.storage.items() if value}
    return accounts, destroyed


def _settle(accounts: dict[bytes, Account], work: PeerWork, gas_used: int, price: int) -> None:
    """Pays back the gas that was not used, and the coinbase."""
    tx = work.transaction
    accounts.setdefault(tx.sender, Account()).balance += (tx.gas_limit - gas_used) * price
    accounts.setdefault(work.block.coinbase, Account()).balance += gas_used * price


def _meets_missing_account(work: PeerWork) -> bool:
    """Whether a CALL or SELFDESTRUCT has to pay for an account that did not exist at that moment."""
    met = False

    def look(step: Step) -> None:
        nonlocal met
        if step.name == "SELFDESTRUCT":
            met = met or step.gas_cost >= rules_of(work.fork).new_account or step.error is not None
        elif step.name == "CALL" and len(step.stack) > 1:
            address = step.stack[-2] & (1 << 160) - 1
            met = met or not evm.state.exists(address.to_bytes(20, "big"))

    evm = api.EVM(work.fork, "reference", block=work.block, state=work.state(), hooks=Hooks(on_opcode=look))
    tx = work.transaction
    evm.transact(tx.sender, tx.to, tx.data, value=tx.value, gas=tx.gas_limit, gas_price=tx.gas_price)
    return met
