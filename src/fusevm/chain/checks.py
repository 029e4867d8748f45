"""Which rules are checked for transactions: all, except when simulating one that could not be sent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from fusevm.chain.environment import DEFAULT_CALLER
from fusevm.evm.forks import NO_LIMIT, Rules
from fusevm.values import to_flag, to_number


@dataclass(frozen=True, slots=True)
class Checks:
    """What is checked before a transaction or a call runs. A check that is off holds on no tier.

    >>> from fusevm import EVM, Checks
    >>> evm = EVM(checks=Checks(balance=False))
    >>> evm.transact("0x" + "a1" * 20, "0x" + "b0" * 20, value=10**18).ok
    True
    """

    balance: bool = True  # the sender can pay; else what is missing is given to it first
    nonce: bool = True  # the transaction's nonce is the sender's
    base_fee: bool = True  # the fee cap is not under the block's base fee
    code_size: bool = True  # EIP-170, EIP-3860
    gas_cap: bool = True  # EIP-7825, and the block's gas limit
    tx_gas_cap: bool = True  # EIP-7825
    eoa: bool = True  # EIP-3607: the sender has no code
    chain_id: bool = True  # EIP-155: a transaction that is signed is for this chain
    max_code_size: int | None = None  # bytes of a contract, in the place of the fork's; twice as much of init code

    def __post_init__(self) -> None:
        for name in ("balance", "nonce", "base_fee", "code_size", "gas_cap", "tx_gas_cap", "eoa", "chain_id"):
            to_flag(getattr(self, name), name)
        if self.max_code_size is not None:
            object.__setattr__(self, "max_code_size", to_number(self.max_code_size, "max_code_size", bits=32))


ALL_CHECKS = Checks()


def checks_of(sender: bytes, checks: Checks) -> Checks:
    """What is checked of this sender: `DEFAULT_CALLER` always has what it sends."""
    return _without_balance(checks) if checks.balance and sender == DEFAULT_CALLER else checks


@lru_cache(maxsize=64)
def _without_balance(checks: Checks) -> Checks:
    return replace(checks, balance=False)


@lru_cache(maxsize=64)
def rules_with(rules: Rules, checks: Checks) -> Rules:
    """A fork's rules without those that are not checked."""
    if checks == ALL_CHECKS:
        return rules
    if not (checks.gas_cap and checks.tx_gas_cap):
        rules = replace(rules, tx_gas_cap=NO_LIMIT)
    if not checks.code_size:
        return replace(rules, max_code_size=NO_LIMIT, max_initcode_size=NO_LIMIT)
    if checks.max_code_size is None:
        return rules
    init = NO_LIMIT if rules.max_initcode_size == NO_LIMIT else 2 * checks.max_code_size
    return replace(rules, max_code_size=checks.max_code_size, max_initcode_size=init)
