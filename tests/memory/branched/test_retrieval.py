"""Retrieval: other forms of words, several languages, vectors of models that come and go."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memories import Open

from taskweaver.errors import TaskWeaverError
from taskweaver.memory.branched import BranchedMemory, MemoryConfig
from taskweaver.memory.branched.tiers import indexing
from taskweaver.memory.vectors.embedders import ModelEmbedder, static_embedder
from taskweaver.utils.retrieval import TextIndex

QUIET = MemoryConfig(memory_log_enabled=False, synchronous="NORMAL")


class Down(TaskWeaverError):
    """The model is down."""


class Meaning:
    """A model that knows money and weather, whatever the words."""

    def __init__(self, dimensions: int = 4, *, is_down: bool = False) -> None:
        self.dimensions = dimensions
        self.is_down = is_down
        self.asked: list[str] = []
        self.told: list[str] = []

    def ask(self, texts: Sequence[str]) -> list[list[float]]:
        if self.is_down:
            raise Down("no endpoint")
        self.asked += texts
        known = ("revenue turnover", "rain drizzle")
        found = [[float(any(w in t for w in words.split())) for words in known] for t in texts]
        return [vector + [0.0] * (self.dimensions - 2) for vector in found]

    def embedder(self, name: str = "m") -> ModelEmbedder:
        return ModelEmbedder(name, self.ask, self.told.append)


def opened(path: Path, model: Meaning | None, name: str = "m") -> BranchedMemory:
    return BranchedMemory(path, QUIET, embedder=model.embedder(name) if model else None)


def answers(memory: BranchedMemory, query: str) -> list[str]:
    found = memory["b"].search(query, 5)
    return [record.text for record in found if record.match == "query"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.sqlite"
    with opened(path, None) as memory:
        branch = memory.create("b")
        for text in ("revenue is net of tax", "rain falls in autumn", "the plant has three shifts"):
            branch.remember(text)
    return path


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Customers who churned are listed", "churning customer"),
        ("Die Lieferzeit beträgt drei Tage", "Wie lange dauern Lieferungen?"),
        ("收入一律按不含税金额统计", "含税吗"),
        ("売上は常に税抜きで報告する", "税抜きの売上高"),
        ("매출은 부가세를 제외한다", "매출액의 부가세"),
        ("the 🦊 eats データ and größe", "GRÖSSE 🦊"),
    ],
)
@pytest.mark.parametrize("use_fts", ["on", "off"])
def test_other_forms_of_words(open_memory: Open, text: str, query: str, use_fts: str) -> None:
    memory = open_memory(use_fts=use_fts)
    root = memory.create("root")
    for other in (text, "nothing of that kind", "一つ別の話", "또 다른 이야기"):
        root.remember(other)
        root.append({"content": other})
    assert [record.text for record in root.search(query, 1)] == [text]
    assert [event.text for event in root.find_events(query, 1)] == [text]
    assert {record.match for record in root.search("zzzz qqqq xx", 2)} == {"recency"}


def test_records_are_indexed_by_searches_only(file: Path) -> None:
    def indexed() -> int:
        with closing(sqlite3.connect(file)) as connection:
            return len(connection.execute("SELECT rowid FROM archival_fts").fetchall())

    with opened(file, None) as memory, opened(file, None) as other:
        assert indexed() == 0
        assert answers(memory, "revenues") == ["revenue is net of tax"]
        assert indexed() == 3
        other["b"].remember("revenue of another process")
        assert indexed() == 3
        memory["b"].fork("c").remember("revenue of a fork")
        assert set(answers(other, "revenue")) == {
            "revenue is net of tax", "revenue of another process"
        }  # fmt: skip
        assert memory["c"].search("fork", 1)[0].text == "revenue of a fork"
        assert memory.verify().is_sound


def test_a_large_memory_is_indexed_by_several_searches_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(indexing, "_MAKING_S", 0.0)  # a batch for each search
    with opened(tmp_path / "m.sqlite", None) as memory:
        branch = memory.create("b")
        texts = ["oldest", *(f"filler {n}" for n in range(255)), "middle"]
        texts += [f"rest {n}" for n in range(1_100)] + ["newest"]
        memory.together(lambda: [branch.remember(text) for text in texts])
        assert answers(memory, "oldest") == ["oldest"]
        assert answers(memory, "newest") == ["newest"]  # not indexed, and looked through
        memory.close()
        (record,) = caplog.records
        assert "in parts, and ends at row 256 of 1358. Until later searches have" in record.message
    with opened(tmp_path / "m.sqlite", None) as memory:
        for _ in range(6):
            answers(memory, "oldest")
        assert answers(memory, "middle") == ["middle"]
    assert len(caplog.records) == 2


def test_a_huge_record_is_found_by_a_word_at_its_end(tmp_path: Path) -> None:
    config = MemoryConfig(memory_log_enabled=False, archival_max_chars=20_000_000)
    with BranchedMemory(tmp_path / "m.sqlite", config, embedder=static_embedder()) as memory:
        branch = memory.create("b")
        branch.remember("данные 売上 🦊 plain " * 500_000 + "needle")
        branch.remember("a short one")
        assert len(branch.search("needle", 1)[0].text) > 9_000_000
        assert branch.search("shorter", 1)[0].text == "a short one"


def test_a_model_finds_other_words_of_the_same_meaning(file: Path) -> None:
    model = Meaning()
    with opened(file, model) as memory:
        assert answers(memory, "our turnover") == ["revenue is net of tax"]
        assert answers(memory, "drizzle") == ["rain falls in autumn"]
        assert answers(memory, "zzz") == []
        count = len(model.asked)
        assert count == 3 + 3
    with opened(file, model) as memory:
        answers(memory, "our turnover")
        assert len(model.asked) == count + 1


def test_vectors_survive_other_models_and_dimensions(file: Path) -> None:
    for model, name in ((Meaning(), "m"), (Meaning(7), "other"), (Meaning(9), "m")):
        with opened(file, model, name) as memory:
            answers(memory, "turnover")  # the first search of a new dimension goes by words
            assert answers(memory, "turnover") == ["revenue is net of tax"]
            memory["b"].forget(memory["b"].search("shifts", 1)[0].id)
            memory["b"].remember("the plant has three shifts")
            assert memory.verify().is_sound
    with closing(sqlite3.connect(file)) as connection:
        models = connection.execute("SELECT DISTINCT model, length(vector) FROM vectors").fetchall()
    assert sorted(models) == [("m", 9), ("other", 7)]


def test_a_model_that_is_gone_leaves_the_words(file: Path) -> None:
    model = Meaning(is_down=True)
    with opened(file, model) as memory:
        assert answers(memory, "revenues") == ["revenue is net of tax"]
        assert answers(memory, "turnover") == []
    assert model.told == ["Texts are compared by words alone from now on: no endpoint"]


@pytest.mark.parametrize("vector", [[], ["a"], [float("nan")], [None], None, "YWJj"])
def test_an_answer_that_is_no_vector_leaves_the_words(file: Path, vector: Any) -> None:
    told: list[str] = []
    model = ModelEmbedder("m", lambda texts: [vector for _ in texts], told.append)
    with BranchedMemory(file, QUIET, embedder=model) as memory:
        assert answers(memory, "revenues") == ["revenue is net of tax"]
    assert list(TextIndex(["revenue", "rain"], model).find("rain", 1)) == [1]
    assert len(told) == 1


def test_a_search_does_not_wait_for_a_long_write(file: Path) -> None:
    with opened(file, Meaning()) as memory, closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert answers(memory, "revenues") == ["revenue is net of tax"]


def test_an_erased_text_leaves_neither_words_nor_vectors(file: Path) -> None:
    with opened(file, Meaning()) as memory:
        answers(memory, "rain")
        memory.erase(text="revenue")
        with closing(sqlite3.connect(file)) as connection:
            for table in ("archival_fts", "vectors"):
                assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        assert answers(memory, "turnover") == []
        assert answers(memory, "drizzle") == ["rain falls in autumn"]


def test_the_table_of_the_package_knows_synonyms() -> None:
    texts = ["Bananas are yellow", "The laboratory is cold", "The meeting starts at ten"]
    queries = ["which fruit", "freezing rooms", "when does the appointment begin"]
    with closing(TextIndex(texts, static_embedder())) as index:
        assert [next(iter(index.find(query, 3))) for query in queries] == [0, 1, 2]
        assert index.find("", 3) == {}
