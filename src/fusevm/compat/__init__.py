"""Other libraries' interfaces on fusevm: change the import and keep the program."""
