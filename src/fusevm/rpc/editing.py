"""The state changed by hand: balances, nonces, code, storage, tokens; and accounts that are impersonated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fusevm.chain.state import State
from fusevm.evm.keccak import keccak256
from fusevm.rpc.calls import machine, run_call
from fusevm.rpc.errors import INTERNAL_ERROR, RpcError, invalid
from fusevm.rpc.state import slot_of
from fusevm.rpc.values import number_of
from fusevm.values import to_address, to_bytes, to_word

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

BALANCE_OF = keccak256(b"balanceOf(address)")[:4]
ALLOWANCE = keccak256(b"allowance(address,address)")[:4]
MAX_GUESSES = 32  # places where a token's balances may be kept


def set_balance(session: Session, address: Any, balance: Any) -> None:
    where, wei = to_address(address, "address"), number_of(balance, "balance")
    with session.dev.chain.edited() as state:
        state.set_balance(where, wei)


def add_balance(session: Session, address: Any, amount: Any) -> None:
    where, wei = to_address(address, "address"), number_of(amount, "amount")
    with session.dev.chain.edited() as state:
        state.set_balance(where, min(state.account(where).balance + wei, (1 << 256) - 1))


def set_nonce(session: Session, address: Any, nonce: Any) -> None:
    where, number = to_address(address, "address"), number_of(nonce, "nonce", 64)
    with session.dev.chain.edited() as state:
        state.set_nonce(where, number)


def set_code(session: Session, address: Any, code: Any) -> None:
    where, raw = to_address(address, "address"), to_bytes(code, "code")
    with session.dev.chain.edited() as state:
        state.set_code(where, raw)


def set_storage(session: Session, address: Any, key: Any, value: Any) -> bool:
    where, slot, found = to_address(address, "address"), slot_of(key), to_word(value, "value")
    with session.dev.chain.edited() as state:
        state.set_storage(where, slot, found)
    return True


# -- tokens: the slot is found by trying, as Foundry's `deal` does


def deal_erc20(session: Session, address: Any, token: Any, balance: Any) -> bool:
    owner, where = to_address(address, "address"), to_address(token, "token")
    _set_word(session, where, BALANCE_OF + owner.rjust(32, b"\0"), [owner], number_of(balance, "balance"))
    return True


def set_allowance(session: Session, owner: Any, spender: Any, token: Any, amount: Any) -> bool:
    whose, by, where = to_address(owner, "owner"), to_address(spender, "spender"), to_address(token, "token")
    asked = ALLOWANCE + whose.rjust(32, b"\0") + by.rjust(32, b"\0")
    _set_word(session, where, asked, [whose, by], number_of(amount, "amount"))
    return True


def _set_word(session: Session, token: bytes, asked: bytes, keys: list[bytes], value: int) -> None:
    """Writes the slot of a mapping that a getter answers from."""
    for place in range(MAX_GUESSES):
        for vyper in (False, True):
            slot = place.to_bytes(32, "big")
            for key in keys:
                padded = key.rjust(32, b"\0")
                slot = keccak256(slot + padded if vyper else padded + slot)
            number = int.from_bytes(slot, "big")
            if _answers(session, token, asked, number, value):
                with session.dev.chain.edited() as state:
                    state.set_storage(token, number, value)
                return
    raise RpcError(INTERNAL_ERROR, f"no storage slot of 0x{token.hex()} gives what its getter answers; set it by hand")


def _answers(session: Session, token: bytes, asked: bytes, slot: int, value: int) -> bool:
    """Whether the getter would answer a value that stands in this slot; another is tried too, lest it is by chance."""
    for each in (value, value ^ 0x5A5A):
        with machine(session, session.dev.head.number) as evm:
            evm.state.set_storage(token, slot, each)
            result = run_call(evm, {"sender": bytes(20), "to": token, "data": asked})
        if not result.ok or result.output != each.to_bytes(32, "big"):
            return False
    return True


# -- impersonation


def impersonate(session: Session, address: Any) -> None:
    session.impersonated[to_address(address, "address")] = None


def stop_impersonating(session: Session, address: Any) -> None:
    session.impersonated.pop(to_address(address, "address"), None)


def impersonate_all(session: Session, wanted: Any) -> None:
    if not isinstance(wanted, bool):
        raise invalid("autoImpersonateAccount: expected true or false")
    session.impersonates_all = wanted


# -- whole states


def dump_state(session: Session, _history: Any = None) -> str:
    from fusevm.chain.dumps import compressed

    return "0x" + compressed(dump(session)).hex()


def dump(session: Session) -> dict[str, Any]:
    """The state after the head and where the chain stands, in anvil's form."""
    from fusevm.chain.dumps import write_state

    dev = session.dev
    return write_state(dev.chain.state, dev.chain.environment(dev.head.hash), "anvil")


def load_state(session: Session, dumped: Any) -> bool:
    """Adds the accounts of a dump; those that are there already are replaced."""
    from fusevm.chain.dumps import read_state

    loaded: State = read_state(to_bytes(dumped, "state"))
    with session.dev.chain.edited() as state:
        for address, account in loaded.items():
            state.set_balance(address, account.balance)
            state.set_nonce(address, account.nonce)
            state.set_code(address, account.code)
            state.replace_storage(address, account.storage)
    return True


# The same under the names of anvil, Hardhat and Tenderly
METHODS = {
    **dict.fromkeys(("anvil_setBalance", "hardhat_setBalance", "tenderly_setBalance"), set_balance),
    **dict.fromkeys(("anvil_addBalance", "hardhat_addBalance", "tenderly_addBalance"), add_balance),
    **dict.fromkeys(("anvil_setNonce", "hardhat_setNonce", "evm_setAccountNonce"), set_nonce),
    **dict.fromkeys(("anvil_setCode", "hardhat_setCode"), set_code),
    **dict.fromkeys(("anvil_setStorageAt", "hardhat_setStorageAt"), set_storage),
    **dict.fromkeys(("anvil_dealERC20", "hardhat_dealERC20", "anvil_setERC20Balance"), deal_erc20),
    "anvil_setERC20Allowance": set_allowance,
    **dict.fromkeys(("anvil_impersonateAccount", "hardhat_impersonateAccount"), impersonate),
    **dict.fromkeys(("anvil_stopImpersonatingAccount", "hardhat_stopImpersonatingAccount"), stop_impersonating),
    **dict.fromkeys(("anvil_autoImpersonateAccount", "hardhat_autoImpersonateAccount"), impersonate_all),
    **dict.fromkeys(("anvil_dumpState", "hardhat_dumpState"), dump_state),
    **dict.fromkeys(("anvil_loadState", "hardhat_loadState"), load_state),
}
