"""Parts of the original used as a library, without a session."""

from __future__ import annotations

from pathlib import Path

from support import Script, make_project, planner_reply

from taskweaver.app import TaskWeaverApp
from taskweaver.ces import code_execution_service_factory
from taskweaver.ces.common import ExecutionResult
from taskweaver.code_interpreter.code_verification import code_snippet_verification
from taskweaver.config.module_config import ModuleConfig
from taskweaver.memory.experience import Experience, ExperienceGenerator
from taskweaver.module.event_emitter import (
    PostEventType,
    SessionEventEmitter,
    SessionEventHandler,
    TaskWeaverEvent,
)
from taskweaver.plugin.context import temp_context
from taskweaver.role.role import RoleEntry, RoleRegistry

DOUBLE = """
from taskweaver.plugin import Plugin, register_plugin


@register_plugin
class Double(Plugin):
    def __call__(self, value):
        who = self.ctx.get_session_var("who", "nobody")
        self.log("info", f"for {who}")
        return value * self.config.get("factor", 2)
"""


def test_code_runs_in_a_kernel_of_the_factory(tmp_path: Path) -> None:
    manager = code_execution_service_factory(str(tmp_path / "env"))
    manager.initialize()
    try:
        client = manager.get_session_client(
            "session", session_dir=str(tmp_path / "session"), cwd=str(tmp_path / "cwd")
        )
        client.start()
        client.load_plugin("double", DOUBLE, {"factor": 3})
        client.update_session_var({"who": "Ann"})
        printed: list[tuple[str, str]] = []
        result = client.execute_code(
            exec_id="1",
            code="x = double(14)\nprint('hi')\nx",
            on_output=lambda stream, text: printed.append((stream, text)),
        )
        assert isinstance(result, ExecutionResult)
        assert result.is_success
        assert str(result.output) == "42"
        assert "".join(text for stream, text in printed if stream == "stdout") == "hi\n"
        assert ("info", "double", "for Ann") in [tuple(line) for line in result.log]
        assert dict(result.variables)["x"] == "42"
        assert client.upload_file("a.txt", b"text") == "a.txt"
        failed = client.execute_code("2", "1 / 0")
        assert not failed.is_success
        assert "ZeroDivisionError" in (failed.error or "")
        client.stop()
    finally:
        manager.clean_up()


def test_a_configuration_class_is_made_by_the_injector(tmp_path: Path) -> None:
    class ShopConfig(ModuleConfig):
        def _configure(self) -> None:
            self._set_name("shop")
            self.currency = self._get_str("currency", "EUR")
            self.open_days = self._get_list("open_days", ["Mon"])
            self.tax = self._get_float("tax", 0.19)
            self.folder = self._get_path("folder", str(tmp_path))

    project = make_project(tmp_path / "project")
    config = {"shop.currency": "USD", "shop.open_days": "Mon, Tue"}
    with TaskWeaverApp(project, config=config, model=Script([])) as app:
        shop = app.app_injector.get(ShopConfig)
        assert isinstance(app.app_injector.get(RoleRegistry).get("echo"), RoleEntry)
    assert (shop.currency, shop.open_days, shop.tax) == ("USD", ["Mon", "Tue"], 0.19)
    assert shop.folder == str(tmp_path)


def test_a_saved_conversation_becomes_an_experience_of_later_sessions(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", has_table=False)
    config = {"planner.use_experience": True}
    replies = [planner_reply("User", "the sum is 8"), "Sum the Count column at once."]
    script = Script([*replies, planner_reply("User", "again")])
    with TaskWeaverApp(project, config=config, model=script) as app:
        session = app.get_session()
        session.send_message("sum the Count column")
        folder = session.config.experience_dir
        session.memory.save_experience(exp_dir=str(folder), thin_mode=True)
        assert app.get_session().send_message("sum the Count column").state == "finished"
    assert "Sum the Count column at once." in str(script.prompts[-1][0]["content"])
    experience = Experience(experience_text="t", exp_id="e", embedding=[1.0])
    made = Experience.from_dict(experience.to_dict())
    text = ExperienceGenerator.format_experience_in_prompt("Learnt:\n{experiences}", [(made, 1.0)])
    assert text.startswith("Learnt:\n")


def test_events_reach_a_handler_that_is_registered() -> None:
    class Kept(SessionEventHandler):
        def __init__(self) -> None:
            self.events: list[TaskWeaverEvent] = []

        def handle(self, event: TaskWeaverEvent) -> None:
            self.events.append(event)

    emitter, kept = SessionEventEmitter(), Kept()
    emitter.register(kept)
    emitter.start_round("r")
    proxy = emitter.create_post_proxy("Role")
    proxy.update_message(message="he", is_end=False)
    proxy.update_message("llo")
    post = proxy.end()
    emitter.unregister(kept)
    emitter.end_round("r")
    assert post.message == "hello"
    told = [(event.msg, event.extra) for event in kept.events]
    assert ("he", {"is_end": False}) in told
    assert kept.events[-1].t is PostEventType.post_end


def test_code_is_verified_by_lists() -> None:
    found = code_snippet_verification(
        "import numpy as np\nexec('x')",
        code_verification_on=True,
        allowed_modules=["pandas"],
        blocked_functions=["exec"],
    )
    assert found is not None
    assert len(found) == 2


def test_a_plugin_is_tried_without_a_session() -> None:
    from taskweaver.plugin.register import collect

    found = collect(DOUBLE, "double", "double.py")
    with temp_context() as ctx:
        assert found.factory("double", ctx, {})(21) == 42
