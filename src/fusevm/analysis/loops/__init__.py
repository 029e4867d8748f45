"""Loops as seed 001 describes them: what counts each, and what an iteration costs, needs and touches."""
