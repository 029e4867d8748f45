"""Ethereum's JSON-RPC over a development chain: methods, errors and dispatch, without a server.

>>> from fusevm.rpc import Session
>>> session = Session()
>>> session.request("eth_chainId"), session.request("eth_blockNumber")
('0x7a69', '0x0')
"""

from fusevm.rpc.errors import RpcError
from fusevm.rpc.session import Session
from fusevm.rpc.start import Config

__all__ = ["Config", "RpcError", "Session"]
