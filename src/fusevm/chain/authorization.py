"""EIP-7702: accounts that let another's code run as their own."""

from __future__ import annotations

from fusevm.chain.environment import ZERO_ADDRESS
from fusevm.chain.rlp import encode, natural
from fusevm.chain.state import DELEGATION_PREFIX, State
from fusevm.chain.transaction import Authorization
from fusevm.evm.forks import Rules
from fusevm.evm.keccak import keccak256
from fusevm.evm.limits import MAX_NONCE
from fusevm.evm.secp256k1 import ORDER, recover_address

MAGIC = b"\x05"


def apply_authorizations(listed: tuple[Authorization, ...], state: State, chain_id: int, rules: Rules) -> None:
    """Sets each valid authorization's delegation; invalid ones are passed over."""
    for authorization in listed:
        _apply(authorization, state, chain_id, rules)


def _apply(auth: Authorization, state: State, chain_id: int, rules: Rules) -> None:
    if auth.chain_id not in (0, chain_id) or auth.nonce >= MAX_NONCE:
        return
    signer = signer_of(auth)
    if signer is None:
        return
    state.warm_address(signer)
    account = state.account(signer)
    if (account.code and state.delegate_of(signer) is None) or account.nonce != auth.nonce:
        return
    if state.exists(signer) and not account.empty:
        state.add_refund(rules.authorization_refund)
    state.set_code(signer, b"" if auth.address == ZERO_ADDRESS else DELEGATION_PREFIX + auth.address)
    state.set_nonce(signer, auth.nonce + 1)


def signer_of(auth: Authorization) -> bytes | None:
    if auth.y_parity > 1 or not 0 < auth.r < ORDER or not 0 < auth.s <= ORDER // 2:
        return None
    digest = keccak256(MAGIC + encode([natural(auth.chain_id), auth.address, natural(auth.nonce)]))
    return recover_address(digest, auth.r, auth.s, auth.y_parity)
