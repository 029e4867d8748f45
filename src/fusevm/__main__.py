"""`python -m fusevm`: the command, where its folder is not on the path."""

from fusevm.cli.start import main

if __name__ == "__main__":
    main()
