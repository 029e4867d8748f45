"""Where a state's accounts come from when it does not have them: a node, or a state that it was copied from."""
