"""The explorer's page in a real browser: links through every pane, steps, runs, exports, and contracts that mean harm.

What is timed is printed (`-s` shows it; bench/explorer.py prints the same): the bounds here only find hangs.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Browser, chromium
from environments import environment
from explorerpages import (
    HOSTILE,
    answer_time,
    block_code,
    choose,
    jumpdests,
    lit,
    lit_has,
    next_frames,
    open_code,
    open_page,
    press,
    select_line,
)
from explorers import Explorer, exported

pytestmark = pytest.mark.long  # a server needs an environment with aiohttp, and a browser

ROOT = Path(__file__).resolve().parent.parent
VAULT = ROOT / "examples" / "vault.yul"
DEPOSIT_LINE = 62  # sstore(total_slot(), …): it survives into every pane
OPEN_SECONDS = 20.0  # ten times what is wanted
ANSWER_MS = 1000.0


@pytest.fixture(scope="module")
def python() -> Path:
    return environment("node", "web3>=7")


@pytest.fixture(scope="module")
def program() -> str:
    return chromium()


@pytest.fixture(scope="module")
def vault(python: Path) -> Iterator[Explorer]:
    with Explorer(python, str(VAULT)) as explorer:
        yield explorer


@pytest.fixture
def page(vault: Explorer, program: str, tmp_path: Path) -> Iterator[Browser]:
    with Browser(program, tmp_path) as browser:
        open_page(browser, vault.url)
        yield browser
        assert browser.errors == []


def view(page: Browser, number: int) -> None:
    page.click(f"#views .tabs button:nth-child({number})")


def run_call(page: Browser, signature: str, *arguments: str) -> None:
    """In the view of runs, as a person does it."""
    view(page, 3)
    choose(page, ".call select", signature)
    for number, text in enumerate(arguments, 1):
        page.js(f"document.querySelector('.arguments .argument:nth-child({number}) input').value = '{text}'")
    before = page.js("document.querySelectorAll('.run-tabs button').length")
    page.click(".call button[type=submit]")
    page.until(f"document.querySelectorAll('.run-tabs button').length > {before}")


def test_the_page_opens_with_source_yul_ir_and_bytecode_side_by_side(page: Browser) -> None:
    panes = page.js("[...document.querySelectorAll('#workspace .pane')].map(e => e.dataset.pane)")
    assert panes == ["source", "yul", "ir", "bytecode", "steps", "inspect"]
    assert page.js("document.querySelector('.figures').textContent").startswith("bytes")


def test_a_click_on_a_source_line_lights_up_what_became_of_it_in_every_pane(page: Browser) -> None:
    page.click("[data-toggle=schedule]")
    select_line(page, "source", DEPOSIT_LINE)
    for pane in ("source", "yul", "ir", "bytecode", "schedule"):
        assert page.until(lit(pane)), pane
    page.until(lit_has("bytecode", "SSTORE"))  # panes scroll one after another
    page.until(lit_has("yul", "sstore"))
    assert "line 62" in page.js("document.querySelector('.inspect').textContent")


def test_a_click_on_bytecode_leads_back_to_its_source_line(page: Browser) -> None:
    select_line(page, "source", DEPOSIT_LINE)
    first = "document.querySelector('[data-pane=bytecode] .line.lit')"
    row = int(page.until(f"{first}?.getAttribute('aria-posinset')"))
    page.key("Escape")
    page.until("!document.querySelector('[data-pane=source] .line.lit')")
    select_line(page, "bytecode", row)
    page.until(lit_has("source", "total_slot"))


def test_inlined_code_leads_to_its_own_line_and_more_faintly_to_its_call(page: Browser) -> None:
    lines = "window.fusevm.state.doc.panes.find(p => p.id === 'bytecode').lines"
    stores = page.js(f"{lines}.map((l, at) => l.text.endsWith('SSTORE') ? at + 1 : 0).filter(Boolean)")
    select_line(page, "bytecode", stores[-1])
    page.until(lit_has("source", "sload(total_slot())"))
    assert page.js("[...window.fusevm.paneAt('source').around]") == [16], "deposit(…), where the function was called"


def test_a_link_moves_no_pane_sideways(page: Browser) -> None:
    select_line(page, "source", DEPOSIT_LINE)
    assert page.until(lit("ir"))
    assert page.js("[...document.querySelectorAll('.rows, textarea')].every(each => each.scrollLeft === 0)")


def test_a_semicolon_begins_a_comment_in_assembly_alone(page: Browser) -> None:
    def comments() -> list[str]:
        return page.js("[...document.querySelectorAll('[data-pane=source] .t-comment')].map(each => each.textContent)")

    open_code(page, "start: JUMPDEST ; a comment\nPUSH @start JUMP", "loop.asm")
    assert comments() == ["; a comment"]
    open_code(page, "{ let a := 1 }", "a.yul")
    page.js(
        "(field => { field.value = 'uint a = 1; a = 2; // two'; field.dispatchEvent(new Event('input')); })"
        "(document.querySelector('[data-pane=source] .editor'))"
    )
    page.until("document.querySelector('[data-pane=source] .t-comment')")
    next_frames(page)
    assert comments() == ["// two"]


def test_large_bytecode_is_shown_at_once_and_optimised_meanwhile(page: Browser) -> None:
    code = "5f35" + "600101" * 1_600 + "5f5500"
    open_code(page, code)
    page.until("window.fusevm.state.doc.deferred === false", 40)
    assert page.js("(({ before, after }) => after < before)(window.fusevm.state.doc.totals.bytes)")
    assert page.js("window.fusevm.state.doc.panes.some(each => each.id === 'ir')")
    view(page, 3)
    press(page, ".call", "Run")
    page.until("window.fusevm.state.runs.length === 1")


def test_optimising_in_the_background_gives_way_to_another_source(page: Browser) -> None:
    open_code(page, jumpdests())  # which takes the optimiser longer than any test waits
    page.until("window.fusevm.state.busy")
    started = time.monotonic()
    open_code(page, "{ sstore(0, 1) }", "a.yul")
    assert time.monotonic() - started < 30, "a new worker was started, and had nothing else to do"
    assert page.js("window.fusevm.state.doc.name") == "a.yul"


def test_a_function_without_a_name_is_called_by_its_selector(page: Browser) -> None:
    open_code(page, "0x5f3560e01c8063deadbeef14601c5780631122334414601e575f5ffd5b005b60075f5500")
    view(page, 3)
    options = page.js("[...document.querySelector('.call select').options].map(each => each.value)")
    assert options[:2] == ["0xdeadbeef", "0x11223344"]
    choose(page, ".call select", "0x11223344")
    assert page.js("document.querySelector('.arguments input').value") == "0x11223344"
    press(page, ".call", "Run")
    page.until("window.fusevm.state.runs.length === 1")
    assert page.js("window.fusevm.state.runs[0].status") == "success"


def test_hovering_shows_the_links_before_the_click(page: Browser) -> None:
    box = page.js(
        "(({x, y}) => [x + 90, y + 30])(document.querySelector('[data-pane=bytecode] .rows').getBoundingClientRect())"
    )
    page.ask("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": box[0], "y": box[1]})
    page.until("document.querySelector('[data-pane=source] .line.near, [data-pane=yul] .line.near')")


def test_switching_a_step_off_changes_the_result_and_switching_it_on_restores_it(page: Browser) -> None:
    yul = "window.fusevm.state.doc.panes.find(p => p.id === 'yul').lines.map(l => l.text).join('\\n')"
    before = page.js(yul)
    count = page.js("window.fusevm.state.doc.steps.length")
    assert page.js("document.querySelectorAll('.letter').length") > 100
    for left in (2, 1, 0):  # the default sequence has three, and one alone inlines as much
        page.js(
            "[...document.querySelectorAll('.letter:not(.off)')].find(e => e.title.startsWith('FullInliner:')).focus()"
        )
        page.key(" ", " ")
        page.until(f"(window.fusevm.state.doc.sequence.match(/i/g) || []).length === {left}")
    assert page.js("document.querySelectorAll('.letter.off').length") == 3
    assert page.js(yul) != before
    assert page.js("window.fusevm.state.doc.steps.length") < count
    press(page, ".sequence-controls", "Default")
    page.until(f"window.fusevm.state.doc.steps.length === {count}")
    assert page.js(yul) == before
    assert page.js("document.querySelectorAll('.letter.off').length") == 0


def test_a_sequence_can_be_typed_and_moved(page: Browser) -> None:
    page.js("(() => { const e = document.querySelector('.sequence-text'); e.focus(); e.select(); })()")
    page.type("dhfoDgvulfn")
    page.key("Enter", "\r")
    page.until("document.querySelectorAll('.letter').length === 11")
    page.until("!document.querySelector('.busy:not([hidden])')")
    page.js("document.querySelectorAll('.letter')[0].focus()")
    page.key("ArrowRight", modifiers=1)
    page.until("document.querySelector('.sequence-text').value === 'hdfoDgvulfn'")


def test_a_wrong_sequence_is_said_and_the_page_goes_on(page: Browser) -> None:
    page.js("(() => { const e = document.querySelector('.sequence-text'); e.focus(); e.select(); })()")
    page.type("dhf?")
    page.key("Enter", "\r")
    page.until("document.querySelector('#status.wrong') && document.querySelector('#status').textContent.includes('?')")


def test_arrow_keys_go_through_the_steps(page: Browser) -> None:
    page.js("document.querySelector('.chart').focus()")
    title = "document.querySelector('.diff-head').textContent"
    last = page.js(title)
    page.key("ArrowLeft", modifiers=8)
    page.key("ArrowLeft", modifiers=8)
    earlier = page.until(f"{title} !== {last!r} && {title}")
    page.until("document.querySelectorAll('.diff.added, .diff.gone').length > 0")
    page.key("ArrowRight", modifiers=8)
    page.until(f"{title} !== {earlier!r}")


def test_the_rules_of_an_instruction_are_listed_with_equation_and_proof(page: Browser) -> None:
    page.js("document.querySelector('[data-pane=source] .editor').focus()")
    found = page.js(
        "(({panes, folds}) => panes.find(p => p.id === 'ir').lines.findIndex("
        "l => (folds[l.value] || []).some(f => f.proved)) + 1)(window.fusevm.state.doc)"
    )
    assert found > 0
    select_line(page, "ir", found)
    page.until("document.querySelector('.fold .proved') && document.querySelector('.fold .equation')")


def test_removed_instructions_are_struck_out_with_the_reason(page: Browser) -> None:
    removed = page.js(
        "window.fusevm.state.doc.panes.find(p => p.id === 'ir').lines.findIndex(l => l.kind === 'removed')"
    )
    assert removed >= 0
    select_line(page, "ir", removed + 1)
    style = "getComputedStyle(document.querySelector('[data-pane=ir] .line.removed .text')).textDecorationLine"
    assert page.until(style) == "line-through"
    assert page.js("document.querySelector('[data-pane=ir] .line.removed .why').textContent.length") > 5
    assert "Removed: " in page.js("document.querySelector('.inspect').textContent")


def test_machine_code_is_compiled_when_its_pane_is_opened(page: Browser) -> None:
    assert "machine" in page.js("window.fusevm.state.doc.pending")
    page.click("[data-toggle=machine]")
    page.until("window.fusevm.state.doc.panes.some(p => p.id === 'machine')", 60)
    select_line(page, "source", DEPOSIT_LINE)
    assert page.until(lit("machine"))


def test_a_call_is_run_and_its_trace_is_walked_backwards(page: Browser) -> None:
    run_call(page, "deposit(uint256)", "1000")
    assert page.js("document.querySelector('.run-facts').textContent").startswith("success")
    assert page.js("document.querySelectorAll('.families tr').length") > 3
    assert page.js("document.querySelectorAll('.logs li').length") == 1
    assert page.js("document.querySelectorAll('.flame-part').length") > 3
    page.key(">", ">")
    operation = (
        "(row => Number(row?.getAttribute('aria-posinset')) === window.fusevm.state.trace + 1 "
        "&& row.querySelector('.op').textContent)(document.querySelector('[data-pane=trace] .active'))"
    )
    assert page.until(operation) in ("RETURN", "STOP")
    steps: list[str] = []
    for _ in range(300):
        page.key(",", ",")
        steps.append(page.until(operation))
        if steps[-1] == "SSTORE":
            break
    assert steps[-1] == "SSTORE"
    assert page.js("document.querySelectorAll('[data-pane=trace] section:nth-child(1) .word').length") >= 2
    page.until(lit_has("bytecode", "SSTORE"))
    page.until(lit_has("source", "sstore"))
    forwards = page.js("window.fusevm.state.trace")
    page.key(".", ".")
    page.until(f"window.fusevm.state.trace === {forwards + 1}")
    assert page.js("document.querySelectorAll('[data-pane=trace] section:nth-child(3) .word').length") >= 1


def test_state_is_kept_between_runs_until_it_is_reset(page: Browser) -> None:
    run_call(page, "deposit(uint256)", "7")
    run_call(page, "totalSupply()")
    assert page.js("window.fusevm.state.runs[1].output").endswith("07")
    press(page, ".call", "Reset state")
    page.until("document.querySelectorAll('.run-tabs button').length === 0")
    run_call(page, "totalSupply()")
    assert page.js("window.fusevm.state.runs[0].output").endswith("00")


def test_the_graph_is_coloured_by_heat_and_a_click_selects_a_block(page: Browser) -> None:
    run_call(page, "digest(uint256)", "5")
    view(page, 2)
    choose(page, "[data-pane=graph] select", "heat")
    press(page, "[data-pane=graph]", "Fit")
    next_frames(page)
    place = page.js(
        "(({blocks: [,,, b], view, canvas}, r = canvas.getBoundingClientRect()) => "
        "[r.x + view.x + (b.x + b.w / 2) * view.scale, r.y + view.y + (b.y + b.h / 2) * view.scale, b.id])"
        "(window.fusevm.paneAt('graph'))"
    )
    page.click_at(place[0], place[1])
    page.until(f"window.fusevm.state.block === {place[2]}")
    assert page.until(lit("bytecode"))
    page.until("document.querySelectorAll('.dep-node').length > 0")


def test_two_versions_are_compared_block_by_block(page: Browser) -> None:
    run_call(page, "deposit(uint256)", "1000")
    view(page, 4)
    press(page, "[data-pane=compare]", "Against")
    page.until("document.querySelectorAll('.compare-line').length > 3")
    assert page.js("document.querySelectorAll('.compare-head .figure').length") == 3, (
        "bytes, gas and the gas of the run"
    )
    page.until("document.querySelector('[data-pane=\"a:bytecode\"] .line') !== null")
    assert "−" in page.js("document.querySelector('.compare-head').textContent")


def caret(page: Browser, before: str) -> None:
    set_at = "(field, at) => { field.focus(); field.setSelectionRange(at, at); }"
    field = "document.querySelector('.editor')"
    page.js(f"({set_at})({field}, {field}.value.indexOf({json.dumps(before)}))")


def test_the_source_is_edited_and_errors_stand_at_their_line(page: Browser) -> None:
    caret(page, "// A small")
    page.type("!")
    page.until("document.querySelector('[data-pane=source] .line.wrong')?.getAttribute('aria-posinset') === '1'")
    page.js("document.execCommand('undo')")
    page.until("!document.querySelector('[data-pane=source] .line.wrong')")
    before = page.js("window.fusevm.state.doc.totals.bytes.after")
    caret(page, "return_word(1)")
    page.type("sstore(7, 8) ")
    page.until(f"window.fusevm.state.doc.totals.bytes.after > {before}")


def test_search_finds_lines_in_all_panes(page: Browser) -> None:
    page.key("/", "/")
    page.until("document.activeElement.id === 'search'")
    page.type("sload")
    page.until("document.querySelectorAll('.line.found').length > 2")
    page.key("Enter", "\r")
    page.until("window.fusevm.state.selection !== null")
    page.key("Escape")
    page.until("document.querySelectorAll('.line.found').length === 0")


def test_a_link_opens_the_same_view(page: Browser, vault: Explorer, program: str, tmp_path: Path) -> None:
    select_line(page, "source", DEPOSIT_LINE)
    page.click("[data-toggle=yul]")
    address = page.until("location.hash.includes('line=source:62') && !location.hash.includes('yul') && location.href")
    with Browser(program, tmp_path / "other") as other:
        open_page(other, address)
        assert other.until(lit("bytecode"))
        assert "yul" not in other.js("[...document.querySelectorAll('#workspace .pane')].map(e => e.dataset.pane)")


def test_an_export_opens_without_a_server_and_answers_clicks(page: Browser, program: str, tmp_path: Path) -> None:
    run_call(page, "deposit(uint256)", "1000")
    view(page, 1)
    folder = tmp_path / "saved"
    page.downloads(folder)
    press(page, "#bar", "Export")
    end = time.monotonic() + 30
    while not list(folder.glob("*.html")) and time.monotonic() < end:
        time.sleep(0.1)
    (saved,) = folder.glob("*.html")
    with Browser(program, tmp_path / "other") as other:
        other.ask(
            "Network.emulateNetworkConditions",
            {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
        )
        open_page(other, saved.as_uri())
        assert other.js("document.documentElement.dataset.ready") == "export"
        select_line(other, "source", DEPOSIT_LINE)
        for pane in ("yul", "ir", "bytecode"):
            assert other.until(lit(pane)), pane
        other.click("#views .tabs button:nth-child(3)")
        other.key(">", ">")
        other.until("window.fusevm.state.trace > 10")
        other.key(",", ",")
        assert other.until(lit("bytecode"))
        assert other.errors == []


def test_the_command_writes_the_same_export(python: Path, program: str, tmp_path: Path) -> None:
    target = tmp_path / "vault.html"
    assert "open it in a browser" in exported(python, VAULT, target)
    with Browser(program, tmp_path) as browser:
        open_page(browser, target.as_uri())
        select_line(browser, "bytecode", 5)
        assert browser.until(lit("source"))
        assert browser.errors == []


def test_light_and_dark_follow_the_system_and_the_switch(page: Browser) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.js(colour)
    page.dark(True)
    dark = page.until(f"{colour} !== {light!r} && {colour}")
    page.key("t", "t")
    page.until(f"{colour} === {light!r}")
    page.key("t", "t")
    page.until(f"{colour} === {dark!r}")


def test_every_control_has_a_name(page: Browser) -> None:
    for number in (1, 2, 3, 4):
        view(page, number)
        nameless = page.js(
            "[...document.querySelectorAll('button, input, select, textarea, [role=listbox], canvas[tabindex]')]"
            ".filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label')?.innerText))"
            ".map(e => e.outerHTML.slice(0, 90))"
        )
        assert nameless == []


# -- contracts that mean harm


def test_nothing_of_a_hostile_contract_becomes_markup(python: Path, program: str, tmp_path: Path) -> None:
    source = tmp_path / "<img src=x onerror=alert(1)>.yul"
    source.write_text(HOSTILE)
    with Explorer(python, str(source)) as explorer, Browser(program, tmp_path) as browser:
        open_page(browser, explorer.url)
        for number in (1, 2, 3, 4, 1):
            view(browser, number)
        select_line(browser, "source", 3)
        view(browser, 3)
        choose(browser, ".call select", "calldata …")
        browser.click(".call button[type=submit]")
        browser.until("document.querySelector('.run-facts')")
        assert "<script>" in browser.js("document.body.textContent")
        assert (
            browser.js("document.querySelectorAll('#workspace script, #workspace img, #workspace b i, iframe').length")
            == 0
        )
        assert browser.js("window.harmed === undefined")
        assert browser.errors == []
        page_text = browser.js("document.documentElement.outerHTML")
    assert not re.search(r"<img|<script>window", page_text)


def test_24_kilobytes_of_jumpdests_open_and_answer(python: Path, program: str, tmp_path: Path) -> None:
    source = tmp_path / "jumpdests.hex"
    source.write_text(jumpdests())
    with Explorer(python, str(source)) as explorer, Browser(program, tmp_path) as browser:
        opened = open_page(browser, explorer.url)
        took = answer_time(browser, "bytecode", 12_000)
        print(f"24 KB of JUMPDESTs: {opened:.2f} s to open, {took:.0f} ms to answer")
        assert browser.js("document.querySelectorAll('.line').length") < 1000, "only rows in view are elements"
        assert opened < OPEN_SECONDS
        assert took < ANSWER_MS
        assert browser.errors == []


def test_a_graph_of_3000_blocks_is_drawn_and_moved(python: Path, program: str, tmp_path: Path) -> None:
    source = tmp_path / "blocks.hex"
    source.write_text(block_code(3000))
    with Explorer(python, str(source)) as explorer, Browser(program, tmp_path) as browser:
        opened = open_page(browser, explorer.url + "#panes=bytecode,graph/inspect")
        blocks = browser.until("window.fusevm.state.doc.graph?.blocks.length")
        assert blocks >= 3000
        browser.js("window.fusevm.paneAt('graph').fit()")
        draw = browser.js(
            "((graph, started = performance.now()) => { graph.draw(); return performance.now() - started; })"
            "(window.fusevm.paneAt('graph'))"
        )
        took = answer_time(browser, "bytecode", 2_000)
        print(f"{blocks:,} blocks: {opened:.2f} s to open, {draw:.0f} ms to draw all, {took:.0f} ms to answer")
        assert opened < OPEN_SECONDS
        assert max(draw, took) < ANSWER_MS
        assert browser.errors == []
