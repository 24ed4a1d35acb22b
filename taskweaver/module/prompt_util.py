"""Delimiters in text, under the original's names. See `taskweaver.utils.text`."""

from __future__ import annotations

import re

from taskweaver.utils.text import TEMPORAL_END, TEMPORAL_START

Delimiter = tuple[str, str]
"""The texts before and after a marked part."""


class PromptUtil:
    """Marks parts of a text by a pair of delimiters."""

    DELIMITER_TEMPORAL: Delimiter = (TEMPORAL_START, TEMPORAL_END)
    """Encloses text that is only meant for the round it was written in."""

    @staticmethod
    def wrap_text_with_delimiter(text: str, delimiter: Delimiter) -> str:
        """Return `text` between a pair of delimiters."""
        start, end = delimiter
        return f"{start}{text}{end}"

    @staticmethod
    def remove_parts(text: str, delimiter: Delimiter) -> str:
        """Return `text` without the delimiters and the text between the delimiters."""
        start, end = map(re.escape, delimiter)
        return re.sub(f"{start}.*?{end}", "", text, flags=re.DOTALL)

    @staticmethod
    def remove_delimiter(text: str, delimiter: Delimiter) -> str:
        """Return `text` without the delimiters, but with the text between the delimiters."""
        start, end = delimiter
        return text.replace(start, "").replace(end, "")

    @staticmethod
    def remove_all_delimiters(text: str) -> str:
        """Return `text` without any delimiters, but with the text between the delimiters."""
        for delimiter in PromptUtil.get_all_delimiters():
            text = PromptUtil.remove_delimiter(text, delimiter)
        return text

    @staticmethod
    def get_all_delimiters() -> list[Delimiter]:
        """Return all pairs of delimiters."""
        return [PromptUtil.DELIMITER_TEMPORAL]
