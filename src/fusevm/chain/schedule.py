"""Which rules hold at which block: forks by number, time or total difficulty, blob parameters, the networks as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fusevm.chain.environment import Block, blob_base_fee_of
from fusevm.evm.forks import Fork
from fusevm.values import BadValue, to_address, to_number

DEPOSIT_CONTRACT = bytes.fromhex("00000000219ab540356cbb839cbe05303d7705fa")  # EIP-6110, mainnet's


class BlobSchedule(NamedTuple):
    """A blob schedule (EIP-7840): blobs per block aimed at and at most, and how fast their price moves."""

    target: int
    most: int
    fraction: int


class Upgrade(NamedTuple):
    """What an upgrade changes besides the EVM's rules. Some change only these: difficulty bombs, blob parameters."""

    name: str
    fork: Fork
    bomb_delay: int = 0  # blocks (EIP-649, 1234, 2384, 3554, 4345, 5133)
    blobs: BlobSchedule | None = None

    def with_blobs(self, block: Block) -> Block:
        """The block, in which as many blobs may be as this upgrade allows, at its price."""
        if self.blobs is not None and (block.blob_max, block.blob_base_fee_fraction) != self.blobs[1:]:
            block.blob_max, block.blob_base_fee_fraction = self.blobs.most, self.blobs.fraction
        return block

    def blob_price(self, excess: int | None) -> int:
        """What a unit of blob gas costs in a block with so much excess; 0 before there were blobs."""
        return 0 if self.blobs is None else blob_base_fee_of(excess or 0, self.blobs.fraction)


_LATEST_BLOBS = BlobSchedule(14, 21, 11_684_671)

# Every upgrade in order. BPO is "blob parameters only" (EIP-7892); from the third on they come from a configuration.
STEPS: dict[str, Upgrade] = {
    step.name: step
    for step in (
        Upgrade("frontier", Fork.FRONTIER),
        Upgrade("homestead", Fork.HOMESTEAD),
        Upgrade("tangerine-whistle", Fork.TANGERINE_WHISTLE),
        Upgrade("spurious-dragon", Fork.SPURIOUS_DRAGON),
        Upgrade("byzantium", Fork.BYZANTIUM, 3_000_000),
        Upgrade("constantinople", Fork.CONSTANTINOPLE, 5_000_000),
        Upgrade("petersburg", Fork.PETERSBURG, 5_000_000),
        Upgrade("istanbul", Fork.ISTANBUL, 5_000_000),
        Upgrade("muir-glacier", Fork.ISTANBUL, 9_000_000),
        Upgrade("berlin", Fork.BERLIN, 9_000_000),
        Upgrade("london", Fork.LONDON, 9_700_000),
        Upgrade("arrow-glacier", Fork.LONDON, 10_700_000),
        Upgrade("gray-glacier", Fork.LONDON, 11_400_000),
        Upgrade("paris", Fork.PARIS),
        Upgrade("shanghai", Fork.SHANGHAI),
        Upgrade("cancun", Fork.CANCUN, 0, BlobSchedule(3, 6, 3_338_477)),
        Upgrade("prague", Fork.PRAGUE, 0, BlobSchedule(6, 9, 5_007_716)),
        Upgrade("osaka", Fork.OSAKA, 0, BlobSchedule(6, 9, 5_007_716)),
        Upgrade("bpo1", Fork.OSAKA, 0, BlobSchedule(10, 15, 8_346_193)),
        Upgrade("bpo2", Fork.OSAKA, 0, _LATEST_BLOBS),
        Upgrade("bpo3", Fork.OSAKA, 0, _LATEST_BLOBS),
        Upgrade("bpo4", Fork.OSAKA, 0, _LATEST_BLOBS),
        Upgrade("bpo5", Fork.OSAKA, 0, _LATEST_BLOBS),
    )
}
_PLACES = {name: place for place, name in enumerate(STEPS)}
_FIRST_BY_TIME = _PLACES["shanghai"]

# Names that other tools give to upgrades.
_OTHER_NAMES = {
    "eip150": "tangerine-whistle",
    "eip158": "spurious-dragon",
    "eip155": "spurious-dragon",
    "constantinoplefix": "petersburg",
    "merge": "paris",
}


def step_named(name: str) -> Upgrade:
    """The upgrade of that name, whatever its spelling: 'BPO1', 'ConstantinopleFix', 'MuirGlacier'."""
    key = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    for step in STEPS.values():
        if step.name.replace("-", "") == key:
            return step
    if key in _OTHER_NAMES:
        return STEPS[_OTHER_NAMES[key]]
    raise BadValue(f"unknown fork {name!r}; known: {', '.join(STEPS)}")


class Activation(NamedTuple):
    """When an upgrade comes: the first of these that is given counts."""

    step: Upgrade
    block: int | None = None
    time: int | None = None
    difficulty: int | None = None  # the total difficulty of the parent

    def reached(self, number: int, timestamp: int, difficulty: int) -> bool:
        if self.block is not None:
            return number >= self.block
        if self.time is not None:
            return timestamp >= self.time
        return self.difficulty is not None and difficulty >= self.difficulty


@dataclass(frozen=True)
class ForkSchedule:
    """The rules of a chain, by block."""

    activations: tuple[Activation, ...]
    chain_id: int = 1
    dao_block: int | None = None
    deposit_contract: bytes = DEPOSIT_CONTRACT
    name: str = field(default="", compare=False)

    def at(self, number: int, timestamp: int, difficulty: int = 0) -> Upgrade:
        """The last upgrade that a block has; `difficulty` is its parent's total."""
        for activation in reversed(self.activations):
            if activation.reached(number, timestamp, difficulty):
                return activation.step
        return STEPS["frontier"]

    def with_blobs(self, blobs: Mapping[str, BlobSchedule]) -> ForkSchedule:
        """The same with other blob schedules, by the upgrade's name."""
        steps = (each.step._replace(blobs=blobs.get(each.step.name, each.step.blobs)) for each in self.activations)
        changed = (each._replace(step=step) for each, step in zip(self.activations, steps, strict=True))
        return replace(self, activations=tuple(changed))


def always(name: str, chain_id: int = 1) -> ForkSchedule:
    """One upgrade's rules from the first block on."""
    return ForkSchedule((Activation(step_named(name), block=0),), chain_id)


def schedule_named(name: str, chain_id: int = 1) -> ForkSchedule:
    """A schedule by the name official tests give it: 'Osaka', 'PragueToOsakaAtTime15k', 'BerlinToLondonAt5'."""
    before, found, rest = name.partition("To")
    if not found:
        return always(name, chain_id)
    after, _, when = rest.partition("At")
    kind = next((kind for kind in ("Time", "Diff", "Block") if when.startswith(kind)), "")
    digits = when.removeprefix(kind)
    if not after or not digits:
        raise BadValue(f"unknown network {name!r}; expected a fork, or two as in 'PragueToOsakaAtTime15k'")
    try:
        place = int(digits, 16) if kind == "Diff" else int(digits.replace("k", "000"))
    except ValueError:
        raise BadValue(f"unknown network {name!r}: {digits!r} is not a number") from None
    first = Activation(step_named(before), block=0)
    if after.lower() == "dao":
        return ForkSchedule((first,), chain_id, dao_block=place)
    key = {"Time": "time", "Diff": "difficulty"}.get(kind, "block")
    return ForkSchedule((first, Activation(step_named(after), **{key: place})), chain_id)


# -- geth's configuration

_CONFIG_NAMES = {
    "homestead": "homesteadBlock",
    "tangerine-whistle": "eip150Block",
    "spurious-dragon": "eip158Block",
    "muir-glacier": "muirGlacierBlock",
    "arrow-glacier": "arrowGlacierBlock",
    "gray-glacier": "grayGlacierBlock",
    "paris": "mergeNetsplitBlock",
}


def _config_key(step: Upgrade) -> str:
    suffix = "Time" if _PLACES[step.name] >= _FIRST_BY_TIME else "Block"
    return _CONFIG_NAMES.get(step.name, step.name + suffix)


def schedule_from_config(config: Mapping[str, Any]) -> ForkSchedule:
    """The schedule in the `config` of geth's genesis.json."""
    activations = []
    for step in STEPS.values():
        key = _config_key(step)
        value = config.get(key)
        if step.name == "paris" and config.get("terminalTotalDifficulty") is not None:
            total = to_number(config["terminalTotalDifficulty"], "config.terminalTotalDifficulty")
            activations.append(Activation(step, difficulty=total))
        elif value is not None:
            when = to_number(value, f"config.{key}")
            by_time = key.endswith("Time")
            activations.append(Activation(step, None if by_time else when, when if by_time else None))
    deposits = config.get("depositContractAddress")
    dao = config.get("daoForkBlock") if config.get("daoForkSupport", True) else None
    schedule = ForkSchedule(
        tuple(activations),
        to_number(config.get("chainId", 1), "config.chainId"),
        None if dao is None else to_number(dao, "config.daoForkBlock"),
        DEPOSIT_CONTRACT if deposits is None else to_address(deposits, "config.depositContractAddress"),
    )
    return schedule.with_blobs(blobs_from_config(config.get("blobSchedule") or {}))


def blobs_from_config(given: Mapping[str, Any]) -> dict[str, BlobSchedule]:
    """The `blobSchedule` of genesis.json and of official tests."""
    return {step_named(name).name: _blobs(each, f"blobSchedule.{name}") for name, each in given.items()}


def _blobs(entry: Any, what: str) -> BlobSchedule:
    if not isinstance(entry, Mapping):
        raise BadValue(f"{what}: expected an object of {', '.join(_BLOB_KEYS)}")
    for key in _BLOB_KEYS:
        if key not in entry:
            raise BadValue(f"{what}: no {key!r}")
    return BlobSchedule(*(to_number(entry[key], f"{what}.{key}") for key in _BLOB_KEYS))


_BLOB_KEYS = ("target", "max", "baseFeeUpdateFraction")
