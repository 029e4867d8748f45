"""A random program: accounts with structured code, and the transaction that sets them going. Kept as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from fusevm.chain.environment import Block
from fusevm.chain.state import Account
from fusevm.chain.transaction import Authorization, Transaction
from fusevm.evm.forks import Fork, fork_named
from fusevm.lab.fuzz.code import CodeParts
from fusevm.lab.peers.work import PeerWork, block_hash

_BLOCK_FIELDS = (
    "number", "timestamp", "coinbase", "gas_limit", "base_fee",
    "prev_randao", "difficulty", "chain_id", "excess_blob_gas",
)  # fmt: skip


@dataclass(slots=True)
class FuzzContract:
    """An account whose code is still structured; an account without code is one too."""

    nonce: int = 0
    balance: int = 0
    code: CodeParts = field(default_factory=CodeParts)
    storage: dict[int, int] = field(default_factory=dict)

    def copy(self) -> FuzzContract:
        return FuzzContract(self.nonce, self.balance, self.code.copy(), dict(self.storage))


@dataclass(slots=True)
class Program:
    fork: Fork
    accounts: dict[bytes, FuzzContract]
    block: Block
    transaction: Transaction
    initcode: CodeParts | None = None  # the transaction's data, where it creates
    seed: str = ""  # what the generator made it from

    def work(self) -> PeerWork:
        """As engines take it: all code in bytes."""
        accounts = {
            address: Account(each.nonce, each.balance, each.code.encode(), {k: v for k, v in each.storage.items() if v})
            for address, each in self.accounts.items()
        }
        tx = self.transaction
        if self.initcode is not None:
            tx = replace(tx, data=self.initcode.encode())
        return PeerWork(self.fork, accounts, self.block, tx)

    def codes(self) -> list[CodeParts]:
        """Every list of items in it, parts included."""
        roots = [account.code for account in self.accounts.values()]
        if self.initcode is not None:
            roots.append(self.initcode)
        return [code for root in roots for code in root.every()]

    def size(self) -> int:
        return sum(len(code.items) for code in self.codes())

    def copy(self) -> Program:
        """Independent of this one, down to the items of code."""
        accounts = {address: account.copy() for address, account in self.accounts.items()}
        initcode = None if self.initcode is None else self.initcode.copy()
        return replace(self, accounts=accounts, initcode=initcode)

    def listing(self) -> str:
        """For people: each account with its code, one instruction a line, then the transaction."""
        lines = [f"program {self.seed} at {self.fork.label}"]
        for address, each in self.accounts.items():
            slots = "".join(f", slot {key:#x} = {value:#x}" for key, value in each.storage.items())
            lines.append(f"account 0x{address.hex()}: nonce {each.nonce}, balance {each.balance}{slots}")
            lines += _listed(each.code)
        shown = {name: value for name, value in self.as_json()["transaction"].items() if value not in (0, "0x")}
        lines.append("transaction: " + ", ".join(f"{name} {value}" for name, value in shown.items()))
        if self.initcode is not None:
            lines += _listed(self.initcode)
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "fork": self.fork.label,
            "block": {name: _plain(getattr(self.block, name)) for name in _BLOCK_FIELDS},
            "accounts": {
                _plain(address): {
                    "nonce": each.nonce,
                    "balance": each.balance,
                    "storage": {hex(key): hex(value) for key, value in each.storage.items()},
                    "code": each.code.as_json(),
                }
                for address, each in self.accounts.items()
            },
            "transaction": {
                each.name: _plain(value)
                for each in fields(Transaction)
                if (value := getattr(self.transaction, each.name)) is not None
            },
            "initcode": None if self.initcode is None else self.initcode.as_json(),
        }

    @classmethod
    def from_json(cls, form: dict[str, Any]) -> Program:
        accounts = {
            _octets(address): FuzzContract(
                each["nonce"],
                each["balance"],
                CodeParts.from_json(each["code"]),
                {int(key, 16): int(value, 16) for key, value in each["storage"].items()},
            )
            for address, each in form["accounts"].items()
        }
        block: dict[str, Any] = dict(form["block"])
        block["coinbase"] = _octets(block["coinbase"])
        initcode = None if form.get("initcode") is None else CodeParts.from_json(form["initcode"])
        return cls(
            fork_named(form["fork"]),
            accounts,
            Block(**block, hashes=block_hash),
            _transaction(form["transaction"]),
            initcode,
            form.get("seed", ""),
        )


def _listed(code: CodeParts, indent: str = "    ") -> list[str]:
    lines = [indent + str(item) for item in code.items]
    for number, part in enumerate(code.parts):
        if part.items:
            lines += [f"{indent}part{number}:", *_listed(part, indent + "    ")]
    return lines


def _plain(value: Any) -> Any:
    """Bytes as hex; tuples and authorizations as lists and objects."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Authorization):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(Authorization)}
    return value


def _octets(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def _transaction(form: dict[str, Any]) -> Transaction:
    given = dict(form)
    for name in ("sender", "to", "data"):
        if name in given:
            given[name] = _octets(given[name])
    if "access_list" in given:
        given["access_list"] = tuple((_octets(address), tuple(keys)) for address, keys in given["access_list"])
    if "blob_hashes" in given:
        given["blob_hashes"] = tuple(map(_octets, given["blob_hashes"]))
    if "authorizations" in given:
        given["authorizations"] = tuple(
            Authorization(**{**each, "address": _octets(each["address"])}) for each in given["authorizations"]
        )
    return Transaction(**given)
