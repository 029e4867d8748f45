"""What `run`, `trace` and `regions` have in common: from the words on the command line to an EVM and a call to make."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fusevm import EVM, Block, Hooks, Result
from fusevm.abi import Abi, ContractResult, Function
from fusevm.chain.environment import DEFAULT_CALLER
from fusevm.cli import options
from fusevm.cli.abi import arguments_from, words_of
from fusevm.cli.inputs import BadInput, address_from, artifact_from, parse_json, read_code, read_file
from fusevm.cli.starting_state import EMPTY, Start
from fusevm.evm.forks import fork_named
from fusevm.lab.official.statetest import block_from, problem, quantity, state_from
from fusevm.values import to_address, to_bytes

CODE_ADDRESS = bytes.fromhex("c0de" * 10)
PLENTY = 1 << 128  # wei for a caller who sends value
GAS = 30_000_000
_ADDRESS = re.compile("0x[0-9a-fA-F]{40}")
_HEX_FIELDS = ("coinbase", "prev_randao")
_BLOCK_FIELDS = [each.name for each in fields(Block) if each.init and each.name != "hashes"]


@dataclass(slots=True)
class CallOptions:
    """The options, as typed."""

    target: str
    data: str | None = None
    sig: str | None = None
    args: list[str] | None = None
    value: int | None = None
    caller: str | None = None
    to: str | None = None
    gas: int | None = None
    fork: str | None = None
    tier: str = "auto"
    create: bool = False
    start: Start = EMPTY
    traces_creation: bool = False  # with `create`: to stop before the deployment, where no call is asked for
    contract: str | None = None
    constructor: str | None = None
    block: list[str] | None = None

    @property
    def makes_a_call(self) -> bool:
        return self.data is not None or self.sig is not None


# The parameters of a command that takes a request, in the order of its help.
_SHARED: options.Shared = {
    "target": (options.Target, options.REQUIRED),
    "more": (options.MoreArgs, None),
    "data": (options.Data, None),
    "sig": (options.Sig, None),
    "args": (options.Args, None),
    "value": (options.Value, None),
    "caller": (options.Caller, None),
    "to": (options.To, None),
    "gas": (options.Gas, None),
    "fork": (options.ForkName, None),
    "create": (options.Create, False),
    "contract": (options.ContractName, None),
    "constructor": (options.ConstructorArgs, None),
    "block": (options.BlockFields, None),
    "fork_url": (options.ForkUrl, None),
    "fork_block": (options.ForkBlock, None),
    "load_state": (options.LoadState, None),
}


def _request(more: list[str] | None, args: list[str] | None, **typed: Any) -> CallOptions:
    start = Start(*(typed.pop(each.name) for each in fields(Start)))
    return CallOptions(args=[*(args or ()), *(more or ())], start=start, **typed)


takes_request = options.takes(_SHARED, _request)


@dataclass(slots=True)
class Prepared:
    evm: EVM
    caller: bytes
    to: bytes | None  # None: the data is init code
    data: bytes = b""
    value: int = 0
    gas: int = GAS
    function: Function | None = None
    abi: Abi | None = None
    artifact: Path | None = None  # which the ABI is from

    def run(self, hooks: Hooks | None = None) -> Result:
        self.evm.hooks = hooks
        return self.message()

    def message(self) -> Result:
        """Runs it with the hooks that are set."""
        if self.to is None:
            result = self.evm.deploy(self.data, value=self.value, caller=self.caller, gas=self.gas)
        else:
            result = self.evm.call(self.to, self.data, value=self.value, caller=self.caller, gas=self.gas)
        return result if self.abi is None else ContractResult.of(result, self.abi, self.function)


def prepare(request: CallOptions) -> Prepared:
    """The machine as it is before the call, and the call."""
    document = _read_document(request.target) if request.target.endswith(".json") else None
    there = request.start.address(request.target)
    if there is not None:
        prepared = _prepared(request, _machine(request), there)
    elif document is None:
        prepared = _with_code(request, read_code(request.target))
    elif "pre" in document or "alloc" in document:
        prepared = _with_state(request, document)
    else:
        prepared = _with_artifact(request, document)
    _check_code(request, prepared)
    if request.sig is not None:
        if request.data is not None:
            raise BadInput("give --data or --sig, not both")
        function = _function(request.sig, prepared.abi, len(request.args or ()))
        given = arguments_from(request.args or [], function.inputs, function.signature)
        prepared.function, prepared.data = function, function.encode(*given)
    elif request.args:
        raise BadInput("--args needs --sig")
    elif request.data is not None:
        prepared.data = to_bytes(request.data, "--data")
    if prepared.value < 0 or prepared.gas < 0:
        raise BadInput("--value and --gas cannot be negative")
    if prepared.value > prepared.evm.get_balance(prepared.caller):
        prepared.evm.set_balance(prepared.caller, PLENTY + prepared.value)
    return prepared


def _with_code(request: CallOptions, code: bytes) -> Prepared:
    if not code:
        raise BadInput("code is empty: give hex digits, a file, or - for standard input")
    if request.sig is not None and _ADDRESS.fullmatch(request.target):
        raise BadInput(
            f"{request.target} is an address: say where it is with --fork-url or --load-state "
            "(20 bytes of code are given without 0x)"
        )
    if request.contract is not None or request.constructor is not None:
        raise BadInput(
            "--contract and --constructor need an artifact; constructor arguments follow init code as they are"
        )
    prepared = _prepared(request, _machine(request), CODE_ADDRESS)
    if request.create:
        return _deploying(request, prepared, code, "the init code")
    assert prepared.to is not None
    prepared.evm.set_code(prepared.to, code)
    return prepared


def _with_artifact(request: CallOptions, document: dict[str, Any]) -> Prepared:
    artifact = artifact_from(document, request.target, request.contract)
    prepared = _prepared(request, _machine(request), CODE_ADDRESS)
    prepared.abi, prepared.artifact = artifact.abi, Path(request.target)
    if request.to is not None and not request.start.is_empty:  # it exists already
        return prepared
    name = artifact.name.rpartition(":")[2] or Path(request.target).stem
    words = words_of(request.constructor or "", "--constructor")
    given = arguments_from(words, artifact.abi.constructor.inputs, f"the constructor of {name}")
    request.create = request.traces_creation = True
    return _deploying(request, prepared, artifact.creation_code(*given), f"the constructor of {name}")


def _deploying(request: CallOptions, prepared: Prepared, code: bytes, what: str) -> Prepared:
    """Deploys the code, or leaves that to be run where no call is asked for."""
    if request.traces_creation and not request.makes_a_call:
        prepared.to, prepared.data = None, code
        return prepared
    deployed = prepared.evm.deploy(code, caller=prepared.caller)
    if prepared.abi is not None:
        deployed = ContractResult.of(deployed, prepared.abi)
    if deployed.address is None:
        raise BadInput(f"{what} did not deploy: {deployed.error}")
    prepared.to = deployed.address
    return prepared


def _with_state(request: CallOptions, document: dict[str, Any]) -> Prepared:
    if not request.start.is_empty:
        raise BadInput("a state file has a state: give code or an address with --fork-url or --load-state")
    for part in ("call", "env"):
        if not isinstance(document.get(part, {}), dict):
            raise BadInput(f"{request.target}: '{part}' is not an object")
    accounts = document.get("pre", document.get("alloc"))
    if not isinstance(accounts, dict):
        raise BadInput(f"{request.target}: no 'pre' section with accounts")
    call = document.get("call", {})
    fork = fork_named(request.fork or document.get("fork", "osaka"))
    try:
        state = state_from(accounts)
        block = block_from(document["env"], {}, fork) if "env" in document else Block()
        value, gas = quantity(call.get("value", 0)), quantity(call.get("gas", 10**12))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise BadInput(f"{request.target}: malformed state: {problem(error)}") from None
    _set_block(block, request.block)
    evm = EVM(fork, request.tier, block=block, state=state)
    to = _address(request.to, "--to") or to_address(
        call.get("to") or _only_contract(evm, request.target), f"{request.target}: call.to"
    )
    given = to_bytes(call.get("data", "0x"), f"{request.target}: call.data")
    caller = _address(request.caller, "--caller") or to_address(
        call.get("caller") or DEFAULT_CALLER, f"{request.target}: call.caller"
    )
    wei = value if request.value is None else request.value
    return Prepared(evm, caller, to, given, wei, gas if request.gas is None else request.gas)


def _machine(request: CallOptions) -> EVM:
    evm = request.start.machine(request.fork, request.tier)
    _set_block(evm.block, request.block)
    return evm


def _prepared(request: CallOptions, evm: EVM, to: bytes) -> Prepared:
    caller = _address(request.caller, "--caller") or DEFAULT_CALLER
    target = _address(request.to, "--to") or to
    return Prepared(evm, caller, target, b"", request.value or 0, GAS if request.gas is None else request.gas)


def _address(text: str | None, option: str) -> bytes | None:
    return None if text is None else address_from(text, option)


def _check_code(request: CallOptions, prepared: Prepared) -> None:
    """A call that is encoded is for a contract: an address without code is a mistake, though the EVM takes it."""
    to, start = prepared.to, request.start
    if to is None or not request.makes_a_call or prepared.evm.get_code(to) or not any(to[:-2]):
        return
    where = start.fork_url or start.load_state or request.target
    block = f" at block {start.fork_block or 'latest'}" if start.fork_url else ""
    raise BadInput(f"0x{to.hex()} has no code in {where}{block}: check the address, and the network or the file")


def _function(text: str, abi: Abi | None, count: int) -> Function:
    """A signature, or of an artifact the name of a function; of several, the one with this many arguments."""
    same = [] if abi is None else [each for each in abi.functions.named(text) if len(each.inputs) == count]
    if len(same) == 1:
        return same[0]
    if abi is not None and (text in abi.functions or "(" not in text):
        return abi.functions[text]
    return Function.parse(text)


def _set_block(block: Block, given: list[str] | None) -> None:
    for each in given or ():
        name, equals, text = each.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in _BLOCK_FIELDS:
            raise BadInput(f"--block: {each!r} is not NAME=VALUE; the names are {', '.join(_BLOCK_FIELDS)}")
        try:
            setattr(block, name, text if name in _HEX_FIELDS else int(text, 0))
        except ValueError as error:
            reason = str(error) if name in str(error) else f"{name}: {text!r} is not a number"
            raise BadInput(f"--block: {reason}") from None


def _read_document(name: str) -> dict[str, Any]:
    document = parse_json(read_file(name), name)
    if not isinstance(document, dict) or not document:
        raise BadInput(
            f"{name}: neither a state file, which has 'pre', nor an artifact, which has 'abi' and 'bytecode'"
        )
    return document


def _only_contract(evm: EVM, name: str) -> bytes:
    contracts = [address for address, account in evm.state.items() if account.code]
    if len(contracts) != 1:
        raise BadInput(f"{name}: {len(contracts)} accounts have code; say which with --to")
    return contracts[0]
