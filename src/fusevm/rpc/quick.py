"""eth_call as most clients ask for it: a target and data, on the head, paying nothing.

No transaction is made of it: its other effects (the nonce, fees that are zero) cannot be observed. The machine and its
block stay the same from call to call, and so do the tables that native code keeps.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from fusevm.api import EVM
from fusevm.chain.result import Result
from fusevm.chain.transaction import floor_gas, intrinsic_gas
from fusevm.evm.forks import Rules, rules_of
from fusevm.rpc.requests import Fields

if TYPE_CHECKING:
    from fusevm.rpc.session import Session

_PLAIN = frozenset({"sender", "to", "data", "gas"})


class QuickCalls:
    """A machine for calls on the head of one chain."""

    def __init__(self) -> None:
        self._head: object = None  # what the machine was made for
        self._for: tuple[object, ...] = ()
        self._evm: EVM | None = None
        self._rules: Rules | None = None

    def call(self, session: Session, fields: Fields) -> Result | None:
        """The result; None if the call is not for this path."""
        to = fields["to"]
        if to is None or not _PLAIN.issuperset(fields):
            return None
        evm, rules = self._machine(session)
        data, caller, most = fields["data"], fields["sender"], evm.block.gas_limit
        limit = min(fields.get("gas", most), most)
        before = intrinsic_gas(rules, data)
        if limit < max(before, floor_gas(rules, data)) or evm.state.account(caller).code:
            return None  # refused, or its nonce could be seen
        return evm.simulate(to, data, caller=caller, gas=limit - before)

    def _machine(self, session: Session) -> tuple[EVM, Rules]:
        chain = session.dev.chain
        head, others = chain.bookmark(), (session.dev.chain_id, chain.tier, session.call_seconds)
        if (
            self._evm is None or self._rules is None or self._head is not head or self._evm.state is not chain.state
            or self._for != others
        ):  # fmt: skip
            found = session.dev.surroundings = session.dev.take_surroundings()
            block = copy(found.block)
            block.base_fee = 0
            self._evm = EVM(found.step.fork, chain.tier, block=block, state=chain.state, timeout=session.call_seconds)
            self._rules, self._head, self._for = rules_of(found.step.fork), head, others
        return self._evm, self._rules
