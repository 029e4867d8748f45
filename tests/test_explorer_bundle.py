"""The page's files: how they become one, and that nothing of a contract can become markup or code in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from fusevm.explorer.bundle import ASSETS, POLICY, asset, exported, modules, script, style

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)><!-- <script> ]]> \u2028"
CONTENT = {"document": {"name": HOSTILE, "panes": [{"lines": [{"text": HOSTILE}]}]}, "view": HOSTILE}
SCRIPTS = sorted(path.name for path in ASSETS.glob("*.js"))


class Tags(HTMLParser):
    """The elements of a page with their attributes, and the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style", "title"):
            self.texts.append((self._inside, data))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""


def test_every_module_is_part_of_the_page() -> None:
    assert sorted(modules()) == SCRIPTS


def test_modules_come_after_those_they_import() -> None:
    assert modules()[-1] == "main.js"
    assert modules().index("dom.js") < modules().index("rows.js") < modules().index("codepane.js")


def test_no_two_modules_declare_the_same_name() -> None:
    declared = Counter(
        name
        for each in SCRIPTS
        for name in re.findall(
            r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)",
            (ASSETS / each).read_text("utf-8"),
            re.MULTILINE,
        )
    )
    assert [name for name, count in declared.items() if count > 1] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_imports_are_of_names_that_are_exported(name: str) -> None:
    text = (ASSETS / name).read_text("utf-8")
    lines = [line for line in text.splitlines() if line.startswith("import")]
    for line in lines:
        found = re.fullmatch(r'import \{ ([\w, ]+) \} from "\./(\w+\.js)";', line)
        assert found is not None, line
        other = (ASSETS / found[2]).read_text("utf-8")
        for wanted in found[1].split(", "):
            assert re.search(rf"^export (?:async )?(?:function|const|let|class) {wanted}\b", other, re.MULTILINE), (
                wanted
            )
            assert len(re.findall(rf"\b{wanted}\b", text)) > 1, f"{wanted} is imported and not used"


def test_the_one_script_has_neither_imports_nor_exports() -> None:
    assert not re.search(r"^(import|export)\b", script(), re.MULTILINE)
    assert not re.search("</script|<!--|<script", script(), re.IGNORECASE), "it would end early inside a page"


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_module_makes_markup_or_code_of_text(name: str) -> None:
    text = (ASSETS / name).read_text("utf-8")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc",
                 "DOMParser", "createContextualFragment", "setHTML", "javascript:"):  # fmt: skip
        assert word not in text


def test_the_page_loads_nothing_from_elsewhere() -> None:
    for path in ASSETS.iterdir():
        for address in re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", path.read_text("utf-8")):
            assert address == "http://www.w3.org/2000/svg", f"{path.name}: {address}"


def test_the_policy_allows_no_inline_script_and_nobody_elses() -> None:
    policy = POLICY["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in policy


def test_a_file_is_found_by_its_name_alone() -> None:
    assert asset("page.html") is not None
    for name in ("../bundle.py", "/etc/passwd", "", ".", "..", "assets/page.html"):
        assert asset(name) is None


def test_an_export_is_one_file_with_its_data_its_style_and_its_script() -> None:
    tags = Tags(exported({"document": {"name": "vault.yul"}}))
    names = Counter(tag for tag, _ in tags.found)
    assert names["link"] == 0
    assert names["script"] == 2
    assert names["style"] == 1
    assert not any("src" in attributes or "href" in attributes for _, attributes in tags.found)
    assert ("title", "vault.yul · fusevm explorer") in tags.texts


def test_an_export_runs_its_own_script_alone() -> None:
    tags = Tags(exported({"document": {"name": "x"}}))
    policy = next(a["content"] for tag, a in tags.found if tag == "meta" and a.get("http-equiv"))
    assert policy is not None
    assert "unsafe" not in policy
    for text, kind in ((script(), "script"), (style(), "style")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
        assert (kind, text) in tags.texts


def test_nothing_of_a_contract_becomes_markup_in_an_export() -> None:
    page = exported(CONTENT)
    plain, hostile = Tags(exported({"document": {"name": "x"}})), Tags(page)
    assert [tag for tag, _ in hostile.found] == [tag for tag, _ in plain.found]
    data = next(text for kind, text in hostile.texts if kind == "script")
    assert json.loads(data) == CONTENT
