"""fusevm: an optimising compiler and execution engine for the Ethereum Virtual Machine."""
