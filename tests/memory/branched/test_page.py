"""The page of a memory file: inert, linear, and right in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from browser import Tab, chromium_tab
from memories import Clock, Open

from taskweaver.memory.branched import MemoryManager

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)> \u2028 &☃\""


def page_of(memory: MemoryManager, **options: Any) -> tuple[Path, str]:
    target = memory.path.with_name("page.html")
    memory.write_page(target, **options)
    return target, target.read_text("utf-8")


def test_hostile_text_stays_text_and_nothing_is_fetched(memory: MemoryManager) -> None:
    memory.write_archival("a", HOSTILE, [HOSTILE])
    memory.set_core("a", "k", HOSTILE)
    _, text = page_of(memory, title=HOSTILE)
    assert (text.count("<script"), text.count("<img")) == (2, 0)
    (shown,) = re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert "\u2028" not in shown
    data = json.loads(shown)
    assert (data["archival"][0][3], data["core"][-1][3]) == (HOSTILE, HOSTILE)
    elsewhere = r"https?://|@import|url\(|<\w+[^>]* src=|rel=.stylesheet|innerHTML"
    assert not re.findall(elsewhere, text.replace(shown, ""))


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


SEARCH = "(name, value) => { const at = document.getElementById(name); at.value = value;"
SEARCH += " at.dispatchEvent(new Event('input')); return document.body.innerText }"


def test_the_page_finds_texts_goes_back_and_compares(memory: MemoryManager) -> None:
    memory.fork("a", "trial")
    memory.update_branch_node_uid("trial", "n7")
    memory.set_core("trial", "plan", "walk")
    old = memory["a"].remember("the bridge is open")
    memory.promote(old, "trial", branch_id="a")
    (copy,) = memory["trial"].records()
    memory["trial"].remember("the bridge is closed", replaces=[copy.id])
    memory.write_event("trial", "node_result", "node_id=trial metric=0.5 is_buggy=False")
    page, _ = page_of(memory, run_page="../tree.html")
    with chromium_tab() as tab:
        tab.load(page, "#branch=trial")
        text = tab.value("document.body.innerText")
        link = tab.value("document.querySelector('main a').getAttribute('href')")
        found = tab.value(f"({SEARCH})('find', 'bridge')")
        tab.value(f"({SEARCH})('find', '')")
        early = tab.value(f"({SEARCH})('at', '1')")
        tab.value(f"({SEARCH})('at', '1000')")
        press = "[...document.querySelectorAll('[role=tab]')][1].click()"
        differs = tab.value(f"{press}, document.querySelector('main').innerText")
    assert "metric 0.5" in text
    assert link == "../tree.html#n7"
    now, _, past = text.lower().partition("no longer true")
    assert ("the bridge is closed" in now, "the bridge is open" in now) == (True, False)
    assert "the bridge is open" in past
    assert "replaced by #" in past
    assert "the bridge is closed" in found
    assert "walk" not in found
    assert "walk" not in early
    assert "walk" in differs
    assert "metric" not in early
