"""What `run` and `trace` have in common: from the words on the command line to an EVM and a call to make."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusevm import EVM, Block, Hooks, Result
from fusevm.chain.environment import ZERO_ADDRESS
from fusevm.cli.abi import Signature
from fusevm.cli.inputs import BadInput, parse_json, read_code
from fusevm.cli.start import EMPTY, Start
from fusevm.evm.forks import fork_named
from fusevm.lab.official.statetest import block_from, problem, quantity, state_from
from fusevm.values import to_address, to_bytes

CODE_ADDRESS = bytes.fromhex("c0de" * 10)
PLENTY = 1 << 128  # wei for a caller who sends value


@dataclass(slots=True)
class Request:
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


@dataclass(slots=True)
class Prepared:
    evm: EVM
    caller: bytes
    to: bytes | None  # None: the data is init code
    data: bytes
    value: int
    gas: int
    signature: Signature | None

    def run(self, hooks: Hooks | None = None) -> Result:
        self.evm.hooks = hooks
        if self.to is None:
            return self.evm.deploy(self.data, value=self.value, caller=self.caller, gas=self.gas)
        return self.evm.call(self.to, self.data, value=self.value, caller=self.caller, gas=self.gas)


def prepare(request: Request) -> Prepared:
    if request.target.endswith(".json"):
        if not request.start.is_empty:
            raise BadInput("a state file has a state: give code or an address with --fork-url or --load-state")
        document = read_state_file(request.target)
        call = document.get("call", {})
        fork = fork_named(request.fork or document.get("fork", "osaka"))
        try:
            state = state_from(document.get("pre", document.get("alloc", {})))
            block = block_from(document["env"], {}, fork) if "env" in document else Block()
            value = quantity(call.get("value", 0)) if request.value is None else request.value
            gas = quantity(call.get("gas", 10**12)) if request.gas is None else request.gas
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise BadInput(f"{request.target}: malformed state: {problem(error)}") from None
        evm = EVM(fork, request.tier, block=block, state=state)
        to = to_address(request.to or call.get("to") or _only_contract(evm, request.target), "--to")
        given = to_bytes(call.get("data", "0x"), f"{request.target}: call.data")
        caller = to_address(request.caller or call.get("caller") or ZERO_ADDRESS, "--caller")
    else:
        there = request.start.address(request.target)
        code = b"" if there is not None else read_code(request.target)
        evm = request.start.machine(request.fork, request.tier)
        caller = to_address(request.caller or ZERO_ADDRESS, "--caller")
        to, given, value = there or CODE_ADDRESS, b"", request.value or 0
        gas = 30_000_000 if request.gas is None else request.gas
        if request.to is not None:
            to = to_address(request.to, "--to")
        if there is not None:
            pass
        elif request.create:
            deployed = evm.deploy(code, caller=caller)
            if deployed.address is None:
                raise BadInput(f"the init code did not deploy: {deployed.error}")
            to = deployed.address
        else:
            evm.set_code(to, code)
    signature = None
    if request.sig is not None:
        if request.data is not None:
            raise BadInput("give --data or --sig, not both")
        signature = Signature(request.sig)
        given = signature.encode(request.args or [])
    elif request.args:
        raise BadInput("--args needs --sig")
    elif request.data is not None:
        given = to_bytes(request.data, "--data")
    if value < 0 or gas < 0:
        raise BadInput("--value and --gas cannot be negative")
    if value > evm.get_balance(caller):
        evm.set_balance(caller, PLENTY + value)
    return Prepared(evm, caller, to, given, value, gas, signature)


def read_state_file(name: str) -> dict[str, Any]:
    try:
        text = Path(name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(f"no such file: {name}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {name}: {error}") from None
    document = parse_json(text, name)
    if not isinstance(document, dict) or not isinstance(document.get("pre", document.get("alloc")), dict):
        raise BadInput(f"{name}: no 'pre' section with accounts")
    for part in ("call", "env"):
        if not isinstance(document.get(part, {}), dict):
            raise BadInput(f"{name}: '{part}' is not an object")
    return document


def _only_contract(evm: EVM, name: str) -> bytes:
    contracts = [address for address, account in evm.state.items() if account.code]
    if len(contracts) != 1:
        raise BadInput(f"{name}: {len(contracts)} accounts have code; say which with --to")
    return contracts[0]
