"""Text from documents, as people make them and as an attacker would."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from taskweaver.utils import documents
from taskweaver.utils.documents import read_document

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
COMPATIBILITY = "http://schemas.openxmlformats.org/markup-compatibility/2006"
TEXT = "Grüße aus Köln\nfür 5 €"


def word_file(path: Path, body: str, prolog: str = "", **more: str) -> Path:
    xml = (
        f'<?xml version="1.0"?>{prolog}<w:document xmlns:w="{WORD}" '
        f'xmlns:mc="{COMPATIBILITY}"><w:body>{body}</w:body></w:document>'
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", xml)
        for name, content in more.items():
            archive.writestr(f"word/{name}.xml", content)
    return path


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def pdf_file(path: Path, pages: list[str], password: str | None = None) -> Path:
    writer = PdfWriter()
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    names = DictionaryObject({NameObject(k): NameObject(v) for k, v in font.items()})
    for text in pages:
        page = writer.add_blank_page(300, 300)
        fonts = DictionaryObject({NameObject("/F1"): names})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = stream
    if password is not None:
        writer.encrypt("secret" if password else "", "owner", algorithm="RC4-128")
    writer.write(path)
    return path


def refused(path: Path, reason: str, limit: int | None = None) -> None:
    with pytest.raises(ValueError, match=reason):
        read_document(path, limit)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8-sig", TEXT), ("cp1252", TEXT), ("utf-16", TEXT), ("utf-16-le", "plain words"),
        ("utf-16-be", "plain words"), ("latin-1", "caf\xe9 \x81"), ("utf-8", ""),
    ],
)  # fmt: skip
def test_plain_text_is_read_in_the_encodings_people_use(
    tmp_path: Path, encoding: str, text: str
) -> None:
    path = tmp_path / "note.TXT"
    path.write_bytes(text.encode(encoding))
    assert read_document(path) == text


def test_a_character_is_never_cut_in_half_and_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    path.write_text("€uro😀" * 1000, "utf-8")
    for limit in range(1, 7):
        assert read_document(path, limit) == ("€uro😀" * 3)[:limit]
    path.write_bytes(bytes(range(256)) * 4)
    refused(path, r"'note\.md' is not text")


def test_a_file_too_large_is_read_only_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", 1000)
    path = tmp_path / "log.txt"
    path.write_text("x" * 1001)
    assert read_document(path, 100) == "x" * 100
    refused(path, r"'log\.txt' is larger than 1,000 bytes: give max_chars")
    page = path.rename(tmp_path / "log.html")
    refused(page, "larger", 10)


def test_a_page_is_read_as_a_person_would(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(
        """<!DOCTYPE html><html><head><title>Sales</title><style>p { color: red }</style>
        <script>document.write("<p>no</p>")</script></head><body>
        <h1>The   <b>year</b></h1><noscript>switch it on</noscript><!-- hidden -->
        <ul><li>first<li>second</ul><svg><text>drawn</text></svg>
        <table><tr><th>City<th>Sum</tr><tr><td>K&ouml;ln<td>5 &lt; 6</tr></table>
        <pre>if a:\n    b</pre><template><p>later</template>end""",
        "utf-8",
    )
    assert read_document(path).split() == (
        "# Sales # The year - first - second City Sum Köln 5 < 6 if a: b end".split()
    )
    assert "City\tSum\n" in read_document(path)
    assert "if a:\n    b" in read_document(path)
    assert read_document(path, 7) == "# Sales"


def test_a_word_document_is_read(tmp_path: Path) -> None:
    table = f"<w:tbl><w:tr><w:tc>{paragraph('City')}</w:tc><w:tc>{paragraph('Sum')}</w:tc></w:tr>"
    choice = f"<mc:Choice>{paragraph('box')}</mc:Choice>"
    body = (
        paragraph("Grüße &amp; mehr")
        + "<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r></w:p>"
        + "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del></w:p>"
        + f"{table}</w:tbl><mc:AlternateContent>{choice}"
        + f"<mc:Fallback>{paragraph('box')}</mc:Fallback></mc:AlternateContent>"
    )
    notes = f'<w:footnotes xmlns:w="{WORD}">{paragraph("a footnote")}</w:footnotes>'
    path = word_file(tmp_path / "letter.docx", body, footnotes=notes)
    text = read_document(path)
    assert text.startswith("Grüße & mehr\na\tb\nc\n")
    assert "City \tSum" in text
    assert text.count("box") == 1
    assert text.endswith("a footnote")
    assert "gone" not in text
    assert read_document(path, 5) == "Grüße"


@pytest.mark.parametrize("declared", ['[<!ENTITY a "aaaa">]', 'SYSTEM "http://127.0.0.1:9/d.dtd"'])
def test_entities_are_refused(tmp_path: Path, declared: str) -> None:
    path = word_file(tmp_path / "bad.docx", paragraph("x"), f"<!DOCTYPE d {declared}>")
    refused(path, r"'bad\.docx' declares a document type")


def test_an_archive_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert documents.MAX_BYTES <= 64 << 20
    monkeypatch.setattr(documents, "MAX_BYTES", 100_000)
    path = word_file(tmp_path / "bomb.docx", paragraph("x" * 2_000_000))
    assert path.stat().st_size < 100_000
    refused(path, r"'bomb\.docx' unpacks to more than", 100)
    small = word_file(tmp_path / "liar.docx", paragraph("x" * 500_000))
    data = small.read_bytes()
    with zipfile.ZipFile(small) as archive:
        size = archive.getinfo("word/document.xml").file_size
    small.write_bytes(data.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little")))
    refused(small, r"liar\.docx")


def test_what_is_no_word_document_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letter.docx"
    path.write_text("only words")
    refused(path, r"'letter\.docx' is no Word document")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.txt", "x")
    refused(path, "an archive, but no Word document")
    with pytest.raises(ValueError, match="broken XML"):
        read_document(word_file(path, "<w:p>"))
    broken = bytearray(word_file(path, paragraph("words " * 5000)).read_bytes())
    at = broken.index(b"word/document.xml") + 30
    broken[at : at + 40] = b"\xff" * 40
    path.write_bytes(broken)
    refused(path, r"letter\.docx")


def test_a_pdf_is_read_page_by_page(tmp_path: Path) -> None:
    path = pdf_file(tmp_path / "two.pdf", ["The first page", "The second"])
    assert read_document(path) == "The first page\n\nThe second"
    assert read_document(path, 9) == "The first"
    assert read_document(pdf_file(tmp_path / "blank.pdf", [""])) == ""
    assert read_document(pdf_file(tmp_path / "open.pdf", ["for all"], "")) == "for all"


def test_a_pdf_that_cannot_be_read_is_explained(tmp_path: Path) -> None:
    locked = pdf_file(tmp_path / "locked.pdf", ["x"], "secret")
    refused(locked, r"'locked\.pdf' is protected by a password")
    broken = tmp_path / "broken.pdf"
    for content in (b"", b"%PDF-1.7\nnothing", b"words " * 100):
        broken.write_bytes(content)
        refused(broken, r"'broken\.pdf' cannot be read as a PDF")


def test_without_the_library_a_pdf_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = pdf_file(tmp_path / "a.pdf", ["x"])
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(ImportError, match='pip install "pypdf>='):
        read_document(path)


def test_other_files_and_missing_ones_are_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no file .*gone\.txt"):
        read_document(tmp_path / "gone.txt")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_document(tmp_path)
    path = tmp_path / "data.xyz"
    path.touch()
    refused(path, r"'data\.xyz' is not a document .*\.docx")
