"""Text from documents: plain text, HTML, Word and PDF, read within limits.

A document is foreign: archives that unpack to too much, XML that declares entities, and files of
another type than their name shows are refused with an error that names them.
"""

from __future__ import annotations

import codecs
import re
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import ClassVar
from xml.parsers import expat

from taskweaver.utils.markup.html import html_text
from taskweaver.utils.system.installation import install_command

MAX_BYTES = 64 << 20
"""Largest file, and largest unpacked part of one, that is read."""

# Errors of a parser of PDFs in a file that is damaged inside.
_BROKEN = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError,
           TypeError, ValueError, zlib.error)  # fmt: skip
Parts = Generator[str, None, None]

_PLAIN = frozenset({".txt", ".md", ".csv", ".json"})
_CHUNK = 1 << 16
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Encodings a page may declare; other names of codecs do more than decoding text.
_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}(utf-8|us-ascii|iso-8859-\d{1,2}|windows-\d{3,4}"
    rb"|koi8-[ru]|shift_jis|euc-jp|euc-kr|gb2312|gbk|gb18030|big5)\b",
    re.IGNORECASE,
)


def read_document(path: Path | str, max_chars: int | None = None) -> str:
    """Read the text of a document: .txt, .md, .csv, .json, .html, .htm, .docx or .pdf.

    The ending is its type. Without `max_chars` all of it is read.

    Returns:
        The text; empty for a document without any, e.g. a scanned PDF.

    Raises:
        OSError: If the file is missing, or cannot be read.
        ValueError: If it is of another type, broken, protected, or unpacks to too much.
        ImportError: If it is a PDF and `pypdf` is not installed.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path.name!r}.")
    suffix = path.suffix.lower()
    if suffix in _PLAIN:
        return _read_plain(path, max_chars)
    readers: dict[str, Callable[[Path], Parts]] = {
        ".html": _html_parts,
        ".htm": _html_parts,
        ".docx": _docx_parts,
        ".pdf": _pdf_parts,
    }
    if suffix not in readers:
        known = ", ".join(sorted({*_PLAIN, *readers}))
        raise ValueError(f"{path.name!r} is not a document that can be read; these can: {known}.")
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path.name!r} is larger than {MAX_BYTES:,} bytes.")
    return _tidy(_first(readers[suffix](path), max_chars))[:max_chars]


def _first(parts: Parts, max_chars: int | None) -> str:
    """Join parts until there are enough characters. The rest is never unpacked."""
    texts: list[str] = []
    # Tidying removes space, so some more is read than is wanted.
    missing = None if max_chars is None else 2 * max_chars + 1000
    with closing(parts):
        for part in parts:
            texts.append(part)
            if missing is not None:
                missing -= len(part)
                if missing <= 0:
                    break
    return "".join(texts)


def _tidy(text: str) -> str:
    """Drop space at the ends of lines, single space before lines, and all empty lines but one."""
    lines = "\n".join(line.rstrip(" \t\r\f\v\xa0") for line in text.split("\n"))
    lines = re.sub(r"(?m)^[ \t](?=\S)", "", lines)
    return re.sub(r"\n{3,}", "\n\n", lines).strip("\n")


def _read_plain(path: Path, max_chars: int | None) -> str:
    # No encoding takes more than four bytes for a character; a mark may come first.
    limit = MAX_BYTES if max_chars is None else min(4 * max_chars + 4, MAX_BYTES)
    with path.open("rb") as file:
        data = file.read(limit + 1)
    is_cut = len(data) > limit
    if is_cut and limit == MAX_BYTES:
        raise ValueError(f"{path.name!r} is larger than {MAX_BYTES:,} bytes: give max_chars.")
    text = _decode(data[:limit], path.name, is_cut=is_cut)
    return text.replace("\r\n", "\n")[:max_chars]


def _decode(data: bytes, name: str, *, is_cut: bool = False, declared: str | None = None) -> str:
    """Decode text: by the mark, as declared, as UTF-8, and else as Windows' western European.

    Raises:
        ValueError: If it is not text.
    """
    marked = next((encoding for mark, encoding in _BOMS if data.startswith(mark)), None)
    encodings = [marked] if marked else [declared or "utf-8", "utf-8", *_guess_wide(data), "cp1252"]
    for encoding in encodings:
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(data, not is_cut)
        except (UnicodeDecodeError, LookupError):
            continue
        if "\0" not in text:
            return text
    if marked is None and b"\0" not in data:
        return data.decode("latin-1")
    raise ValueError(f"{name!r} is not text in any encoding that was tried.")


def _guess_wide(data: bytes) -> list[str]:
    """Return UTF-16 without a mark when every second byte of the beginning is mostly zero."""
    head = data[:1000]
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if max(even, odd) <= len(head) // 5:
        return []
    return ["utf-16-le" if odd > even else "utf-16-be"]


def _html_parts(path: Path) -> Parts:
    data = path.read_bytes()
    found = _CHARSET.search(data[:2048])
    text = _decode(data, path.name, declared=found[1].decode("ascii") if found else None)
    page = html_text(text)
    heading = f"# {page.title}"
    yield "" if not page.title or page.text.startswith(heading) else f"{heading}\n\n"
    yield page.text


class _Word:
    """Collector of the text of WordprocessingML while a parser reads the document."""

    _SPACES: ClassVar = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._in_text = False
        self._fallbacks = 0  # the same text again, for older programs
        self._cells = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:  # noqa: ARG002
        tag = _word_tag(name)
        self._fallbacks += name.endswith("/markup-compatibility/2006 Fallback")
        self._cells += tag == "tc"
        self._in_text = tag == "t"
        if tag in self._SPACES and not self._fallbacks:
            self.parts.append(self._SPACES[tag])

    def end(self, name: str) -> None:
        tag = _word_tag(name)
        self._fallbacks -= name.endswith("/markup-compatibility/2006 Fallback")
        self._cells -= tag == "tc"
        self._in_text = False
        if self._fallbacks:
            return
        if tag == "p":
            self.parts.append(" " if self._cells else "\n")
        elif tag in {"tc", "tr"}:
            self.parts.append("\t" if tag == "tc" else "\n")

    def text(self, data: str) -> None:
        if self._in_text and not self._fallbacks:
            self.parts.append(data)


_WORD_NAMESPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)


def _word_tag(name: str) -> str:
    namespace, _, tag = name.rpartition(" ")
    return tag if namespace in _WORD_NAMESPACES else ""


def _docx_parts(path: Path) -> Parts:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            main = next((n for n in names if re.fullmatch(r"word/document\d*\.xml", n)), None)
            if main is None:
                raise ValueError(f"{path.name!r} is an archive, but no Word document.")
            for name in (main, "word/footnotes.xml", "word/endnotes.xml"):
                if name in names:
                    yield from _word_parts(archive, archive.getinfo(name), path.name)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path.name!r} is no Word document, or broken: {error}.") from error
    except expat.ExpatError as error:
        raise ValueError(f"{path.name!r} holds broken XML: {error}.") from error


def _word_parts(archive: zipfile.ZipFile, info: zipfile.ZipInfo, document: str) -> Parts:
    """Yield the text of one part of the archive while the part is unpacked."""
    if info.flag_bits & 1:
        raise ValueError(f"{document!r} is protected by a password.")
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ValueError(f"{document!r} is packed in a way Word does not use.")
    too_large = ValueError(f"{document!r} unpacks to more than {MAX_BYTES:,} bytes.")
    if info.file_size > MAX_BYTES:
        raise too_large
    word = _Word()
    parser = _word_parser(word, document)
    unpacked = 0
    with archive.open(info) as file:
        while data := file.read(_CHUNK):
            unpacked += len(data)
            if unpacked > MAX_BYTES:  # the size an archive declares need not be true
                raise too_large
            parser.Parse(data, False)
            yield "".join(word.parts)
            word.parts.clear()
    parser.Parse(b"", True)
    yield "".join(word.parts) + "\n"


def _word_parser(word: _Word, document: str) -> expat.XMLParserType:
    def refuse(*_: object) -> None:
        raise ValueError(f"{document!r} declares a document type, which no Word document does.")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = word.start
    parser.EndElementHandler = word.end
    parser.CharacterDataHandler = word.text
    # Entities are declared there: the ones that grow, and the ones that fetch.
    parser.StartDoctypeDeclHandler = refuse
    return parser


def _pdf_parts(path: Path) -> Parts:
    try:
        from pypdf import PdfReader
        from pypdf.errors import DependencyError, PyPdfError
    except ImportError as error:
        raise ImportError(
            f"Reading a PDF needs the library pypdf: {install_command('documents')}"
        ) from error
    with path.open("rb") as file:
        try:
            reader = PdfReader(file)
            is_locked = reader.is_encrypted and not reader.decrypt("")
            for page in () if is_locked else reader.pages:
                yield page.extract_text() + "\n\n"
        except DependencyError as error:
            raise ValueError(
                f"{path.name!r} is encrypted in a way not read here: {error}."
            ) from error
        except (PyPdfError, *_BROKEN) as error:
            problem = f"{type(error).__name__}: {error}"
            raise ValueError(f"{path.name!r} cannot be read as a PDF: {problem}.") from error
    if is_locked:
        raise ValueError(f"{path.name!r} is protected by a password.")
