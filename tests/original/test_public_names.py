"""The names and signatures that roles, plugins and programs of the original use."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, is_typeddict

import pytest

NAMES = """
taskweaver.app TaskWeaverApp SessionStore InMemorySessionStore
taskweaver.app.app TaskWeaverApp
taskweaver.session Session SessionMetadata AppSessionConfig
taskweaver.memory Attachment Conversation Memory Post Round SharedMemoryEntry
taskweaver.memory CompactedMessage CompactionProvider CompactorConfig ContextCompactor
taskweaver.memory.attachment Attachment AttachmentType
taskweaver.memory.conversation Conversation
taskweaver.memory.post Post
taskweaver.memory.round Round
taskweaver.memory.experience Experience ExperienceGenerator
taskweaver.memory.plugin PluginModule PluginEntry PluginParameter PluginRegistry PluginSpec
taskweaver.role Role PostTranslator
taskweaver.role.role Role RoleConfig RoleEntry RoleRegistry
taskweaver.role.translator PostTranslator
taskweaver.planner Planner PlannerConfig
taskweaver.code_interpreter CodeInterpreter CodeInterpreterPluginOnly CodeInterpreterCLIOnly
taskweaver.code_interpreter.interpreter Interpreter
taskweaver.code_interpreter.code_interpreter CodeGenerator
taskweaver.code_interpreter.code_executor CodeExecutor
taskweaver.code_interpreter.code_verification code_snippet_verification
taskweaver.config.config_mgt AppConfigSource
taskweaver.config.module_config ModuleConfig
taskweaver.module.event_emitter EventScope SessionEventType RoundEventType PostEventType
taskweaver.module.event_emitter TaskWeaverEvent SessionEventHandler SessionEventHandlerBase
taskweaver.module.event_emitter ConfirmationHandler PostEventProxy SessionEventEmitter
taskweaver.module.prompt_util PromptUtil
taskweaver.module.tracing Tracing get_tracer tracing_decorator tracing_decorator_non_class
taskweaver.llm LLMApi CompletionService EmbeddingService format_chat_message
taskweaver.llm.base CompletionService EmbeddingService
taskweaver.llm.util ChatMessageType format_chat_message
taskweaver.plugin Plugin register_plugin test_plugin
taskweaver.plugin.context PluginContext TestPluginContext temp_context ArtifactType LogErrorLevel
taskweaver.ces code_execution_service_factory
taskweaver.ces.common Client Manager ExecutionResult ExecutionArtifact
taskweaver.utils create_id read_yaml write_yaml json_dump json_dumps glob_files import_module
taskweaver.utils generate_md5_hash EnhancedJSONEncoder
taskweaver.utils.app_utils discover_app_dir
taskweaver.chat.console chat_taskweaver
taskweaver.logging TelemetryLogger
"""

SIGNATURES = """
app.TaskWeaverApp app_dir config
app.TaskWeaverApp.get_session session_id
app.TaskWeaverApp.stop
app.TaskWeaverApp.discover_app_dir app_dir
app.SessionManager session_store injector
app.SessionManager.get_session session_id
app.SessionManager.update_session session
app.SessionManager.stop_session session_id
app.SessionManager.stop_all_sessions
session.SessionMetadata session_id workspace execution_cwd
session.Session.send_message message event_handler files
session.Session.update_session_var variables
session.Session.stop
memory.Attachment id type content extra
memory.Attachment.create type content id extra
memory.Attachment.from_dict data
memory.Post id send_from send_to message attachment_list
memory.Post.create message send_from send_to attachment_list
memory.Post.get_attachment type
memory.Post.del_attachment type_list
memory.Round id user_query state post_list
memory.Round.create user_query id state post_list
memory.Conversation id rounds plugins roles enabled
memory.Conversation.from_yaml path
memory.SharedMemoryEntry type content scope id
memory.SharedMemoryEntry.create type content scope id
memory.Memory session_id
memory.Memory.create_round user_query
memory.Memory.get_role_rounds role include_failure_rounds
memory.Memory.get_role_rounds_with_compaction role include_failure_rounds
memory.Memory.register_compaction_provider role provider rounds_getter
memory.Memory.save_experience exp_dir thin_mode
memory.Memory.get_shared_memory_entries entry_type
memory.Memory.from_yaml session_id path
memory.CompactorConfig threshold retain_recent
memory.ContextCompactor config llm_api rounds_getter logger llm_alias
memory.CompactedMessage start_index end_index summary
memory.experience.Experience experience_text exp_id raw_experience_path embedding_model embedding
memory.experience.ExperienceGenerator.set_experience_dir experience_dir
memory.experience.ExperienceGenerator.set_sub_path sub_path
memory.experience.ExperienceGenerator.summarize_experience exp_id prompt
memory.experience.ExperienceGenerator.refresh prompt
memory.experience.ExperienceGenerator.retrieve_experience user_query
role.Role config logger tracing event_emitter role_entry
role.Role.reply memory kwargs
role.Role.role_load_example role_set memory
role.role.RoleEntry name alias module intro
role.PostTranslator logger tracing event_emitter
role.PostTranslator.raw_text_to_post llm_output post_proxy early_stop validation_func use_v2_parser
role.PostTranslator.post_to_raw_text post content_formatter if_format_message if_format_send_to ignored_types
code_interpreter.code_verification.code_snippet_verification code_snippet code_verification_on allowed_modules blocked_modules allowed_functions blocked_functions allowed_variables
config.config_mgt.AppConfigSource config_file_path config app_base_path
config.config_mgt.AppConfigSource.set_config_value name type value source
config.module_config.ModuleConfig src
module.event_emitter.TaskWeaverEvent scope t round_id post_id msg extra
module.event_emitter.SessionEventEmitter.handle_events_ctx handler
module.event_emitter.SessionEventEmitter.create_post_proxy send_from
module.event_emitter.PostEventProxy.update_message message is_end
module.event_emitter.PostEventProxy.update_attachment message type extra id is_end
module.event_emitter.PostEventProxy.emit_execution_output stream text
module.event_emitter.PostEventProxy.error msg
module.event_emitter.PostEventProxy.end msg
llm.LLMApi.get_embedding text
llm.format_chat_message role message image_urls name
plugin.Plugin name ctx config
plugin.Plugin.log level message
plugin.test_plugin name description
plugin.context.PluginContext.add_artifact name file_name type val desc
plugin.context.PluginContext.create_artifact_path name file_name type desc
plugin.context.PluginContext.get_session_var variable_name default
plugin.context.PluginContext.log level tag message
plugin.context.PluginContext.wrap_text_with_delimiter_temporal text
plugin.context.temp_context workspace_dir
ces.code_execution_service_factory env_dir
ces.common.Client.load_plugin name code config
ces.common.Client.execute_code exec_id code on_output
ces.common.Client.upload_file filename content
ces.common.Manager.get_session_client session_id
ces.common.ExecutionResult execution_id code is_success error output stdout stderr log artifact variables
ces.common.ExecutionArtifact name type mime_type original_name file_name file_content file_content_encoding preview download_url
"""  # noqa: E501 - a signature is a line
PLANNED = (
    "plan current_plan_step plan_reasoning stop thought reply_type reply_content verification"
    " code_error execution_status execution_result artifact_paths revise_message function"
    " web_exploring_plan web_exploring_screenshot web_exploring_link invalid_response text"
    " session_variables shared_memory_entry image_url"
).split()


@pytest.mark.parametrize("line", NAMES.strip().splitlines())
def test_a_name_is_where_it_was(line: str) -> None:
    module, *names = line.split()
    found = importlib.import_module(module)
    assert not [name for name in names if not hasattr(found, name)]


@pytest.mark.parametrize("line", NAMES.strip().splitlines())
def test_a_class_can_be_asked_for_its_instances(line: str) -> None:
    module, *names = line.split()
    found = [getattr(importlib.import_module(module), name) for name in names]
    asked = [item for item in found if isinstance(item, type) and not is_typeddict(item)]
    assert not any(isinstance(object(), item) for item in asked)


def resolve(path: str) -> Any:
    """Return what a dotted path below the package names; a class's own constructor for a class."""
    parts = path.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(["taskweaver", *parts[:split]]))
        except ModuleNotFoundError:
            continue
        for name in parts[split:]:
            found = getattr(found, name)
        return found
    raise AssertionError(f"no module for {path}")


@pytest.mark.parametrize("line", SIGNATURES.strip().splitlines(), ids=lambda line: line.split()[0])
def test_a_signature_begins_as_it_did(line: str) -> None:
    path, *wanted = line.split()
    found = [name for name in inspect.signature(resolve(path)).parameters if name != "self"]
    assert found[: len(wanted)] == wanted


def test_attachment_types_are_the_ones_in_files() -> None:
    kinds = resolve("memory.attachment.AttachmentType")
    assert {kind.name for kind in kinds} >= set(PLANNED)
    assert all(kind.name == kind.value for kind in kinds)


def test_a_type_that_was_removed_is_no_attachments_type() -> None:
    kinds = resolve("memory.attachment.AttachmentType")
    shown = [kind.name for kind in kinds if kind in (kinds.plan, kinds.init_plan)]
    assert shown == ["plan"]


def test_the_plugins_are_injected_by_their_module(tmp_path: Any) -> None:
    from injector import Injector

    module, source = resolve("memory.plugin.PluginModule"), resolve("config.AppConfigSource")
    registry = resolve("memory.plugin.PluginRegistry")
    parts = Injector([lambda binder: binder.bind(source, source(None, {}, tmp_path)), module])
    assert parts.get(registry) is parts.get(registry)
    assert parts.get(registry).folder == tmp_path / "plugins"


def test_options_of_how_a_reply_is_read_are_taken_and_not_sent() -> None:
    from taskweaver.config import AppConfigSource
    from taskweaver.llm import LLMApi, ModelServices

    seen: list[Any] = []

    def model(messages: Any, request: Any) -> str:
        seen.append(request)
        return "yes"

    with ModelServices(AppConfigSource(), function=model) as services:
        api = LLMApi(services)
        prompt = [resolve("llm.format_chat_message")(role="user", message="hi")]
        answer = api.chat_completion(
            messages=prompt, stream=True, temperature=0.5, stop=["x"], llm_alias=None, user="me"
        )
        assert answer == {"role": "assistant", "content": "yes"}
        list(api.chat_completion_stream(prompt, use_smoother=False, llm_alias=""))
    assert seen[0].temperature == 0.5
    assert seen[0].extra == {"user": "me"}
    assert seen[1].extra == {}


def test_delimiters_mark_what_is_for_one_round() -> None:
    util = resolve("module.prompt_util.PromptUtil")
    marked = util.wrap_text_with_delimiter("now", util.DELIMITER_TEMPORAL)
    assert marked == resolve("utils.text.wrap_temporal")("now")
    assert util.remove_parts(f"a {marked}b", util.DELIMITER_TEMPORAL) == "a b"
    assert util.remove_delimiter(marked, util.DELIMITER_TEMPORAL) == "now"
    assert util.remove_all_delimiters(f"{marked}!") == "now!"


def test_a_prompt_is_written_to_a_file(tmp_path: Any) -> None:
    with resolve("logging.TelemetryLogger")() as logger:
        logger.dump_prompt_file([{"role": "user", "content": "é"}], tmp_path / "p.json")
        logger.dump_log_file(resolve("memory.Round").create("q"), str(tmp_path / "r.json"))
    assert resolve("utils.files.read_json")(tmp_path / "p.json")[0]["content"] == "é"
    assert resolve("utils.files.read_json")(tmp_path / "r.json")["user_query"] == "q"
