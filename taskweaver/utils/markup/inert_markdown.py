"""Foreign Markdown, written again from an allow-list, so that nothing runs or is loaded.

The text is parsed, and the parts that are found are written in the plainest form, which renderers
read alike: fences at the start of a line and longer than any inside, every character that could
begin markup escaped. HTML is no part of the language that is read: all of it comes out as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote

from taskweaver.utils.markup.characters import with_line_feeds, without_steering
from taskweaver.utils.text import fenced

_MOST_CHARS = 400_000
_MOST_INDENT = 40
_TAG = re.compile(r"<(?=[a-z/!?])", re.IGNORECASE)
_ENTITY = re.compile(r"&(?=[#a-z])", re.IGNORECASE)
_SPECIAL = re.compile(r"([*\[\]|~]|(?<![^\W_])_|_(?![^\W_]))")
_BACKSLASHES = re.compile(r"\\[\w\\/:.-]*")
_IN_BACKTICKS = re.compile(r"(?<![`\\])`([^`\\]+)`(?![`\\])")
_LINE_START = re.compile(r"[#>+=:-]|\d{1,9}(?=[.)])")
_WEB_ADDRESS = re.compile(r"(?:https?://|mailto:)[^\s]", re.IGNORECASE)
_FILE_ADDRESS = re.compile(r"(?!.*(?:^|/)\.\.(?:/|$))[\w%-][\w./%-]*(?:#[\w%.-]*)?\Z", re.ASCII)
_PICTURE = re.compile(r".*\.(?:png|jpe?g|gif|svg|webp)\Z", re.IGNORECASE)
_LANGUAGES = frozenset(
    "bash c console cpp csharp css csv diff go html ini java javascript js json julia markdown md"
    " php py python r ruby rust scala sh sql text toml ts txt typescript xml yaml yml".split()
)
"""Names of languages that only colour a block; a renderer makes drawings of others."""


def inert_markdown(text: str) -> str:
    """Return Markdown that no renderer makes script, an embedded object or a request of.

    Kept are paragraphs, headings, lists, quotations, tables, code, emphasis, links to http, https
    and mail addresses and to files beside the text, and pictures in files beside it. A picture
    from elsewhere becomes a link to it; everything else becomes its text.
    """
    text = without_steering(with_line_feeds(text))
    if len(text) > _MOST_CHARS:  # the parser's time grows faster than the text
        return fenced(text)
    from markdown_it.tree import SyntaxTreeNode

    return "\n".join(_blocks(SyntaxTreeNode(_parser().parse(text)).children, is_nested=False))


def inert_text(text: str) -> str:
    """Return text as Markdown that shows the characters, line by line, and has no markup.

    Code keeps its indentation, in spaces that do not break.
    """
    lines = without_steering(with_line_feeds(text)).expandtabs(4).split("\n")
    return "  \n".join(_indent(line) + _line(_escaped(line.strip())) for line in lines)


def _indent(line: str) -> str:
    return "\u00a0" * min(len(line) - len(line.lstrip()), _MOST_INDENT) if line.strip() else ""


def inert_line(text: str) -> str:
    """Return text as the inside of one line of Markdown that shows the characters."""
    return _escaped(" ".join(without_steering(with_line_feeds(text)).split()))


def inert_prose(text: str) -> str:
    """Return text as the inside of one line of Markdown, where words in backticks are code."""
    line = " ".join(without_steering(with_line_feeds(text)).split())
    parts = _IN_BACKTICKS.split(line)
    return "".join(
        _code_span(part) if place % 2 else _escaped(part) for place, part in enumerate(parts)
    )


def inert_paragraph(text: str) -> str:
    """Return text as a paragraph of one line of Markdown, where words in backticks are code."""
    return _line(inert_prose(text))


def inert_picture(path: str) -> str:
    """Return Markdown for a picture in a file, or the name alone where the path leads elsewhere."""
    address = _address(path)
    return f"![{inert_line(path)}]({address})" if _is_picture(address) else inert_line(path)


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def _blocks(nodes: Sequence[Any], *, is_nested: bool) -> list[str]:
    """Return the lines of blocks, with an empty line between each two."""
    lines: list[str] = []
    for node in nodes:
        lines += [*([""] if lines else []), *_block(node, is_nested=is_nested)]
    return lines


def _block(node: Any, *, is_nested: bool) -> list[str]:
    match node.type:
        case "paragraph":
            lines = [_line(line) for line in _inline(node.children).split("\n")]
        case "heading":
            lines = [f"{'#' * int(node.tag[1])} {_one_line(node.children)}"]
        case "fence" | "code_block":
            lines = _code(node, is_nested=is_nested)
        case "blockquote":
            lines = [f"> {line}".rstrip() for line in _blocks(node.children, is_nested=True)]
        case "bullet_list" | "ordered_list":
            lines = _list(node, is_nested=is_nested)
        case "table":
            lines = _table(node)
        case _:  # a rule
            lines = ["***"]
    return lines


def _code(node: Any, *, is_nested: bool) -> list[str]:
    language = node.info.strip().lower()
    content = node.content
    if is_nested:
        # Renderers disagree on where a list ends, and the fence in it with it.
        content = _TAG.sub("&lt;", content)
    return fenced(content, language if language in _LANGUAGES else "").split("\n")


def _list(node: Any, *, is_nested: bool) -> list[str]:
    """Return the lines of a list.

    Code with tags in an item of a list that is in no other block ends the list, and stands below
    the item as it is; the next item goes on.
    """
    lines: list[str] = []
    number = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
    is_tight = all(part.hidden for item in node.children for part in item.children
                   if part.type == "paragraph")  # fmt: skip
    is_ended = False
    for item in node.children:
        mark = "- " if number is None else f"{number}. "
        number = None if number is None else min(number + 1, 999_999_999)
        tagged = [] if is_nested else [at for at, part in enumerate(item.children) if _tags(part)]
        inside, below = item.children, item.children[:0]
        if tagged:
            inside, below = item.children[: tagged[0]], item.children[tagged[0] :]
        first, *rest = _blocks(inside, is_nested=True) or [""]
        lines += [""] if lines and (is_ended or not is_tight) else []
        lines.append(f"{mark}{first}".rstrip())
        lines += [f"{' ' * len(mark)}{line}".rstrip() for line in rest]
        lines += ["", *_blocks(below, is_nested=False)] if below else []
        is_ended = bool(below)
    return lines


def _tags(node: Any) -> bool:
    """Return whether a block is code with text that reads like a tag."""
    return node.type in {"fence", "code_block"} and _TAG.search(node.content) is not None


def _table(node: Any) -> list[str]:
    rows = [row for part in node.children for row in part.children]
    lines = [f"| {' | '.join(_one_line(cell.children) for cell in row.children)} |" for row in rows]
    return [lines[0], f"|{'|'.join(_rule(cell) for cell in rows[0].children)}|", *lines[1:]]


def _rule(cell: Any) -> str:
    style = str(cell.attrs.get("style", ""))
    left, right = "left" in style or "center" in style, "right" in style or "center" in style
    return f"{':' if left else '-'}--{':' if right else '-'}"


def _one_line(nodes: Iterable[Any]) -> str:
    return " ".join(_inline(nodes).split())


def _inline(nodes: Iterable[Any], *, is_link: bool = False) -> str:
    return "".join(_part(node, is_link=is_link) for node in nodes)


def _part(node: Any, *, is_link: bool) -> str:
    match node.type:
        case "inline":
            text = _inline(node.children, is_link=is_link)
        case "softbreak":
            text = "\n"
        case "hardbreak":
            text = "  \n"
        case "code_inline":
            text = _code_span(node.content)
        case "em" | "strong" | "s":
            text = _marked(node, is_link=is_link)
        case "link":
            inside = _inline(node.children, is_link=True)
            text = _link(str(node.attrs.get("href", "")), inside, is_link=is_link)
        case "image":
            text = _image(node, is_link=is_link)
        case _:
            text = _escaped(node.content)
    return text


def _marked(node: Any, *, is_link: bool) -> str:
    mark = {"em": "*", "strong": "**", "s": "~~"}[node.type]
    inside = _inline(node.children, is_link=is_link)
    return f"{mark}{inside}{mark}" if inside and inside == inside.strip() else inside


def _code_span(content: str) -> str:
    # Text that is safe also where a renderer sees no code in it.
    is_plain = not _TAG.search(content) and "](" not in content and not set("`|\n") & set(content)
    return f"`{content}`" if is_plain and content.strip() else _escaped(content)


def _image(node: Any, *, is_link: bool) -> str:
    source, text = str(node.attrs.get("src", "")), _inline(node.children, is_link=True)
    if _is_picture(_address(source)) and not is_link:
        return f"![{text}]({_address(source)})"
    return _link(source, text or "image", is_link=is_link)


def _link(address: str, text: str, *, is_link: bool) -> str:
    target = _address(address)
    return f"[{text}]({target})" if target and text.strip() and not is_link else text


def _address(address: str) -> str:
    """Return an address as a link may have the address, or an empty text if refused."""
    try:
        plain = quote(address.removeprefix("./"), safe="/:?#@!&+,;=%-._")
    except UnicodeEncodeError:
        return ""
    if _WEB_ADDRESS.match(plain) or _FILE_ADDRESS.match(plain):
        return _ENTITY.sub("&amp;", plain)
    return ""


def _is_picture(address: str) -> bool:
    return bool(_FILE_ADDRESS.match(address) and _PICTURE.match(address))


def _escaped(text: str) -> str:
    """Return text as the inside of a paragraph. A backslash stands in a span of code.

    There it begins neither an escape nor, where formulas are set, a command.
    """
    parts, at = [], 0
    for match in _BACKSLASHES.finditer(text):
        parts += [_plain(text[at : match.start()]), f"`{match[0]}`"]
        at = match.end()
    return "".join([*parts, _plain(text[at:])])


def _plain(text: str) -> str:
    text = _ENTITY.sub("&amp;", text).replace("<", "&lt;").replace("$", "&#36;")
    text = text.replace("`", "&#96;")
    return _SPECIAL.sub(r"\\\1", text)


def _line(text: str) -> str:
    """Return a line of a paragraph that begins no second block."""
    stripped = text.lstrip()
    match = _LINE_START.match(stripped)
    if match is None:
        return stripped
    if match[0].isdigit():
        return f"{match[0]}\\{stripped[match.end() :]}"
    return f"\\{stripped}"
