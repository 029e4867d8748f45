"""What can be sent to another process and back, and copied: machines, states, blocks, results and errors."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import fusevm
from fusevm import (
    EVM,
    Authorization,
    BadCall,
    BadSource,
    BadValue,
    Block,
    BlockReason,
    CallFailed,
    EngineLimit,
    ExecutionFailed,
    Failure,
    HaltReason,
    Hooks,
    InvalidBlock,
    Log,
    Rejected,
    RejectReason,
    Result,
    Status,
    Step,
    TimeLimit,
    UnknownFork,
    UnknownTier,
    WrongThread,
)
from fusevm.chain.outcome import Disagreement
from fusevm.chain.sources.json_rpc import NodeError
from fusevm.chain.sources.source import PartialState, SourceError, SourceUnavailable
from fusevm.chain.state import State
from fusevm.cli.inputs import BadInput
from fusevm.evm.assembly import assemble
from fusevm.evm.precompiles import PrecompileFailure
from fusevm.lab.peers.work import PeerMissing
from fusevm.machine.checkpoints import UnknownCheckpoint
from fusevm.machine.estimate import EstimateFailed
from programs import CALLER, HERE, OTHER

TIERS = ("reference", "native", "auto")
COUNTS = assemble(
    "PUSH1 0 SLOAD PUSH1 1 ADD DUP1 PUSH1 0 SSTORE PUSH1 7 PUSH1 0 PUSH1 0 LOG1 PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN"
)
ADDS_NUMBER = assemble("NUMBER PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN")


def sent(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


WAYS: dict[str, Callable[[Any], Any]] = {"pickle": sent, "copy": copy.copy, "deepcopy": copy.deepcopy}
way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def used(tier: str) -> EVM:
    """A machine that has run: its state has storage pending, logs, warm sets and a journal."""
    evm = EVM("cancun", tier, block=Block(number=5, hashes={4: b"\x44" * 32}), timeout=20.0)
    evm.set_code(HERE, COUNTS)
    evm.set_balance(CALLER, 10**20)
    evm.transact(CALLER, HERE, value=3, gas=200_000)
    assert evm.call(HERE).ok
    return evm


# -- machines and states ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", TIERS)
@way
def test_a_machine_that_has_run_goes_on_as_it_was(tier: str, way: Callable[[Any], Any]) -> None:
    evm = used(tier)
    twin = way(evm)
    assert (twin.fork, twin.tier, twin.block, twin.timeout) == (evm.fork, tier, evm.block, 20.0)
    assert twin.state_root == evm.state_root
    assert twin.call(HERE) == evm.call(HERE)
    assert twin.get_storage(HERE, 0) == 3


@pytest.mark.parametrize("tier", TIERS)
@way
def test_a_copy_is_independent(tier: str, way: Callable[[Any], Any]) -> None:
    evm = used(tier)
    root, twin = evm.state_root, way(evm)
    twin.call(HERE)
    twin.set_balance(OTHER, 1)
    twin.block.number = 99
    assert evm.state_root == root != twin.state_root
    assert evm.block.number == 5


@pytest.mark.parametrize("tier", TIERS)
@way
def test_a_state_keeps_its_accounts_and_nothing_of_a_transaction(tier: str, way: Callable[[Any], Any]) -> None:
    state = used(tier).state
    twin = way(state)
    assert twin.root() == state.root()
    assert (twin.journal, list(twin.logs), twin.refund, twin.warm_slots, twin.original) == ([], [], 0, set(), {})


@pytest.mark.parametrize("tier", TIERS)
@way
def test_inside_a_snapshot_the_accounts_are_as_they_are_now(tier: str, way: Callable[[Any], Any]) -> None:
    evm = used(tier)
    root = evm.state_root
    with evm.snapshot():
        evm.call(HERE)
        evm.set_balance(OTHER, 5)
        twin = way(evm)
        inside = evm.state_root
    assert evm.state_root == root
    assert twin.state_root == inside
    assert twin.state.open_marks == 0
    assert twin.get_balance(OTHER) == 5


class Named(EVM):
    """A machine of somebody else's."""

    def __init__(self, name: str) -> None:
        super().__init__("london", "reference")
        self.name = name


@way
def test_a_subclass_stays_one_with_what_it_has(way: Callable[[Any], Any]) -> None:
    twin = way(Named("mine"))
    assert type(twin) is Named
    assert (twin.name, twin.fork.label) == ("mine", "london")


def test_machines_that_share_a_state_still_do() -> None:
    state = State()
    first, second = sent((EVM(state=state), EVM("london", state=state)))
    first.set_balance(OTHER, 5)
    assert second.get_balance(OTHER) == 5


def test_a_machine_is_sent_with_hooks_that_can_be_sent() -> None:
    evm = EVM(tier="reference", hooks=Hooks(on_opcode=_watch))
    assert sent(evm).hooks == evm.hooks
    assert copy.deepcopy(evm).hooks is evm.hooks


def test_a_machine_is_copied_from_a_hook_as_it_is_at_that_moment() -> None:
    evm = EVM(tier="reference")
    evm.set_code(HERE, COUNTS)
    twins: list[EVM] = []
    evm.hooks = Hooks(on_opcode=lambda step: twins.append(copy.copy(evm)) if step.name == "LOG1" else None)
    evm.call(HERE)
    twins[0].hooks = None
    assert (twins[0].get_storage(HERE, 0), twins[0].call(HERE).ok) == (1, True)


@way
def test_a_block_keeps_its_fields_and_is_seen_as_another(way: Callable[[Any], Any]) -> None:
    block = Block(number=9, coinbase=OTHER, hashes={8: b"\1" * 32})
    twin = way(block)
    assert twin == block
    assert twin.version != block.version
    twin.number = 10
    assert block.number == 9


@pytest.mark.parametrize("tier", TIERS)
def test_a_copied_block_is_not_taken_for_the_first(tier: str) -> None:
    evm = EVM(tier=tier)
    evm.set_code(HERE, ADDS_NUMBER)
    seen = []
    for number in (5, 6, 7):
        evm.block = copy.copy(evm.block)
        evm.block.number = number
        seen.append(int.from_bytes(evm.call(HERE).output, "big"))
    assert seen == [5, 6, 7]


@pytest.mark.parametrize("tier", TIERS)
@way
def test_a_result_keeps_all_it_says(tier: str, way: Callable[[Any], Any]) -> None:
    result = used(tier).call(HERE)
    twin = way(result)
    assert twin == result
    assert (twin.logs, twin.ok, twin.as_json()) == ([Log(HERE, (7,), b"")], True, result.as_json())


def test_a_result_needs_nothing_of_the_native_tier_to_be_read() -> None:
    assert b"fusevm.native" not in pickle.dumps(used("native").call(HERE))


# -- errors -----------------------------------------------------------------------------------------------------------

_HALTED = Result(Status.HALT, b"", 5, 0, [], None, Failure(HaltReason.OUT_OF_GAS, "3 needed", 7))
ERRORS = [
    Rejected(RejectReason.NONCE_IS_MAX),
    Rejected(RejectReason.NONCE_MISMATCH_TOO_LOW, "1, the account's is 2"),
    InvalidBlock(BlockReason.INVALID_STATE_ROOT, "0x11, not 0x22"),
    InvalidBlock(RejectReason.NONCE_IS_MAX),
    ExecutionFailed(_HALTED),
    UnknownFork("moon"),
    BadSource("source: hex text with an odd number of digits: 3"),
    UnknownTier("warp"),
    EngineLimit("memory over the engine's cap"),
    TimeLimit("the time limit is reached"),
    WrongThread("this EVM is running already"),
    BadValue("gas: -1 is not a number of 64 bits"),
    Disagreement("one says 1, the other 2"),
    PrecompileFailure("invalid input length"),
    EstimateFailed(_HALTED, 30_000_000),
    UnknownCheckpoint("checkpoint 7 is not open; none is"),
    PartialState("state root: only 1 accounts are loaded"),
    SourceError("the node has no block 5"),
    SourceUnavailable("http://node does not answer"),
    NodeError("http://node: eth_call: no", -32000),
    BadInput("no such file"),
    PeerMissing("geth", "go-ethereum"),
    CallFailed(17, "value: too little"),
    BadCall("call 17: no target"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@way
def test_an_error_keeps_its_message_and_what_it_carries(error: Exception, way: Callable[[Any], Any]) -> None:
    twin = way(way(error))
    assert type(twin) is type(error)
    assert (str(twin), vars(twin)) == (str(error), vars(error))


def test_every_public_error_is_among_them() -> None:
    public = (getattr(fusevm, name) for name in fusevm.__all__)
    errors = {each for each in public if isinstance(each, type) and issubclass(each, BaseException)}
    assert errors <= {type(error) for error in ERRORS}


def test_messages_are_what_they_were() -> None:
    assert str(ERRORS[1]) == "transaction rejected: nonce too low (1, the account's is 2)"
    assert str(ERRORS[2]) == "block refused: wrong state root (0x11, not 0x22)"
    assert str(ERRORS[4]) == "halted: out of gas at pc 7 (3 needed)"
    assert str(sent(sent(UnknownFork("moon")))).count("unknown fork") == 1


@way
def test_an_authorization_stays_what_it_is(way: Callable[[Any], Any]) -> None:
    authorization = Authorization(1, HERE, 0, 1, 2, 3)
    assert way(authorization) == authorization


# -- real processes ---------------------------------------------------------------------------------------------------


def _watch(step: Step) -> None:
    pass


def _reject(nonce: int) -> Result:
    return EVM(tier="reference").transact(HERE, OTHER, nonce=nonce)


def _fail(_: int) -> Result:
    evm = EVM(tier="reference")
    evm.set_code(HERE, b"\xfe")
    return evm.call(HERE).check()


def _name_a_fork(name: str) -> EVM:
    return EVM(name)


def _count(evm: EVM) -> tuple[EVM, Result]:
    return evm, evm.call(HERE)


def test_a_workers_rejection_arrives_from_a_pool() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with pytest.raises(Rejected, match=r"nonce too high \(9, the account's is 0\)") as rejected:
            pool.apply_async(_reject, (9,)).get(timeout=60)
        with pytest.raises(UnknownFork, match=r"^unknown fork 'moon'; known: frontier"):
            pool.apply_async(_name_a_fork, ("moon",)).get(timeout=60)
    assert rejected.value.reason is RejectReason.NONCE_MISMATCH_TOO_HIGH


def test_a_workers_failure_arrives_from_an_executor_which_goes_on() -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        with pytest.raises(ExecutionFailed, match="halted: invalid opcode at pc 0") as failed:
            executor.submit(_fail, 0).result(timeout=60)
        evm, result = executor.submit(_count, used("native")).result(timeout=120)
    assert failed.value.result.status is Status.HALT
    assert list(result.logs) == [Log(HERE, (7,), b"")]
    assert (evm.get_storage(HERE, 0), evm.tier) == (3, "native")
    assert evm.call(HERE).ok
