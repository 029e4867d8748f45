"""What one open page has asked for: settings, a version to compare with, calls. The worker can be lost at any time."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fusevm.explorer.bundle import exported
from fusevm.explorer.settings import PARTS, ExplorerSettings, settings_from
from fusevm.explorer.workers import ExplorerWorker
from fusevm.values import BadValue

MAX_CALLS = 50
MAX_DATA = 200_000  # characters of a call's data or of one argument


class ExplorerSession:
    """Every job carries all that it rests on, so that a fresh worker can take it up."""

    def __init__(self, settings: ExplorerSettings, worker: ExplorerWorker) -> None:
        self.settings = settings
        self.pinned: ExplorerSettings | None = None
        self.calls: list[dict[str, Any]] = []
        self.parts: list[str] = []  # asked for beyond those that every document has
        self.worker = worker

    async def answer(self, asked: dict[str, Any], progress: Callable[[str], Any]) -> bytes:
        """`{"result": …}` or `{"error": …}` as JSON. Raises BadValue for what is not understood."""
        kind = asked.get("do")
        if kind == "explain":
            return await self._explain(settings_from(asked.get("settings")), progress)
        if kind == "part":
            return await self._part(asked, progress)
        if kind == "pin":
            given = asked.get("settings")
            self.pinned = self.settings if given is None else settings_from(given)
            return await self._work("pin", progress)
        if kind == "run":
            return await self._run(asked, progress)
        if kind == "reset":
            self.calls = []
            return b'{"result":true}'
        if kind == "dependencies":
            block = asked.get("block")
            if not isinstance(block, int):
                raise BadValue("block: the offset of its first instruction is needed")
            return await self._work("dependencies", progress, block=block)
        if kind == "compare":
            return await self._work("compare", progress)
        if kind == "export":
            return await self._export(asked, progress)
        raise BadValue(f"{kind!r:.40} is not something the explorer does")

    async def _explain(self, settings: ExplorerSettings, progress: Callable[[str], Any]) -> bytes:
        """What cannot be explained, or was cancelled, leaves the page with what it shows."""
        answer = await self.worker.do({**self.job("explain"), "settings": settings.to_json()}, progress)
        if answer.startswith(b'{"result"'):
            self.settings, self.calls, self.parts = settings, [], []
        return answer

    async def _part(self, asked: dict[str, Any], progress: Callable[[str], Any]) -> bytes:
        part = asked.get("part")
        if part not in PARTS:
            raise BadValue(f"part: {part!r:.40} is not one of {', '.join(PARTS)}")
        answer = await self._work("part", progress, part=part)
        if answer.startswith(b'{"result"') and part not in self.parts:
            self.parts.append(part)
        return answer

    async def _work(self, kind: str, progress: Callable[[str], Any], **more: Any) -> bytes:
        return await self.worker.do(self.job(kind, **more), progress)

    def job(self, kind: str, **more: Any) -> dict[str, Any]:
        return {
            "do": kind,
            "settings": self.settings.to_json(),
            "pinned": None if self.pinned is None else self.pinned.to_json(),
            "calls": self.calls,
            "parts": self.parts,
            **more,
        }

    async def _run(self, asked: dict[str, Any], progress: Callable[[str], Any]) -> bytes:
        call = call_from(asked.get("call"))
        if len(self.calls) >= MAX_CALLS:
            raise BadValue(f"runs: {MAX_CALLS} calls were made; reset the state to make more")
        answer = await self._work("run", progress, call=call)
        if answer.startswith(b'{"result"'):
            self.calls.append(call)
        return answer

    async def _export(self, asked: dict[str, Any], progress: Callable[[str], Any]) -> bytes:
        answer = json.loads(await self._work("export", progress))
        if "error" in answer:
            return json.dumps(answer).encode()
        view = asked.get("view", "")
        if not isinstance(view, str):
            raise BadValue("view: a text is needed")
        return json.dumps({"result": exported({**answer["result"], "view": view})}).encode()


def call_from(given: Any) -> dict[str, Any]:
    """A call as the page sends it: a signature with arguments as text, or data; value and caller. Raises BadValue."""
    if not isinstance(given, dict):
        raise BadValue("call: an object is needed")
    call = {name: given.get(name, "") for name in ("signature", "data", "value", "caller")}
    arguments = given.get("arguments", [])
    if not isinstance(arguments, list) or not all(isinstance(each, str) for each in [*arguments, *call.values()]):
        raise BadValue("call: its parts are texts")
    if any(len(each) > MAX_DATA for each in [*arguments, *call.values()]):
        raise BadValue(f"call: a part has more than {MAX_DATA:,} characters")
    return {**call, "arguments": arguments}
