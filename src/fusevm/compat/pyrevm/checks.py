"""What revm checks before a call runs, in its order and with its texts."""

from __future__ import annotations

from fusevm.chain.state import State
from fusevm.chain.transaction import Transaction, intrinsic_gas_of
from fusevm.compat.pyrevm.environment import MAX_U256, BlockEnv, CfgEnv, TxEnv
from fusevm.evm.forks import Fork, Rules
from fusevm.evm.gas import BLOB_GAS
from fusevm.evm.limits import MAX_NONCE

MAX_BLOBS = 6


def check(tx: Transaction, env: TxEnv, block: BlockEnv, cfg: CfgEnv, gas_limit: int, state: State, rules: Rules) -> int:
    """The intrinsic gas. Raises RuntimeError where the call may not begin."""
    _check_environment(tx, env, block, cfg, gas_limit, rules)
    needed = intrinsic_gas_of(tx, rules)
    if needed > tx.gas_limit:
        raise RuntimeError(
            f"Initial gas spend is {needed} but gas limit is {tx.gas_limit}. "
            "Error: Transaction(CallGasCostMoreThanGasLimit)"
        )
    _check_caller(tx, env, state, rules)
    return needed


def _check_environment(tx: Transaction, env: TxEnv, block: BlockEnv, cfg: CfgEnv, gas_limit: int, rules: Rules) -> None:
    if tx.gas_limit > gas_limit:
        raise RuntimeError("Transaction(CallerGasLimitMoreThanBlock)")
    if tx.creates and len(tx.data) > rules.max_initcode_size:
        raise RuntimeError("Transaction(CreateInitCodeSizeLimit)")
    if env.chain_id is not None and env.chain_id != cfg.chain_id:
        raise RuntimeError("Transaction(InvalidChainId)")
    if rules.fork < Fork.BERLIN and env.access_list:
        raise RuntimeError("Transaction(AccessListNotSupported)")
    if env.max_fee_per_blob_gas is not None:
        _check_blobs(tx, env, block, rules)


def _check_blobs(tx: Transaction, env: TxEnv, block: BlockEnv, rules: Rules) -> None:
    if rules.fork < Fork.CANCUN:
        raise RuntimeError("Transaction(MaxFeePerBlobGasNotSupported)")
    if block.blob_gasprice > (env.max_fee_per_blob_gas or 0):
        raise RuntimeError("Transaction(BlobGasPriceGreaterThanMax)")
    if not env.blob_hashes:
        raise RuntimeError("Transaction(EmptyBlobs)")
    if tx.creates:
        raise RuntimeError("Transaction(BlobCreateTransaction)")
    if any(not each.startswith(b"\x01") for each in env.blob_hashes):
        raise RuntimeError("Transaction(BlobVersionNotSupported)")
    if len(env.blob_hashes) > MAX_BLOBS:
        raise RuntimeError("Transaction(TooManyBlobs)")


def _check_caller(tx: Transaction, env: TxEnv, state: State, rules: Rules) -> None:
    account = state.account(tx.sender)
    if account.code and not (rules.delegation and state.delegate_of(tx.sender)):
        raise RuntimeError("Transaction(RejectCallerWithCode)")
    if env.nonce is not None and env.nonce != account.nonce:
        kind = "NonceTooHigh" if env.nonce > account.nonce else "NonceTooLow"
        raise RuntimeError(f"Transaction({kind} {{ tx: {env.nonce}, state: {account.nonce} }})")
    if tx.creates and account.nonce >= MAX_NONCE:
        raise RuntimeError("Transaction(NonceOverflowInTransaction)")
    blob_fee = BLOB_GAS * len(env.blob_hashes) * (env.max_fee_per_blob_gas or 0)
    cost = tx.gas_limit * (tx.gas_price or 0) + tx.value + blob_fee
    if cost > MAX_U256:
        raise RuntimeError("Transaction(OverflowPaymentInTransaction)")
    if cost > account.balance:
        raise RuntimeError(f"Transaction(LackOfFundForMaxFee {{ fee: {cost}, balance: {account.balance} }})")
