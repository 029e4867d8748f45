"""470 requests, odd ones among them, are answered as by anvil, but for the differences that docs/node.md lists."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import replay
from anvil import Anvil
from fusevm.rpc import Config, Session
from fusevm.rpc.dispatch import answer

FIRST_BLOCK = ("--timestamp", str(replay.TIMESTAMP))


def body_of(method: str, params: list[Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def asking(session: Session) -> replay.Ask:
    def ask(method: str, params: list[Any]) -> dict[str, Any]:
        return dict(json.loads(json.dumps(answer(body_of(method, params), session.request))))

    return ask


@pytest.fixture(scope="module")
def anvil_from_its_start(anvil_binary: Path) -> Iterator[replay.Ask]:
    """With anvil's own fees, and the time of its first block."""
    with Anvil(anvil_binary, *FIRST_BLOCK, fees=()) as node:

        def ask(method: str, params: list[Any]) -> dict[str, Any]:
            asked = urllib.request.Request(node.url, body_of(method, params), {"content-type": "application/json"})
            with urllib.request.urlopen(asked, timeout=60) as response:
                return dict(json.load(response))

        yield ask


@pytest.mark.long
def test_answers_are_anvils_but_for_the_differences_that_the_page_lists(anvil_from_its_start: replay.Ask) -> None:
    theirs = replay.Player(anvil_from_its_start)
    ours = replay.Player(asking(Session(Config(timestamp=replay.TIMESTAMP))))
    known, seen, unknown = replay.known_differences(), set(), []
    for request in replay.requests():
        for path, one, other in replay.differences(theirs.play(request), ours.play(request)):
            rows = [each for each in known if each.covers(request, path)]
            seen.update(rows)
            if not rows:
                unknown.append(f"line {request.line}: {request}: {path}: anvil {one!r:.200}, here {other!r:.200}")
    assert not unknown, "\n".join(unknown)
    assert seen == set(known), "the page lists differences that are gone"


def test_there_are_many_requests_and_each_is_answered() -> None:
    """Without anvil too: no request breaks, and what later ones refer to is there."""
    ours = replay.Player(asking(Session(Config(timestamp=replay.TIMESTAMP))))
    asked = replay.requests()
    for request in asked:
        found = ours.play(request)
        error = found.get("error") if isinstance(found, dict) else None
        broken = isinstance(error, dict) and error["code"] == -32603
        assert not broken or error["message"].startswith(("EVM error", "no storage slot")), (str(request), error)
    assert len(asked) >= 470
