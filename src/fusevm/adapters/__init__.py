"""Where people already are: fusevm as the engine of other tools. Each module needs the extra of its name."""
