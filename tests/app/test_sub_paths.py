"""Examples and experiences from the folder that a shared entry names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rounds import add_example
from support import Listener, Script, code_reply, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.module.event_emitter import RoundEventType
from taskweaver.utils.files import write_yaml

pytestmark = pytest.mark.usefixtures("no_states")

GUIDE = """
from taskweaver.ext_role.echo.echo import Echo
from taskweaver.ext_role.task import task_for
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.shared_memory_entry import SharedMemoryEntry

class Guide(Echo):
    def reply(self, memory, **kwargs):
        task = task_for(memory, self.alias)
        with self.event_emitter.post(self.alias) as proxy:
            proxy.update_send_to(task.send_from)
            scope, path = task.message.split(" ", 1)
            for kind in ("example_sub_path", "experience_sub_path"):
                entry = SharedMemoryEntry(type=kind, content=path, scope=scope)
                proxy.update_attachment(path, AttachmentType.shared_memory_entry, extra=entry)
            proxy.update_message("shared")
            return proxy.end()
"""
BASE: dict[str, Any] = {
    "session.roles": ["planner", "code_interpreter", "guide"],
    "planner.dynamic_example_sub_path": True,
    "code_generator.dynamic_example_sub_path": True,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = make_project(tmp_path / "project", has_table=False)
    role = folder / "roles" / "guide"
    role.mkdir(parents=True)
    (role / "guide.py").write_text(GUIDE)
    (role / "guide.role.yaml").write_text(
        "alias: Guide\nmodule: guide.guide.Guide\nintro: guides\n"
    )
    for sub, word in {"": "base", "sales": "of sales", "law": "of law"}.items():
        add_example(folder / "examples" / "planner_examples" / sub, "User", "Planner", word)
    add_example(folder / "examples" / "code_generator_examples" / "sales", "Planner",
                "CodeInterpreter", "code of sales")  # fmt: skip
    add_example(tmp_path / "outside", "User", "Planner", "outside")
    return folder


def said(script: Script, call: int) -> str:
    return json.dumps([message["content"] for message in script.prompts[call]])


def test_the_examples_are_those_of_the_shared_folder_for_as_long_as_it_is_shared(
    project: Path,
) -> None:
    script = Script([
        planner_reply("Guide", "conversation sales"),
        planner_reply("CodeInterpreter", "compute"), code_reply("1"), planner_reply("User", "a"),
        planner_reply("Guide", "round law"), planner_reply("User", "b"),
        planner_reply("Guide", "conversation no/such"), planner_reply("User", "c"),
    ])  # fmt: skip
    with TaskWeaverApp(project, model=script, config=BASE) as app:
        assert app.warnings == []
        session = app.get_session()
        for _ in range(3):
            assert session.send_message("go").state == "finished"
    assert "example" not in said(script, 0)
    for call in (1, 3, 4, 6):  # the last after the round of law
        assert "example of sales" in said(script, call)
        assert "example base" not in said(script, call)
    assert "example code of sales" in said(script, 2)
    assert "example of law" in said(script, 5)
    assert "example" not in said(script, 7)


@pytest.mark.parametrize(
    ("what", "path"),
    [("example", "../../../outside"), ("experience", "link"), ("experience", "{outside}"),
     ("example", "a\0b")],
)  # fmt: skip
def test_a_folder_outside_ends_the_round_and_the_next_goes_on(
    project: Path, what: str, path: str
) -> None:
    outside = project.parent / "outside"
    for folder in ("examples/planner_examples", "experience"):
        (project / folder).mkdir(exist_ok=True)
        (project / folder / "link").symlink_to(outside)
    config = {
        "session.roles": ["planner", "guide"],
        "planner.use_experience": True,
        f"planner.dynamic_{what}_sub_path": True,
    }
    message = f"conversation {path.replace('{outside}', str(outside))}"
    script = Script([planner_reply("Guide", message), planner_reply("User", "fine")])
    listener = Listener()
    with TaskWeaverApp(project, model=script, config=config) as app:
        session = app.get_session()
        assert session.send_message("go", listener).state == "failed"
        assert session.send_message("go").state == "finished"
    (reason,) = listener.messages(RoundEventType.round_error)
    assert "The sub-path" in reason
    assert "example outside" not in said(script, 1)


def test_experiences_are_those_of_the_shared_folder(project: Path) -> None:
    for sub in ("", "sales"):
        text = {"exp_id": "a", "experience_text": f"Sums in {sub or 'base'} are in thousands."}
        (project / "experience" / sub).mkdir(parents=True, exist_ok=True)
        write_yaml(project / "experience" / sub / "handcrafted_exp_a.yaml", text)
    script = Script([
        planner_reply("Guide", "conversation sales"), planner_reply("User", "a"),
    ])  # fmt: skip
    config = {
        "session.roles": ["planner", "guide"],
        "planner.use_experience": True,
        "planner.dynamic_experience_sub_path": True,
    }
    with TaskWeaverApp(project, model=script, config=config) as app:
        assert app.get_session().send_message("sums in thousands").state == "finished"
    assert "are in thousands" not in said(script, 0)
    assert "Sums in sales are in thousands" in said(script, 1)
