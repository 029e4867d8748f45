"""The state that `run` starts on: empty, a node's, or one from a file; and where it is written afterwards."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from fusevm import EVM
from fusevm.cli.inputs import BadInput, parse_json, read_file, write_file
from fusevm.values import BadValue

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Start:
    """The options, as typed."""

    fork_url: str | None = None
    fork_block: str | None = None
    load_state: str | None = None

    @property
    def is_empty(self) -> bool:
        return self.fork_url is None and self.load_state is None

    def machine(self, fork: str | None, tier: str) -> EVM:
        if self.fork_url is not None:
            if self.load_state is not None:
                raise BadInput("give --fork-url or --load-state, not both")
            try:
                return EVM.fork_from(self.fork_url, self._block(), fork=fork, tier=tier)
            except BadValue as error:  # of the parameter that the option becomes
                raise BadInput(f"--fork-{error}" if str(error).startswith(("url", "block")) else str(error)) from None
        if self.fork_block is not None:
            raise BadInput("--fork-block needs --fork-url")
        evm = EVM(fork or "osaka", tier)
        if self.load_state is not None:
            data = read_file(self.load_state, "a state")
            packed = data.startswith((_GZIP, b"0x"))  # as anvil has them
            evm.load_state(data if packed else parse_json(data, self.load_state))
        return evm

    def _block(self) -> str | int:
        block = self.fork_block or "latest"
        return int(block) if block.isdecimal() else block

    def address(self, target: str) -> bytes | None:
        """The contract that CODE names, where it is an address of a state that is not empty."""
        digits = target.removeprefix("0x")
        if self.is_empty or len(digits) != 40 or not target.startswith("0x"):
            return None
        try:
            return bytes.fromhex(digits)
        except ValueError:
            return None


EMPTY = Start()


def write_dump(evm: EVM, name: str) -> None:
    write_file(Path(name), json.dumps(evm.dump_state(), indent=1) + "\n", "--dump-state")
