"""Where this user's files of fusevm are."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """$FUSEVM_CACHE, or the platform's place for such things."""
    given = os.environ.get("FUSEVM_CACHE")
    if given:
        return Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "fusevm"
