"""Answers in a notebook: tables and figures in place, hostile texts inert."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from markdown_payloads import PAYLOADS

from taskweaver.face.answer import (
    MOST_ROWS,
    AnswerFigure,
    ShownTable,
    answer_html,
    answer_markdown,
)
from taskweaver.utils.markup.inert_markdown import inert_markdown
from taskweaver.utils.redact import redact_secrets

pytestmark = pytest.mark.usefixtures("no_states")

PNG = b"\x89PNG\r\n\x1a\n"
TABLE = ShownTable(pd.DataFrame({"n": [1, 2]}), "   n\n0  1\n1  2")
BLOCK = f"```\n{TABLE.result}\n```"
TAGS = frozenset(
    "a blockquote br code details div em h1 h2 h3 h4 h5 h6 hr img li ol p pre s small strong"
    " summary table tbody td th thead tr ul".split()
)


class Page(HTMLParser):
    """Tags of a page, with the texts inside them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, attribute: str) -> list[str]:
        return [attrs[attribute] for _, attrs in self.tags if attribute in attrs]


def count(page: str, tag: str) -> int:
    return sum(name == tag for name, _ in Page(page).tags)


def figure(name: str, data: bytes = PNG) -> AnswerFigure:
    return AnswerFigure(Path("/w") / name, "image/png", data)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_data_runs_and_loads_nothing(payload: str) -> None:
    frame = pd.DataFrame({payload: [payload]}, index=pd.Index([payload], name=payload))
    frame.columns.name = payload
    name = payload.replace("/", "_").replace("\0", "_") + ".png"
    page = answer_html(
        f"{payload}\n\n![x]({name})\n\n```\n{payload}\n```",
        [ShownTable(frame, "other")],
        [figure(name), figure(name, b"")],
        code=payload,
        cost=payload,
    )
    found = Page(page)
    assert {tag for tag, _ in found.tags} <= TAGS
    names = {attribute for _, attrs in found.tags for attribute in attrs}
    assert names <= {"alt", "class", "href", "src", "style", "title", "start"}
    assert all(source.startswith("data:image/png;base64,") for source in found.values("src"))
    for target in found.values("href"):
        assert target.startswith(("http://", "https://", "mailto:")) or ":" not in target
    assert "\x1b" not in page
    assert inert_markdown(redact_secrets(payload)) in answer_markdown(payload, [Path(name)])


def shape(text: str, *tables: ShownTable) -> tuple[int, int]:
    """Return the numbers of tables and of preformatted texts in an answer."""
    page = answer_html(text, tables, [])
    return count(page, "table"), count(page, "pre")


def test_a_table_stands_where_the_text_has_it_or_follows() -> None:
    page = answer_html(f"before\n\n{BLOCK}\n\nafter", [TABLE], [])
    assert page.index("before") < page.index("<table") < page.index("after")
    assert page.startswith('<div class="taskweaver tex2jax_ignore mathjax_ignore">')
    long = ShownTable(pd.DataFrame({"n": range(100)}), "")
    other = ShownTable(pd.DataFrame({"m": [77]}), "")
    assert shape(BLOCK, TABLE) == (1, 0)
    assert shape("The table:\n\n```\n n\n 1\n 2\n```", TABLE) == (1, 0), "without its index"
    assert shape("It:\n\n```\n 0\n ..\n\n[100 rows x 1 columns]\n```", long) == (1, 0), "in part"
    assert shape("| n |\n|---|\n| 1 |", TABLE) == (1, 0), "as the model wrote it"
    assert shape("a <table>", TABLE) == (1, 0)
    assert shape("The sum is 3.\n\n```\nx = 1\n```", TABLE, other) == (1, 1), "the last one"
    page = answer_html("t", [TABLE, other], [])
    assert "77" in Page(page).text
    page = answer_html("t", [ShownTable(pd.DataFrame({"n": range(1000)}), "")], [])
    assert count(page, "tr") <= MOST_ROWS + 2
    assert "1000 rows" in Page(page).text


def test_a_figure_stands_once_where_the_text_names_it() -> None:
    page = answer_html("![a](a.png) then", [], [figure("a.png"), figure("b.png")])
    assert count(page, "img") == 2
    assert page.index('alt="a.png"') < page.index("then") < page.index('alt="b.png"')
    assert "big.png" in Page(answer_html("t", [], [figure("big.png", b"")])).text
