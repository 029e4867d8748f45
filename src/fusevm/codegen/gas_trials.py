"""Runs of code before and after it was optimised, on inputs made from the words it has: none of them may cost more.

Static gas is compared as a sum over all blocks. A value that is kept for a later block, or a branch that was turned,
may still cost a path more than is saved on it; where a run shows that, the code is not better.
"""

from __future__ import annotations

from fusevm.chain.environment import Context, Message
from fusevm.chain.outcome import Outcome
from fusevm.chain.state import State
from fusevm.codegen.trials import ADDRESS, BLOCK, CALLER, GAS, ORIGIN, TrialInput, trials_for
from fusevm.evm.bytecode import instructions
from fusevm.evm.forks import Fork
from fusevm.evm.halts import HaltReason
from fusevm.reference.interpreter import execute

FEW, PER_SELECTOR, MOST = 24, 3, 120  # runs
_WORDS = 64  # constants that inputs are made from
_PUSH4 = 0x63
_RICH = 10**18


def max_gas_increase(before: bytes, after: bytes, fork: Fork) -> int:
    """The largest increase in gas over all runs; 0 if none costs more."""
    pushed = [each for each in instructions(before, fork) if each.push is not None]
    selectors = list(dict.fromkeys(each.push for each in pushed if each.byte == _PUSH4 and each.push is not None))
    words = list(dict.fromkeys(each.push for each in pushed if each.push is not None))[:_WORDS]
    more = 0
    for trial in trials_for(words, selectors, min(FEW + PER_SELECTOR * len(selectors), MOST), None):
        old = _run(before, trial, fork)
        if old.failure is None or old.failure.reason is not HaltReason.OUT_OF_GAS:
            more = max(more, old.gas_left - _run(after, trial, fork).gas_left)
    return more


def _run(code: bytes, trial: TrialInput, fork: Fork) -> Outcome:
    state = State()
    state.set_code(ADDRESS, code)
    state.set_balance(CALLER, _RICH)
    state.begin_transaction()
    state.accounts[ADDRESS].storage.update(trial.storage)
    message = Message(CALLER, ADDRESS, code, trial.data, trial.value, GAS, code_address=ADDRESS)
    return execute(message, state, Context(fork, BLOCK, ORIGIN))
