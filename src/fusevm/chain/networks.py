"""The public networks: when each upgrade came, by block until the merge and by time since. Data alone."""

from __future__ import annotations

from fusevm.chain.schedule import DEPOSIT_CONTRACT, STEPS, Activation, ForkSchedule

_MAINNET_BLOCKS = {
    "frontier": 0,
    "homestead": 1_150_000,
    "tangerine-whistle": 2_463_000,
    "spurious-dragon": 2_675_000,
    "byzantium": 4_370_000,
    "petersburg": 7_280_000,
    "istanbul": 9_069_000,
    "muir-glacier": 9_200_000,
    "berlin": 12_244_000,
    "london": 12_965_000,
    "arrow-glacier": 13_773_000,
    "gray-glacier": 15_050_000,
    "paris": 15_537_394,
}
_MAINNET_TIMES = {
    "shanghai": 1_681_338_455,
    "cancun": 1_710_338_135,
    "prague": 1_746_612_311,
    "osaka": 1_764_798_551,
    "bpo1": 1_765_290_071,
    "bpo2": 1_767_747_671,
}
_SEPOLIA_TIMES = {
    "shanghai": 1_677_557_088,
    "cancun": 1_706_655_072,
    "prague": 1_741_159_776,
    "osaka": 1_760_427_360,
    "bpo1": 1_761_017_184,
    "bpo2": 1_761_607_008,
}
_HOLESKY_TIMES = {
    "shanghai": 1_696_000_704,
    "cancun": 1_707_305_664,
    "prague": 1_740_434_112,
    "osaka": 1_759_308_480,
    "bpo1": 1_759_800_000,
    "bpo2": 1_760_389_824,
}
_HOODI_TIMES = {
    "shanghai": 0,
    "cancun": 0,
    "prague": 1_742_999_832,
    "osaka": 1_761_677_592,
    "bpo1": 1_762_365_720,
    "bpo2": 1_762_955_544,
}
_SEPOLIA_DEPOSITS = bytes.fromhex("7f02c3e3c98b133055b8b348b2ac625669ed295d")


def _schedule(
    name: str,
    chain_id: int,
    blocks: dict[str, int],
    times: dict[str, int],
    dao_block: int | None = None,
    deposits: bytes = DEPOSIT_CONTRACT,
) -> ForkSchedule:
    by_block = (Activation(STEPS[step], block=block) for step, block in blocks.items())
    by_time = (Activation(STEPS[step], time=time) for step, time in times.items())
    return ForkSchedule((*by_block, *by_time), chain_id, dao_block, deposits, name)


MAINNET = _schedule("mainnet", 1, _MAINNET_BLOCKS, _MAINNET_TIMES, dao_block=1_920_000)
SEPOLIA = _schedule(
    "sepolia", 11_155_111, {"london": 0, "paris": 1_450_409}, _SEPOLIA_TIMES, deposits=_SEPOLIA_DEPOSITS
)
HOLESKY = _schedule("holesky", 17_000, {"paris": 0}, _HOLESKY_TIMES, deposits=b"\x42" * 20)
HOODI = _schedule("hoodi", 560_048, {"paris": 0}, _HOODI_TIMES)

NETWORKS = {network.name: network for network in (MAINNET, SEPOLIA, HOLESKY, HOODI)}
