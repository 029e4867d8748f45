"""The reference tier: an interpreter to be read against the Yellow Paper, and the judge of all other tiers."""
