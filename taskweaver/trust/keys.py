"""The risk of each configuration key, for a project file that another person wrote.

Every key of `known_keys` stands here once, under the risk that its value can carry. A key that is
missing counts as the risk ``unknown``: a project that sets it needs trust.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from taskweaver.config.keys.key import Key
from taskweaver.config.keys.known_keys import BY_NAME, find
from taskweaver.config.replaced import provider_key

Risk = Literal[
    "harmless",
    "programs",
    "browser",
    "code",
    "scheduler",
    "sandbox",
    "limit",
    "policy",
    "address",
    "provider",
    "account",
    "models",
    "roles",
    "sent",
    "path",
    "name",
    "file",
    "unknown",
]

_RISKS: dict[Risk, str] = {
    "programs": "mcp.servers",
    "browser": "web_explorer.browser_path",
    "code": "code_interpreter.code_prefix",
    "scheduler": "search.scheduler",
    "sandbox": """
        execution.sandbox execution.network execution.allowed_hosts execution.read_only_paths
        execution.writable_paths execution.pass_environment
        """,
    "limit": """
        execution.start_timeout_s execution.cell_timeout_s execution.process_limit
        execution.file_limit_mb execution.cpu_limit_s execution.memory_limit_mb
        execution.open_file_limit execution.folder_limit_mb execution.log_limit_mb
        execution.output_limit_kb execution.artifact_limit_mb session.fork_limit_mb
        session.snapshot_memory_mb session.state_limit_mb
        """,
    "policy": "code_interpreter.blocked_modules code_interpreter.blocked_functions",
    "address": """
        llm.api_base llm.embedding_api_base llm.aad_tenant_id llm.aad_client_id
        llm.aad_api_resource llm.aad_api_scope web_search.searxng_url tracing.endpoint
        execution.server server.database
        """,
    "provider": """
        llm.api_type llm.recorded.api_type llm.embedding_api_type web_search.api_provider
        """,
    "account": """
        llm.api_key llm.aad_client_secret execution.server_token server.database_password
        web_search.google_api_key web_search.google_search_engine_id
        """,
    "models": "ext_llms.llm_configs",
    "roles": "session.roles",
    "sent": "tracing.enabled tracing.exporter tracing.contents",
    "path": """
        llm.recorded.path session.experience_dir session.data_dir
        workspace.workspace_path plugin.base_path role.base_path {role}.example_base_path
        {role}.experience_dir planner.prompt_file_path code_generator.prompt_file_path
        code_generator.example_base_path planner.compaction_prompt_path
        code_generator.compaction_prompt_path code_interpreter_plugin_only.prompt_file_path
        code_interpreter_cli_only.prompt_file_path document_retriever.index_folder
        memory.memory_log_dir memory.prompt_dir execution_service.env_dir search.folder
        search.prompt_dir logging.log_folder
        """,
    "name": """
        logging.log_file memory.final_memory_filename_md
        memory.final_memory_filename_json
        """,
    "file": "search.resources",
    "harmless": """
        llm.dialect llm.form llm.images llm.model llm.api_version llm.response_format
        llm.temperature llm.top_p
        llm.reasoning_effort
        llm.context_window llm.max_tokens
        llm.stop_token llm.seed llm.auto_detect llm.max_retries llm.max_retry_time_s
        llm.connect_timeout_s llm.first_token_timeout_s llm.gap_timeout_s llm.call_timeout_s
        llm.log_prompts llm.prompt_price llm.cached_prompt_price llm.completion_price
        llm.recorded.mode llm.use_mock
        llm.mock.mode llm.mock.fixed_chat_responses llm.mock.fixed_embedding_responses
        llm.aad_auth_mode llm.embedding_model
        session.leader_writes_code
        session.max_internal_chat_round_num session.stuck_after answers.check limits.round_tokens
        limits.session_tokens limits.session_cost limits.session_rounds
        {role}.use_example {role}.dynamic_example_sub_path {role}.llm_alias {role}.use_experience
        {role}.dynamic_experience_sub_path experience.retrieve_threshold experience.llm_alias
        planner.max_retry_count planner.prompt_compression planner.compaction_threshold
        planner.compaction_token_threshold planner.compaction_retain_recent
        planner.compaction_llm_alias
        code_interpreter.max_retry_count code_interpreter.code_verification_on
        code_interpreter.allowed_modules code_interpreter.allowed_functions
        code_interpreter.require_confirmation code_interpreter.confirmation_timeout_s
        code_interpreter.enable_auto_plugin_selection code_interpreter.auto_plugin_selection_topk
        code_generator.role_name code_generator.load_plugin code_generator.use_example
        code_generator.llm_alias code_generator.prompt_compression
        code_generator.compaction_threshold code_generator.compaction_token_threshold
        code_generator.compaction_retain_recent code_generator.compaction_llm_alias
        echo.decorator recepta.decorator document_retriever.size document_retriever.target_length
        web_search.result_count web_search.chunk_size web_search.chunk_overlap
        web_explorer.max_steps web_explorer.page_timeout_s web_explorer.allowed_hosts
        memory.enabled memory.core_max_chars memory.recall_max_events memory.retrieval_k
        memory.use_fts memory.synchronous memory.archival_max_chars memory.memory_budget_chars
        memory.metrics_extraction_budget_chars memory.plotting_code_budget_chars
        memory.plot_selection_budget_chars memory.vlm_analysis_budget_chars
        memory.node_summary_budget_chars memory.section_budgets.idea_summary
        memory.section_budgets.idea_section_limit memory.section_budgets.phase0_summary
        memory.section_budgets.archival_snippet memory.section_budgets.results
        memory.memory_log_enabled memory.memory_log_max_chars memory.use_llm_compression
        memory.max_compression_iterations memory.auto_consolidate memory.consolidation_trigger
        memory.recall_consolidation_threshold memory.pressure_thresholds.medium
        memory.pressure_thresholds.high memory.pressure_thresholds.critical
        memory.max_memory_read_rounds memory.final_memory_enabled
        execution.zygote
        search.workers search.executor search.steps search.stage1_nodes search.stage2_nodes
        search.stage3_nodes
        search.stage4_nodes search.num_drafts search.debug_prob search.max_debug_depth
        search.num_seeds search.timed search.policy search.uct_c search.seed search.phase_mode
        search.fork_kernels search.install search.phase1_max_steps search.time_limit_s
        search.token_limit
        search.cost_limit search.model_calls search.download_timeout_s search.compile_timeout_s
        search.run_timeout_s search.attempts search.retries search.phase0 search.review
        search.summaries search.plots search.calls search.code_alias search.feedback_alias
        search.vlm_alias search.summary_alias search.first_token_timeout_s search.goals
        search.max_substages search.judge
        logging.level tracing.service_name
        """,
}

RISKS: dict[str, Risk] = {name: risk for risk, names in _RISKS.items() for name in names.split()}
"""The risk of each row of the table of keys."""


@lru_cache(maxsize=1024)
def known_key(name: str) -> Key | None:
    """Return the key that a name in a project file stands for, or None for an unread name."""
    return find(provider_key(name) or name)


def risk_of(name: str) -> Risk:
    """Return the risk of a name in a project file. An unread name is harmless."""
    key = known_key(name)
    if key is None:
        return "harmless"
    rest = key.name.rpartition(".")[2]
    rows = (key.name, f"{{role}}.{rest}", f"code_interpreter.{rest}")
    return next((RISKS[row] for row in rows if row in RISKS and row in BY_NAME), "unknown")
