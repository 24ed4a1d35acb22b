"""Experiences: made of conversations, chosen for requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from taskweaver.memory import Memory, Post
from taskweaver.memory.conversation import ConversationError
from taskweaver.memory.experience import Experience, ExperienceGenerator
from taskweaver.utils.files import read_yaml, write_yaml


class Model:
    """Sums up by naming the request, and embeds by counting letters."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.summaries = 0
        self.embedded: list[str] = []

    def summarize(self, instructions: str, text: str, llm_alias: str = "") -> str:
        assert "Error Resolution" in instructions
        assert "id:" not in text
        assert llm_alias in {"", "small"}
        if self.fails:
            raise ConversationError("model", "down")
        self.summaries += 1
        return f"User Query: {text.partition('user_query: ')[2].splitlines()[0]}"

    def get_embedding_list(self, texts: Sequence[str]) -> list[list[float]]:
        if self.fails:
            raise ConversationError("model", "down")
        self.embedded += texts
        return [[float(text.lower().count(letter)) for letter in "abcdefghij"] for text in texts]


def save(folder: Path, session_id: str, query: str) -> None:
    memory = Memory(session_id)
    round_ = memory.create_round(query)
    memory.add_post(round_, Post.create("done", "Planner", "User"))
    memory.end_round(round_, "finished")
    memory.save_experience(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path, "one", "mean of sales per month, as a chart")
    save(tmp_path, "two", "find outliers in the sensor readings")
    text = {"exp_id": "hand", "experience_text": "Sales figures are always in thousands of euros."}
    write_yaml(tmp_path / "handcrafted_exp_hand.yaml", text)
    return tmp_path


def test_experiences_are_made_once_and_chosen_by_the_request(folder: Path) -> None:
    model = Model()
    generator = ExperienceGenerator(model, folder, llm_alias="small")
    assert set(generator.refresh()) == {"one", "two", "hand"}
    assert generator.refresh() == []
    assert model.summaries == 2
    assert len(generator.load_experience()) == 3
    best = [item.exp_id for item, _ in generator.retrieve_experience("sales per month please")]
    assert best == ["one", "hand"]
    best = [item.exp_id for item, _ in generator.retrieve_experience("outliers in readings")]
    assert best[0] == "two"
    assert generator.retrieve_experience("poetry") == []
    assert generator.retrieve_experience('"; DROP TABLE -- the of') == []
    kept = read_yaml(folder / "exp_one.yaml")
    assert set(kept) == {
        "exp_id", "experience_text", "raw_experience_path", "embedding_model", "embedding"
    }  # fmt: skip
    assert Experience.from_dict(kept).to_dict() == kept


def test_a_configured_model_ranks_experiences_until_it_fails(folder: Path) -> None:
    told: list[str] = []
    model = Model()
    generator = ExperienceGenerator(model, folder, embedding_model="letters", tell=told.append)
    generator.refresh()
    generator.load_experience()
    ranked = generator.retrieve_experience("mean of sales per month, as a chart")
    assert ranked[0][0].exp_id == "one"
    assert ranked[0][1] > ranked[-1][1]
    assert len(model.embedded) == len(ranked) + 1
    model.fails = True
    assert [item.exp_id for item, _ in generator.retrieve_experience("outliers")] == ["two"]
    assert generator.retrieve_experience("poetry") == []
    assert len(told) == 1


def test_what_cannot_be_used_is_told_and_left_out(folder: Path) -> None:
    (folder / "raw_exp_bad.yaml").write_text("rounds: 5")
    (folder / "handcrafted_exp_bad2.yaml").write_text("exp_id: bad2")
    (folder / "exp_bad3.yaml").write_text("- not a mapping")
    told: list[str] = []
    generator = ExperienceGenerator(Model(), folder, tell=told.append)
    assert set(generator.refresh()) == {"one", "two", "hand"}
    assert len(generator.load_experience()) == 3
    assert len(told) == 3
    failing = ExperienceGenerator(Model(fails=True), folder / "none")
    assert failing.refresh() == []
    assert failing.load_experience() == []


def test_a_model_that_is_down_leaves_the_conversations_for_later(folder: Path) -> None:
    told: list[str] = []
    assert ExperienceGenerator(Model(fails=True), folder, tell=told.append).refresh() == ["hand"]
    assert len(told) == 2
    assert set(ExperienceGenerator(Model(), folder).refresh()) == {"one", "two"}


def test_sub_paths_and_deletion_stay_inside_the_folder(folder: Path) -> None:
    generator = ExperienceGenerator(Model(), folder)
    generator.refresh()
    generator.load_experience()
    generator.set_sub_path("team")
    assert generator.get_experience_dir() == folder / "team"
    assert generator.retrieve_experience("sales per month") == []
    for wrong in ("../up", "/etc"):
        with pytest.raises(ConversationError):
            generator.set_sub_path(wrong)
    generator.set_experience_dir(folder)
    generator.set_sub_path("")
    generator.delete_experience("one")
    generator.delete_raw_experience("two")
    generator.delete_handcrafted_experience("hand")
    assert {path.name for path in folder.glob("*.yaml")} == {
        "raw_exp_one.yaml", "exp_two.yaml", "exp_hand.yaml"
    }  # fmt: skip
    with pytest.raises(ConversationError):
        generator.delete_experience("../x")


def test_a_prompt_shows_them_apart() -> None:
    items = [(Experience("first", "1"), 0.9), (Experience("second", "2"), 0.5)]
    text = ExperienceGenerator.format_experience_in_prompt("Learnt:\n{experiences}", items)
    assert text == "Learnt:\nfirst\n===================\nsecond"
    assert ExperienceGenerator.format_experience_in_prompt("Learnt: {experiences}", []) == ""
