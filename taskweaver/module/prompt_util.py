"""Delimiters in text, under the names roles have used for long; see `taskweaver.utils.text`."""

from __future__ import annotations

import re


class PromptUtil:
    """Marks parts of a text by a delimiter with a name."""

    DELIMITER_TEMPORAL = "TEMPORAL"
    """Marks what is only meant for the round it was written in."""

    @staticmethod
    def _ends(delimiter: str) -> tuple[str, str]:
        return f"{{{{DELIMITER_START_{delimiter}}}}}", f"{{{{DELIMITER_END_{delimiter}}}}}"

    @staticmethod
    def wrap_text_with_delimiter(text: str, delimiter: str) -> str:
        """Return `text` between the two ends of a delimiter."""
        start, end = PromptUtil._ends(delimiter)
        return f"{start}{text}{end}"

    @staticmethod
    def remove_parts(text: str, delimiter: str) -> str:
        """Return `text` without the delimiter and what it encloses."""
        start, end = map(re.escape, PromptUtil._ends(delimiter))
        return re.sub(f"{start}.*?{end}", "", text, flags=re.DOTALL)

    @staticmethod
    def remove_delimiter(text: str, delimiter: str) -> str:
        """Return `text` without the delimiter; what it encloses is kept."""
        start, end = PromptUtil._ends(delimiter)
        return text.replace(start, "").replace(end, "")

    @staticmethod
    def remove_all_delimiters(text: str) -> str:
        """Return `text` without any delimiter; what they enclose is kept."""
        for delimiter in PromptUtil.get_all_delimiters():
            text = PromptUtil.remove_delimiter(text, delimiter)
        return text

    @staticmethod
    def get_all_delimiters() -> list[str]:
        """Return the names of all delimiters."""
        return [PromptUtil.DELIMITER_TEMPORAL]
