"""Programs and roles as the original's documentation writes them, run from end to end."""

# ruff: noqa: ARG002 - handlers take what they are given

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from patience import PATIENCE_S
from support import Listener, Script, code_reply, make_project, planner_reply

from taskweaver.app import TaskWeaverApp
from taskweaver.app.app import SessionManager
from taskweaver.cli.main import commands
from taskweaver.code_interpreter import (
    CodeInterpreterCLIOnly,
    CodeInterpreterPluginOnly,
    Interpreter,
)
from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.llm import LLMApi, format_chat_message
from taskweaver.memory import Attachment, Memory, Post, Round
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.plugin import PluginRegistry
from taskweaver.module.event_emitter import (
    ConfirmationHandler,
    PostEventType,
    SessionEventHandlerBase,
)
from taskweaver.module.prompt_util import PromptUtil
from taskweaver.role import PostTranslator, Role
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

REVIEWER = """
from typing import Optional

from injector import inject

from taskweaver.llm import LLMApi, format_chat_message
from taskweaver.logging import TelemetryLogger
from taskweaver.memory import Memory, Post
from taskweaver.memory.attachment import AttachmentType
from taskweaver.module.event_emitter import SessionEventEmitter
from taskweaver.module.tracing import Tracing
from taskweaver.role import PostTranslator, Role
from taskweaver.role.role import RoleConfig, RoleEntry
from taskweaver.session import SessionMetadata


class ReviewerConfig(RoleConfig):
    def _configure(self):
        self.ending = self._get_str("ending", None, required=False)
        self.tone = self._get_enum("tone", options=["kind", "plain"], default="kind")


class Reviewer(Role):
    @inject
    def __init__(
        self,
        config: ReviewerConfig,
        logger: TelemetryLogger,
        tracing: Tracing,
        event_emitter: SessionEventEmitter,
        role_entry: RoleEntry,
        llm_api: LLMApi,
        post_translator: PostTranslator,
        session_metadata: SessionMetadata,
    ):
        super().__init__(config, logger, tracing, event_emitter, role_entry)
        self.llm_api = llm_api
        self.post_translator = post_translator
        self.session_metadata = session_metadata

    def reply(self, memory: Memory, prompt_log_path: Optional[str] = None, **kwargs: ...) -> Post:
        rounds = memory.get_role_rounds(role=self.alias, include_failure_rounds=False)
        last_post = rounds[-1].post_list[-1]
        post_proxy = self.event_emitter.create_post_proxy(self.alias)
        post_proxy.update_status(f"calling LLM endpoint ({self.config.tone})")
        prompt = [
            format_chat_message(role="system", message="You review."),
            format_chat_message(role="user", message=last_post.message),
        ]
        llm_stream = self.llm_api.chat_completion_stream(
            prompt, use_smoother=True, use_backup_engine=False, llm_alias=self.config.llm_alias
        )

        def check_post(post: Post):
            assert post.message, "empty"

        self.post_translator.raw_text_to_post(
            llm_output=llm_stream,
            post_proxy=post_proxy,
            early_stop=lambda kind, value: kind == "message",
            validation_func=check_post,
            use_v2_parser=True,
        )
        own = self.post_translator.post_to_raw_text(
            post_proxy.post,
            content_formatter=lambda attachment: attachment.type.name + "=" + attachment.content,
            if_format_send_to=False,
            ignored_types=[AttachmentType.plan],
        )
        post_proxy.update_attachment(own, AttachmentType.text)
        post_proxy.update_attachment(str(self.session_metadata.execution_cwd), AttachmentType.text)
        post_proxy.update_send_to(last_post.send_from)
        return post_proxy.end()
"""
REVIEW = {
    "thought": "short",
    "plan": "1. read",
    "message": "Good {{DELIMITER_START_TEMPORAL}}today{{DELIMITER_END_TEMPORAL}}.",
    "stop": "never",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = make_project(tmp_path / "project", has_table=False)
    role = folder / "roles" / "reviewer"
    role.mkdir(parents=True)
    (role / "reviewer.py").write_text(REVIEWER)
    (role / "reviewer.role.yaml").write_text(
        "alias: Reviewer\nmodule: taskweaver.ext_role.reviewer.reviewer.Reviewer\n"
        "intro: |-\n  - Reviews a text.\n"
    )
    return folder


def test_a_role_has_its_translator_and_api_injected(project: Path) -> None:
    replies = [planner_reply("Reviewer", "look"), json.dumps({"response": REVIEW})]
    script = Script([*replies, planner_reply("User", "done"), planner_reply("User", "bye")])
    config = {"session.roles": ["planner", "reviewer"], "reviewer.tone": "plain"}
    with TaskWeaverApp(app_dir=str(project), config=config, model=script) as app:
        session = app.get_session()
        round_ = session.send_message("review it")
        assert round_.state == "finished"
        assert session.send_message("thanks").state == "finished"
    (post,) = (post for post in round_.post_list if post.send_from == "Reviewer")
    assert post.send_to == "Planner"
    assert [item.type.name for item in post.attachment_list] == ["thought", "plan", "text", "text"]
    own, cwd = post.get_attachment(AttachmentType.text)
    assert json.loads(own.content) == {
        "response": {"thought": "thought=short", "message": REVIEW["message"]}
    }
    assert Path(cwd.content) == session.execution_cwd
    planner, later = (str(prompt) for prompt in (script.prompts[2], script.prompts[3]))
    assert "Good today." in planner
    assert "Good ." in later
    assert "DELIMITER" not in planner + later


class Asked(ConfirmationHandler):
    """A handler of the original."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, str | None]] = []

    def request_confirmation(self, code: str, round_id: str, post_id: str | None) -> bool:  # type: ignore[override]
        self.asked.append((code, round_id, post_id))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]


def test_a_confirmation_handler_is_asked_and_a_broken_one_is_no_refusal(project: Path) -> None:
    replies = [code_reply(f"{number} + 40") for number in range(4)]
    config = {"session.roles": ["code_interpreter"], "code_interpreter.require_confirmation": True}
    handler, listener = Asked(True, False, RuntimeError("no window"), None), Listener()
    with TaskWeaverApp(project, config=config, model=Script(replies)) as app:
        session = app.get_session()
        session.event_emitter.confirmation_handler = handler
        assert session.event_emitter.confirmation_handler is handler
        allowed, refused, broken, other = (session.send_message("go", listener) for _ in range(4))
    assert "40" in allowed.post_list[-1].message
    assert "did not allow" in refused.post_list[-1].message
    told = broken.post_list[-1].message
    assert "confirmation handler failed" in told
    assert "RuntimeError: no window" in told
    assert "did not allow" not in told
    assert "no person answered" in other.post_list[-1].message
    extras = [event.extra for event in listener.events if "confirmation" in event.t.value]
    assert [extra["code"] for extra in extras[::2]] == [asked[0] for asked in handler.asked]
    assert [extra["approved"] for extra in extras[1::2]] == [True, False, False, False]
    assert handler.asked[0] == ("0 + 40", allowed.id, allowed.post_list[-1].id)


class Seen(SessionEventHandlerBase):
    """A web page's handler, by the original's documentation."""

    def __init__(self) -> None:
        self.text = ""
        self.attachments: dict[str, str] = {}
        self.rounds: list[str] = []

    def handle_round(self, type: Any, msg: str, extra: Any, round_id: str, **kwargs: Any) -> None:
        self.rounds.append(type.name)

    def handle_post(
        self, type: Any, msg: str, extra: Any, post_id: str, round_id: str, **kwargs: Any
    ) -> None:
        if type == PostEventType.post_message_update:
            self.text += msg
        elif type == PostEventType.post_attachment_update:
            name = extra["type"].name
            self.attachments[name] = self.attachments.get(name, "") + msg
        elif type == PostEventType.post_send_to_update:
            self.text += f" -> {extra['role']}: "


def test_a_handler_follows_a_round(project: Path) -> None:
    script = Script([planner_reply("User", "forty-two")])
    seen = Seen()
    with TaskWeaverApp(project, model=script) as app:
        app.get_session().send_message("what is it", event_handler=seen)
    assert "-> User: " in seen.text
    assert "forty-two" in seen.text
    assert seen.attachments["plan"] == "1. do it"
    assert seen.rounds == ["round_start", "round_end"]


def test_a_model_is_asked_without_a_session(project: Path) -> None:
    """As scripts/llm_api_test.py does."""
    config = {"ext_llms.llm_configs": {"small": {"llm.api_type": "offline"}}}
    with TaskWeaverApp(project, config=config, model=lambda _messages: "hello") as app:
        api = app.app_injector.get(LLMApi)
        prompt = [format_chat_message(role="user", message="hi")]
        pieces = api.chat_completion_stream(prompt, use_backup_engine=False, use_smoother=True)
        assert "".join(str(piece["content"]) for piece in pieces) == "hello"
        assert list(api.ext_llms) == ["small"]
        assert app.app_injector.get(LLMApi) is api
        round_ = app.get_session().send_message("x")
        assert round_.post_list[-1].message == "hello"  # words without any form are an answer


def test_plugins_are_listed_and_described_for_function_calling(project: Path) -> None:
    (project / "plugins").mkdir()
    (project / "plugins" / "area.yaml").write_text(
        "name: area\nenabled: true\nrequired: false\nplugin_only: true\ndescription: An area.\n"
        "parameters:\n"
        "- {name: width, type: float, required: true, description: In m.}\n"
        "- {name: unit, type: str, required: false, description: The unit.}\n"
        "- {name: shape, type: pd.DataFrame, required: false, description: Any.}\n"
        "returns:\n- {name: area, type: float, description: In m2.}\n"
    )
    (project / "plugins" / "area.py").write_text(
        "from taskweaver.plugin import Plugin, register_plugin\n\n"
        "@register_plugin\nclass Area(Plugin):\n"
        "    def __call__(self, width, unit='m', shape=None):\n        return width * 2\n"
    )
    with TaskWeaverApp(project, model=Script([])) as app:
        registry = app.app_injector.get(PluginRegistry)
        (entry,) = registry.get_list()
        assert registry.registry == {"area": entry}
    described = {
        "width": {"type": "number", "description": "In m."},
        "unit": {"type": "string", "description": "The unit."},
        "shape": {"description": "Any."},
    }
    parameters = {"type": "object", "properties": described, "required": ["width"]}
    function = {"name": "area", "description": "An area.", "parameters": parameters}
    assert entry.format_function_calling() == {"type": "function", "function": function}


def test_a_memory_is_written_and_read_by_hand() -> None:
    memory = Memory(session_id="s")
    wrapped = PromptUtil.wrap_text_with_delimiter("now", PromptUtil.DELIMITER_TEMPORAL)
    for number in range(2):
        round_ = memory.create_round(user_query=f"query {number}")
        post = Post.create(message=f"a{wrapped}", send_from="Planner", send_to="Worker")
        plan = Attachment.create(AttachmentType.plan, str(number))
        post.add_attachment(plan)
        round_.add_post(post)
        round_.change_round_state("finished")
        assert post.get_attachment(AttachmentType.plan) == [plan]
    first, second = memory.get_role_rounds(role="Worker", include_failure_rounds=False)
    assert isinstance(first, Round)
    assert [r.post_list[0].message for r in (first, second)] == ["a", "anow"]
    assert memory.conversation.rounds[0].post_list[0].message == f"a{wrapped}"


def test_delimiters_are_pairs() -> None:
    start, end = PromptUtil.DELIMITER_TEMPORAL
    own = ("<<", ">>")
    assert PromptUtil.wrap_text_with_delimiter("x", own) == "<<x>>"
    assert PromptUtil.remove_parts("a<<x>>b<<y>>", own) == "ab"
    assert PromptUtil.remove_delimiter("a<<x>>", own) == "ax"
    assert PromptUtil.get_all_delimiters() == [(start, end)]
    assert PromptUtil.remove_all_delimiters(f"{start}x{end}<<") == "x<<"


def test_a_session_is_found_by_its_id_after_a_restart(project: Path) -> None:
    script = Script([planner_reply("User", "one"), planner_reply("User", "two")])
    with TaskWeaverApp(project, model=script) as app:
        session = app.get_session()
        session.send_message("first")
    with TaskWeaverApp(project, model=script) as app:
        again = app.get_session(session.session_id)
        assert isinstance(again, Session)
        assert again.metadata.workspace == again.workspace
        assert again.send_message("second").state == "finished"
        assert app.get_session(session.session_id) is again
        manager = app.session_manager
        assert isinstance(manager, SessionManager)
        manager.update_session(again)
        assert manager.get_session(again.session_id) is again
    assert "first" in str(script.prompts[-1])


def test_values_of_a_configuration_are_where_they_were(tmp_path: Path) -> None:
    file = tmp_path / "taskweaver_config.json"
    file.write_text('{"llm.model": "m"}')
    src = AppConfigSource(config_file_path=str(file), config={"a.b": 1}, app_base_path=None)
    assert src.json_file_store == {"llm.model": "m"}
    assert src.in_memory_store == {"a.b": 1}
    src.in_memory_store["llm.model"] = "n"
    assert src.get_str("llm.model") == "n"


def test_interpreters_have_their_names_and_take_variables() -> None:
    assert issubclass(CodeInterpreterPluginOnly, Interpreter)
    assert issubclass(CodeInterpreterCLIOnly, Role)
    seen: list[dict[str, str]] = []

    class Own(Interpreter):
        def update_session_variables(self, session_variables: dict[str, str]) -> None:
            seen.append(session_variables)

    Own().update_session_var({"a": "1"})
    assert seen == [{"a": "1"}]


def test_a_translator_stops_inside_a_piece() -> None:
    from taskweaver.logging import TelemetryLogger, Tracing
    from taskweaver.module.event_emitter import SessionEventEmitter

    emitter = SessionEventEmitter()
    emitter.start_round("r")
    with TelemetryLogger() as logger:
        translator = PostTranslator(logger, Tracing(), emitter)
        proxy = emitter.create_post_proxy("Role")
        fields = {"thought": "t", "message": "m", "plan": "p", "send_to": "User"}
        reply = translator.raw_text_to_post(
            [format_chat_message("assistant", json.dumps({"response": fields}))],
            proxy,
            early_stop=lambda kind, value: kind == "message" and value == "m",
        )
    assert proxy.post.message == "m"
    assert proxy.post.send_to == "Unknown"
    assert [item.type.name for item in proxy.post.attachment_list] == ["thought"]
    assert reply.fields == {"thought": "t", "message": "m"}
    assert reply.problem is None


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"llm.api_type": "azure_ad", "llm.azure_ad.api_base": "https://x.example"}, "Azure needs"),
        pytest.param(
            {"llm.api_type": "azure_ml"}, "speaks the OpenAI protocol", marks=pytest.mark.long
        ),
    ],
)
def test_a_model_that_cannot_be_asked_stops_chats_alone(
    tmp_path: Path, config: dict[str, str], named: str
) -> None:
    folder = make_project(tmp_path / "project", config)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(commands, ["-p", str(folder), *arguments])

    assert run("sessions").exit_code == 0
    asked = run("-m", "hello")
    assert asked.exit_code == 2
    assert named in asked.stderr
    assert asked.stderr.count("error: ") == 1
    assert "Traceback" not in asked.stderr
    examined = run("doctor")
    assert examined.exit_code == 1
    assert named in examined.stdout
    assert "ok    kernel" in examined.stdout


def test_the_console_has_its_old_name() -> None:
    command = [sys.executable, "-m", "taskweaver.chat.console", "--help"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert "Ask questions about your data" in ran.stdout
