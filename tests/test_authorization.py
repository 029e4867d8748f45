"""EIP-7702: authorizations that let an account run another's code, valid and invalid ones, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fusevm.chain.authorization import MAGIC
from fusevm.chain.environment import ZERO_ADDRESS, Block
from fusevm.chain.outcome import Status
from fusevm.chain.reasons import Rejected
from fusevm.chain.result import Result
from fusevm.chain.rlp import encode, natural
from fusevm.chain.state import DELEGATION_PREFIX, Account, State
from fusevm.chain.transaction import Authorization
from fusevm.evm.keccak import keccak256
from fusevm.evm.secp256k1 import ORDER as CURVE_ORDER
from fusevm.evm.secp256k1 import address_of_key, sign
from test_transaction import FEES, FUNDS, SENDER, TARGET, send, world

KEY = b"\x07" * 32
SIGNER = address_of_key(KEY)


def authorization(to: bytes = TARGET, nonce: int = 0, chain_id: int = 1, key: bytes = KEY) -> Authorization:
    digest = keccak256(MAGIC + encode([natural(chain_id), to, natural(nonce)]))
    return Authorization(chain_id, to, nonce, *sign(digest, key))


def delegate(state: State, *listed: Authorization, **fields: Any) -> Result:
    return send(state, "prague", **{**FEES, "gas_limit": 200_000, "authorizations": listed, **fields})


def test_a_valid_authorization_points_the_signer_at_the_code() -> None:
    state = world("PUSH1 1 PUSH1 0 SSTORE")
    delegate(state, authorization())
    assert state.account(SIGNER).code == DELEGATION_PREFIX + TARGET
    assert state.account(SIGNER).nonce == 1


def test_a_call_to_the_signer_runs_that_code_on_the_signers_storage() -> None:
    state = world("ADDRESS PUSH1 0 SSTORE")
    delegate(state, authorization(), to=SIGNER)
    assert state.account(SIGNER).storage == {0: int.from_bytes(SIGNER, "big")}
    assert state.storage(TARGET, 0) == 0


def test_a_new_signer_costs_25000_and_half_of_it_comes_back_for_an_old_one() -> None:
    new, old = world(), world()
    old.accounts[SIGNER] = Account(balance=1)
    assert delegate(new, authorization()).gas_used == 46_000
    assert delegate(old, authorization()).gas_used == 46_000 - 46_000 // 5  # 12,500 is over the cap
    assert delegate(world(), authorization(), replace(authorization(), s=0)).gas_used == 71_000


def with_the_other_root(auth: Authorization) -> Authorization:
    """The same signature in its other form: s in the upper half, the parity flipped; it has the same signer."""
    return replace(auth, s=CURVE_ORDER - auth.s, y_parity=1 - auth.y_parity)


PASSED_OVER = {
    "another chain": authorization(chain_id=2),
    "an old nonce": authorization(nonce=4),
    "a later nonce": authorization(nonce=6),
    "r of zero": replace(authorization(nonce=5), r=0),
    "s of zero": replace(authorization(nonce=5), s=0),
    "s in the upper half": with_the_other_root(authorization(nonce=5)),
    "r over the order": replace(authorization(nonce=5), r=CURVE_ORDER),
    "a parity of two": replace(authorization(nonce=5), y_parity=2),
}


@pytest.mark.parametrize("why", PASSED_OVER)
def test_an_invalid_authorization_is_passed_over_and_still_paid_for(why: str) -> None:
    state = world()
    state.accounts[SIGNER] = Account(nonce=5)
    receipt = delegate(state, PASSED_OVER[why])
    assert receipt.status is Status.SUCCESS
    assert receipt.gas_used == 46_000
    assert (state.account(SIGNER).nonce, state.account(SIGNER).code) == (5, b"")


def test_an_authorization_of_the_greatest_nonce_is_passed_over() -> None:
    state = world()
    state.accounts[SIGNER] = Account(nonce=2**64 - 1)
    delegate(state, authorization(nonce=2**64 - 1))
    assert state.account(SIGNER).code == b""


@pytest.mark.parametrize(
    ("auth", "price"), [(authorization(), 100), (authorization(nonce=4), 100), (authorization(chain_id=2), 2_600)]
)
def test_a_signer_is_warm_from_then_on_though_its_nonce_be_wrong(auth: Authorization, price: int) -> None:
    state = world(f"PUSH20 0x{SIGNER.hex()} BALANCE")
    receipt = delegate(state, auth)
    assert receipt.gas_used == 46_000 + 3 + price


def test_an_authorization_without_chain_is_valid_on_every_chain() -> None:
    state = world()
    delegate(state, authorization(chain_id=0), block=Block(chain_id=1234))
    assert state.delegate_of(SIGNER) == TARGET


def test_an_account_with_code_of_its_own_cannot_delegate() -> None:
    state = world()
    state.accounts[SIGNER] = Account(code=b"\0")
    delegate(state, authorization())
    assert state.account(SIGNER).code == b"\0"


def test_a_delegation_is_replaced_by_another_and_cleared_by_the_zero_address() -> None:
    state = world()
    delegate(state, authorization(), authorization(SENDER, nonce=1))
    assert state.delegate_of(SIGNER) == SENDER
    delegate(state, authorization(ZERO_ADDRESS, nonce=2))
    assert state.account(SIGNER).code == b""
    assert state.account(SIGNER).nonce == 3


def test_a_delegation_stays_though_the_call_reverts() -> None:
    state = world("PUSH1 0 PUSH1 0 REVERT")
    assert delegate(state, authorization()).status is Status.REVERT
    assert state.delegate_of(SIGNER) == TARGET


def test_a_sender_who_delegates_may_still_send_and_signs_its_next_nonce() -> None:
    state = world()
    state.accounts[SIGNER] = Account(balance=FUNDS, code=DELEGATION_PREFIX + TARGET)
    delegate(state, authorization(SENDER, nonce=1), sender=SIGNER)
    assert (state.delegate_of(SIGNER), state.account(SIGNER).nonce) == (SENDER, 2)
    with pytest.raises(Rejected, match="the sender has code"):
        send(state, "cancun", sender=SIGNER, to=TARGET)  # a fork that knows no delegation
