"""The answer to a question: text, tables, figures, files, code, cost."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from taskweaver.ces.common import CellTable
from taskweaver.face.tables import ReadTables, read_tables
from taskweaver.llm.types import Usage
from taskweaver.memory.cells import ExecutedCell, executed_cells, parts_of
from taskweaver.memory.round import Round
from taskweaver.memory.suggestions import Suggestion
from taskweaver.role.forms.memory_calls import kept
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.markup.characters import without_steering
from taskweaver.utils.markup.inert_markdown import inert_line, inert_markdown
from taskweaver.utils.redact import redact_known, redact_secrets
from taskweaver.utils.text import counted

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


@dataclass(frozen=True, slots=True)
class AnswerCost:
    """The consumption of an answer.

    Attributes:
        usage: Counts of the model calls.
    """

    usage: Usage

    @property
    def calls(self) -> int:
        """Number of model calls."""
        return self.usage.calls

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.usage.total_tokens

    @property
    def money(self) -> float | None:
        """Price in the currency of `llm.prompt_price`; None if no prices are configured."""
        return self.usage.cost

    def __repr__(self) -> str:
        return f"<AnswerCost: {self}>"

    def __str__(self) -> str:
        """The cost in a few words."""
        about = "about " if self.usage.is_estimated else ""
        tokens = f"{about}{counted(self.tokens, 'token')} in {counted(self.calls, 'call')}"
        return tokens if self.money is None else f"{tokens}, {self.money:.4f}"


@dataclass(frozen=True)
class TaskAnswer:
    """The answer to a question; `str` gives its text, a notebook shows tables and figures in it.

    Attributes:
        round: The question and the posts that answered it.
        figures: Pictures that its code drew.
        files: Other files that its code wrote, in the session's working folder.
        cost: Consumption of the models.
        warnings: Parts that failed although the question was answered, a sentence each.
    """

    round: Round
    figures: tuple[AnswerFigure, ...]
    files: tuple[Path, ...]
    cost: AnswerCost
    warnings: tuple[str, ...]
    _reported: tuple[CellTable, ...] = ()

    @property
    def text(self) -> str:
        """The answer in words; empty for a question that was not answered."""
        return self.round.answer.text

    @property
    def is_answered(self) -> bool:
        """Whether the question was answered; False for a text that says why it was not."""
        return self.round.is_answered

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Questions that the answer offers; the text of each can be asked as it is."""
        return self.round.answer.suggestions.questions

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on how the question was read, which stand in the text too."""
        return self.round.answer.suggestions.notes

    @property
    def memory(self) -> tuple[str, ...]:
        """Lines on facts that were kept or forgotten, and questions for a yes or no about them."""
        return tuple(one.line for post in self.round.post_list for one in kept(post))

    @cached_property
    def cells(self) -> tuple[ExecutedCell, ...]:
        """The cells that ran, with their outcomes, failed ones too."""
        return tuple(executed_cells([self.round]))

    @property
    def code(self) -> str:
        """The code of the cells that ran to their end, an empty line between each two."""
        return "\n\n".join(cell.code.strip("\n") for cell in self.cells if cell.is_success)

    @property
    def tables(self) -> list[Any]:
        """The values of cells that are tables, as pandas DataFrames, in order.

        A long table has its first rows; `table_notes` names it.
        """
        return [frame for _, frame in self._read.frames]

    @property
    def table_notes(self) -> list[str]:
        """A sentence for each table that lacks rows."""
        return list(self._read.notes)

    @cached_property
    def _read(self) -> ReadTables:
        return read_tables(self._reported)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """The text and the paths of what was made, as a Python shell shows them."""
        paths = [figure.path for figure in self.figures] + list(self.files)
        return "\n".join([self.text, *map(str, paths)])

    def _repr_html_(self) -> str:
        results = {cell.post_id: parts_of(cell.report).get("Result", "") for cell in self.cells}
        tables = [
            ShownTable(frame, results.get(exec_id, "")) for exec_id, frame in self._read.frames
        ]
        return answer_html(self.text, tables, self.figures, code=self.code, cost=str(self.cost))

    def _repr_markdown_(self) -> str:
        return answer_markdown(self.text, [figure.path for figure in self.figures])


def build_answer(
    round_: Round,
    folder: Path,
    usage: Usage,
    warnings: Sequence[str] = (),
    tables: Sequence[CellTable] = (),
) -> TaskAnswer:
    """Return the answer of a round.

    Args:
        round_: The round.
        folder: The session's working folder, from which pictures are read.
        usage: Consumption of the models.
        warnings: Parts that failed.
        tables: Tables that its cells ended with.
    """
    names = dict.fromkeys(round_.artifacts)
    files = tuple(folder / name for name in names if not is_picture(name))
    figures = tuple(read_figures(filter(is_picture, names), folder))
    return TaskAnswer(round_, figures, files, AnswerCost(usage), tuple(warnings), tuple(tables))
