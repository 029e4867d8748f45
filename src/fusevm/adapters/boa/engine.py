"""boa's engine: plain calls run natively; what is to be watched, and what fails, runs on py-evm over the same state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from boa.rpc import RPC, EthereumRPC
from boa.util.abi import Address
from boa.util.eip1167 import extract_eip1167_address, is_eip1167_contract
from boa.vm import py_evm
from boa.vm.gas_meters import GasMeter
from boa.vm.py_evm import CONSOLE_ADDRESS, PyEVM
from eth.db.account import AccountDB

from fusevm.adapters.boa.accounts import accounts_on
from fusevm.adapters.boa.computation import NativeComputation
from fusevm.adapters.boa.history import History
from fusevm.chain.environment import Block, Context, Message
from fusevm.chain.outcome import EngineLimit, Outcome, Status
from fusevm.chain.processing import run_top, warm_up
from fusevm.chain.sources.node import NodeSource
from fusevm.chain.state import State, delegate_in
from fusevm.evm.forks import fork_named, rules_of
from fusevm.evm.gas import words_of
from fusevm.tiers import executor_for
from fusevm.values import to_hash, to_number

BREAKPOINT = 0xA6  # boa's: natively an invalid opcode, so that the call runs again on py-evm
GAS_BITS = 64  # of native gas
CONSOLE = CONSOLE_ADDRESS.lstrip(b"\x00")  # as code has it


class FusevmEVM(PyEVM):  # type: ignore[misc]
    """Each call is a transaction of its own: what it touches is cold, and original values are those as it began."""

    def __init__(
        self, env: Any, fast_mode_enabled: bool = False, fork_try_prefetch_state: bool = False, tier: str = "auto"
    ) -> None:
        self._use(State())
        self._execute = executor_for(tier)
        self._forked = False
        self._depth = 0  # of runs on py-evm: a precompile may call contracts
        self._block: Block | None = None
        self._block_key: tuple[Any, ...] = ()
        self._patched: dict[str, Any] = {}  # what boa has set of the block
        self._context: Context
        super().__init__(env, False, fork_try_prefetch_state)

    def _use(self, state: State) -> None:
        self.state = state
        self.history = History(state)
        self._printing = False  # whether any code may call the console

    def _init_vm(self, account_db_class: Any = AccountDB) -> None:
        self._forked = account_db_class is not AccountDB
        super()._init_vm(account_db_class if self._forked else accounts_on(self.state, self._watch_console))
        self.fork = fork_named(self.vm.fork)

    def fork_rpc(self, rpc: RPC, block_identifier: Any, debug: bool, **settings: Any) -> None:
        """A node's state, asked for as it is needed. Where the node is known by its URL, calls run natively."""
        if type(rpc) is not EthereumRPC:
            super().fork_rpc(rpc, block_identifier, debug, **settings)
            return
        source = NodeSource.at(rpc.identifier, block_identifier, cache=settings.get("cache_dir", True) or False)
        self._use(State(source=source))
        self._init_vm()
        self.patch.timestamp = to_number(source.header["timestamp"], "timestamp")
        self.patch.block_number = source.number
        self.patch.chain_id = source.chain_id
        self.patch.prev_hashes = [to_hash(source.header["parentHash"], "parentHash"), *[bytes(32)] * 254]

    @property
    def is_forked(self) -> bool:
        return self._forked or self.state.source is not None

    def enable_fast_mode(self, flag: bool = True) -> None:
        """Nothing to do: it runs natively."""

    @property
    def is_state_dirty(self) -> bool:
        return super().is_state_dirty if self._forked else self.history.has_changes

    def snapshot(self) -> Any:
        mark = self.state.mark()
        return super().snapshot(), mark

    def revert(self, snapshot_id: Any) -> None:
        snapshot, mark = snapshot_id
        self.history.reverting(mark)
        super().revert(snapshot)

    # -- running

    def execute_code(self, **call: Any) -> Any:
        def again() -> Any:
            return PyEVM.execute_code(self, **call)

        to, code, value = call["to"].canonical_address, call["bytecode"], call["value"]
        if not isinstance(code, bytes) or not isinstance(call["data"], bytes):  # py-evm takes views, or says why not
            return self._watched(again, call["sender"], call["to"])
        self._watch_console(code)
        odd = call["fake_codesize"] is not None or call["start_pc"] or delegate_in(code) is not None
        if odd or not self._may_run_natively(call["sender"], value, call["gas"]):
            return self._watched(again, call["sender"], call["to"])
        sender = call["sender"].canonical_address
        message = Message(sender, to, code, call["data"], value, call["gas"], static=call["is_static"], code_address=to)
        done = self._native(message, sender, call["gas_price"], again)
        return self._watched(again, call["sender"], call["to"]) if done is None else done

    def deploy_code(self, **call: Any) -> Any:
        def again() -> Any:
            return PyEVM.deploy_code(self, **call)

        if not isinstance(call["bytecode"], bytes):
            return again()  # which says so
        self._watch_console(call["bytecode"])
        limit = self.vm.state.gas_limit if call["gas"] is None else call["gas"]
        rules, size = rules_of(self.fork), len(call["bytecode"])
        odd = size > rules.max_initcode_size or self.patch.code_size_limit != rules.max_code_size
        if odd or not self._may_run_natively(call["sender"], call["value"], limit):
            return self._watched(again, call["sender"], call["target_address"])
        paid = rules.initcode_word * words_of(size)  # EIP-3860: as py-evm, in the call
        target, sender, done = call["target_address"].canonical_address, call["sender"].canonical_address, None
        if paid <= limit:
            message = Message(sender, target, call["bytecode"], value=call["value"], gas=limit - paid)
            message.creates, message.code_address = True, target
            done = self._native(message, call["origin"].canonical_address, call["gas_price"], again, paid)
        if done is None:
            return self._watched(again, call["sender"], call["target_address"])
        self._register(call["bytecode"], target, sender, done.output)
        return done

    def _may_run_natively(self, sender: Address, value: int, gas: int) -> bool:
        return not (
            self._forked
            or gas >> GAS_BITS
            or self._depth
            or self._printing
            or self.env.measures_coverage
            or self.get_gas_meter_class() is not GasMeter
            or py_evm._precompiles.keys() != {CONSOLE_ADDRESS}
            or py_evm._opcode_overrides.keys() != {BREAKPOINT}
            or value > self.state.account(sender.canonical_address).balance
        )

    def _native(
        self, message: Message, origin: bytes, gas_price: int, again: Callable[[], Any], paid: int = 0
    ) -> NativeComputation | None:
        """None where it did not succeed, or created contracts that boa must know: then nothing has happened."""
        state, context = self.state, Context(self.fork, self._surroundings(), origin, gas_price)
        mark = state.mark()
        self._begin(message.caller, message.address)
        try:
            outcome = run_top(message, state, context, self._run)
        except EngineLimit:
            state.abandon()
            return None
        except BaseException:
            state.abandon()
            raise
        self.env.notes.ran(message.gas - outcome.gas_left)
        if outcome.status is not Status.SUCCESS or state.created - {message.address}:
            state.revert(mark)
            return None
        output = outcome.output
        if message.creates:
            output = state.account(message.address).code
            self._watch_console(output)
        used = paid + message.gas - outcome.gas_left
        done = NativeComputation(output, used, outcome.gas_left, state.refund, state.logs_so_far())
        patched, warm = self._patched, (message.caller, message.address)
        call = self.history.note(mark, lambda: self._traced(again, patched, warm))
        return done.can_be_traced(self.history, call)

    def _begin(self, sender: bytes, target: bytes) -> None:
        """A transaction: its sender, target, precompiles and the coinbase are warm."""
        self.state.begin_transaction()
        warm_up(self.state, self._context, sender, target)

    def _run(self, message: Message, state: State, context: Context) -> Outcome:
        return self._execute(message, state, context, self.env.notes.hooks)

    def _watched(self, run: Callable[[], Any], sender: Address, target: Address) -> Any:
        """On py-evm, in a transaction of its own."""
        if self._forked or self._depth:
            return run()
        self._surroundings()
        self._begin(sender.canonical_address, target.canonical_address)
        with self._inside():
            return run()

    def _traced(self, run: Callable[[], Any], patched: dict[str, Any], warm: tuple[bytes, bytes]) -> Any:
        """Runs it again on py-evm, in the block of that time; its changes are discarded."""
        snapshot = PyEVM.snapshot(self)
        try:
            with self.patch.anchor(), self._inside():
                for name, value in patched.items():
                    setattr(self.patch, name, value)
                self._surroundings()
                self._begin(*warm)
                return run()
        finally:
            PyEVM.revert(self, snapshot)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if hasattr(self.vm.state, "clear_transient_storage"):
                self.vm.state.clear_transient_storage()

    def _surroundings(self) -> Block:
        """The block, rebuilt when a field was patched."""
        given = self.vm.state.execution_context
        key = (
            given.block_number,
            given.timestamp,
            given.coinbase,
            given.gas_limit,
            given.base_fee_per_gas or 0,
            given.mix_hash,
            given.difficulty,
            given.chain_id,
            given.excess_blob_gas or 0,
            given.prev_hashes,
        )
        if self._block is None or key != self._block_key:
            number, timestamp, coinbase, gas_limit, base_fee, mix_hash, difficulty, chain_id, excess, _ = key
            randao = mix_hash if isinstance(mix_hash, int) else int.from_bytes(mix_hash, "big")
            hashes = self.vm.state.get_ancestor_hash
            self._block = Block(
                number, timestamp, coinbase, gas_limit, base_fee, randao, difficulty, chain_id, excess, hashes
            )
            self._block_key = key
            self._context = Context(self.fork, self._block)
            self._patched = {name: getattr(self.patch, name) for name in self.patch._exc_patchables}
        return self._block

    # -- what boa wants to know of contracts

    def _watch_console(self, code: bytes) -> None:
        """Prints only come from py-evm: where code may print, all calls run there."""
        if not self._printing and CONSOLE in code:
            self._printing = True

    def _register(self, initcode: bytes, address: bytes, creator: bytes, runtime: bytes) -> None:
        """Blueprints and minimal proxies are contracts of the source that they stand for."""
        env = self.env
        known = env._code_registry.get(initcode)
        if is_eip1167_contract(runtime):
            proxied = env.lookup_contract(extract_eip1167_address(runtime))
            known = proxied if hasattr(proxied, "deployer") else known
        if known is not None and hasattr(known, "deployer"):
            contract = known.deployer.at(Address(address))
            contract.created_from = Address(creator)
            env.register_contract(Address(address), contract)
