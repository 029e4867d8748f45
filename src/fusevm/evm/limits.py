"""Limits of the EVM that no fork has changed. Those that forks did change are in `forks.Rules`."""

from __future__ import annotations

STACK_LIMIT = 1024  # words
CALL_DEPTH_LIMIT = 1024  # frames
MAX_NONCE = (1 << 64) - 1  # EIP-2681
