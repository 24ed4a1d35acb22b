"""The idea of a search: a Markdown file, or the original's JSON, and the metric it names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.treesearch.errors import SearchError, system_errors
from taskweaver.treesearch.model.node import Objective
from taskweaver.utils.files import read_text

_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$")
_METRIC = re.compile(
    r"^[\s>*_-]*(?:primary\s+|evaluation\s+)?(?:metric|objective)[*_]*\s*[:=]\s*(?P<text>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_EVALUATE = re.compile(r"^[\s>*_-]*evaluate[*_]*\s*:\s*(?P<text>\S.*)$", re.I | re.M)
_METRIC_INSIDE = re.compile(r"\S[ \t]+(?:\w+[ \t]+)?[*_]*metric[*_]*\s*[:=]\s*\S", re.IGNORECASE)
_METRIC_SECTION = re.compile(r"(?:(?:primary|evaluation) )?metric", re.IGNORECASE)
_NAME_MARK = re.compile(r"^(?:[>*_+\s-]|name\s*[:=])*", re.IGNORECASE)
# One line that begins with a name of a few words, and is no sentence.
_NAMING = re.compile(
    r"[*_`\"']*[^\W\d_][^\s,;(\[:]*(?:\s+[^\s,;(\[:]+){0,4}\s*(?:[,;(\[].*)?(?<![.:])"
)
_DOWN = re.compile(
    r"\bminimi[sz]\w*|\b(?:lower|smaller|less|fewer)\s+(?:is|the)\s+better", re.IGNORECASE
)
_UP = re.compile(
    r"\bmaximi[sz]\w*|\b(?:higher|larger|greater|more)\s+(?:is|the)\s+better", re.IGNORECASE
)
_NAMES_DOWN = re.compile(
    r"loss|error|rmse|\bmae\b|\bmse\b|time|latency|seconds|perplexity|distance|cost", re.IGNORECASE
)
_WRITE = (
    "Write a line such as `Metric: accuracy (maximize)` or `Metric: error, lower is better`; what a"
    " run optimises is fixed when it begins."
)
# "Minimise the mean absolute error on the held-out months." "We minimise" may tell a method.
_AIM = re.compile(
    r"(?:\A|\n\s*(?:[\n*>-]|(?=(?-i:M)))|[.:!?][*_]*\s+"
    r"|\b(?:goal|aim|objective|task|purpose)\b[^.:!?]{0,80}\bis\s+to\s+)"
    r"[*_>\s-]*(?P<verb>minimi[sz]e|maximi[sz]e)\s+"
    r"(?!(?:the\s+)?(?:it|this|that|these|following)\b)(?:(?:the|its|our)\s+)?[*_`]*"
    r"(?P<name>(?:(?:number|share|percentage|sum|area|rate)\s+(?:of|under)\s+(?:the\s+)?)?"
    r"\w[\w-]*(?:\s+(?!m(?:in|ax)imi[sz]e\b)\w[\w-]*){0,4}?)"
    r"(?=[*_`]*\s*(?:[.,;:()!\[\u2013\u2014]|-\s|\Z|\n\s*(?:[\n*#-]|\d+[.)]|m(?:in|ax)imi[sz]e\b))"
    r"|[*_`]*\s+(?:on|of|for|over|with|without|under|by|in|at|across|while|when|to|as|from|subject"
    r"|using|between)\b)",
    re.IGNORECASE,
)
_NO_AIMS = {"risk factors and limitations", "related work", "code"}
_UNIT = re.compile(
    r"\bin\s+(?P<unit>[A-Za-z%/]+)|\[(?P<bracket>[^\]\s]{1,16})\]"
    # A rate is anything by a time, or a time by anything: GB/s, items/s, ms/step.
    r"|(?<=\s)\((?P<listed>[A-Za-z]+/(?:s|sec|second|min|minute|h|hour|day)|[mun\u00b5\u03bc]?s/[A-Za-z]+"
    r"|[mun\u00b5\u03bc]?s|min|%|[kKMGT]?i?B|[KMGT]?FLOPS)\s*[,;)]"
)
_JSON_SECTIONS = (
    "Abstract", "Short Hypothesis", "Experiments", "Evaluation", "Risk Factors and Limitations",
    "Related Work", "Code",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Idea:
    """The research idea of a search.

    Attributes:
        title: Its title.
        text: The whole of it, Markdown.
        sections: Text by heading, in small letters; text without a heading is ``abstract``.
    """

    title: str
    text: str
    sections: Mapping[str, str]

    def objective(self) -> tuple[Objective, str]:
        """Return the metric to optimise, and a remark on a gap in its description.

        It is a line like ``Metric: accuracy (maximize)`` or ``Metric: run time in s, lower is
        better``, a line under a heading ``Metric``, or else the only metric that the text says to
        minimise or maximise. A name that means a loss or a time is minimised where the line does
        not say.
        """
        text = self._metric_line().rstrip(". ")
        if not text:
            is_inside = _METRIC_INSIDE.search(self.text) is not None
            gap = "'s `Metric:` is not at the start of a line" if is_inside else " names no metric"
            objective = self._aim() or Objective()
            verb = "maximises" if objective.maximize else "minimises"
            return objective, f"The idea{gap}: the run {verb} `{objective.name}`. {_WRITE}"
        name = re.split(r"[,;(\[]|\bin\b", text)[0].strip(" *_`") or "score"
        unit = _UNIT.search(text)
        is_down, is_up = bool(_DOWN.search(text)), bool(_UP.search(text))
        is_stated = is_down != is_up
        maximize = is_up if is_stated else not _NAMES_DOWN.search(name)
        objective = Objective(name, maximize, next(filter(None, unit.groups())) if unit else "")
        if is_stated:
            return objective, ""
        note = f"The idea does not say whether a higher or a lower {name} is better."
        return objective, f"{note} {_WRITE}"

    @property
    def evaluation(self) -> str:
        """The program of a line like ``Evaluate: evaluate.py``, which measures, empty for none."""
        found = _EVALUATE.search(self.text)
        return found["text"].strip().strip("`") if found else ""

    def _metric_line(self) -> str:
        """Return the description of the metric, empty for none."""
        found = _METRIC.search(self.text)
        if found is not None:
            return found["text"].strip()
        for title, text in self.sections.items():
            line = _NAME_MARK.sub("", text.partition("\n\n")[0])
            if _METRIC_SECTION.fullmatch(title) and _NAMING.fullmatch(line):
                return line
        return ""

    def _aim(self) -> Objective | None:
        """Return the one metric that sentences say to minimise or maximise."""
        aims = {
            (" ".join(aim["name"].split()), aim["verb"].lower().startswith("max"))
            for heading, text in self.sections.items()
            if heading not in _NO_AIMS
            for aim in _AIM.finditer(text)
        }
        return Objective(*aims.pop()) if len(aims) == 1 else None


def read_idea(path: Path, index: int = 0) -> Idea:
    """Read an idea: Markdown, or JSON with one idea or a list of them, of which `index` chooses.

    Raises:
        SearchError: If there is none.
    """
    with system_errors(f"The idea {path} cannot be read"):
        if not path.exists():
            raise SearchError(f"There is no file {path}.")
        text = read_text(path)
    if path.suffix == ".json":
        text = _from_json(path, text, index)
    if not text.strip():
        raise SearchError(f"{path} is empty.", "Write what is to be tried, and how it is measured.")
    return parse_idea(text)


def parse_idea(text: str) -> Idea:
    """Return an idea. One without headings is all abstract, and its first line the title."""
    title, heading = "", "abstract"
    sections: dict[str, list[str]] = {}
    is_code = False
    for line in text.splitlines():
        is_code ^= line.lstrip().startswith("```")
        match = None if is_code else _HEADING.match(line)
        if match is None:
            sections.setdefault(heading, []).append(line)
        elif not title and line.startswith("# "):
            title = match[1].removeprefix("Title:").strip()
        else:
            heading = match[1].strip().lower()
    found = {name: "\n".join(lines).strip() for name, lines in sections.items()}
    found = {name: body for name, body in found.items() if body}
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return Idea(title or found.get("title", "") or first.lstrip("# ")[:120], text, found)


def _from_json(path: Path, text: str, index: int) -> str:
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SearchError(f"{path} is not JSON: {error}.") from error
    if isinstance(data, list):
        if not 0 <= index < len(data):
            raise SearchError(f"{path} has {len(data)} ideas; there is no number {index}.")
        data = data[index]
    if not isinstance(data, dict) or not data.get("Title"):
        raise SearchError(f"{path} holds no idea: an object with a `Title` is wanted.")
    parts = [f"# {data['Title']}"]
    for name in _JSON_SECTIONS:
        if data.get(name):
            value = data[name]
            body = "\n".join(f"- {item}" for item in value) if isinstance(value, list) else value
            parts.append(f"## {name}\n\n{body}")
    return "\n\n".join(parts) + "\n"
