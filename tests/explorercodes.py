"""Codes for the fuzz test of the explorer's page: real ones, mutated, with and without ABI, empty, huge, garbage."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from explorerpages import HOSTILE, block_code, jumpdests

COUNT = 200
_WORDS = [
    "function",
    "object",
    '"',
    "{",
    "}",
    "(",
    ")",
    ":=",
    "0x",
    "sstore",
    ";",
    "//",
    "/*",
    "\t",
    "\u202e",
    "𝔘",
    "é",
    "\x00",
]


class Real(NamedTuple):
    """A contract as a build tool left it."""

    name: str
    abi: list[dict[str, Any]]
    creation: str  # hex digits
    runtime: str

    def artifact(self, runtime: str | None = None) -> str:
        code = self.runtime if runtime is None else runtime
        return json.dumps(
            {"contractName": self.name, "abi": self.abi, "bytecode": self.creation, "deployedBytecode": code}
        )


class Code(NamedTuple):
    """What is opened, and how it is called in a report."""

    name: str
    text: str


def mutated(code: str, chance: random.Random) -> str:
    """Some bytes changed, left out or doubled; sometimes cut short."""
    data = bytearray.fromhex(code)
    for _ in range(chance.choice((1, 3, 10, 40))):
        at = chance.randrange(len(data))
        match chance.randrange(3):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                del data[at : at + chance.randrange(1, 9)]
            case _:
                data[at:at] = data[at : at + chance.randrange(1, 40)]
        data = data or bytearray(b"\0")
    return bytes(data[: chance.randrange(1, len(data) + 1)] if chance.random() < 0.2 else data).hex()


def odd_codes() -> Iterator[Code]:
    """Each of a kind of its own."""
    yield Code("nothing", "")
    yield Code("blanks", " \n\t ")
    yield Code("0x", "0x")
    yield Code("one digit", "0x1")
    yield Code("an instruction", "0x00")
    yield Code("a cut PUSH32", "0x7f01")
    yield Code("not an instruction", "0x0c" * 40)
    yield Code("every byte", bytes(range(256)).hex())
    yield Code(
        "unnamed selectors",
        "5f3560e01c8063deadbeef14601c578063000000011460205700 5b60015f5500 5b60025f5500".replace(" ", ""),
    )
    yield Code("a selector twice", "5f3560e01c8063deadbeef14601c578063deadbeef14601c57005b60015f5500")
    yield Code("an endless loop", "0x5b5f56")
    yield Code("memory without end", "0x5b5a515f56")
    yield Code("JUMPDESTs", jumpdests())
    yield Code("many blocks", block_code(2_000))
    yield Code("zeros", "00" * 131_072)
    yield Code("too much", "5b" * 131_073)
    yield Code("PUSHes", "60015050" * 6_000)
    yield Code("hostile text", HOSTILE)
    yield Code("empty Yul", "{}")
    yield Code("an empty object", 'object "" { code {} }')
    yield Code("wrong Yul", "{ let x := y }")
    yield Code(
        "a name as JSON has it",
        'object "null" { code { sstore(0, 1) } object "undefined_deployed" { code { return(0, 0) } } }',
    )
    yield Code("assembly", "; a comment\nstart: JUMPDEST PUSH1 1 POP PUSH @start JUMP ; and on")
    yield Code("JSON", '{"abi": null}')
    yield Code("a list", "[]")
    yield Code("an interface", '{"abi": [{"type": "function", "name": "f", "inputs": []}], "bytecode": "0x"}')
    yield Code("a long line", "{ sstore(0, " + "add(1, " * 1_500 + "2" + ")" * 1_501 + " }")
    yield Code("line ends", "\n" * 50_000)
    yield Code("Solidity", "pragma solidity ^0.8.0;\ncontract A { function f() public { uint x = 1; x = 2; } }")


def garbage(chance: random.Random) -> str:
    kind = chance.randrange(4)
    if kind == 0:
        return chance.randbytes(chance.randrange(1, 2_000)).hex()
    if kind == 1:
        return "".join(chance.choice(_WORDS) + chance.choice(" \n") for _ in range(chance.randrange(1, 200)))
    if kind == 2:
        return "".join(chr(chance.randrange(32, 0x3000)) for _ in range(chance.randrange(1, 300)))
    return " ".join(
        chance.choice(["PUSH1 1", "ADD", "JUMPDEST", "a:", "@a", "DATA 0x12", "PUSH2 @a"]) for _ in range(60)
    )


def codes(real: Sequence[Real], seed: int = 0) -> list[Code]:
    """As many as COUNT, the same for the same seed: all the odd ones, then real ones and mutations by turns."""
    chance = random.Random(seed)
    found = list(odd_codes())
    for each in real:
        found += [Code(each.name, each.runtime), Code(f"{each.name} with its ABI", each.artifact())]
        found.append(Code(f"{each.name}, creation", each.creation))
    while len(found) < COUNT:
        each = chance.choice(real)
        changed = mutated(each.runtime, chance)
        kind = chance.randrange(5)
        number = len(found)
        if kind < 2:
            found.append(Code(f"{each.name}, mutated ({number})", changed))
        elif kind < 4:
            found.append(Code(f"{each.name}, mutated, with its ABI ({number})", each.artifact(changed)))
        else:
            found.append(Code(f"garbage ({number})", garbage(chance)))
    return found[:COUNT]


# Goes through the page as a person in a hurry would, and answers with what it says that it should not.
VISIT = """(async (text, name, heavy) => {
    const app = window.fusevm, state = app.state, found = [];
    const frame = () => new Promise((done) => setTimeout(done, 16));
    const idle = async (until, most = 1500) => {
        for (let turn = 0; turn < most; turn++) { await frame(); if (!state.busy && until()) return true; }
        return false;
    };
    const buttons = (within) => [...document.querySelectorAll(within + ' button')];
    const button = (within, start) => buttons(within).find((each) => each.textContent.startsWith(start));
    const shown = (place) => {
        const words = /\\b(undefined|null|NaN)\\b/;
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const parent = node.parentElement;
            if (words.test(node.data) && !parent.closest('script') && !(text.includes(words.exec(node.data)[1])))
                found.push(`${place}: ${parent.className || parent.tagName}: ${node.data.slice(0, 90)}`);
        }
        for (const node of document.body.querySelectorAll('[title], [aria-label], svg *'))
            for (const { name: attribute, value } of node.attributes)
                if (words.test(value) && !text.includes(words.exec(value)[1]))
                    found.push(`${place}: ${attribute}=${value.slice(0, 90)}`);
    };
    const before = state.doc;
    state.error = null;
    document.querySelector('button.name').click();
    const dialog = document.querySelector('dialog');
    dialog.querySelector('.paste').value = text;
    dialog.querySelector('.open-name input').value = name;
    button('dialog', 'Explain').click();
    if (!(await idle(() => state.doc !== before || state.error, 9000))) return [`not explained in time: ${state.busy}`];
    shown('opened');
    if (state.doc === before) return found; // refused: in one line, which was looked at
    const views = document.querySelectorAll('#views .tabs button').length;
    for (const view of [views - 1, ...Array(views).keys()]) { // to compare before anything was run, and after
        const tab = document.querySelectorAll('#views .tabs button')[view];
        tab.click();
        await idle(() => true, 3000);
        shown(tab.textContent);
        for (const pane of ['source', 'yul', 'ir', 'bytecode', 'schedule']) {
            const rows = app.paneAt(pane)?.rows;
            if (!rows?.element.isConnected || !rows.count) continue;
            for (const line of [0, rows.count >> 1, rows.count - 1]) {
                rows.choose(line);
                await frame();
            }
        }
        shown(`${tab.textContent}, a line selected`);
        if (tab.textContent === 'Run') {
            const chooser = document.querySelector('.call select');
            const options = [...chooser.options].map((each) => each.value);
            const wanted = [...new Set([options[0], options[options.length >> 1], ...options.slice(-3)])];
            for (const value of wanted) {
                chooser.value = value;
                chooser.dispatchEvent(new Event('change'));
                shown(`form of ${value}`);
                const runs = state.runs.length;
                state.error = null;
                document.querySelector('.call button[type=submit]').click();
                await idle(() => state.runs.length > runs || state.error, 3000);
                shown(`run of ${value}`);
            }
            for (const label of ['Last step', 'One step back', 'First step', 'One step on']) {
                document.querySelector(`[data-pane=trace] [aria-label="${label}"]`)?.click();
                await frame();
            }
            document.querySelector('.flame-part:last-of-type')?.dispatchEvent(new Event('click'));
            for (const tab of document.querySelectorAll('.run-tabs button')) { tab.click(); await frame(); }
            shown('stepped');
        }
        if (tab.textContent === 'Graph') {
            const block = state.doc.graph?.blocks[0];
            if (block) app.paneAt('graph').canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'n' }));
            await idle(() => true);
            shown('a block');
        }
        if (tab.textContent === 'Compare') {
            button('[data-pane=compare]', 'Against')?.click();
            await idle(() => state.comparison || state.error, 3000);
            await frame();
            shown('compared');
        }
    }
    if (!heavy) {
        document.querySelector('[data-toggle=machine]')?.click();
        await idle(() => true, 3000);
        shown('machine');
        document.querySelector('[data-toggle=machine]')?.click();
    }
    const search = document.querySelector('#search');
    search.value = 'push';
    search.dispatchEvent(new Event('input'));
    await frame();
    shown('searched');
    search.value = '';
    search.dispatchEvent(new Event('input'));
    document.querySelector('#views .tabs button').click();
    await frame();
    return [...new Set(found)];
})(%s, %s, %s)"""
