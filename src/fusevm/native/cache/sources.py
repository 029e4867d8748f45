"""The sources a piece of object code is made from, found by following imports: the key under which it is cached."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_IMPORT = re.compile(rb"^[ \t]*from fusevm\.([\w.]+) import +(\([^)]*\)|[^\n#]*)", re.MULTILINE)
_NAME = re.compile(rb"\w+")


def digest_of_sources(modules: Iterable[str], *others: object) -> str:
    """Of these modules of the package (`native.emit.build`, say), of all they import, and of whatever else matters."""
    digest = hashlib.sha256(repr(others).encode())
    contents: dict[Path, bytes] = {}
    to_read = [path for module in modules for path in _files(module)]
    while to_read:
        path = to_read.pop()
        if path not in contents:
            contents[path] = path.read_bytes()
            to_read += _imported(contents[path])
    for path in sorted(contents):
        digest.update(contents[path])
    return digest.hexdigest()[:32]


def _imported(source: bytes) -> Iterable[Path]:
    """Imports of names, of modules, and those inside of functions alike. `import fusevm` itself is not followed."""
    for match in _IMPORT.finditer(source):
        module = match[1].decode()
        yield from _files(module)
        for name in _NAME.findall(match[2]):
            yield from _files(f"{module}.{name.decode()}")


def _files(module: str) -> Iterable[Path]:
    place = _PACKAGE.joinpath(*module.split("."))
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            yield path
