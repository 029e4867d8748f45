"""Where the `fusevm` command begins: the version is told, and Ctrl-C answered, before anything large is imported."""

from __future__ import annotations

import sys

from fusevm.version import __version__


def main() -> None:
    try:
        if sys.argv[1:] == ["--version"]:
            print(f"fusevm {__version__}")
            return
        from fusevm.cli.main import main as command

        command()
    except KeyboardInterrupt:
        print("fusevm: interrupted", file=sys.stderr)
        sys.exit(130)
