"""Support of a model for images: by its name, as configured, or learnt from a refusal."""

from __future__ import annotations

import re
from collections.abc import Callable

from taskweaver.llm.facts.learnt import LearntModel

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


def takes_images(model: str) -> bool:
    """Return whether a model of this name is known to take images; a table, no measurement."""
    name = model.lower()
    return bool(_TAKES_IMAGES.search(name)) and not _TAKES_NONE.search(name)


class ImageSupport:
    """Whether one model is shown images; a refusal ends that, for later sessions too.

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
        """Whether it is known to take images."""
        if self.are_refused:
            return False
        stated = self._stated()
        return self._is_known if stated is None else stated

    @property
    def are_refused(self) -> bool:
        """Whether texts stand for images in its prompts."""
        return self._learnt.known.are_images_refused
