"""Form of a model's replies: tool calls, JSON or fences; the best one it is known to keep."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import get_args

from taskweaver.llm.types import Form

FORMS: tuple[Form, ...] = get_args(Form)

_ALWAYS_FENCES = re.compile(
    r"qwen2\.5-coder|gemma-?[23]|\bphi-?\d|deepseek-r1[:-].*(?:\db|distill)"
)
_LLAMA_3 = re.compile(r"llama-?3")
_SIZE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)b\b")
_TRAINED = re.compile(
    r"gpt-oss|qwen-?[3-9]|ministral|devstral|mistral-(?:small|large)|\bglm|kimi|granite-?[3-9]"
)
_SMALL_B = 30.0
_LLAMA_SMALL_B = 10.0

_REFUSED = re.compile(
    r"tool choice requires|--tool-call-parser|--jinja|support tool use"
    r"|not (?:yet )?support\w* (?:the )?(?:use of )?(?:tools?|functions?)\b"
    r"|(?:(?<![\w.])tools?|function|tool)[ _-]?(?:call\w*|choice|use)?['\"`]* ?(?:is|are)? ?"
    r"(?:with reasoning_effort )?(?:are )?not (?:yet )?(?:supported|available|permitted|allowed"
    r"|enabled)"
    r"|(?:unsupported|unrecogni[sz]ed|unknown|unexpected|extra)[^.]{0,60}['\"`: .]"
    r"(?:tools|tool_choice|functions)\b(?! ?\[)"
    r"|['\"`]?\btools['\"`]?:? (?:extra|unknown|unexpected|unrecogni[sz]ed)",
    re.IGNORECASE,
)


def first_form(model: str, *, is_local: bool, takes_tools: bool | None = None) -> Form:
    """Return the form that a model of this name is known to keep best; a table, not a measurement.

    Args:
        model: Name of the model.
        is_local: Whether its server is on this machine, where models are small.
        takes_tools: Whether its server says that it was trained for tools; None if it does not say.
    """
    if takes_tools is False:
        return "fences"
    name = model.lower()
    sizes = [float(size) for size in _SIZE.findall(name)]
    if _ALWAYS_FENCES.search(name):
        return "fences"
    if _LLAMA_3.search(name) and sizes and sizes[0] < _LLAMA_SMALL_B:
        return "fences"
    is_small = is_local and bool(sizes) and sizes[0] < _SMALL_B and not takes_tools
    return "fences" if is_small and not _TRAINED.search(name) else "tools"


def is_about_tools(words: str) -> bool:
    """Return whether a rejection says that the model or its server takes no tools."""
    return bool(_REFUSED.search(words))


class FormLadder:
    """The form in force for one model; it only ever steps down. Thread-safe."""

    def __init__(
        self,
        first: Callable[[], Form],
        on_change: Callable[[Form], None] = lambda _: None,
        *,
        is_fixed: bool = False,
        takes_tools: bool = False,
    ) -> None:
        """Decide nothing yet.

        Args:
            first: Returns the form to begin with; called once, when it is needed.
            on_change: Called with each lower form.
            is_fixed: Whether it stays at the first.
            takes_tools: Whether the endpoint is known to hand tools on to the model.
        """
        self._first = first
        self._on_change = on_change
        self._is_fixed = is_fixed
        self._takes_tools = takes_tools or is_fixed
        self._lock = threading.Lock()
        self._current: Form | None = None

    @property
    def current(self) -> Form:
        """The form in force."""
        with self._lock:
            if self._current is None:
                self._current = self._first()
            return self._current

    @property
    def takes_tools(self) -> bool:
        """Whether the form is tools, and the model is known to receive them.

        The text of such a model is an answer, also where it holds code.
        """
        return self._takes_tools and self.current == "tools"

    def note_call(self) -> None:
        """Note that the model called a tool."""
        self._takes_tools = True

    def step_down(self, rejected: Form) -> bool:
        """Give up a form; return whether one below it is in force now."""
        current = self.current
        with self._lock:
            at = FORMS.index(rejected)
            if FORMS.index(current) > at:
                return True  # another call was faster
            if self._is_fixed or at + 1 >= len(FORMS):
                return False
            self._current = FORMS[at + 1]
            lower = self._current
        self._on_change(lower)
        return True


def fixed(form: Form) -> FormLadder:
    """Return a ladder that stays at a form."""
    return FormLadder(lambda: form, is_fixed=True)
