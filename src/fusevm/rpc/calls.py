"""Calls that change nothing: eth_call, estimates and access lists, at any block, under overrides."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fusevm.api import EVM
from fusevm.chain.checks import Checks, checks_of
from fusevm.chain.forms import data
from fusevm.chain.outcome import TimeLimit
from fusevm.chain.reasons import Rejected, RejectReason
from fusevm.chain.result import Result
from fusevm.chain.tree import Which
from fusevm.devchain import CALL_CHECKS
from fusevm.evm.forks import rules_of
from fusevm.evm.halts import HaltReason
from fusevm.evm.precompiles import precompiles_of
from fusevm.machine.estimate import STARVED, EstimateFailed
from fusevm.rpc.errors import TRANSACTION_REJECTED, RpcError, failed, invalid
from fusevm.rpc.requests import Fields, read_request
from fusevm.rpc.values import which_block
from fusevm.values import shown

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

# Other nodes' names of what a block override changes
_BLOCK_NAMES = {"coinbase": "feeRecipient", "random": "prevRandao", "baseFee": "baseFeePerGas", "timestamp": "time"}


@contextmanager
def machine(
    session: Session,
    which: Which,
    overrides: Any = None,
    block_overrides: Any = None,
    deadline: float | None = None,
    checks: Checks = CALL_CHECKS,
) -> Iterator[EVM]:
    """A machine on the state after a block; what it does is undone."""
    if deadline is None:
        deadline = session.deadline()
    left = None if deadline is None else deadline - time.monotonic()
    if left is not None and left <= 0:
        raise TimeLimit("the time limit is reached")
    with session.dev.at(which) as (state, block, step):
        if overrides is None and block_overrides is None:
            # Making one takes longer than a short call, so the last one is kept, unless it is in use.
            evm = session.machines.pop(checks, None)
            if evm is None or evm.state is not state or evm.fork is not step.fork:
                evm = EVM(step.fork, session.dev.chain.tier, state=state, checks=checks)
            evm.block, evm.timeout = block, left
            yield evm
            session.machines[checks] = evm
        else:
            tier = session.dev.chain.tier
            evm = EVM(step.fork, tier, block=block, state=state, timeout=left, checks=checks)
            with evm.overridden(_object(overrides, "state overrides"), block_changes(block_overrides)):
                yield evm


def _object(value: Any, what: str) -> Mapping[str, Any] | None:
    if value is not None and not isinstance(value, Mapping):
        raise invalid(f"{what}: expected an object, got {shown(value)}")
    return value


def block_changes(value: Any) -> dict[str, Any] | None:
    found = _object(value, "block overrides")
    if found is None:
        return None
    return {_BLOCK_NAMES.get(name, name): each for name, each in found.items() if each is not None}


def run_call(evm: EVM, fields: Fields) -> Result:
    """A call in the form of an unsigned transaction; if it pays nothing, there is no base fee."""
    given = {name: each for name, each in fields.items() if name not in ("sender", "to", "data", "nonce")}
    if not given.get("gas_price") and not given.get("max_fee"):
        evm.block.base_fee = 0
        given = {name: each for name, each in given.items() if name not in ("max_fee", "max_priority_fee")}
        given["gas_price"] = 0
    given["gas"] = min(given.get("gas", evm.block.gas_limit), evm.block.gas_limit)
    return evm.transact(fields["sender"], fields["to"], fields["data"], **given)


def call(session: Session, form: Any, tag: Any = None, overrides: Any = None, block_overrides: Any = None) -> str:
    fields, which = read_request(form), which_block(session, tag)
    if (upstream := session.upstream_for(which)) is not None:
        return str(upstream.ask("eth_call", form, hex(which)))  # type: ignore[arg-type]
    quick, result = session.quick_calls, None
    if quick is not None and overrides is None and block_overrides is None and which == session.dev.head.number:
        result = quick.call(session, fields)
    if result is None:
        with machine(session, which, overrides, block_overrides) as evm:
            result = run_call(evm, fields)
    if not result.ok:
        raise failed(result)
    return data(result.output)


def estimate_gas(
    session: Session, form: Any, tag: Any = None, overrides: Any = None, block_overrides: Any = None
) -> str:
    fields, which = read_request(form), which_block(session, tag)
    return hex(estimate(session, fields, which, overrides, block_overrides))


def estimate(
    session: Session, fields: Fields, which: Which = "pending", overrides: Any = None, block_overrides: Any = None
) -> int:
    """The least gas limit with which it succeeds. Raises EstimateFailed, or RpcError where there is too little gas."""
    skipped = ("sender", "to", "data", "nonce", "max_blob_fee")
    given = {name: each for name, each in fields.items() if name not in skipped}
    if "max_priority_fee" in given and "max_fee" not in given:
        del given["max_priority_fee"]
    if which == "pending" and not session.dev.chain.pending:
        which = session.dev.head.number
    checks = replace(session.config.checks, nonce=False, base_fee=False)
    with machine(session, which, overrides, block_overrides, checks=checks) as evm:
        if _is_transfer(evm, fields):
            return rules_of(evm.fork).tx_base
        try:
            return evm.estimate_gas(fields["to"], fields["data"], caller=fields["sender"], **given)
        except Rejected as error:  # what the sender can pay for is not enough to begin with
            if error.reason not in STARVED:
                raise
            _check_funds(evm, fields)
            raise _exceeds(error.detail) from None
        except EstimateFailed as error:
            if error.result.failure is not None and error.result.failure.reason is HaltReason.OUT_OF_GAS:
                raise _exceeds(str(error.limit)) from error
            raise


def _is_transfer(evm: EVM, fields: Fields) -> bool:
    """To an account without code: it costs the same whatever the sender has, and is not run, as in anvil."""
    to = fields["to"]
    more = fields["data"] or any(name in fields for name in ("access_list", "authorizations", "blob_hashes"))
    return not more and to is not None and to not in precompiles_of(evm.fork) and not evm.get_code(to)


def _check_funds(evm: EVM, fields: Fields) -> None:
    balance, value = evm.get_balance(fields["sender"]), fields.get("value", 0)
    if balance < value:
        raise Rejected(RejectReason.INSUFFICIENT_ACCOUNT_FUNDS, f"{balance} of {value} wei") from None


def _exceeds(allowance: str) -> RpcError:
    """In the words of geth and anvil."""
    return RpcError(TRANSACTION_REJECTED, f"Out of gas: gas required exceeds allowance: {allowance}")


def create_access_list(session: Session, form: Any, tag: Any = None) -> Any:
    fields, which = read_request(form), which_block(session, tag)
    with machine(session, which) as evm:
        found = evm.create_access_list(fields["to"], fields["data"], **traced_fields(evm, fields))
        if "error" in found and not (result := run_call(evm, fields)).ok:  # as in anvil, an error
            raise failed(result)
        return found


def traced_fields(evm: EVM, fields: Fields) -> Fields:
    """What of a request `trace_call` and `create_access_list` take. Raises Rejected if the sender has too little."""
    if checks_of(fields["sender"], evm.checks).balance:
        _check_funds(evm, fields)
    given: Fields = {"caller": fields["sender"], "gas": fields.get("gas", evm.block.gas_limit)}
    for name in ("value", "gas_price", "access_list"):
        if name in fields:
            given[name] = fields[name]
    if "max_fee" in fields:
        tip = fields.get("max_priority_fee", 0)
        given["gas_price"] = min(evm.block.base_fee + tip, fields["max_fee"])
    return given


METHODS = {"eth_call": call, "eth_estimateGas": estimate_gas, "eth_createAccessList": create_access_list}
