"""The answer to a question: text, tables, figures, files, code, cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from taskweaver.ces.cell_tables import CellTable
from taskweaver.face.display import (
    AnswerFigure,
    ShownTable,
    answer_html,
    answer_markdown,
    is_picture,
    read_figures,
)
from taskweaver.face.tables import ReadTables, read_tables
from taskweaver.llm.types import Usage
from taskweaver.memory.forms.suggestions import Suggestion
from taskweaver.memory.reading.cells import ExecutedCell, executed_cells
from taskweaver.memory.round import Round
from taskweaver.session.exports.outputs import parts_of
from taskweaver.utils.text import counted


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
