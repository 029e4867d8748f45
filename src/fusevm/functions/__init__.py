"""What `import fusevm` offers beside the machine: bytecode, Yul and IR as functions that take forks by name."""
