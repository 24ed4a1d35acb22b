"""Labels and tags by which other agents' models mark code and answers, written as fences and text.

``<code>`` and ``<answer>`` on lines of their own, the ``Final Answer:`` after a ``Thought:``, and
channels of reasoning and of the answer.
"""

from __future__ import annotations

import re

from taskweaver.utils.parsing import compiles
from taskweaver.utils.text import fenced

_FINAL = re.compile(
    r"\A\s*(?:Thought:(?:(?!^Action:).)*?^)?Final Answer:[ \t]*(?P<text>.+)\Z", re.M | re.S
)
_ANSWER = re.compile(r"\A\s*<(answer|final_answer)>(?P<text>.+)</\1>\s*\Z", re.DOTALL)
_CHANNEL = re.compile(
    r"(?:<\|start\|>\w+)?<\|channel\|>(?P<name>\w+)[ \t]*<\|message\|>(?P<text>.*?)"
    r"(?:<\|(?:end|return)\|>|(?=<\|start\|>)|\Z)",
    re.DOTALL,
)
_CODE = re.compile(r"^<(code|python|execute)>[ \t]*\n(?P<code>.*?)\n</\1>[ \t]*$", re.M | re.S)
_UNIT = re.compile(r"(.{1,200}?)\1{9,}.{0,200}\Z", re.DOTALL)
_LOOKED_AT = 4000


def without_labels(text: str, language: str) -> str:
    """Return a reply without tags and labels around an answer, and with code in fences.

    Args:
        text: The reply.
        language: Language of the cells that were offered; empty for none.
    """
    if "<|channel|>" in text:
        text = _CHANNEL.sub(lambda said: "" if said["name"] == "analysis" else said["text"], text)
    answer = _FINAL.match(text) or _ANSWER.match(text)
    if answer:
        return answer["text"].strip()
    return _CODE.sub(_as_fence, text) if language == "python" and "</" in text else text


def _as_fence(match: re.Match[str]) -> str:
    code = match["code"]
    return fenced(code, "python") if compiles(code) else match[0]


def repeats_itself(text: str) -> bool:
    """Return whether a text ends with the same words ten times or more."""
    return bool(_UNIT.search(text[-_LOOKED_AT:].rstrip()))
