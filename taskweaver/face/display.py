"""Pictures of an answer, and answers as notebooks show them."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.markup.characters import without_steering
from taskweaver.utils.markup.inert_markdown import inert_line, inert_markdown
from taskweaver.utils.redact import redact_known, redact_secrets

MAX_FIGURE_BYTES = 4 << 20
"""Size of the largest picture that is read."""
MAX_FIGURES_BYTES = 32 << 20
"""Size of all pictures of an answer that are read."""
_FORMATS = {
    ".png": ("image/png", b"\x89PNG\r\n\x1a\n"),
    ".jpg": ("image/jpeg", b"\xff\xd8\xff"),
    ".jpeg": ("image/jpeg", b"\xff\xd8\xff"),
    ".gif": ("image/gif", b"GIF8"),
    ".svg": ("image/svg+xml", b""),
}
"""MIME types and first bytes, by the end of a file's name."""


@dataclass(frozen=True, slots=True)
class AnswerFigure:
    """A picture; a notebook shows it.

    Attributes:
        path: The file, in the session's working folder.
        mime: Its MIME type.
        data: Its content, such as PNG; empty for SVG, which can hold script, and for a file that
            is too large.
    """

    path: Path
    mime: str
    data: bytes

    def __repr__(self) -> str:
        return f"AnswerFigure({str(self.path)!r})"

    def _repr_html_(self) -> str:
        name = html.escape(self.path.name)
        if not self.data:
            return f"<p>{name} is not shown; the file has it.</p>"
        content = base64.b64encode(self.data).decode()
        return f'<img alt="{name}" style="max-width:100%" src="data:{self.mime};base64,{content}">'


def is_picture(name: str) -> bool:
    """Return whether a file has the name of a picture."""
    return Path(name).suffix.lower() in _FORMATS


def read_figures(names: Iterable[str], folder: Path) -> Iterator[AnswerFigure]:
    """Read pictures, up to `MAX_FIGURE_BYTES` each and `MAX_FIGURES_BYTES` together.

    Args:
        names: Paths relative to the folder.
        folder: A working folder, which code can write to; no link in it is followed.
    """
    left_bytes = MAX_FIGURES_BYTES
    for name in names:
        mime, magic = _FORMATS[Path(name).suffix.lower()]
        data = _content(folder, name, min(MAX_FIGURE_BYTES, left_bytes)) if magic else b""
        data = data if data.startswith(magic) else b""
        left_bytes -= len(data)
        yield AnswerFigure(folder / name, mime, data)


def _content(folder: Path, name: str, most_bytes: int) -> bytes:
    """Return the content of a file; empty for one that is too large, missing or no file."""
    try:
        with Folder.at(folder) as opened, opened.open_file(name) as file:
            content = file.read(most_bytes + 1)
    except (OSError, ValueError):  # code can remove or replace the files that it has written
        return b""
    return content if len(content) <= most_bytes else b""


MOST_ROWS, MOST_COLUMNS = 60, 20
"""Size of a table that is shown whole, as pandas does it; of a longer one `FEW_ROWS` are."""
FEW_ROWS = 10
_MOST_COMPARED = 20_000
"""Values of a table whose text is looked for in the answer."""
_NO_FORMULAS = "tex2jax_ignore mathjax_ignore"
"""Classes of elements in which notebooks set no formulas."""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table beside the text that the model saw of it.

    Attributes:
        frame: The data frame.
        result: Its text in the report of the cell; a block of the answer with this text is shown
            as the table.
    """

    frame: Any
    result: str


def answer_html(
    text: str,
    tables: Sequence[ShownTable],
    figures: Sequence[AnswerFigure],
    *,
    code: str = "",
    cost: str = "",
) -> str:
    """Return an answer as HTML that runs and loads nothing.

    A table or a figure that the text holds is shown there; the other figures and, if the text
    holds no table, the last one follow.

    Args:
        text: The answer in words.
        tables: The values of its cells that are tables.
        figures: Its pictures.
        code: Its code, folded away.
        cost: Its cost.
    """
    page = _Page(tables, figures)
    parts = [page.render(text), *page.rest()]
    if code:
        shown = _preformatted(redact_secrets(without_steering(code)))
        parts.append(f"<details><summary>code</summary>{shown}</details>")
    if cost:
        parts.append(f'<p style="opacity:0.6"><small>{html.escape(cost)}</small></p>')
    return f'<div class="taskweaver {_NO_FORMULAS}">\n' + "\n".join(parts) + "\n</div>"


def answer_markdown(text: str, figures: Sequence[Path]) -> str:
    """Return an answer as Markdown that no renderer makes script or a request of.

    Args:
        text: The answer in words.
        figures: Paths of its pictures, which are named.
    """
    named = [f"Figure: {inert_line(str(path))}" for path in figures]
    return "\n\n".join([inert_markdown(redact_secrets(text)), *named])


class _Page:
    """Rendering of one answer, which records the tables and figures that the text holds."""

    def __init__(self, tables: Sequence[ShownTable], figures: Sequence[AnswerFigure]) -> None:
        self._tables = tables
        self._by_words = {words: table for table in tables for words in _forms(table)}
        self._figures: Mapping[str, AnswerFigure] = {item.path.name: item for item in figures}
        self._has_table = False
        self._shown: set[str] = set()

    def render(self, text: str) -> str:
        """Return the text as HTML."""
        from markdown_it import MarkdownIt

        parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        renderer: Any = parser.renderer
        renderer.rules |= {"fence": self._fence, "image": self._image}
        page = str(parser.render(inert_markdown(redact_secrets(text))))
        self._has_table = "<table" in page  # in the text itself the bracket is escaped
        return page

    def rest(self) -> list[str]:
        """Return the HTML of everything that the text does not hold."""
        is_missing = bool(self._tables) and not self._has_table
        tables = [_table(self._tables[-1].frame)] if is_missing else []
        figures = [item for name, item in self._figures.items() if name not in self._shown]
        return tables + [f"<p>{item._repr_html_()}</p>" for item in figures]

    def _fence(self, tokens: Sequence[Any], at: int, *_: Any) -> str:
        content = str(tokens[at].content)
        words = _words(content)
        table = self._by_words.get(words) or next(
            (item for item in self._tables if words.endswith(_shape(item.frame))), None
        )
        return _preformatted(content) if table is None else _table(table.frame)

    def _image(self, tokens: Sequence[Any], at: int, *_: Any) -> str:
        name = str(tokens[at].attrs.get("src", "")).rpartition("/")[2]
        if name in self._figures:
            self._shown.add(name)
            return self._figures[name]._repr_html_()
        return html.escape(str(tokens[at].content))


def _forms(table: ShownTable) -> set[str]:
    """Return the texts that stand for a table in an answer, without their layout."""
    texts = [table.result]
    if table.frame.size <= _MOST_COMPARED:
        texts += [table.frame.to_string(), table.frame.to_string(index=False)]
    return set(filter(None, map(_words, texts)))


def _shape(frame: Any) -> str:
    """Return the words at the end of the text of a table that pandas has cut."""
    return f"[{len(frame)} rows x {frame.shape[1]} columns]"


def _preformatted(text: str) -> str:
    return f'<pre style="font-family:monospace">{html.escape(text)}</pre>\n'


def _words(text: str) -> str:
    return " ".join(text.split())


def _table(frame: Any) -> str:
    """Return a data frame as HTML, the middle of a long one left out."""
    rows = MOST_ROWS if len(frame) <= MOST_ROWS else FEW_ROWS
    is_cut = len(frame) > rows or frame.shape[1] > MOST_COLUMNS
    text = frame.to_html(
        max_rows=rows, max_cols=MOST_COLUMNS, border=0, escape=True, show_dimensions=is_cut
    )
    return f'<div class="{_NO_FORMULAS}">{redact_known(without_steering(text))}</div>\n'
