"""What the page asks for: explanations, runs and comparisons, kept between the jobs that need them again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fusevm.explanation import Explanation, compare, explain
from fusevm.explorer.settings import ExplorerSettings, settings_from
from fusevm.values import BadValue

Progress = Callable[[str], None]
MAX_KEPT = 4  # explanations

_PART = 300  # characters of a message that are shown
_PLACE = re.compile(r"\w+: (?:line )?(\d+)(?::(\d+))?: ")  # as messages about a source begin
_MAKING = {"schedule": "making the schedule", "graph": "drawing the graph", "machine": "compiling to machine code"}


def failure(error: BaseException) -> dict[str, Any]:
    """An error as the page shows it: one line, and the place in the source where it is known."""
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    expected = isinstance(error, ValueError | RuntimeError) or type(error).__module__.startswith("fusevm")
    message = first if expected else f"{type(error).__name__}: {first}"
    place = _PLACE.match(message)
    line, column = (int(each) if each else None for each in place.groups()) if place else (None, None)
    return {"message": message[:_PART], "line": line, "column": column}


class Jobs:
    """Does one job at a time. A job names all that it rests on; what was made before is used again."""

    def __init__(self) -> None:
        self._kept: dict[ExplorerSettings, Explanation] = {}
        self._made_calls: dict[ExplorerSettings, list[dict[str, Any]]] = {}
        self._runs: dict[ExplorerSettings, list[dict[str, Any]]] = {}

    def do(self, job: dict[str, Any], progress: Progress) -> Any:
        settings = settings_from(job["settings"])
        pinned = None if job["pinned"] is None else settings_from(job["pinned"])
        kind = job["do"]
        if kind == "pin":
            assert pinned is not None
            return self._explained(pinned, progress).to_json(())
        shown = self._explained(settings, progress)
        if kind == "explain":
            return shown.to_json(())
        if kind == "part":
            progress(_MAKING[job["part"]])
            return shown.part(job["part"])
        if kind == "run":
            return self._run(settings, [*job["calls"], job["call"]], progress)[-1]
        if kind == "dependencies":
            return shown.dependencies(job["block"]).as_data()
        if kind == "compare":
            return self._compared(settings, pinned, job["calls"], progress)
        assert kind == "export"
        return {
            "settings": {**settings.to_json(), "source": ""},
            "pinned_settings": None if pinned is None else {**pinned.to_json(), "source": ""},
            "document": shown.to_json({*job["parts"], "schedule", "graph"}),
            "runs": self._run(settings, job["calls"], progress),
            "pinned": None if pinned is None else self._explained(pinned, progress).to_json(["graph"]),
            "comparison": None if pinned is None else self._compared(settings, pinned, job["calls"], progress),
        }

    def _explained(self, settings: ExplorerSettings, progress: Progress) -> Explanation:
        if settings not in self._kept:
            while len(self._kept) >= MAX_KEPT:
                oldest = next(iter(self._kept))
                for kept in (self._kept, self._made_calls, self._runs):
                    kept.pop(oldest, None)
            self._kept[settings] = _explain(settings, progress)
        return self._kept[settings]

    def _run(self, settings: ExplorerSettings, calls: list[dict[str, Any]], progress: Progress) -> list[dict[str, Any]]:
        """The runs of the calls one after the other, from the state after deployment; those already made are kept."""
        explanation = self._explained(settings, progress)
        made, runs = self._made_calls.setdefault(settings, []), self._runs.setdefault(settings, [])
        if made != calls[: len(made)]:
            explanation.reset()
            made.clear()
            runs.clear()
        for call in calls[len(made) :]:
            runs.append({**_called(explanation, call), "asked": call})
            made.append(call)
        return runs

    def _compared(
        self,
        settings: ExplorerSettings,
        pinned: ExplorerSettings | None,
        calls: list[dict[str, Any]],
        progress: Progress,
    ) -> dict[str, Any]:
        if pinned is None:
            raise BadValue("compare: no version is pinned; pin one first")
        before, after = (self._run(each, calls, progress) for each in (pinned, settings))
        found = compare(self._explained(pinned, progress), self._explained(settings, progress)).as_data()
        if calls:
            found["totals"]["run"] = {
                "before": sum(run["gas_used"] for run in before),
                "after": sum(run["gas_used"] for run in after),
            }
            for block in found["blocks"]:
                block["run"] = {"before": _spent(before, block["a"]), "after": _spent(after, block["b"])}
        return found


def _spent(runs: list[dict[str, Any]], block: int | None) -> int:
    """The gas of all runs in a block."""
    return sum(run["blocks"].get(str(block), (0, 0))[1] for run in runs)


def _explain(settings: ExplorerSettings, progress: Progress) -> Explanation:
    progress(f"explaining {settings.name}")
    # A text without a line end could be taken for a file's name, and what a page sends never names a file.
    text = settings.source if "\n" in settings.source else settings.source + "\n"
    return explain(
        text,
        settings.fork,
        language=settings.language,
        name=settings.name,
        runs=settings.runs,
        steps=settings.steps,
        object=settings.object,
        optimised=settings.optimised,
        contract=settings.contract,
    )


def _called(explanation: Explanation, call: dict[str, Any]) -> dict[str, Any]:
    asked: str | bytes = call["signature"]
    if not asked:
        try:
            asked = bytes.fromhex(call["data"].strip().removeprefix("0x"))
        except ValueError:
            raise BadValue("calldata: not hex; give an even number of digits") from None
    caller = {"caller": call["caller"]} if call["caller"] else {}
    return explanation.run(asked, call["arguments"], value=_whole(call["value"] or "0"), **caller).as_data()


def _whole(text: str) -> int:
    try:
        return int(text.replace("_", ""), 0)
    except ValueError:
        raise BadValue(f"value: {text!r:.40} is not a whole number of wei") from None
