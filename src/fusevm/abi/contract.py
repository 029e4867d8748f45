"""A contract on a machine: its functions as methods, whose results, logs and errors decode themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from fusevm.abi.artifacts import Artifact, ArtifactLike
from fusevm.abi.codec import CannotDecode
from fusevm.abi.entries import CustomError, Event, Function
from fusevm.abi.interface import Abi, Entries
from fusevm.abi.records import DecodedLog, Values, shown
from fusevm.chain.addresses import Address
from fusevm.chain.display import html_table
from fusevm.chain.environment import DEFAULT_CALLER
from fusevm.chain.outcome import Status
from fusevm.chain.result import ExecutionFailed, Result
from fusevm.values import AddressLike, BadValue


class CallingMachine(Protocol):
    """What runs the calls: an `EVM`."""

    @property
    def call(self) -> Callable[..., Result]: ...

    @property
    def simulate(self) -> Callable[..., Result]: ...

    @property
    def transact(self) -> Callable[..., Result]: ...

    @property
    def deploy(self) -> Callable[..., Result]: ...


@dataclass(slots=True, repr=False)
class ContractResult(Result):
    """A result that knows the contract's ABI: it has a `value`, `events`, and errors by name.

    >>> from fusevm import EVM
    >>> evm = EVM()
    >>> evm.set_code("0x" + "c0" * 20, "0x602a5f5260205ff3")  # return 42
    >>> evm.contract(["function answer() returns (uint256)"], "0x" + "c0" * 20).answer().value
    42
    """

    abi: Abi = field(default_factory=Abi)
    function: Function | None = None

    @staticmethod
    def of(result: Result, abi: Abi, function: Function | None = None) -> ContractResult:
        """A result, with the ABI that says what it means."""
        values: Any = (*_fields_of(result), abi, function)
        return ContractResult(*values)

    @property
    def value(self) -> Any:
        """What the function returned, decoded: None, one value, or several as `Values`.

        Raises ExecutionFailed where the call did not succeed, and CannotDecode where the output is something else.
        """
        if not self.ok:
            raise ExecutionFailed(self)
        return None if self.function is None else self.function.decode(self.output)

    @property
    def events(self) -> list[DecodedLog]:
        """The logs that are events of the ABI, from any address."""
        return self.abi.decode_logs(self.logs)

    @property
    def custom_error(self) -> Values | None:
        """The custom error it reverted with, if it did and the ABI has it."""
        return self.abi.decode_error(self.output) if self.status is Status.REVERT else None

    @property
    def error(self) -> str | None:
        """One line saying what went wrong, or None; custom errors by name."""
        found = self.custom_error
        return Result.error.__get__(self) if found is None else f"reverted: {found!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        return ContractResult, (*_fields_of(self, list(self.logs)), self.abi, self.function)

    def _told_output(self) -> list[tuple[str, object]]:
        if not self.ok or self.function is None:
            return Result._told_output(self)
        try:
            told: list[tuple[str, object]] = [("value", shown(self.value))]
        except CannotDecode:
            return Result._told_output(self)
        events = [self.abi.decode_log(log) or log for log in self.logs]
        return [*told, ("logs", events)] if events else told


class Method:
    """A function of a contract, or all of one name, to call.

    Called, it is `evm.call`; `simulate` keeps nothing; `transact` is a whole transaction, paid for by the caller. What
    they take beside the arguments (`caller`, `value`, `gas`, …) is what the machine's methods of these names take.

    >>> from fusevm import EVM
    >>> token = EVM().contract(["function transfer(address to, uint256 value) returns (bool)"], 5)
    >>> token.transfer
    function transfer(address to, uint256 value) returns (bool)
    >>> token.transfer.encode("0x" + "a1" * 20, 1).hex()[:8]
    'a9059cbb'
    """

    def __init__(self, contract: Contract, functions: list[Function]) -> None:
        self._contract = contract
        self._functions = functions

    def __call__(self, *arguments: Any, **options: Any) -> ContractResult:
        """A message call: what it changes is kept if it succeeds."""
        return self.call(*arguments, **options)

    def call(self, *arguments: Any, **options: Any) -> ContractResult:
        """A message call: what it changes is kept if it succeeds."""
        function, data = self._chosen(arguments)
        return self._made(self._contract.evm.call(self._contract.address, data, **options), function)

    def simulate(self, *arguments: Any, **options: Any) -> ContractResult:
        """As `call`, and nothing is kept."""
        function, data = self._chosen(arguments)
        return self._made(self._contract.evm.simulate(self._contract.address, data, **options), function)

    def transact(self, *arguments: Any, caller: AddressLike = DEFAULT_CALLER, **options: Any) -> ContractResult:
        """A whole transaction of the caller's."""
        function, data = self._chosen(arguments)
        return self._made(self._contract.evm.transact(caller, self._contract.address, data, **options), function)

    def encode(self, *arguments: Any) -> bytes:
        """The calldata alone."""
        return self._chosen(arguments)[1]

    def _made(self, result: Result, function: Function) -> ContractResult:
        return ContractResult.of(result, self._contract.abi, function)

    def _chosen(self, arguments: tuple[Any, ...]) -> tuple[Function, bytes]:
        """The function that these arguments fit, and its calldata."""
        if len(self._functions) == 1:
            return self._functions[0], self._functions[0].encode(*arguments)
        same_count = [each for each in self._functions if len(each.inputs) == len(arguments)]
        if len(same_count) == 1:
            return same_count[0], same_count[0].encode(*arguments)
        fitting = []
        for each in same_count:
            try:
                fitting.append((each, each.encode(*arguments)))
            except BadValue:
                continue
        if len(fitting) != 1:
            listed = ", ".join(each.signature for each in self._functions)
            count = "no" if not fitting else "more than one"
            name = self._functions[0].name
            raise BadValue(f"{name}: {count} overload takes these arguments: say which, contract[signature]: {listed}")
        return fitting[0]

    def __repr__(self) -> str:
        return "\n".join(map(str, self._functions))


class Contract:
    """A contract at an address of a machine. Its functions are its methods.

    >>> from fusevm import EVM
    >>> evm = EVM()
    >>> evm.set_code("0x" + "c0" * 20, "0x602a5f5260205ff3")  # return 42, whatever is asked
    >>> oracle = evm.contract(["function answer() returns (uint256)"], "0x" + "c0" * 20)
    >>> oracle.answer().value
    42
    >>> oracle["answer()"].simulate().value
    42

    A function whose name is taken (`address`, `abi`, `evm`, `functions`, `events`, `errors`) is `contract["name"]`.
    Where an address is expected, the contract itself can be given.
    """

    def __init__(
        self, evm: CallingMachine, abi: Abi, address: AddressLike, deployment: ContractResult | None = None
    ) -> None:
        self.evm = evm
        self.abi = abi
        self.address = Address(address)
        self.deployment = deployment  # how it was created, if `deploy_contract` did it

    @property
    def functions(self) -> Entries[Function]:
        """What the ABI says of them."""
        return self.abi.functions

    @property
    def events(self) -> Entries[Event]:
        """What the ABI says of them; the decoded ones are a result's `events`."""
        return self.abi.events

    @property
    def errors(self) -> Entries[CustomError]:
        """What the ABI says of them."""
        return self.abi.errors

    def __getattr__(self, name: str) -> Method:
        if name.startswith("__") or "abi" not in vars(self):
            raise AttributeError(name)
        found = self.abi.functions.named(name)
        if not found:
            known = ", ".join(sorted({each.name for each in self.abi.functions})[:20]) or "none"
            raise AttributeError(f"no function {name!r} in the ABI; it has {known}")
        return Method(self, found)

    def __getitem__(self, signature: str) -> Method:
        """The function of this signature, or all of this name."""
        found = self.abi.functions.named(signature)
        return Method(self, found or [self.abi.functions[signature]])

    def __index__(self) -> int:
        """Lets a contract be used as its address: `evm.get_balance(contract)`."""
        return int.from_bytes(self.address, "big")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(each.name for each in self.abi.functions)]

    def __repr__(self) -> str:
        return f"<Contract {self.address}: {len(self.abi.functions)} functions>"

    def _repr_html_(self) -> str:
        return html_table(f"Contract {self.address}", [(each.name, str(each)) for each in self.abi.functions])


def contract_at(evm: CallingMachine, artifact: ArtifactLike, address: AddressLike, name: str | None = None) -> Contract:
    """The contract at an address; of an artifact the ABI alone is used."""
    return Contract(evm, Artifact.read(artifact, name).abi, address)


def deploy(
    evm: CallingMachine,
    artifact: ArtifactLike,
    arguments: tuple[Any, ...],
    libraries: Mapping[str, AddressLike] | None,
    name: str | None,
    options: Mapping[str, Any],
) -> Contract:
    """Runs the constructor. Raises ExecutionFailed, its error decoded, where that fails."""
    read = Artifact.read(artifact, name)
    code = read.creation_code(*arguments, libraries=libraries)
    result = ContractResult.of(evm.deploy(code, **options), read.abi)
    result.check()
    assert result.address is not None
    return Contract(evm, read.abi, result.address, result)


_RESULT_FIELDS = tuple(each.name for each in fields(Result))


def _fields_of(result: Result, logs: Any = None) -> tuple[Any, ...]:
    values = {name: getattr(result, name) for name in _RESULT_FIELDS}
    if logs is not None:
        values["logs"] = logs
    return tuple(values.values())
