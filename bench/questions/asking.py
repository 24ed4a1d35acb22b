"""Questions, put to the offline analyst through the public interface.

One project folder serves all questions, so that its kernels start from one warm process; its data
folder is filled anew for each set of files. A question gets a session of its own, since what was
said before must not help. Sessions are closed by a second thread, one at a time.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from bench.questions.files import place
from bench.questions.judging import Answer, Verdict, judge
from bench.questions.model import Question
from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.round import Round
from taskweaver.session.session import Session

CONFIG = {
    "llm.api_type": "offline",
    "execution.sandbox": "none",
    "session.state_limit_mb": 0,
    "session.snapshot_memory_mb": 0,
    "memory.synchronous": "NORMAL",
}
"""The offline analyst; nothing is kept for a later session."""

_OPEN_ENDS = {"Clarification", "UnfinishedInsufficientInfo"}
WORST_LAST: tuple[Verdict, ...] = ("right", "refused", "wrong")


@dataclass(frozen=True)
class Asked:
    """A question and the answers to it.

    Attributes:
        question: The question.
        answers: The answer to each turn.
        verdict: The worst verdict on a turn.
    """

    question: Question
    answers: tuple[Answer, ...]
    verdict: Verdict


def ask(questions: Iterable[Question], folder: Path) -> Iterator[Asked]:
    """Ask questions in a project made in an empty folder; yield each as it is answered."""
    data = folder / "data"
    (folder / "taskweaver_config.json").write_text(json.dumps({}))
    by_files = sorted(questions, key=lambda question: question.files)
    with TaskWeaverApp(folder, config=CONFIG) as app, ThreadPoolExecutor(1) as closer:
        for files, group in groupby(by_files, key=lambda question: question.files):
            shutil.rmtree(data, ignore_errors=True)
            data.mkdir()
            for file in files:
                place(file, data)
            for question in group:
                session = app.get_session()
                yield _ask(question, session, data)
                closer.submit(session.stop)


def _ask(question: Question, session: Session, data: Path) -> Asked:
    answers, verdicts = [], list[Verdict]()
    for turn in question.turns:
        text = turn.ask.replace("{data}", str(data))
        answers.append(_answer(session.send_message(text)))
        if turn.kind:
            verdicts.append(judge(question, turn, answers[-1]))
    return Asked(question, tuple(answers), max(verdicts, key=WORST_LAST.index))


def _answer(round_: Round) -> Answer:
    def contents(kind: AttachmentType) -> list[str]:
        found: list[str] = []
        for post in round_.post_list:
            for attachment in post.attachment_list:
                if attachment.type is kind:
                    content = attachment.content
                    found += content if isinstance(content, list) else [str(content)]
        return found

    ends = contents(AttachmentType.stop)[-1:]
    return Answer(
        round_.answer.text,
        bool(_OPEN_ENDS & set(ends)),
        "\n".join(contents(AttachmentType.reply_content)),
        contents(AttachmentType.artifact_paths),
    )
