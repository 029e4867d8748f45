"""fusevm itself, by tier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from time import perf_counter

from fusevm.api import EVM
from fusevm.chain.reasons import Rejected
from fusevm.chain.result import Result
from fusevm.chain.transaction import Transaction
from fusevm.evm.forks import Fork
from fusevm.lab.peers.work import Observation, PeerWork, Stopwatch, Timing
from fusevm.reference.hooks import Hooks

SETTLED = 3.0  # seconds of calls after which hot code is known to be hot, be it as large as it may
LONGEST = 120.0  # seconds that are waited for it to be compiled, at low priority on a machine that may be busy


class OurTier:
    settles = False  # whether `settle` waits until hot code is compiled

    def __init__(self, tier: str, hooks: Hooks | None = None) -> None:
        self.name = self._tier = tier
        self.hooks = hooks
        EVM(tier=tier).call(bytes(20))  # whatever must be loaded, or built, is so before any clock starts

    def supports(self, fork: Fork) -> bool:
        return True

    def fit(self, work: PeerWork) -> PeerWork:
        return work

    def excuse(self, work: PeerWork) -> str | None:
        return None

    def run(self, work: PeerWork) -> Observation:
        return _observed(self._machine(work), work.transaction)

    def run_again(self, work: PeerWork, limits: Iterable[int]) -> Iterator[Observation]:
        """Runs the transaction with these gas limits one after another, on one machine: it may learn from them."""
        evm = self._machine(work)
        for limit in limits:
            yield _observed(evm, replace(work.transaction, gas_limit=limit, nonce=None))

    def _machine(self, work: PeerWork) -> EVM:
        return EVM(work.fork, self._tier, block=work.block, state=work.state(), hooks=self.hooks)

    def stopwatch(self, work: PeerWork) -> Stopwatch:
        """Only `EVM.call` is timed. It runs inside `EVM.snapshot`, which undoes it afterwards, off the clock."""
        evm, tx = self._machine(work), work.transaction
        assert tx.to is not None
        to, data, value, caller, gas = tx.to, tx.data, tx.value, tx.sender, tx.gas_limit

        def measure() -> Timing:
            with evm.snapshot():
                start = perf_counter()
                result = evm.call(to, data, value=value, caller=caller, gas=gas)
                seconds = perf_counter() - start
            return Timing(seconds, result.status.value, result.gas_used, result.gas_refunded, result.output)

        return measure

    def settle(self, run: Stopwatch) -> None:
        """Runs until nothing is counted or compiled any more."""
        from fusevm.native.host.tiers import engine

        if not self.settles or self._tier not in ("auto", "native-tiered"):
            return
        began = perf_counter()
        while (now := perf_counter() - began) < LONGEST:
            policy = engine(tiered=True).codes.hot_code.policy
            if now > SETTLED and (policy is None or policy.is_settled):
                return
            run()


def _observed(evm: EVM, tx: Transaction) -> Observation:
    try:
        result = transact(evm, tx)
    except Rejected as rejected:
        return Observation("rejected", accounts=evm.state.accounts, reason=str(rejected))
    return Observation(
        result.status.value,
        result.gas_used,
        result.gas_refunded,
        result.output,
        list(result.logs),
        evm.state.accounts,
        reason=result.error or "",
    )


def transact(evm: EVM, tx: Transaction) -> Result:
    return evm.transact(
        tx.sender,
        tx.to,
        tx.data,
        value=tx.value,
        gas=tx.gas_limit,
        nonce=tx.nonce,
        gas_price=tx.gas_price,
        max_fee=tx.max_fee,
        max_priority_fee=tx.max_priority_fee,
        access_list=tx.access_list,
        blob_hashes=tx.blob_hashes,
        max_blob_fee=tx.max_blob_fee,
        authorizations=tx.authorizations,
    )
