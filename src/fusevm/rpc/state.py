"""Methods about accounts and calls at a block."""

from __future__ import annotations

from typing import Any

from fusevm.chain.reasons import Rejected
from fusevm.devchain import PENDING
from fusevm.machine.estimate import EstimateFailed
from fusevm.rpc.encoding import hex_data, hex_word
from fusevm.rpc.errors import check_success, failed, refused
from fusevm.rpc.requests import transaction_of
from fusevm.rpc.session import Session, parameters
from fusevm.values import to_address, to_word


def get_balance(session: Session, given: list[Any]) -> str:
    address, tag = parameters(given, 1, 2)
    with session.dev.at(session.which(tag)) as (state, _, _):
        return hex(state.account(to_address(address)).balance)


def get_nonce(session: Session, given: list[Any]) -> str:
    address, tag = parameters(given, 1, 2)
    if tag == PENDING:
        return hex(session.dev.next_nonce(to_address(address)))
    with session.dev.at(session.which(tag)) as (state, _, _):
        return hex(state.account(to_address(address)).nonce)


def get_code(session: Session, given: list[Any]) -> str:
    address, tag = parameters(given, 1, 2)
    with session.dev.at(session.which(tag)) as (state, _, _):
        return hex_data(state.account(to_address(address)).code)


def get_storage(session: Session, given: list[Any]) -> str:
    address, key, tag = parameters(given, 2, 3)
    with session.dev.at(session.which(tag)) as (state, _, _):
        return hex_word(state.storage(to_address(address), to_word(key, "slot")))


def call(session: Session, given: list[Any]) -> str:
    fields, tag = parameters(given, 1, 2)
    tx = transaction_of(session, fields, priced=False)
    try:
        return hex_data(check_success(session.dev.call(tx, session.which(tag))).output)
    except Rejected as error:
        raise refused(error) from error


def estimate_gas(session: Session, given: list[Any]) -> str:
    fields, tag = parameters(given, 1, 2)
    tx = transaction_of(session, fields, priced=False)
    try:
        return hex(session.dev.estimate_gas(tx, session.which(tag)))
    except EstimateFailed as error:
        raise failed(error.result) from error
    except Rejected as error:
        raise refused(error) from error
