"""The text of a document, read within limits by `taskweaver.utils.documents`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from taskweaver.plugin import Plugin, register_plugin, test_plugin
from taskweaver.utils.documents import read_document


@register_plugin
class DocumentText(Plugin):
    """Reads documents."""

    def __call__(self, path: str, max_chars: int | None = None) -> tuple[str, str]:
        """Read a document.

        Args:
            path: The file.
            max_chars: Characters read at most; None reads all.

        Returns:
            The text, and a line about it.

        Raises:
            FileNotFoundError: If the file does not exist.
            ValueError: If it cannot be read as what its ending says.
            ImportError: If it is a PDF and pypdf is not installed.
        """
        is_number = isinstance(max_chars, int) and not isinstance(max_chars, bool)
        if max_chars is not None and (not is_number or max_chars < 1):
            raise ValueError(f"max_chars must be a whole number from 1 on, not {max_chars!r}.")
        file = Path(path).expanduser()
        # One more than is wanted, to see whether there is more.
        text = read_document(file, None if max_chars is None else max_chars + 1)
        is_cut = max_chars is not None and len(text) > max_chars
        text = text[:max_chars]
        description = f"{len(text):,} characters in {text.count(chr(10)) + 1:,} lines."
        if is_cut:
            description += " There is more; only the beginning was read."
        if not text.strip():
            description = f"{file.name} holds no text; its pages may be pictures."
        self.log("info", description)
        return text, description


@test_plugin(name="a page is read", description="Text of HTML without its scripts.")
def test_a_page_is_read(plugin: Plugin) -> None:
    """Text of HTML without its scripts."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text("<h1>Sales</h1><script>x()</script><p>5 &gt; 3</p>", "utf-8")
        text, description = plugin(str(page))
    assert text == "# Sales\n\n5 > 3", description
