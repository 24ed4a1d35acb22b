"""Abilities of a model: the form of replies, and images.

Each is configured, stated by the model's server, learnt from a refusal, or known by the name.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import get_args

from taskweaver.llm.learnt import LearntModel
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

_TAKES_IMAGES = re.compile(
    r"gpt-(?:4o|4\.[1-9]|4-(?:turbo|vision)|[5-9])|chatgpt-4o|\bo[1-9](?!\d)"
    r"|claude-(?!2|instant)|gemini|gemma-?[3-9]|llama-?4|grok-[4-9]|nova-(?:lite|pro|premier)"
    r"|llava|moondream|minicpm-?[vo]|pixtral|internvl|paligemma|molmo|idefics|smolvlm"
    r"|qwen[\w.:-]*-?vl\b|qwen[\w.]*-omni|mistral-(?:medium|small-?(?:3\.[1-9]|latest)|large-3)"
    r"|ministral-?3|glm-?4\.?\d*v|kimi-(?:vl|latest|k2\.[5-9])|phi-4-multimodal|deepseek-vl"
    r"|vision|multimodal|[-_]vl\b"
)
_TAKES_NONE = re.compile(
    r"\bo1-(?:mini|preview)|\bo3-mini|gemma-?3n|gemma-?3:?-?(?:1b|270m)|audio|realtime|transcribe"
    r"|embed|gpt-5[\w.-]*-codex-spark"
)


def first_form(model: str, *, is_local: bool, takes_tools: bool | None = None) -> Form:
    """Return the form that models of this name keep best, from a table and not by measurement.

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
    """Return whether a rejection says that the model or the server takes no tools."""
    return bool(_REFUSED.search(words))


class FormLadder:
    """The form in force for one model, which only ever steps down. Thread-safe."""

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
        """Whether the form is tools, and the model is known to receive tools.

        The text of such a model is an answer, also where it holds code.
        """
        return self._takes_tools and self.current == "tools"

    def note_call(self) -> None:
        """Note that the model called a tool."""
        self._takes_tools = True

    def step_down(self, rejected: Form) -> bool:
        """Give up a form. Return whether a lower form is in force."""
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


def takes_images(model: str) -> bool:
    """Return whether a model of this name takes images, from a table and not by measurement."""
    name = model.lower()
    return bool(_TAKES_IMAGES.search(name)) and not _TAKES_NONE.search(name)


class ImageSupport:
    """Whether one model is shown images. A refusal ends that, for later sessions too.

    Images that a question is about are sent in any case: no text can replace them.
    """

    def __init__(
        self,
        model: str,
        wanted: str = "auto",
        stated: Callable[[], bool | None] = lambda: None,
        learnt: LearntModel | None = None,
    ) -> None:
        """Decide by the configuration and the name, or when images come.

        Args:
            model: Name of the model.
            wanted: ``yes``, ``no``, or ``auto`` to decide by its server's statement or the name.
            stated: Returns the statement of its server; None without one.
            learnt: Keeps a refusal, which the configuration overrides; None to keep none.
        """
        self._learnt = learnt or LearntModel()
        self._stated = stated if wanted == "auto" else lambda: None
        self._is_known = takes_images(model) if wanted == "auto" else wanted == "yes"
        if wanted != "auto":
            self._learnt.fix(are_images_refused=wanted == "no")

    @property
    def are_taken(self) -> bool:
        """Whether the model is known to take images."""
        if self.are_refused:
            return False
        stated = self._stated()
        return self._is_known if stated is None else stated

    @property
    def are_refused(self) -> bool:
        """Whether texts stand for images in prompts."""
        return self._learnt.known.are_images_refused
