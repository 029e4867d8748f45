"""What tests and benches do with the explorer's page: open it, select lines, time it; and contracts that mean harm."""

from __future__ import annotations

import json
import time

from browser import Browser

SELECT = """(() => {
    const body = document.querySelector('[data-pane="%s"] .code-pane');
    const rows = body.querySelector('.rows'), field = body.querySelector('.editor:not([hidden])');
    (field || rows).scrollTop = Math.max(0, (%d - 4) * 19);
    if (field) rows.scrollTop = field.scrollTop;
    const box = rows.getBoundingClientRect();
    return [box.x + 20, box.y + (%d - 0.5) * 19 - rows.scrollTop];
})()"""

# Script tags wherever a contract can put text: comments, strings, data names, names of functions with markup around.
HOSTILE = """\
// <script>window.harmed = 1</script> <img src=x onerror="window.harmed = 1">
object "<script>window.harmed=1</script>" {
    code { /* </script><script>window.harmed = 1</script> */ mstore(0, "<img src=x onerror=alert(1)>") revert(0, 32) }
    data "<b><i>x</i></b>" "<script>window.harmed = 1</script>"
}
"""


def jumpdests(size: int = 24_576) -> str:
    return "5b" * size


def block_code(blocks: int) -> str:
    """Hex of code with so many blocks: each branches forwards, up to fifty blocks on, or falls through.

    The last one jumps nobody knows where, so that no optimiser makes one block of all.
    """
    length = 9
    parts = []
    for number in range(blocks):
        target = min(number + 1 + number * 37 % 50, blocks - 1) * length
        parts.append(f"5b60{number % 256:02x}503661{target:04x}57")  # JUMPDEST PUSH POP CALLDATASIZE PUSH2 JUMPI
    return "".join(parts) + "5f3556"


def open_page(browser: Browser, url: str) -> float:
    """Seconds from the address until the page is drawn."""
    started = time.perf_counter()
    browser.open(url)
    drawn = "window.fusevm.state.doc && document.querySelector('#workspace .row')"
    browser.until(f"document.documentElement.dataset.ready && {drawn}", 60)
    return time.perf_counter() - started


def select_line(browser: Browser, pane: str, line: int) -> None:
    """With the mouse: the line, counted from 1, comes into view and is clicked at its number."""
    place = browser.js(SELECT % (pane, line, line))
    next_frames(browser)
    browser.click_at(*place)
    browser.until(
        f"window.fusevm.state.selection?.pane === '{pane}' && window.fusevm.state.selection.line === {line - 1}"
    )


def open_code(browser: Browser, text: str, name: str = "code.hex") -> None:
    """Another contract, by the dialog; returns as soon as it is drawn."""
    browser.js("window.shown = window.fusevm.state.doc")
    browser.click("button.name")
    browser.js(
        f"""(() => {{
            const dialog = document.querySelector('dialog');
            dialog.querySelector('.paste').value = {json.dumps(text)};
            dialog.querySelector('.open-name input').value = {json.dumps(name)};
        }})()"""
    )
    press(browser, "dialog", "Explain")
    browser.until("window.fusevm.state.doc !== window.shown", 40)
    next_frames(browser)


def next_frames(browser: Browser) -> None:
    """Rows are drawn in the next frame: two of them pass, the page's own work in them included."""
    browser.js(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true)))))"
    )


def choose(browser: Browser, selector: str, value: str) -> None:
    """An option of a list, by its value."""
    browser.js(
        f"(list => {{ list.value = {json.dumps(value)}; list.dispatchEvent(new Event('change')); }})"
        f"(document.querySelector({json.dumps(selector)}))"
    )


def press(browser: Browser, selector: str, text: str) -> None:
    """The first button within the element whose text begins so."""
    buttons = f"[...document.querySelectorAll({json.dumps(selector + ' button')})]"
    browser.js(f"{buttons}.find(each => each.textContent.startsWith({json.dumps(text)})).click()")


def lit(pane: str) -> str:
    """An expression for the texts of a pane's lit lines; null where none is in view."""
    rows = f"[...document.querySelectorAll('[data-pane=\"{pane}\"] .line.lit')].map(e => e.textContent)"
    return f"(found => found.length ? found : null)({rows})"


def lit_has(pane: str, text: str) -> str:
    """An expression that is true where one of a pane's lit lines has the text: its rows may have to come into view."""
    return f"({lit(pane)}).some((row) => row.includes({json.dumps(text)}))"


def answer_time(browser: Browser, pane: str, line: int) -> float:
    """Milliseconds from a click on a line until all panes are drawn again, measured in the page."""
    return float(
        browser.js(
            f"""(async () => {{
                const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
                const rows = window.fusevm.paneAt('{pane}').rows;
                rows.element.scrollTop = {line} * 19;
                await frame();
                const box = rows.element.getBoundingClientRect();
                const started = performance.now();
                rows.element.dispatchEvent(new MouseEvent('click', {{ clientY: box.y + 60, bubbles: true }}));
                await frame();
                return performance.now() - started;
            }})()"""
        )
    )
