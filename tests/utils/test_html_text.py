"""Text of pages, also of those made to take forever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskweaver.utils.markup.html import HtmlText, html_text

PAGE = """<!DOCTYPE html><html><head><title>A &amp; B</title><style>p { x: y }</style></head>
<body><h2>Part <b>one</b></h2><p>first
line<p>second<script>if (a<b) { "<p>no" }</script><!-- <p>no --> 3 < 4<br>x
<ul><li>a<li>b</ul></body></html>"""


def test_a_page_is_read_as_headings_and_paragraphs() -> None:
    text = "## Part one\n\nfirst line\n\nsecond 3 < 4\nx\n\n- a\n- b"
    assert html_text(PAGE) == HtmlText("A & B", text)


@pytest.mark.parametrize(
    "piece",
    [
        *("<!--", "<a ", "<a b='", "</", "<![CDATA[", "<![CDATA[x>", "<?", "<!", "<a/", "<script>"),
        *("<textarea>", "<title>", "<a " + "b=c " * 450 + ">", "<svg></sv>", "\u0130<script>"),
    ],
)
def test_a_page_of_tags_that_never_end_is_read_at_once(piece: str) -> None:
    # The standard parser alone takes an hour for some of these; the runner's timeout is the check.
    length = 1_000_000 if piece.startswith("<!") else 500_000  # sooner read
    assert isinstance(html_text(piece * (length // len(piece))).text, str)


@given(st.text(alphabet="<>/!-?a='\" bp&;script"))
def test_any_text_is_read(page: str) -> None:
    assert "\n\n\n" not in html_text(page).text
