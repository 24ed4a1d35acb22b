"""Answers in a notebook: tables and figures in place, hostile texts inert."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from markdown_payloads import PAYLOADS
from nbclient import NotebookClient
from support import make_project

from taskweaver.face.display import MOST_ROWS, ShownTable, answer_html, answer_markdown
from taskweaver.face.figures import AnswerFigure
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


def test_a_table_stands_where_the_text_has_it() -> None:
    page = answer_html(f"before\n\n{BLOCK}\n\nafter", [TABLE], [])
    assert page.index("before") < page.index("<table") < page.index("after")
    assert count(page, "table") == 1
    assert count(page, "pre") == 0


def test_a_table_that_the_text_shows_without_its_index_is_found() -> None:
    page = answer_html("The table:\n\n```\n n\n 1\n 2\n```", [TABLE], [])
    assert (count(page, "table"), count(page, "pre")) == (1, 0)


def test_a_table_that_the_text_shows_in_part_is_found() -> None:
    long = ShownTable(pd.DataFrame({"n": range(100)}), "")
    page = answer_html("It:\n\n```\n  n\n  0\n ..\n\n[100 rows x 1 columns]\n```", [long], [])
    assert (count(page, "table"), count(page, "pre")) == (1, 0)


def test_a_table_that_the_model_wrote_takes_the_place() -> None:
    assert count(answer_html("| n |\n|---|\n| 1 |", [TABLE], []), "table") == 1
    assert count(answer_html("a <table>", [TABLE], []), "table") == 1


def test_without_one_in_the_text_the_last_table_follows() -> None:
    other = ShownTable(pd.DataFrame({"m": [77]}), "")
    page = answer_html("The sum is 3.\n\n```\nx = 1\n```", [TABLE, other], [])
    assert count(page, "table") == 1
    assert "77" in Page(page).text
    assert count(page, "pre") == 1


def test_a_long_table_is_cut_and_says_its_size() -> None:
    page = answer_html("t", [ShownTable(pd.DataFrame({"n": range(1000)}), "")], [])
    assert count(page, "tr") <= MOST_ROWS + 2
    assert "1000 rows" in Page(page).text


def test_a_figure_stands_once_where_the_text_names_it() -> None:
    page = answer_html("![a](a.png) then", [], [figure("a.png"), figure("b.png")])
    assert count(page, "img") == 2
    assert page.index('alt="a.png"') < page.index("then") < page.index('alt="b.png"')


def test_a_figure_without_content_is_named() -> None:
    assert "big.png" in Page(answer_html("t", [], [figure("big.png", b"")])).text


def test_formulas_are_not_set() -> None:
    page = answer_html("costs $x$", [TABLE], [])
    assert page.startswith('<div class="taskweaver tex2jax_ignore mathjax_ignore">')


@pytest.mark.long
def test_an_answer_in_a_notebook_shows_its_table_and_its_figure(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    sources = [
        "from taskweaver import TaskWeaver\n"
        f"tw = TaskWeaver({str(project)!r}, {{'llm.api_type': 'offline'}})",
        "tw.ask('plot the sum of Count per Region in tiny.csv')",
        "answer = await tw.ask_async('and the mean?')\nprint(answer)",
        "async for event in tw.stream('how many rows has tiny.csv?'):\n    last = event\n"
        "print(last.t.value)",
        "tw.close()",
    ]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    (shown,) = notebook.cells[1].outputs
    page = shown["data"]["text/html"]
    assert count(page, "table") == 1
    assert count(page, "img") == 1
    assert "South" in shown["data"]["text/markdown"]
    assert "South" in shown["data"]["text/plain"]
    assert "mean of" in notebook.cells[2].outputs[0]["text"]
    assert notebook.cells[3].outputs[0]["text"] == "round_end\n"
    assert "\x1b" not in json.dumps(notebook)
