"""The development node: JSON-RPC over HTTP and WebSocket, a status page, blocks at intervals, state on disk."""
