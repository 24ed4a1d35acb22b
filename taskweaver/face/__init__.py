"""The library: a few lines of Python ask a question and get text, tables and figures back."""

from taskweaver.face.answer import AnswerCost, AnswerFigure, TaskAnswer
from taskweaver.face.errors import RoundFailed
from taskweaver.face.session import TaskSession
from taskweaver.face.taskweaver import TaskWeaver
from taskweaver.memory.suggestions import Suggestion

__all__ = [
    "AnswerCost", "AnswerFigure", "RoundFailed", "Suggestion", "TaskAnswer", "TaskSession",
    "TaskWeaver",
]  # fmt: skip
