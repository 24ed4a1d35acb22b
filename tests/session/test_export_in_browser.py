"""Exports in a real browser: nothing of a conversation runs there or loads anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import mistune
import nbformat
import pytest
from browser import Tab, chromium_tab
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_payloads import ERROR, LEAK, LOADS, PAYLOADS, RUN, SCRIPT, SCRIPTS
from read_pages import commonmark, dangers
from search_story import node, small_run
from sizes import examples, some, spread

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.branched import MemoryConfig, MemoryManager
from taskweaver.memory.branched.run.paper import generate_final_memory
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.session.export import export
from taskweaver.treesearch.model.node import Measurement, NodeKind
from taskweaver.treesearch.reports.markdown_report import build_report
from taskweaver.utils.markup.inert_markdown import (
    inert_line,
    inert_markdown,
    inert_paragraph,
    inert_prose,
    inert_text,
)

_FOREIGN = (
    "[...document.querySelectorAll('main *')].flatMap((e) => [...e.attributes].filter((a) =>"
    " /^on|^style$|^srcset$/.test(a.name) && !/^text-align:/.test(a.value)).map((a) => a.name)"
    ".concat(/^(script|style|iframe|object|embed|form|base|meta|link|svg|math|video|audio|input"
    "|template|textarea)$/i.test(e.tagName) ? [e.tagName] : []))"
)
_LINKS = "[...document.querySelectorAll('main a')].map((a) => a.getAttribute('href'))"


def plain_commonmark(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).render(text)


def mistuned(text: str) -> str:
    plugins = ["table", "strikethrough", "url", "footnotes", "def_list", "task_lists", "math"]
    return str(mistune.create_markdown(escape=False, plugins=plugins)(text))


RENDERERS = some((commonmark, mistuned, plain_commonmark), 2)


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    """The tab of all tests; no page does anything in it before the last one."""
    with chromium_tab() as made:
        yield made


def shown(tab: Tab, folder: Path, body: str) -> list[str]:
    """Open a page with a body; return what it ran, asked for, and what stands in it."""
    page = folder / "page.html"
    text = f"<!doctype html><meta charset=utf-8><title>t</title><main>{body}</main>"
    page.write_text(text, "utf-8", errors="replace")
    tab.load(page)
    return effects(tab)


def effects(tab: Tab) -> list[str]:
    found = ["ran"] if tab.value("document.title") == "RAN" else []
    found += [url for url in tab.requests if not url.startswith(("file:", "data:"))]
    found += [str(text) for text in tab.complaints if "dialog" in str(text).lower()]
    return found


def conversation(payloads: tuple[str, ...]) -> list[Round]:
    rounds = []
    for number, payload in enumerate(payloads):
        post = Post.create(payload, "User", payload)
        for kind, content in (
            (AttachmentType.reply_content, f"x = {payload!r}"),
            (AttachmentType.execution_status, "SUCCESS"),
            (AttachmentType.artifact_paths, [f"{LEAK}.png", "//127.0.0.1:9/x.png", payload]),
        ):
            post.add_attachment(Attachment.create(kind, content))
        rounds.append(Round(f"r{number}", payload, "finished", [post]))
    return rounds


@pytest.mark.parametrize("renderer", RENDERERS)
def test_a_report_runs_and_loads_nothing(
    tab: Tab, tmp_path: Path, renderer: Callable[[str], str]
) -> None:
    export(conversation(PAYLOADS), tmp_path / "a.md", title="".join(PAYLOADS))
    found = shown(tab, tmp_path, renderer((tmp_path / "a.md").read_text("utf-8")))
    assert found == []
    assert tab.value(_FOREIGN) == []
    links = tab.value(_LINKS)
    assert "https://example.org" in links
    assert [link for link in links if not link.startswith(("http:", "https:", "mailto:"))] == []


def test_a_notebook_as_a_page_runs_and_loads_nothing(tab: Tab, tmp_path: Path) -> None:
    from nbconvert import HTMLExporter  # a second, for this test alone

    export(conversation(PAYLOADS), tmp_path / "a.ipynb", title="".join(PAYLOADS))
    notebook = nbformat.read(tmp_path / "a.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    exporter = HTMLExporter(mathjax_url="", require_js_url="", mermaid_js_url="", jquery_url="")
    page = tmp_path / "a.html"
    page.write_text(exporter.from_notebook_node(notebook)[0], "utf-8", errors="replace")
    tab.load(page)
    assert effects(tab) == []
    links = "[...document.querySelectorAll('.jp-MarkdownOutput a')].map((a) => a.protocol)"
    assert set(tab.value(links)) <= {"http:", "https:", "mailto:", "file:"}


_PIECES = (
    "```", "````", "~~~", "~~~~", "\n", "\n", "\n\n", "   ", "    ", "\t", "> ", "- ", "1. ", "`",
    "``", "|", "---", "===", "\\", "x", "*", "_", "#", "&lt;", "&#60;script>", "[", "](", ")", "![",
    "[r]: ", LEAK, "javascript:x", "<", ">", "<!--", "-->", "</p>", SCRIPT, ERROR, "<?", "$", "$$",
    "\\(", "\\begin{x}", "\r", "\u2028", "\x0b", "\x00", "\ud800", "python", ":",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=25).map("".join) | st.text(max_size=60)


@pytest.mark.parametrize("renderer", RENDERERS)
@given(text=TEXTS)
@settings(max_examples=examples(40))
def test_every_reader_agrees_that_nothing_acts(renderer: Callable[[str], str], text: str) -> None:
    for written in (
        inert_markdown(text),
        inert_text(text),
        inert_paragraph(text),
        f"# {inert_line(text)}",
        f"# {inert_prose(text)}",
    ):
        assert dangers(renderer(written)) == []
    # Also behind text, before text and in a quotation.
    assert dangers(renderer(f"a\n\n{inert_markdown(text)}\n\nb\n\n> {inert_line(text)}")) == []


def test_the_report_of_a_search_runs_and_loads_nothing(tab: Tab, tmp_path: Path) -> None:
    journal, facts = small_run()
    for number, payload in enumerate(PAYLOADS, 14):
        journal.put(node(
            number, NodeKind.IMPROVE, 0.99, parent="n0009", name=payload, plan=payload,
            output=payload, analysis=payload, metric=Measurement({payload: 0.99}),
        ))  # fmt: skip
    text = build_report(journal, replace(facts, title=PAYLOADS[0]), idea="".join(PAYLOADS))
    assert shown(tab, tmp_path, commonmark(text)) == []
    assert tab.value(_FOREIGN) == []


def test_the_final_memory_of_a_run_runs_and_loads_nothing(tab: Tab, tmp_path: Path) -> None:
    with MemoryManager(tmp_path / "m.sqlite", MemoryConfig(memory_log_enabled=False)) as memory:
        memory.create_branch(None, branch_id="root")
        for payload in PAYLOADS:
            memory.write_archival("root", payload, ["LLM_INSIGHT"])
        index = {
            "best_node_data": dict.fromkeys(("metric", "analysis", "plan"), PAYLOADS[3]),
            "top_nodes_data": [{"id": text, "analysis": text} for text in PAYLOADS],
        }
        generate_final_memory(memory, tmp_path, "root", "root", artifacts_index=index)
        name = memory.config.final_memory_filename_md
    text = (tmp_path / "memory" / name).read_text("utf-8")
    assert shown(tab, tmp_path, commonmark(text)) == []
    assert tab.value(_FOREIGN) == []


@given(text=TEXTS)
@settings(max_examples=examples(40))
def test_what_was_written_once_is_read_the_same_again(text: str) -> None:
    once = inert_markdown(text)
    assert dangers(commonmark(inert_markdown(once))) == []
    assert RUN not in str(dangers(commonmark(once)))


# The last one: payloads that work leave the browser in any state.
def test_without_the_allow_list_the_payloads_work(tab: Tab, tmp_path: Path) -> None:
    payloads = [*SCRIPTS, *LOADS]
    tried = some(spread(payloads, 6), len(payloads) // 6)
    working = [text for text in tried if shown(tab, tmp_path, commonmark(text))]
    assert len(working) > len(tried) / 2, [text for text in tried if text not in working]
