"""Plugins in a chat: whatever is wrong with one, the chat goes on, and says which and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fake_endpoint import Call, serving
from rounds import add_plugin
from support import Listener, OnStatus, Script, code_reply, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.module.event_emitter import RoundEventType

pytestmark = pytest.mark.usefixtures("no_states")

ALONE: dict[str, Any] = {
    "session.roles": ["code_interpreter"],
    "code_interpreter.max_retry_count": 0,
}
GOOD = 'def good() -> int:\n    """Count."""\n    return 7\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = make_project(tmp_path / "project", has_table=False)
    add_plugin(folder, "good", GOOD)
    return folder


def described(project: Path, stem: str, **changes: Any) -> Path:
    text = {"name": stem, "description": "d", "parameters": [], "returns": []} | changes
    path = project / "plugins" / f"{stem}.yaml"
    path.write_text("\n".join(f"{key}: {value}" for key, value in text.items()))
    return path


class Said(NamedTuple):
    """What a chat said: as warnings of each message, and as its answers."""

    warnings: list[str]
    answers: list[str]
    prompts: list[str]


def chat(project: Path, *cells: str, **config: Any) -> Said:
    """Have the model write cells, one for each message; the message is the cell's comment."""
    script, listener = Script([code_reply(cell) for cell in cells]), Listener()
    keys = ALONE | {name.replace("__", "."): value for name, value in config.items()}
    with TaskWeaverApp(project, model=script, config=keys) as app:
        session = app.get_session()
        asked = [cell.rpartition("# ")[2] for cell in cells]
        rounds = [session.send_message(text, listener) for text in asked]
    assert {round_.state for round_ in rounds} == {"finished"}
    answers = [round_.post_list[-1].message for round_ in rounds]
    prompts = ["\n".join(str(item["content"]) for item in prompt) for prompt in script.prompts]
    return Said(listener.messages(RoundEventType.round_warning), answers, prompts)


UNREADABLE = {
    "silent": ("def silent():\n    return 1\n", "silent has no docstring"),
    "library": ('def pd():\n    """A."""\n', "'pd' means something else"),
    "second": ('def good():\n    """A."""\n', "another plugin called 'good'"),
    "twice": (
        GOOD.replace("good", "twice") + f"\n@register_plugin\n{GOOD}", "registers a second plugin"
    ),
}  # fmt: skip
DESCRIBED: dict[str, tuple[dict[str, Any], str]] = {
    "listless": ({"parameters": "x"}, "`parameters` must be a list"),
    "total": ({"name": "sum"}, "'sum' means"),
}


def test_plugins_that_cannot_be_read_are_told_at_the_start(project: Path) -> None:
    problems = {add_plugin(project, stem, body): said for stem, (body, said) in UNREADABLE.items()}
    for stem, (changes, said) in DESCRIBED.items():
        add_plugin(project, stem, f"def {stem}():\n    return 1\n")
        problems[described(project, stem, **changes)] = said
    with TaskWeaverApp(project, model=Script([])) as app:
        assert len(app.warnings) == len(problems)
        for path, problem in problems.items():
            (told,) = [line for line in app.warnings if str(path) in line]
            assert problem in told
        assert "7" in app.get_session().run_code("good()").post_list[-1].message


HANGS = "__import__('threading').Event().wait()"


def test_a_plugin_that_does_not_load_is_told_with_the_first_message(project: Path) -> None:
    starts = {
        "missing": ("import nothing_of_this_name", "ModuleNotFoundError"),
        "two": ("register_plugin(good)", "registers 2 plugins"),
        "raising": ("raise ValueError('no')", "ValueError: no"),
        "hanging": (HANGS, "did not load within 3 s"),
    }
    paths = {
        stem: add_plugin(
            project, stem, f'def {stem}():\n    """A."""\n\n\ndef good(): ...\n\n\n{start}\n'
        )
        for stem, (start, _) in starts.items()
    }
    said = chat(project, "good()", "good() + 1", execution__cell_timeout_s=3)
    assert len(said.warnings) == len(starts)
    for stem, (_, problem) in starts.items():
        (told,) = [line for line in said.warnings if f"'{stem}' ({paths[stem]})" in line]
        assert problem in told
        assert f"def {stem}(" not in said.prompts[0]
    assert "7" in said.answers[0]
    assert "8" in said.answers[1]


def test_a_plugin_that_fails_when_called_is_told_with_its_file(project: Path) -> None:
    bodies = {
        "raising": ("raise ValueError('too small')", "ValueError: too small"),
        "hanging": (HANGS, "stopped after 3 s"),
        "ending": ("import os; os._exit(3)", "all variables are gone"),
    }
    paths = {
        stem: add_plugin(project, stem, f'def {stem}():\n    """A."""\n    {body}\n')
        for stem, (body, _) in bodies.items()
    }
    cells = [cell for stem in bodies for cell in (f"{stem}()", "good()")]
    said = chat(project, *cells, execution__cell_timeout_s=3)
    for (stem, (_, problem)), failed, after in zip(
        bodies.items(), said.answers[::2], said.answers[1::2], strict=True
    ):
        assert problem in failed
        assert f"Plugins in this cell: {stem} ({paths[stem]})." in failed
        assert "7" in after


def test_a_changed_file_is_loaded_again_and_that_is_said_in_a_line(project: Path) -> None:
    listener = Listener()
    script = Script([code_reply(cell) for cell in ("x = good()", "(x, good())", "late()", "x")])
    with TaskWeaverApp(project, model=script, config=ALONE) as app:
        session = app.get_session()

        def told() -> list[str]:
            before, listener.events = listener.messages(RoundEventType.round_warning), []
            return before

        def ask() -> str:
            return session.send_message("go", listener).post_list[-1].message

        ask()
        assert told() == []
        add_plugin(project, "good", GOOD.replace("7", "1234"))
        assert "(7, 1234)" in ask()
        assert told() == ["Plugins have changed; loaded again: good."]
        add_plugin(project, "good", GOOD.replace("return 7", "return ("))
        add_plugin(project, "late", 'def late() -> int:\n    """Late."""\n    return 9\n')
        assert "9" in ask()
        broken, changed = told()
        assert "good.py:7" in broken
        assert changed == "Plugins have changed; new: late; gone: good."
        add_plugin(project, "good", GOOD)
        (project / "plugins" / "late.py").unlink()
        assert "7" in ask()
        assert told() == ["Plugins have changed; new: good; gone: late."]


TOPICS = {
    "read_weather": "Look up the weather of a place.",
    "convert_money": "Convert amounts between currencies.",
    "find_anomalies": "Mark unusual values in a time series.",
    "send_mail": "Send a mail to somebody.",
}
SELECTING = {
    "code_interpreter__enable_auto_plugin_selection": True,
    "code_interpreter__auto_plugin_selection_topk": 1,
}


@pytest.fixture
def many(project: Path) -> Path:
    for name, text in TOPICS.items():
        add_plugin(
            project, name, f'def {name}() -> str:\n    """{text}"""\n    return "{name} ran"\n'
        )
    return project


def shown(prompt: str) -> list[str]:
    return [name for name in (*TOPICS, "good") if f"- {name}(" in prompt]


def test_plugins_that_suit_are_shown_with_those_used_and_all_can_be_called(many: Path) -> None:
    """A prompt has a line on a plugin; its help has the rest."""
    text = "Mark unusual values.\n\n    Args:\n        series: A time series.\n    "
    add_plugin(
        many, "find_anomalies", f'def find_anomalies(series: list) -> int:\n    """{text}"""\n'
    )
    cells = (
        "help(find_anomalies)  # Which unusual values are there in the time series?",
        "convert_money()  # Is there an unusual value?",
        "'What was the weather like?'",
    )
    said = chat(many, *cells, **SELECTING)
    line = "- find_anomalies(series: list) -> result: Mark unusual values."
    assert line in said.prompts[0]
    assert "A time series." not in said.prompts[0]
    assert "# A time series." in said.answers[0]
    assert [shown(prompt) for prompt in said.prompts] == [
        ["find_anomalies"],
        ["find_anomalies"],
        ["read_weather", "convert_money", "find_anomalies"],
    ]
    assert "convert_money ran" in said.answers[1]


def embed(call: Call) -> None:
    """Answer with vectors that know what mail is."""
    vectors = [
        [1.0, 0.0] if "mail" in text or "write" in text else [0.0, 1.0]
        for text in call.body["input"]
    ]
    data = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    call.answer(200, {"object": "list", "model": "e", "data": data})


def test_an_interrupt_does_not_end_the_choice_by_vectors(many: Path) -> None:
    script = Script([code_reply("1")])
    with serving(embed) as endpoint:
        keys = {"llm__embedding_api_type": "openai", "llm__embedding_model": "e"}
        base = {"llm__embedding_api_base": f"{endpoint.url}", "llm__api_key": "k"}
        named = (SELECTING | keys | base).items()
        config = ALONE | {name.replace("__", "."): value for name, value in named}
        with TaskWeaverApp(many, config, model=script) as app:
            session = app.get_session()
            gives_up = OnStatus("writing code", session.interrupt)
            assert session.send_message("write to Ann", gives_up).state == "failed"
            assert not endpoint.calls
            assert session.send_message("write to Ben").state == "finished"
    assert shown("\n".join(str(item["content"]) for item in script.prompts[0])) == ["send_mail"]
