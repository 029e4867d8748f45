"""JSON-RPC of a development chain: a table of methods, each a function of a `Session` and its parameters."""
