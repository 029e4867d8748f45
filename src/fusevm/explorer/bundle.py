"""The page's files: as the server sends them, and as one HTML file that needs no server.

The modules of the page are few and plain: every import is one line that names what it takes, and no two modules declare
the same name (a test checks both). One script is then made of them by leaving imports and exports out.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parent / "assets"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
ENTRY = "main.js"

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z_]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\b)", re.MULTILINE)

# What a browser may do with the served page: its own files and its own server, nothing else.
POLICY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@cache
def asset(name: str) -> bytes | None:
    """A file of the page by its name; no path leads out of the folder."""
    return next((path.read_bytes() for path in ASSETS.iterdir() if path.name == name), None)


def _text(name: str) -> str:
    found = asset(name)
    if found is None:
        raise FileNotFoundError(f"{name}: not a file of the page")
    return found.decode("utf-8")


def modules(entry: str = ENTRY) -> list[str]:
    """The module and everything it imports, each after its dependencies."""
    found: list[str] = []
    entered: set[str] = set()

    def visit(name: str) -> None:
        if name not in entered:
            entered.add(name)
            for _, needed in _IMPORT.findall(_text(name)):
                visit(needed)
            found.append(name)

    visit(entry)
    return found


@cache
def script() -> str:
    """All modules as one."""
    parts = [_EXPORT.sub("", _IMPORT.sub("", _text(name))) for name in modules()]
    return '"use strict";\n' + "\n".join(parts)


@cache
def style() -> str:
    return "\n".join(
        _text(name) for name in re.findall(r'<link rel="stylesheet" href="([a-z]+\.css)">', _text("page.html"))
    )


def _hashed(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def exported(content: dict[str, Any]) -> str:
    """One file with the page and all that it shows. `content` is data; nothing of it can become markup or code."""
    page, code, look = _text("page.html"), script(), style()
    page = re.sub(r" *<link [^>]*>\n", "", page)
    page = re.sub(r" *<script[^>]*></script>\n", "", page)
    policy = (
        f"default-src 'none'; script-src {_hashed(code)}; style-src {_hashed(look)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    # "<" occurs in JSON only within strings, where the escape means the same and no tag can end or begin.
    data = json.dumps(content, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")
    name = html.escape(str(content.get("document", {}).get("name", "")))
    head = (
        f'  <meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"  <title>{name} · fusevm explorer</title>\n"
        f"  <style>{look}</style>\n"
    )
    tail = (
        f'  <script type="application/json" id="content">{data}</script>\n'
        f'  <script type="module">{code}</script>\n'
    )  # fmt: skip
    page = re.sub(r" *<title>.*</title>\n", lambda _: head, page, count=1)
    return page.replace("</body>", tail + "</body>")
