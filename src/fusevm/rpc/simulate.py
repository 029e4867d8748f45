"""eth_simulateV1: blocks of calls that build on each other, none of which is kept."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from fusevm.api import EVM
from fusevm.chain.forms import Json, data, log_form, word
from fusevm.chain.outcome import Status
from fusevm.chain.result import Result
from fusevm.rpc.calls import block_changes, machine, run_call
from fusevm.rpc.errors import REVERTED, SERVER_ERROR, failed, invalid
from fusevm.rpc.requests import read_request
from fusevm.rpc.values import which_block
from fusevm.values import shown

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

MAX_BLOCKS = 256
SLOT = 12
FAILED = -32015  # what geth gives a call that halted


def simulate(session: Session, form: Any, tag: Any = None) -> list[Json]:
    listed = form.get("blockStateCalls") if isinstance(form, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
        raise invalid(f"simulateV1: expected an object with a list 'blockStateCalls', got {shown(form)}")
    if len(listed) > MAX_BLOCKS:
        raise invalid(f"simulateV1: {len(listed)} blocks; at most {MAX_BLOCKS}")
    which = which_block(session, tag)
    answers: list[Json] = []
    with machine(session, which) as evm, ExitStack() as opened:
        number, time = evm.block.number, evm.block.timestamp
        for each in listed:
            changes = {"number": hex(number + 1), "time": hex(time + SLOT)}
            changes |= block_changes(each.get("blockOverrides")) or {}
            opened.enter_context(evm.overridden(each.get("stateOverrides"), changes))
            number, time = evm.block.number, evm.block.timestamp
            answers.append(_block(evm, each.get("calls") or []))
    return answers


def _block(evm: EVM, calls: Any) -> Json:
    if not isinstance(calls, list):
        raise invalid("simulateV1: 'calls' is not a list")
    block, found, logs, used = evm.block, [], 0, 0
    for at, form in enumerate(calls):
        fields = read_request(form)
        fields["gas"] = min(fields.get("gas", block.gas_limit), block.gas_limit - used)
        result = run_call(evm, fields)
        found.append(_call(result, block.number, at, logs))
        used += result.gas_used
        logs += len(result.logs)
    return {
        "number": hex(block.number),
        "timestamp": hex(block.timestamp),
        "gasLimit": hex(block.gas_limit),
        "gasUsed": hex(used),
        "miner": data(block.coinbase),
        "baseFeePerGas": hex(block.base_fee),
        "mixHash": word(block.prev_randao),
        "calls": found,
    }


def _call(result: Result, number: int, index: int, first_log: int) -> Json:
    place = {"blockNumber": hex(number), "transactionIndex": hex(index)}
    form: Json = {
        "returnData": data(result.output),
        "gasUsed": hex(result.gas_used),
        "status": hex(result.ok),
        "logs": [log_form(log, place, at) for at, log in enumerate(result.logs, first_log)],
    }
    if not result.ok:
        error = failed(result)
        code = REVERTED if result.status is Status.REVERT else FAILED if error.code == SERVER_ERROR else error.code
        form["error"] = {"code": code, "message": error.message}
        if result.status is Status.REVERT:
            form["error"]["data"] = data(result.output)
    return form


METHODS = {"eth_simulateV1": simulate}
