"""The page of a memory file: inert, linear, and right in a real browser."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import Tab, chromium_tab
from memories import Clock, Open

from taskweaver.memory.branched import MemoryManager, StoreUnwritable

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)> \u2028 & ☃ \""
)


class Scripts(HTMLParser):
    """Collects scripts and tags as a browser would find them."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self._is_inside = True
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self.scripts[-1] += data


def page_of(memory: MemoryManager, **options: Any) -> tuple[Path, Scripts]:
    target = memory.path.with_name("page.html")
    memory.write_page(target, **options)
    found = Scripts()
    found.feed(target.read_text("utf-8"))
    return target, found


def test_hostile_text_stays_text(memory: MemoryManager) -> None:
    memory.write_archival("a", HOSTILE, [HOSTILE])
    memory.set_core("a", "k", HOSTILE)
    memory.write_event("a", "k", HOSTILE)
    target, found = page_of(memory, title=HOSTILE)
    assert len(found.scripts) == 2
    assert not [tag for tag, _ in found.tags if tag == "img"]
    data = json.loads(found.scripts[0])
    assert data["archival"][0][3] == HOSTILE
    assert data["core"][-1][3] == HOSTILE
    assert "\u2028" not in target.read_text("utf-8").split('id="data">')[1].split("</script>")[0]


def test_the_page_needs_nothing_from_elsewhere(memory: MemoryManager) -> None:
    target, found = page_of(memory)
    assert not re.findall(r"https?://|@import|url\(", target.read_text("utf-8"))
    assert not [a for _, a in found.tags if "src" in a or a.get("rel") == "stylesheet"]
    assert "innerHTML" not in target.read_text("utf-8")


def test_the_page_grows_with_the_file_and_not_with_the_depth(open_memory: Open) -> None:
    sizes = []
    for depth in (100, 200):
        memory = open_memory(f"d{depth}.sqlite", synchronous="NORMAL", auto_consolidate=False)
        name = memory.create_branch(None, branch_id="d0")
        for level in range(depth):
            name = memory.fork(name, f"d{level + 1}")
            memory.write_event(name, "k", "x" * 200)
        sizes.append(page_of(memory)[0].stat().st_size)
    template = 17_000
    assert (sizes[1] - template) / (sizes[0] - template) < 2.3


def test_a_page_that_cannot_be_written_is_said(memory: MemoryManager, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritable):
        memory.write_page(tmp_path / "file" / "page.html")


def shown(tab: Tab, page: Path, branch: str) -> str:
    """Return the page's elements after its scripts ran."""
    tab.load(page, f"#branch={branch}")
    return str(tab.value("document.querySelector('main').outerHTML + document.head.outerHTML"))


def test_a_browser_shows_what_the_branch_sees(memory: MemoryManager, clock: Clock) -> None:
    memory.set_core("a", "goal", "an even faster solver")
    memory.set_core("a", "soon", "gone", ttl=10)
    memory.mem_core_set("goal", "tried for now", ttl=10, branch_id="b")
    memory.set_core("b", "secret", "of b")
    memory.write_event("a", "tried", HOSTILE)
    memory.fork("a", "child")
    memory.mem_core_del("goal", branch_id="a")
    memory.write_event("a", "tried", "after the fork")
    clock.now += 20
    page, _ = page_of(memory)
    with chromium_tab() as tab:
        child, parent, other = (shown(tab, page, branch) for branch in ("child", "a", "b"))
    assert "an even faster solver" in child
    assert "a faster solver" not in child
    assert "onerror=alert(1)&gt;" in child
    assert "after the fork" not in child
    assert "of b" not in child
    assert "gone" not in child
    assert "owned" not in child.split("<title>")[1].split("</title>")[0]
    assert "faster solver" not in parent
    assert "after the fork" in parent
    assert "a faster solver" in other
    assert "tried for now" not in other


def test_the_page_counts_in_singular_and_plural_and_names_the_root_once(
    open_memory: Open,
) -> None:
    memory = open_memory("counts.sqlite")
    memory.create_branch(None, branch_id="trunk")
    memory.write_event("trunk", "k", "one")
    with chromium_tab() as tab:
        tab.load(page_of(memory)[0])
        facts = tab.text("#facts")
        assert facts.startswith("1 branch, 1 event, 0 records, as of row ")
        assert tab.text("main .soft") == "root"
        memory.fork("trunk", "twig")
        memory.write_archival("twig", "two")
        tab.load(page_of(memory)[0])
        assert tab.text("#facts").startswith("2 branches, 1 event, 1 record, ")
        assert tab.complaints == []


def test_a_browser_copes_with_a_thousand_levels(open_memory: Open) -> None:
    memory = open_memory(synchronous="NORMAL")
    name = memory.create_branch(None, branch_id="d0")
    memory.set_core("d0", "goal", "seen from far below")
    for level in range(1, 1000):
        name = memory.fork(name, f"d{level}")
    page, _ = page_of(memory)
    with chromium_tab() as tab:
        assert "seen from far below" in shown(tab, page, "d999")
