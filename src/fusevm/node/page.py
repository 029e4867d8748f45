"""The page for people, and the policy under which browsers show it: its own script and style, and this node."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

PAGE = (Path(__file__).parent / "page.html").read_text("utf-8")


def _hashed(tag: str) -> str:
    found = re.search(f"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
    assert found is not None
    return "'sha256-" + base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode() + "'"


POLICY = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src {_hashed('script')}; style-src {_hashed('style')}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
