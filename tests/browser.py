"""A headless Chromium for tests, driven by the DevTools protocol over two pipes: no package is needed for it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

SECONDS = 30.0  # that the page may take, on a machine that has more to do
SKIPPED = "chromium is not installed"  # .ci/run looks for this


class PageError(Exception):
    """An exception in the page."""


def chromium() -> str:
    """The program, or the test is skipped."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip(f"{SKIPPED}: apt-get install chromium")
    return found


class Browser:
    """One page, open until the `with` block ends. What the page logs as an error is kept in `errors`."""

    def __init__(
        self, program: str, folder: Path, *, width: int = 1280, height: int = 800, dark: bool = False, scale: int = 1
    ) -> None:
        into, self._write = os.pipe()
        self._read, outof = os.pipe()
        self.errors: list[str] = []
        self._answers: dict[int, Any] = {}
        self._number = 0
        self._rest = b""
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
        more = [f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}", "--disable-dev-shm-usage"]

        def pipes() -> None:
            os.dup2(os.dup(into), 3)
            os.dup2(os.dup(outof), 4)

        # Descriptors 3 and 4 are the browser's by its own rule; both ends are kept clear of them first.
        into, outof = (_above(each) for each in (into, outof))
        self._process = subprocess.Popen(
            [program, *options, *more, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=pipes,
        )  # fmt: skip
        os.close(into)
        os.close(outof)
        attached = self._ask("Target.attachToTarget", {"targetId": self._first_page(), "flatten": True})
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", metrics)
        self.dark(dark)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        for each in (self._read, self._write):
            with contextlib.suppress(OSError):
                os.close(each)

    def _first_page(self) -> str:
        """It comes a moment after the browser."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for each in self._ask("Target.getTargets", {})["targetInfos"]:
                if each["type"] == "page":
                    return str(each["targetId"])
            time.sleep(0.03)
        raise RuntimeError(f"the browser has no page after {SECONDS:g} s")

    # -- the protocol

    def ask(self, method: str, parameters: dict[str, Any] | None = None) -> Any:
        return self._ask(method, parameters or {}, self._session)

    def _ask(self, method: str, parameters: dict[str, Any], session: str | None = None) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while self._number not in self._answers:
            self._receive()
        answer = self._answers.pop(self._number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _receive(self) -> None:
        while b"\0" not in self._rest:
            found = os.read(self._read, 1 << 20)
            if not found:
                raise RuntimeError("the browser has ended")
            self._rest += found
        body, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(body)
        if "id" in message:
            self._answers[message["id"]] = message
        elif message["method"] == "Runtime.exceptionThrown":
            detail = message["params"]["exceptionDetails"]
            self.errors.append(detail.get("exception", {}).get("description") or detail["text"])
        elif message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.errors.append(message["params"]["entry"]["text"])

    # -- what a person does

    def open(self, url: str) -> None:
        self.ask("Page.navigate", {"url": url})

    def dark(self, wanted: bool) -> None:
        features = [{"name": "prefers-color-scheme", "value": "dark" if wanted else "light"}]
        self.ask("Emulation.setEmulatedMedia", {"features": features})

    def js(self, expression: str) -> Any:
        """The value of an expression, awaited where it is a promise."""
        parameters = {"expression": expression, "returnByValue": True, "awaitPromise": True, "userGesture": True}
        found = self.ask("Runtime.evaluate", parameters)
        if "exceptionDetails" in found:
            detail = found["exceptionDetails"]
            raise PageError(detail.get("exception", {}).get("description") or detail["text"])
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = SECONDS) -> Any:
        """The first value of the expression that is true."""
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(PageError):  # of a page that is not there yet
                found = self.js(f"((found) => found instanceof Node || found)({expression})")
                if found:
                    return found
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds:g} s: {expression}; errors of the page: {self.errors}")
            time.sleep(0.03)

    def click(self, selector: str, times: int = 1) -> None:
        """With the mouse, in the middle of the first element that matches."""
        place = self.js(_MIDDLE % json.dumps(selector))
        self.click_at(*place, times=times)

    def click_at(self, x: float, y: float, times: int = 1) -> None:
        for count in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": count}
                self.ask("Input.dispatchMouseEvent", event)

    def key(self, key: str, text: str | None = None, modifiers: int = 0) -> None:
        code = {"key": key, "code": key, "modifiers": modifiers, "windowsVirtualKeyCode": _CODES.get(key, 0)}
        self.ask("Input.dispatchKeyEvent", {"type": "keyDown", **code, **({"text": text} if text else {})})
        self.ask("Input.dispatchKeyEvent", {"type": "keyUp", **code})

    def type(self, text: str) -> None:
        self.ask("Input.insertText", {"text": text})

    def downloads(self, folder: Path) -> None:
        """Where downloads go."""
        self._ask("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})

    def picture(self, path: Path) -> None:
        found = self.ask("Page.captureScreenshot", {"format": "png"})
        path.write_bytes(base64.b64decode(found["data"]))


_MIDDLE = """(() => {
    const node = document.querySelector(%s);
    node.scrollIntoView({ block: "nearest" });
    const box = node.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
})()"""
_CODES = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13, "Escape": 27, " ": 32}


def _above(descriptor: int) -> int:
    """The same pipe under a number that neither 3 nor 4 is."""
    moved = os.dup(descriptor)
    while moved <= 4:
        moved = os.dup(moved)
    os.close(descriptor)
    return moved
