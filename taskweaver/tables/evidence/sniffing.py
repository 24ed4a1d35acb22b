"""Form of a text file with a table: encoding, separator, header, and a sample of its rows."""

from __future__ import annotations

import csv
import io
import re
import statistics
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from taskweaver.tables.errors import TableError
from taskweaver.tables.evidence.dates import looks_like_time
from taskweaver.tables.evidence.numerals import numeral

HEAD_BYTES = 1 << 18
_MOST_ROWS = 300
_SEPARATORS = (",", ";", "\t", "|")
_LOOKED_BYTES = 4_000
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\ufffd]")
_WORD_ENDS = rb"(?<![A-Za-z\x80-\xff])(?:%b)(?![A-Za-z\x80-\xff])"
_USUAL = {
    "cp1252": rb"(?<=[A-Za-z])[\xc0-\xff]{1,2}|[\xc0-\xff]{1,2}(?=[A-Za-z])"
    rb"|(?<![\x80-\xff])[\x80\x85\x91-\x97\xa0-\xbf\xe0](?![\x80-\xff])",
    "cp1251": _WORD_ENDS % rb"[\xa8\xc0-\xdf]?[\xb8\xe0-\xff]+|[\xa8\xc0-\xdf]+",
    "koi8-r": _WORD_ENDS % rb"[\xb3\xe0-\xff]?[\xa3\xc0-\xdf]+|[\xb3\xe0-\xff]+",
    "cp932": rb"[\x82\x83\x88-\x97][\x40-\xfc]",
    "cp949": rb"[\xb0-\xc8][\xa1-\xfe]",
    "gb18030": rb"[\xb0-\xd7][\xa1-\xfe]",
    "big5": rb"[\xa4-\xc6][\x40-\x7e\xa1-\xfe]",
    "cp850": rb"(?<=[A-Za-z])[\x80-\x9a\xa0-\xa5\xe1]{1,2}|[\x80-\x9a](?=[A-Za-z])",
}
"""Patterns of the characters beyond ASCII that are usual in texts of an encoding."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MARKUP = re.compile(r"\s*<(?:!doctype|html|\?xml|head|body)\b", re.IGNORECASE)
_PROSE_WORDS = 6
_NO_SCORE = (0.0, False, 0, 0)
SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "|", r"\s+": "blanks"}


@dataclass(frozen=True, slots=True)
class TextForm:
    """Form of a text file with a table.

    Attributes:
        encoding: Name of the encoding; ``utf-8`` until the whole file shows another.
        skipped: Lines above the header, or above the first row.
        names: Column names; none for a file without a header.
        has_errors: Whether some bytes are none of the encoding; they are escaped then.
        is_stacked: Whether names are joined from several rows, and `skipped` counts these too.
        has_row_names: Whether rows have one value more than the header.
        has_empty_end: Whether rows end in a separator, and the header does not.
        has_blanks: Whether blanks follow the separators.
    """

    encoding: str
    separator: str
    skipped: int
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    has_errors: bool = False
    is_stacked: bool = False
    has_row_names: bool = False
    has_empty_end: bool = False
    has_blanks: bool = False


def encoding_of(head: bytes, name: str) -> str:
    """Return the encoding that the first bytes of a text file show.

    Raises:
        TableError: If the bytes are no text.
    """
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    for encoding in ("utf-16-le", "utf-16-be") if b"\0" in head else ():
        text = head[:_LOOKED_BYTES].decode(encoding, "replace")
        if "\n" in text and not _NO_TEXT.search(text):
            return encoding
    if b"\0" in head or len(_CONTROL.findall(head)) > len(head) // 100:
        raise TableError(f"{name} is a binary file, not a table in text form.")
    if head.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:
            return legacy_encoding(head)
    return "utf-8"


def legacy_encoding(content: bytes) -> str:
    """Return the encoding of bytes that are no UTF-8, or UTF-8 if it is that of most.

    Of the encodings that can be, it is the one with the most usual characters beyond ASCII.
    """
    content = content.rpartition(b"\n")[0] or content
    place = len(content) - len(content.lstrip(bytes(range(128))))
    looked = content[content.rfind(b"\n", 0, place) + 1 :][:HEAD_BYTES]
    text = looked.decode("utf-8", "replace")
    if sum(char > "\x7f" for char in text) >= 2 * text.count("\ufffd"):
        return "utf-8"
    scores = {"latin-1": 0.0}
    for encoding, usual in _USUAL.items():
        pattern = rb"(%b)|[\x81-\xfe][\x30-\xfe]|[\x80-\xff]" % usual
        found = [(match[0], match[1] or b"") for match in re.finditer(pattern, looked)]
        with suppress(UnicodeDecodeError):
            content.decode(encoding)
            scores[encoding] = len(b"".join(u for _, u in found)) / len(
                b"".join(m for m, _ in found)
            )
    return max(scores, key=scores.__getitem__)


def sniff(head: bytes, name: str, *, suffix: str, encoding: str = "") -> TextForm:
    """Return the form of a text file from its first bytes.

    The suffix decides the separator where the text does not; an empty encoding is found.

    Raises:
        TableError: If they hold no table.
    """
    encoding = encoding or encoding_of(head, name)
    lines = _lines(head, encoding)
    if not any(line.strip() for line in lines):
        raise TableError(f"{name} is empty.")
    if _MARKUP.match(lines[0]):
        raise TableError(f"{name} holds markup, as of a web page, and no table in text form.")
    separator, has_blanks = _separator(lines, suffix)
    rows, starts = _rows(lines, separator, has_blanks=has_blanks)
    if not rows or _is_prose(rows, suffix):
        raise TableError(f"{name} holds text, but no table was found in it.")
    first, header = header_of(rows)
    is_stacked = len(header) > 0
    header = header or tuple(cell.strip() for cell in rows[first])
    body = [tuple(row) for row in rows[first + 1 :]]
    extra = statistics.mode(len(row) for row in body) - len(header) if body else 0
    has_empty_end = extra == 1 and all(not row[-1].strip() for row in body if len(row) > 1)
    if not is_stacked and not has_header(header, body):
        rows_ = (tuple(rows[first]), *body)
        return TextForm(encoding, separator, starts[first], (), rows_, has_blanks=has_blanks)
    return TextForm(
        encoding,
        separator,
        starts[first] + is_stacked,
        header,
        tuple(body),
        is_stacked=is_stacked,
        has_row_names=extra == 1 and not has_empty_end,
        has_empty_end=has_empty_end,
        has_blanks=has_blanks,
    )


def _lines(head: bytes, encoding: str) -> list[str]:
    text = head.decode(encoding, "replace")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(head) == HEAD_BYTES and len(lines) > 1:
        lines.pop()  # it is cut
    return lines[:_MOST_ROWS]


def _separator(lines: Sequence[str], suffix: str) -> tuple[str, bool]:
    """Return the separator of the most consistent rows, and whether blanks follow it."""
    best, best_score = ",", _NO_SCORE
    for separator in _SEPARATORS:
        rows, _ = _rows(lines, separator, has_blanks=True)
        widths = [len(row) for row in rows]
        body = widths[len(widths) // 4 :]
        if not body:
            continue
        width = statistics.mode(body)
        share = sum(item == width for item in body) / len(body)
        if width == 1 or share < 0.7:
            continue
        score = (round(share, 1), widths[0] == width, widths.count(width), width)
        if score > best_score:
            best, best_score = separator, score
    if best_score == _NO_SCORE and suffix == ".txt":
        rows = [line.split() for line in lines if line.strip()]
        if len(rows[0]) > 1 and len({len(row) for row in rows}) == 1 and _has_values(rows[1:]):
            return r"\s+", False
    if best == "," and _is_one_column(lines):
        return ";", False
    after = sum(line.count(f"{best} ") for line in lines)
    has_blanks = best != "\t" and after > 0.5 * sum(line.count(best) for line in lines) > 0
    return best, has_blanks


def _has_values(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a column holds values alone, as one of a table does and words do not."""
    return any(all(map(_is_value, column)) for column in zip(*rows, strict=True))


def _is_one_column(lines: Sequence[str]) -> bool:
    """Return whether a header without a comma is above numbers with decimal commas."""
    filled = [line for line in lines if line.strip()]
    if "," in filled[0]:
        return False
    forms = [numeral(line) for line in filled[1:]]
    has_commas = any(form is not None and form.decimal == "," for form in forms)
    return has_commas and None not in forms


def _rows(
    lines: Sequence[str], separator: str, *, has_blanks: bool
) -> tuple[list[list[str]], list[int]]:
    """Return the rows that are not blank, and the number of lines above each, as pandas counts.

    A line end in quotes ends no line.
    """
    if separator == r"\s+":
        return [line.split() for line in lines if line.strip()], [
            number for number, line in enumerate(lines) if line.strip()
        ]
    rows, starts = [], []
    text = io.StringIO("\n".join(lines))
    reader = csv.reader(text, delimiter=separator, skipinitialspace=has_blanks)
    with suppress(csv.Error):  # a field is too large; the rows before it are the sample
        for begin, row in enumerate(reader):
            if any(cell.strip() for cell in row):
                rows.append(row)
                starts.append(begin)
    return rows, starts


def _is_prose(rows: Sequence[Sequence[str]], suffix: str) -> bool:
    """Return whether rows are sentences: many words, and no value at all."""
    if suffix in {".csv", ".tsv"} or any(_is_value(cell) for row in rows for cell in row):
        return False
    return statistics.mean(len(" ".join(row).split()) for row in rows) >= _PROSE_WORDS


def header_row(rows: Sequence[Sequence[str]]) -> int:
    """Return the index of the header among rows: titles above it fill fewer cells."""
    widths = [_filled(row) for row in rows]
    usual = statistics.median_high(sorted(widths)[len(widths) // 3 :])
    needed = max(1, usual - max(1, usual // 3)) if usual > 2 else usual
    length = statistics.mode(len(row) for row in rows)
    for index, row in enumerate(rows[:50]):
        if widths[index] >= needed or (usual == 2 and len(row) == length and widths[index] == 1):
            is_title = len(row) == 1 and length > 1
            if not is_title and not (usual == 2 and not str(row[-1]).strip()):
                return index
    return 0


def header_of(
    rows: Sequence[Sequence[str]], cells: Sequence[Sequence[str]] = ()
) -> tuple[int, tuple[str, ...]]:
    """Return the index of the last row of the header, and names joined from several rows, if any.

    `cells` are the rows with the texts of merged cells in all places that these cover.
    """
    first = last = usual = header_row(rows)
    cells = cells or rows
    if _is_lower_header(rows[first], rows[first + 1 : first + 2], rows[first + 2 :]):
        last += 1
    names = _joined(cells[first : last + 1])
    while first and _filled(rows[first - 1]) > 1 and _lacks_upper(names, rows[first - 1]):
        first -= 1
        names = _joined(cells[first : last + 1])
    names = (names[0] or "Unnamed: 0", *names[1:])
    is_stacked = first < last and "" not in names and len({*names}) == len(names)
    return (last, names) if is_stacked else (usual, ())


def _is_lower_header(
    header: Sequence[str], below: Sequence[Sequence[str]], body: Sequence[Sequence[str]]
) -> bool:
    """Return whether the row below a header with gaps fills these with names or with years."""
    if not below or "" in _joined([header, below[0]]) or "" not in map(str.strip, header):
        return False
    cells = [cell.strip() for cell in below[0] if cell.strip()]
    if all(len(cell) == 4 for cell in cells) and _are_labels(cells):
        return not below[0][0].strip()
    return not any(map(_is_value, cells)) and _names_values(below[0], body)


def _lacks_upper(names: Sequence[str], above: Sequence[str]) -> bool:
    """Return whether names repeat, or the first name is missing and stands in the row above."""
    given = [name for name in names if name]
    return len({*given}) < len(given) or (not names[0] and bool(above[0].strip()))


def _joined(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return names of columns, from rows in which a text also stands for the gaps right of it."""
    width = max(map(len, rows))
    header = [[*row, *[""] * (width - len(row))] for row in rows]
    for row in header[:-1]:
        for place in range(1, width):
            if not row[place] and header[-1][place].strip():
                row[place] = row[place - 1]
    return tuple(
        " ".join(dict.fromkeys(cell.strip() for cell in cells if cell.strip()))
        for cells in zip(*header, strict=True)
    )


def _names_values(row: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Return whether a cell of a row is a name above values."""
    for index, cell in enumerate(row):
        below = [line[index] for line in body[:50] if index < len(line) and line[index].strip()]
        if cell.strip() and not _is_value(cell) and below and all(map(_is_value, below)):
            return True
    return False


def _filled(row: Sequence[str]) -> int:
    return sum(bool(str(cell).strip()) for cell in row)


def has_header(first: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row names columns: its cells are not values like those below."""
    if not body:
        return True
    data_like = [index for index, cell in enumerate(first) if _is_value(cell)]
    if not data_like:
        return True
    named = sum(bool(cell.strip()) and not _is_value(cell) for cell in first)
    if _names_values(first, body):
        return True
    times = [cell for cell in first if looks_like_time(cell)]
    if named and len(times) == len(data_like) == len({*times}):
        below = [row[index] for row in body for index in data_like if index < len(row)]
        return not any(map(looks_like_time, below))
    return _are_labels([first[index] for index in data_like]) and named > 0


def _is_value(cell: str) -> bool:
    return numeral(cell.strip()) is not None or looks_like_time(cell)


def _are_labels(cells: Sequence[str]) -> bool:
    """Return whether cells are years or numbers in a row, which name columns of a wide table."""
    if len(cells) < 2 or not all(cell.strip().isdecimal() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    return len(steps) == 1 and steps != {0}
