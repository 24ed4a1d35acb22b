"""What a page holds that could act, as a parser of HTML sees the page."""

from __future__ import annotations

from html.parser import HTMLParser

from markdown_it import MarkdownIt

OF_MARKDOWN = frozenset(
    "p em strong del s code pre h1 h2 h3 h4 h5 h6 ol ul li blockquote hr br a img table thead tbody"
    " tr th td".split()
)
_ATTRIBUTES = frozenset("href src alt class start style".split())


class PageReader(HTMLParser):
    """The scripts and the policy of a page, and all in it that could act and is not allowed."""

    def __init__(self, text: str, allowed: frozenset[str] = OF_MARKDOWN) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.policy = ""
        self.odd: list[str] = []
        self._allowed = allowed
        self._in_script = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_script = tag == "script"
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"] or ""
        if tag not in self._allowed:
            self.odd.append(tag)
        for name, value in attrs:
            is_link = name == "href" and (value or "").startswith(("http", "mailto:"))
            is_address = name in {"href", "src"}
            leads_away = ":" in (value or "") and not is_link
            if name not in _ATTRIBUTES or (
                is_address and (leads_away or (value or "").startswith(("/", "\\")))
            ):
                self.odd.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = self._in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._in_script:
            attributes, before = self.scripts[-1]
            self.scripts[-1] = (attributes, before + data)

    def handle_comment(self, data: str) -> None:
        self.odd.append(f"<!--{data}-->")

    handle_decl = handle_pi = unknown_decl = handle_comment


def dangers(html: str) -> list[str]:
    """Return what a page of Markdown holds that could act."""
    return PageReader(html).odd


def commonmark(text: str) -> str:
    """Render Markdown as a reader that lets HTML through."""
    options = {"html": True, "linkify": False, "typographer": True}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"]).render(text)
