"""Passages of a folder of documents, asked for in a session."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S
from support import Listener, Script, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ext_role.document_retriever.index import DocumentIndex, document_chunks
from taskweaver.module.event_emitter import RoundEventType
from taskweaver.session.session import Session

LEAVE = """# Handbook

Welcome to the company.

## Leave

Everybody has 27 days of leave a year. Days that are left expire in March.

## Travel

Trains are preferred. A trip over 500 euros is approved by the head of the group.
"""
ROLES = {"session.roles": ["document_retriever"]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = make_project(tmp_path / "project")
    (project / "knowledge_base" / "deep").mkdir(parents=True)
    (project / "knowledge_base" / "handbook.md").write_text(LEAVE)
    (project / "knowledge_base" / "deep" / "page.html").write_text(
        "<title>Canteen</title><script>leave()</script><h1>Canteen</h1><p>Soup &amp; bread at noon."
    )
    return project


@pytest.fixture
def session(project: Path) -> Iterator[Session]:
    with TaskWeaverApp(project, model=Script([]), config=ROLES) as app:
        assert not app.warnings
        yield app.get_session()


def ask(session: Session, query: str) -> str:
    round_ = session.send_message(query)
    assert round_.state == "finished"
    return round_.post_list[-1].message


def passages(message: str) -> list[dict[str, Any]]:
    found = re.search(r"\{\{DELIMITER_START_TEMPORAL\}\}(.*)\{\{DELIMITER_END", message, re.DOTALL)
    assert found, message
    return json.loads(found[1])


def test_the_passage_that_suits_comes_first_and_a_query_is_words_and_no_syntax(
    session: Session,
) -> None:
    first, *_ = passages(ask(session, "how many days of leave expire?"))
    assert (first["path"], first["heading"]) == ("handbook.md", "Handbook > Leave")
    assert "27 days" in first["text"]
    assert first["score"] == 1
    (page,) = passages(ask(session, "soup"))
    assert page["path"] == "deep/page.html"
    assert page["text"].startswith("Soup & bread")
    for query in ('leave" OR NEAR(', "leave AND NOT *", "heading:leave", "-leave^"):
        assert passages(ask(session, query))[0]["heading"] == "Handbook > Leave"
    for query in ("?!", "_", "\N{PILE OF POO}"):
        assert "Nothing was found" in ask(session, query)


def test_new_changed_and_removed_documents_are_noticed(project: Path, session: Session) -> None:
    folder = project / "knowledge_base"
    assert "Nothing was found" in ask(session, "zebra")
    (folder / "zoo.txt").write_text("A zebra.")
    assert passages(ask(session, "zebra"))[0]["text"] == "A zebra."
    (folder / "zoo.txt").write_text("A zebra and an okapi.")
    assert passages(ask(session, "okapi"))[0]["text"] == "A zebra and an okapi."
    (folder / "zoo.txt").unlink()
    assert "Nothing was found for: zebra" in ask(session, "zebra")
    folder.rename(project / "elsewhere")
    assert "There is no folder of documents at" in ask(session, "soup")
    folder.mkdir()
    assert "Nothing was found" in ask(session, "soup")


def index_of(folder: Path, files: Mapping[str, str], target: int = 400) -> DocumentIndex:
    """Return the index of a folder of documents, with passages of a length."""
    for name, text in files.items():
        (folder / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "docs" / name).write_text(text)
    return DocumentIndex(folder / "i" / "index.sqlite", folder / "docs", target, folder / "i")


def test_what_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    index = index_of(tmp_path, {"a.txt": "apple"})
    told: list[str] = []
    index.search("apple", 3, told.append)
    assert told == ["reading document 1 of 1"]
    found, _ = index.search("apple", 3, told.append)
    assert (len(told), found[0].text) == (1, "apple")


def test_an_unreadable_document_is_named_and_the_others_answer(
    project: Path, session: Session
) -> None:
    folder = project / "knowledge_base"
    (folder / "broken.txt").write_bytes(b"\xff\xfe soup \x80")
    (folder / "gone.md").symlink_to(folder / "nowhere.md")
    (folder / "picture.png").write_bytes(b"soup")
    (folder / ".hidden.txt").write_text("soup")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.txt")).write_text("A quagga.")
    assert passages(ask(session, "quagga"))[0]["path"] == "\\xff.txt"
    message = ask(session, "soup")
    assert [passage["path"] for passage in passages(message)] == ["deep/page.html"]
    told = message.partition("Not looked into:")[2]
    assert "- broken.txt: " in told
    assert "- gone.md: There is no file" in told
    assert "hidden" not in told
    (folder / "broken.txt").write_text("soup is back")
    (folder / "gone.md").unlink()
    message = ask(session, "back")
    assert "Not looked into" not in message
    assert passages(message)[0]["text"] == "soup is back"


def test_a_broken_index_is_made_again(project: Path, session: Session) -> None:
    place = project / "workspace" / "document_retriever"
    place.write_text("in the way")
    assert "could not be searched" in ask(session, "soup")
    place.unlink()
    ask(session, "soup")
    (file,) = (project / "workspace").rglob("index.sqlite")
    for damage in (b"no database at all", b"SQLite format 3\0" + bytes(300)):
        file.write_bytes(damage)
        assert passages(ask(session, "soup"))[0]["path"] == "deep/page.html"


INDEXING = """
import json, sys
from pathlib import Path
from taskweaver.ext_role.document_retriever.index import DocumentIndex

folder, file = Path(sys.argv[1]), Path(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
index = DocumentIndex(file, folder, 400, file.parent)
print(json.dumps([len(index.search(f"word{n}", 5, lambda _: None)[0]) for n in range(40)]))
"""


def test_processes_that_index_at_once_all_find_everything(tmp_path: Path) -> None:
    index_of(tmp_path, {f"{n}.txt": f"word{n} and more" for n in range(40)})
    places = [str(tmp_path / "docs"), str(tmp_path / "i" / "index.sqlite")]
    command = [sys.executable, "-c", INDEXING, *places]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(3)]  # type: ignore[call-overload]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=PATIENCE_S)[0] for process in processes]
    assert [json.loads(output) for output in outputs] == [[1] * 40] * 3


def test_a_hit_grows_by_its_neighbours_and_no_text_comes_twice(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {n} tells of the fox, at some length." for n in range(12))
    found, _ = index_of(tmp_path, {"a.md": f"# Fox\n\n{text}"}, 300).search("fox", 20, print)
    assert all(len(passage.text) <= 300 for passage in found)
    assert max(len(passage.text) for passage in found) > 150
    numbers = [n for passage in found for n in re.findall(r"Paragraph (\d+)", passage.text)]
    assert set(numbers) == {str(n) for n in range(12)}
    # Another length of passages makes the index anew.
    files = {"a.txt": "\n\n".join(f"The fox number {n}." for n in range(40))}
    both = [index_of(tmp_path, files, target).search("number", 1, print) for target in (100, 400)]
    lengths = [len(found[0].text) for found, _ in both]
    assert lengths[0] <= 100 < lengths[1]


def test_a_long_paragraph_is_cut_between_sentences_and_code_has_no_headings() -> None:
    long = " ".join(f"Sentence number {n} ends here." for n in range(60))
    parts = list(document_chunks(f"# A #\n\n```\n# not a heading\n```\n\n{long}", 200))
    assert {part.heading for part in parts} == {"A"}
    assert "# not a heading" in parts[0].text
    assert all(len(part.text) <= 200 for part in parts)
    assert " ".join(part.text for part in parts).endswith(long[-40:])
    assert sum(part.text.endswith("here.") for part in parts) > len(parts) // 2


def test_the_workspace_inside_the_documents_is_no_document(project: Path) -> None:
    (project / "workspace").mkdir()
    (project / "workspace" / "own.txt").write_text("zebra")
    config = ROLES | {"document_retriever.index_folder": "."}
    with TaskWeaverApp(project, model=Script([]), config=config) as app:
        session = app.get_session()
        assert "Nothing was found" in ask(session, "zebra")
        assert passages(ask(session, "soup"))[0]["path"] == "knowledge_base/deep/page.html"


class _Embedder(BaseHTTPRequestHandler):
    """Knows one meaning: texts about rest, whatever their words."""

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        rest = ("holiday", "27 days")
        vectors = [[1.0, 0.0] if any(w in t for w in rest) else [0.0, 1.0] for t in texts]
        data = [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        body = json.dumps({"data": data, "model": "e", "object": "list"}).encode()
        self.send_response(200 if self.path.startswith("/v1") else 400)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def embedder() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Embedder) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("path", "first"), [("/v1", "handbook.md"), ("/no", "other.txt")])
def test_an_embedding_model_puts_passages_in_order(
    project: Path, embedder: str, path: str, first: str
) -> None:
    (project / "knowledge_base" / "other.txt").write_text("year year year")
    config = ROLES | {
        "llm.embedding_api_type": "openai",
        "llm.embedding_model": "e",
        "llm.embedding_api_base": embedder + path,
        "llm.api_key": "none-needed",
    }
    listener = Listener()
    with TaskWeaverApp(project, model=Script([]), config=config) as app:
        round_ = app.get_session().send_message("holiday of the year", listener)
    assert passages(round_.post_list[-1].message)[0]["path"] == first
    warnings = listener.messages(RoundEventType.round_warning)
    assert ["by words alone" in warning for warning in warnings] == [True] * (path == "/no")


@pytest.mark.parametrize(("size", "length", "count"), [(2, 256, 2), (5, 16, 5)])
def test_an_answer_has_passages_as_configured(
    project: Path, size: int, length: int, count: int
) -> None:
    paragraphs = [f"## Part {n}\n\nSoup is made of leek. {'Then it rests. ' * 8}" for n in range(6)]
    (project / "knowledge_base" / "soup.md").write_text("\n\n".join(paragraphs))
    keys = ROLES | {"document_retriever.size": size, "document_retriever.target_length": length}
    with TaskWeaverApp(project, model=Script([]), config=keys) as app:
        found = passages(ask(app.get_session(), "leek soup"))
    assert len(found) == count
    if length == 16:
        assert max(len(passage["text"]) for passage in found) < 300
