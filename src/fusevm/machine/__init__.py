"""What `EVM` (`api.py`) is built of: its settings, the path of a message, transactions."""
