"""One word means one thing: a public class has a name of its own."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "fusevm"
SHARED = {  # names that two classes have for a reason
    "EVM": "pyrevm's name, in `compat.pyrevm`",
    "Log": "pyrevm's name",
    "CallFailed": "pyrevm's name for what a call raises",
    "FusevmEnv": "titanoboa's and Vyper's environments, as their users call them",
    "Account": "native code's copy of a chain's account",
    "Call": "native code's copy of a call",
    "SlotChange": "native code's form of it",
    "Status": "why native code came back, beside how a call ended",
    "Block": "of a chain, and Yul's statement",
    "Function": "of the IR, and of a contract's interface",
}


def public_classes() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(PACKAGE).as_posix())
    return found


def test_no_two_public_classes_have_one_name() -> None:
    shared = {name: places for name, places in public_classes().items() if len(places) > 1}
    assert {name: places for name, places in shared.items() if name not in SHARED} == {}
    assert shared.keys() == SHARED.keys(), "a name that is no longer shared is listed"
