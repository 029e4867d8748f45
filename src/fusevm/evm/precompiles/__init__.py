"""The precompiled contracts of every fork, in one table. Libraries load when a contract that needs them first runs."""

from __future__ import annotations

from functools import cache

from fusevm.evm.forks import Fork
from fusevm.evm.gas import ECRECOVER, IDENTITY, RIPEMD160, SHA256
from fusevm.evm.precompiles import blake2f, bls12_381, bn254, hashes, kzg, modexp, signatures
from fusevm.evm.precompiles.contract import First, Precompile, PrecompileFailure, fixed, per_word

__all__ = ["TABLE", "Precompile", "PrecompileFailure", "precompiles_of"]

TABLE = (
    Precompile("ecrecover",           0x01, Fork.FRONTIER,  fixed(ECRECOVER),     signatures.ecrecover,    First(128)),
    Precompile("sha256",              0x02, Fork.FRONTIER,  per_word(*SHA256),    hashes.sha256),
    Precompile("ripemd160",           0x03, Fork.FRONTIER,  per_word(*RIPEMD160), hashes.ripemd160),
    Precompile("identity",            0x04, Fork.FRONTIER,  per_word(*IDENTITY),  hashes.identity),
    Precompile("modexp",              0x05, Fork.BYZANTIUM, modexp.gas,       modexp.run, modexp.reads, modexp.seconds),
    Precompile("bn254_add",           0x06, Fork.BYZANTIUM, bn254.add_gas,        bn254.add,               First(128)),
    Precompile("bn254_mul",           0x07, Fork.BYZANTIUM, bn254.mul_gas,        bn254.mul,               First(96)),
    Precompile("bn254_pairing",       0x08, Fork.BYZANTIUM, bn254.pairing_gas,    bn254.pairing),
    Precompile("blake2f",             0x09, Fork.ISTANBUL,  blake2f.gas,          blake2f.run,             First(214)),
    Precompile("point_evaluation",    0x0A, Fork.CANCUN,    fixed(50_000),        kzg.point_evaluation,    First(193)),
    Precompile("bls12_g1add",         0x0B, Fork.PRAGUE,    fixed(375),           bls12_381.g1_add,        First(257)),
    Precompile("bls12_g1msm",         0x0C, Fork.PRAGUE,    bls12_381.g1_msm_gas, bls12_381.g1_msm),
    Precompile("bls12_g2add",         0x0D, Fork.PRAGUE,    fixed(600),           bls12_381.g2_add,        First(513)),
    Precompile("bls12_g2msm",         0x0E, Fork.PRAGUE,    bls12_381.g2_msm_gas, bls12_381.g2_msm),
    Precompile("bls12_pairing_check", 0x0F, Fork.PRAGUE,    bls12_381.pairing_gas, bls12_381.pairing_check),
    Precompile("bls12_map_fp_to_g1",  0x10, Fork.PRAGUE,    fixed(5_500),         bls12_381.map_fp_to_g1,  First(65)),
    Precompile("bls12_map_fp2_to_g2", 0x11, Fork.PRAGUE,    fixed(23_800),        bls12_381.map_fp2_to_g2, First(129)),
    Precompile("p256verify",         0x100, Fork.OSAKA,     fixed(6_900),         signatures.p256verify,   First(161)),
)  # fmt: skip


@cache
def precompiles_of(fork: Fork) -> dict[bytes, Precompile]:
    """The fork's contracts by their 20-byte address. One shared dictionary per fork: read it, do not change it."""
    return {contract.address.to_bytes(20, "big"): contract for contract in TABLE if contract.since <= fork}
