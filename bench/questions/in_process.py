"""Questions, put to the parts of the offline analyst in this process: no session and no kernel.

The files are profiled, the dialogue reads the messages, and the code of a reading is run here. It
takes a tenth of the time of `bench.questions.asking`, which puts the questions to the product.
"""

from __future__ import annotations

import ast
import contextlib
import io
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd

from bench.questions.asking import WORST_LAST, Asked
from bench.questions.files import place
from bench.questions.judging import Answer, Verdict, judge
from bench.questions.model import Question
from taskweaver.analyst.code.cell import as_code
from taskweaver.analyst.dialogue import Dialogue
from taskweaver.analyst.model.refusals import about_answer, files_answer
from taskweaver.analyst.readings import (
    About,
    FileListing,
    Help,
    NeedsLook,
    NotUnderstood,
    Unclear,
    Understood,
)
from taskweaver.analyst.wording.answers import answer
from taskweaver.ces.inkernel.namespace import PANDAS_OPTIONS
from taskweaver.tables.files.profile import FileInfo, PartInfo, TableId, TableProfile, World
from taskweaver.tables.files.profile_report import merged
from taskweaver.tables.reading import Table
from taskweaver.tables.session import READS, profiles, read

_MOST_LOOKS = 3


def ask(questions: Iterable[Question]) -> Iterator[Asked]:
    """Ask questions; yield each as it is answered. The working folder changes meanwhile."""
    by_files = sorted(questions, key=lambda question: question.files)
    for files, group in groupby(by_files, key=lambda question: question.files):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for file in files:
                place(file, Path(folder))
            tables = _Tables()
            listed = tuple(map(tables.listed, files))
            for question in group:
                yield Conversation(listed, tables).ask(question, Path(folder))


class _Tables:
    """Tables of files, which are read once for all questions about them."""

    def __init__(self) -> None:
        self._tables: dict[TableId, Table] = {}

    def listed(self, file: str) -> FileInfo:
        """Return a file's entry in the list of files; one that cannot be read has no parts."""
        try:
            found = self.profiles(file, "")
        except Exception:  # noqa: BLE001 - the list of files of the product names such a file too
            return FileInfo(file)
        self._tables |= {table.id: READS.take(file, table.id.part) for table in found}
        return FileInfo(
            file,
            tuple(
                PartInfo(table.id.part, tuple(c.name for c in table.columns), table.rows)
                for table in found
            ),
        )

    def profiles(self, file: str, find: str) -> tuple[TableProfile, ...]:
        """Profile a file; the next question gets frames of its own to work on."""
        for id, table in self._tables.items():
            if id.file == file:
                READS.keep(file, id.part, replace(table, frame=table.frame.copy()))
        with contextlib.redirect_stdout(io.StringIO()):
            return tuple(merged({}, repr(profiles(file, find, matches_only=False))).values())


class Conversation:
    """A conversation about files of the working folder."""

    def __init__(self, files: tuple[FileInfo, ...], read_once: _Tables) -> None:
        self._files = files
        self._read_once = read_once
        self._tables: dict[TableId, TableProfile] = {}
        self._dialogue = Dialogue()
        self._names: dict[str, Any] = {"read_table": lambda path, sheet=None: read(path, sheet)}

    def ask(self, question: Question, folder: Path) -> Asked:
        """Ask a question and judge its answers."""
        answers, verdicts = [], list[Verdict]()
        for turn in question.turns:
            answers.append(self.say(turn.ask.replace("{data}", str(folder))))
            if turn.kind:
                verdicts.append(judge(question, turn, answers[-1]))
        return Asked(question, tuple(answers), max(verdicts, key=WORST_LAST.index))

    def say(self, text: str) -> Answer:
        """Return the answer to a message."""
        for _ in range(_MOST_LOOKS):
            self._dialogue, outcome = self._dialogue.say(text, World(self._files, self._tables))
            if not isinstance(outcome, NeedsLook):
                break
            for file in outcome.files:
                try:
                    looked = self._read_once.profiles(file, outcome.find or text)
                except Exception as error:  # noqa: BLE001 - a file that cannot be read
                    return Answer(f"I could not do this. The code failed with: {error}")
                self._tables |= {table.id: table for table in looked}
        else:
            raise AssertionError(f"it wants to look again after {_MOST_LOOKS} looks")
        match outcome:
            case Understood():
                return self._answered(text, outcome)
            case Unclear(question):
                return Answer(question, is_question=True)
            case NotUnderstood(words, reason):
                said = f"I did not understand: {', '.join(words)}."
                return Answer(f"{reason} {said}" if reason else said, is_question=True)

    def _answered(self, request: str, understood: Understood) -> Answer:
        if isinstance(understood.reading, Help):
            return Answer("I did not understand that.")
        if isinstance(understood.reading, About):
            return Answer(about_answer(understood.reading, World(self._files, self._tables)))
        if isinstance(understood.reading, FileListing):
            return Answer(files_answer(request, self._files))
        before = set(Path().glob("*.png"))
        code = as_code(understood.reading, self._tables)
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                result = self._run(code)
        except Exception as error:  # noqa: BLE001 - a defect of the code is a wrong answer
            return Answer(f"I could not do this. The code failed with: {error!r}", code=code)
        finally:  # the figures of a cell are closed after it
            plt.close("all")
        pictures = sorted(str(path) for path in set(Path().glob("*.png")) - before)
        text = answer(understood, printed.getvalue(), result, pictures)
        return Answer(text, code=code, pictures=pictures)

    def _run(self, code: str) -> str:
        """Run a cell; return its last value as the kernel shows it."""
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<cell>", "exec"), self._names)
        if not isinstance(last, ast.Expr):
            return ""
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), self._names)
        options: list[Any] = [part for option in PANDAS_OPTIONS.items() for part in option]
        with pd.option_context(*options):
            return "" if value is None else repr(value)
