"""HTML pages: filled from a template so that no data acts as script, and read as text.

Reading takes time that grows with the page's length alone. The standard parser takes quadratic time
on tags that never end, which a page from outside may be full of: they are taken out first.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from taskweaver.utils.redact import redact_secrets, redact_secrets_in

_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
_UNREAD = re.compile(r"<(script|style|template|svg|noscript)\b", re.IGNORECASE)
_DECLARATION = re.compile(r"<[!?][^<>]*>?")
_LOOSE = re.compile(r"<(?!/?[a-zA-Z][^<>]{0,2000}>)")
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_BLOCKS = frozenset(
    "address article aside blockquote body br dd div dl dt fieldset figcaption figure footer form"
    " header hr li main nav ol option p pre section table title tr ul".split()
) | frozenset(_HEADINGS)
_KEPT = "\ue000"
"""Stands for a space of preformatted text until the others are tidied; it means nothing itself."""

_PARAGRAPHS = frozenset("p div section article table ul ol pre blockquote".split())


def fill_page(template: str, title: str, data: Any) -> str:
    """Return a page in which no data can end the script, and no further script runs.

    Args:
        template: HTML with ``{{title}}``, ``{{script_hash}}`` in its Content-Security-Policy,
            ``{{data}}`` in a script element of the type ``application/json``, and last the one
            script that runs.
        title: Its title.
        data: Plain data for the script; its secrets are masked, since a page is given to others.
    """
    script = template.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = template.replace("{{script_hash}}", f"sha256-{digest}")
    before, _, after = template.partition("{{data}}")
    before = before.replace("{{title}}", html.escape(redact_secrets(title)))
    text = json.dumps(redact_secrets_in(data), ensure_ascii=False, separators=(",", ":"))
    return f"{before}{text.translate(_ESCAPES)}{after}"


@dataclass(frozen=True, slots=True)
class HtmlText:
    """Title of a page, which may be empty, and the text.

    Headings begin with ``#``, paragraphs are apart by an empty line.
    """

    title: str
    text: str


def html_text(html: str) -> HtmlText:
    """Return the text of a page, without scripts, styles and comments."""
    reader = _Reader()
    reader.feed(tamed(html))
    reader.close()
    joined = "".join(reader.parts).split("\n")
    lines = [re.sub(r"[^\S\t]+", " ", line).strip() for line in joined]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip().replace(_KEPT, " ")
    return HtmlText(" ".join("".join(reader.title).split()), text)


def tamed(html: str) -> str:
    """Return a page that the standard parser reads in linear time, without scripts and comments."""
    html = _without(html.replace("\0", ""), "<!--", "-->")
    kept, at = [], 0
    lower = html.lower() if len(html.lower()) == len(html) else html
    while match := _UNREAD.search(html, at):
        kept.append(html[at : match.start()])
        end = lower.find(f"</{match[1].lower()}", match.end())
        if end < 0:
            at = len(html)
            break
        at = end
    kept.append(html[at:])
    return _LOOSE.sub("&lt;", _DECLARATION.sub("", "".join(kept)))


def _without(text: str, start: str, end: str) -> str:
    """Return `text` without the parts between marks. A part that never ends goes to the end."""
    kept, at = [], 0
    while (begin := text.find(start, at)) >= 0:
        kept.append(text[at:begin])
        found = text.find(end, begin + len(start))
        at = found + len(end) if found >= 0 else len(text)
    return "".join([*kept, text[at:]])


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._is_title = False
        self._verbatim = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - the parser's signature
        if tag == "title" and not self.title:
            self._is_title = True
        elif tag in _HEADINGS:
            self.parts.append(f"\n\n{_HEADINGS[tag]} ")
        else:
            self._verbatim += tag == "pre"
            self._break(tag)
            self.parts.append("- " if tag == "li" else "\t" if tag in {"td", "th"} else "")

    def handle_endtag(self, tag: str) -> None:
        self._is_title = False
        self._verbatim = max(self._verbatim - (tag == "pre"), 0)
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._is_title:
            self.title.append(data)
        elif self._verbatim:
            self.parts.append(data.replace(" ", _KEPT))
        else:
            # A line's end in the source is only a space; the parser leaves it in the text.
            self.parts.append(re.sub(r"\s+", " ", data))

    def _break(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n\n" if tag in _PARAGRAPHS or tag in _HEADINGS else "\n")
