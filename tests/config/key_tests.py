"""Which test shows the effect of which configuration keys.

A new key gets a row, or a place in one: the test's file and name, then the keys it sets.
"""

from __future__ import annotations

_ROWS = """
doors/test_remote_kernels.py::test_a_project_runs_its_code_on_a_server
  execution.server execution.server_token
doors/test_several_servers.py::test_users_are_managed_in_the_database
  server.database server.database_password
llm/test_llm_keys.py::test_a_key_of_a_request_is_sent
  llm.model llm.temperature llm.top_p llm.max_tokens llm.stop_token llm.seed
  llm.reasoning_effort
llm/test_llm_keys.py::test_the_key_goes_into_the_header
  llm.api_base llm.api_key
llm/test_llm_keys.py::test_an_azure_endpoint_is_asked_in_its_version
  llm.api_type llm.api_version
app/test_windows.py::test_a_configured_window_is_never_exceeded_and_another_is_learnt
  llm.context_window
llm/test_dialect_choice.py::test_the_configured_dialect_is_spoken
  llm.dialect
llm/test_reply_forms.py::test_the_configured_form_is_in_force
  llm.form
app/test_figures_seen.py::test_an_interpreter_sees_its_own_and_the_configuration_decides
  llm.images
llm/test_llm_keys.py::test_structured_replies_are_asked_for_as_configured
  llm.response_format
llm/test_llm_keys.py::test_a_wait_that_is_too_long_is_given_up
  llm.first_token_timeout_s llm.gap_timeout_s llm.call_timeout_s
llm/test_llm_keys.py::test_the_wait_for_a_connection_is_the_configured_one
  llm.connect_timeout_s
llm/test_llm_keys.py::test_waits_between_tries_are_bounded_together
  llm.max_retries llm.max_retry_time_s
llm/test_llm_keys.py::test_prompts_and_replies_are_written_as_they_were
  llm.log_prompts
llm/test_llm_azure_ad.py::test_an_application_signs_in_with_its_secret
  llm.aad_auth_mode llm.aad_tenant_id llm.aad_client_id llm.aad_client_secret
  llm.aad_api_resource llm.aad_api_scope
llm/test_llm_mock.py::test_a_fixed_reply_and_vector_are_given_to_everything
  llm.use_mock llm.mock.mode llm.mock.fixed_chat_responses llm.mock.fixed_embedding_responses
llm/test_llm_mock.py::test_a_recorded_reply_is_played_back_and_a_missing_one_is_an_error
  llm.mock.cache_path
llm/test_llm_services.py::test_looking_can_be_switched_off
  llm.auto_detect
llm/test_llm_api.py::test_the_servers_figures_and_the_price_are_added_up
  llm.prompt_price llm.completion_price
llm/test_llm_api.py::test_cached_tokens_have_a_price_of_their_own
  llm.cached_prompt_price
llm/test_llm_services.py::test_recordings_are_played_without_a_key_and_made_with_a_function
  llm.recorded.mode llm.recorded.path llm.recorded.api_type
llm/test_llm_api.py::test_texts_become_vectors_in_order
  llm.embedding_api_type llm.embedding_model
ext_role/test_document_retriever.py::test_an_embedding_model_puts_passages_in_order
  llm.embedding_api_base
app/test_project_keys.py::test_each_role_asks_the_model_of_its_alias
  ext_llms.llm_configs {role}.llm_alias code_generator.llm_alias
app/test_app.py::test_a_role_of_the_project_takes_part_and_a_broken_file_of_one_is_a_warning
  session.roles
app/test_turns.py::test_without_cells_of_its_own_the_planner_hears_of_the_worker_and_of_no_field_for_code
  session.leader_writes_code
app/test_turns.py::test_roles_that_never_finish_run_into_the_limit
  session.max_internal_chat_round_num
app/test_project_keys.py::test_experiences_are_saved_and_shown_where_configured
  session.experience_dir {role}.use_experience {role}.experience_dir experience.retrieve_threshold
app/test_project_keys.py::test_a_fork_copies_files_up_to_its_limit
  session.fork_limit_mb
app/test_fork.py::test_the_oldest_states_go_when_the_memory_is_used_up
  session.snapshot_memory_mb
app/test_answer_check.py::test_nothing_is_sent_back_where_it_makes_no_sense
  answers.check
app/test_project_keys.py::test_repetitions_end_a_round_after_as_many_as_configured
  session.stuck_after
app/test_policy.py::test_a_round_stops_at_its_tokens_and_the_next_goes_on
  limits.round_tokens
app/test_policy.py::test_a_session_stops_at_its_limit_until_it_is_extended
  limits.session_tokens limits.session_cost limits.session_rounds
app/test_project_keys.py::test_folders_are_where_they_are_configured
  workspace.workspace_path plugin.base_path role.base_path {role}.use_example
  {role}.example_base_path logging.log_folder logging.log_file session.data_dir
app/test_sub_paths.py::test_the_examples_are_those_of_the_shared_folder_for_as_long_as_it_is_shared
  {role}.dynamic_example_sub_path
app/test_sub_paths.py::test_experiences_are_those_of_the_shared_folder
  {role}.dynamic_experience_sub_path
app/test_project_keys.py::test_experiences_are_summed_up_by_the_model_of_their_alias
  experience.llm_alias
app/test_app.py::test_a_prompt_file_of_the_project_replaces_ours_and_a_broken_one_is_named
  planner.prompt_file_path
app/test_turns.py::test_an_unusable_reply_is_sent_back_and_its_beginning_ends_the_round_in_a_line
  planner.max_retry_count
app/test_turns.py::test_a_worker_that_cannot_mend_its_code_reports_the_failure
  code_interpreter.max_retry_count
app/test_interpreters.py::test_cells_of_all_roles_are_rebuilt_once_in_their_order_and_commands_are_not
  session.state_limit_mb code_interpreter.code_prefix
app/test_policy.py::test_code_that_breaks_the_policy_does_not_run_and_is_sent_back
  code_interpreter.code_verification_on
app/test_switches.py::test_what_a_key_forbids_fails
  code_interpreter.allowed_modules code_interpreter.blocked_modules
  code_interpreter.allowed_functions code_interpreter.blocked_functions
  execution.cell_timeout_s execution.memory_limit_mb execution.process_limit
  execution.file_limit_mb execution.network execution.read_only_paths execution.writable_paths
  execution.open_file_limit execution.folder_limit_mb
app/test_switches.py::test_what_is_beyond_a_limit_of_output_logs_or_artifacts_is_left_out
  execution.log_limit_mb
app/test_policy.py::test_where_nobody_can_be_asked_nothing_runs
  code_interpreter.require_confirmation
app/test_project_keys.py::test_a_person_has_the_configured_time
  code_interpreter.confirmation_timeout_s
app/test_plugins_in_a_chat.py::test_plugins_that_suit_are_shown_with_those_used_and_all_can_be_called
  code_interpreter.enable_auto_plugin_selection code_interpreter.auto_plugin_selection_topk
app/test_project_keys.py::test_the_code_model_plays_the_configured_name_with_its_own_examples
  code_generator.role_name code_generator.load_plugin code_generator.example_base_path
  code_generator.use_example
original/test_original_project.py::test_prompt_files_of_the_original_are_read
  code_generator.prompt_file_path
app/test_project_keys.py::test_a_summary_is_made_when_it_is_configured_by_the_model_of_its_alias
  planner.compaction_prompt_path code_generator.compaction_prompt_path
  planner.compaction_llm_alias code_generator.compaction_llm_alias
  planner.prompt_compression planner.compaction_threshold planner.compaction_token_threshold
  planner.compaction_retain_recent code_generator.prompt_compression
  code_generator.compaction_threshold code_generator.compaction_token_threshold
  code_generator.compaction_retain_recent
app/test_interpreters.py::test_each_has_a_prompt_file_of_its_own
  code_interpreter_plugin_only.prompt_file_path
  code_interpreter_cli_only.prompt_file_path
ext_role/test_small_roles.py::test_the_echo_alone_answers_the_user
  echo.decorator
ext_role/test_small_roles.py::test_recepta_takes_many_notes_in_one_round
  recepta.decorator
ext_role/test_document_retriever.py::test_the_workspace_inside_the_documents_is_no_document
  document_retriever.index_folder
ext_role/test_document_retriever.py::test_an_answer_has_passages_as_configured
  document_retriever.size document_retriever.target_length
ext_role/test_web_search.py::test_google_and_bing_get_their_keys
  web_search.api_provider web_search.google_api_key web_search.google_search_engine_id
  web_search.bing_api_key
ext_role/test_web_search.py::test_pages_that_cannot_be_read_are_named_and_the_engines_words_stand_in
  web_search.result_count
ext_role/test_web_search.py::test_what_an_engine_answers_instead_of_results_is_told
  web_search.searxng_url
ext_role/test_web_search.py::test_quotes_have_the_configured_length
  web_search.chunk_size web_search.chunk_overlap
app/test_mcp_tools.py::test_the_models_see_the_tools_and_code_calls_them
  mcp.servers
memory/branched/test_tiers.py::test_what_does_not_fit_goes_to_archival_least_important_and_oldest_first
  memory.core_max_chars
memory/branched/test_render.py::test_a_prompt_shows_as_many_events_and_records_as_configured
  memory.recall_max_events memory.retrieval_k memory.section_budgets.archival_snippet
memory/branched/test_search.py::test_without_fts5_records_are_found_and_a_memory_that_needs_it_is_refused
  memory.use_fts
memory/branched/test_store.py::test_writes_are_as_durable_as_configured
  memory.synchronous
memory/branched/test_pressure.py::test_what_no_model_shortens_is_cut
  memory.archival_max_chars
memory/branched/test_render.py::test_no_limit_and_task_budgets
  memory.memory_budget_chars
memory/branched/test_render.py::test_no_limit_and_task_budgets
  memory.metrics_extraction_budget_chars memory.plotting_code_budget_chars
  memory.plot_selection_budget_chars memory.vlm_analysis_budget_chars
  memory.node_summary_budget_chars
memory/branched/test_ingest.py::test_summaries_of_sources_have_budgets
  memory.section_budgets.idea_summary memory.section_budgets.idea_section_limit
  memory.section_budgets.phase0_summary
memory/branched/test_protocol.py::test_writes_come_before_reads_and_ids_come_back
  memory.section_budgets.results
memory/branched/test_logs.py::test_each_public_call_is_one_line_in_all_and_in_its_layer
  memory.memory_log_enabled memory.memory_log_max_chars
memory/branched/test_import_alone.py::test_keys_of_a_configuration_reach_the_memory
  memory.memory_log_dir
memory/branched/test_pressure.py::test_a_model_shortens_as_often_as_configured
  memory.use_llm_compression memory.max_compression_iterations
memory/branched/test_pressure.py::test_a_model_shortens_as_often_as_configured
  memory.prompt_dir
memory/branched/test_pressure.py::test_old_events_are_summed_up_as_configured
  memory.auto_consolidate memory.recall_consolidation_threshold
memory/branched/test_pressure.py::test_the_level_follows_the_fuller_part
  memory.consolidation_trigger
memory/branched/test_pressure.py::test_the_level_follows_the_fuller_part
  memory.pressure_thresholds.medium memory.pressure_thresholds.high
  memory.pressure_thresholds.critical
treesearch/agent/test_search_prompts.py::test_a_reader_is_told_how_often_it_may_read
  memory.max_memory_read_rounds
memory/branched/test_paper.py::test_it_can_be_limited_and_switched_off
  memory.final_memory_enabled memory.final_memory_filename_md memory.final_memory_filename_json
app/test_project_keys.py::test_the_logs_of_kernels_are_where_configured
  execution_service.env_dir execution.zygote
ces/test_started_kernels.py::test_a_kernel_that_cannot_start_says_why
  execution.start_timeout_s
app/test_switches.py::test_landlock_keeps_code_from_files_of_elsewhere
  execution.sandbox
ces/sandbox/test_egress.py::test_the_application_says_what_is_allowed
  execution.allowed_hosts
treesearch/execution/test_host.py::test_a_search_passes_the_variables_of_its_configuration
  execution.pass_environment
ces/sandbox/test_sandbox.py::test_a_kernel_that_computes_too_long_ends
  execution.cpu_limit_s
app/test_switches.py::test_what_is_beyond_a_limit_of_output_logs_or_artifacts_is_left_out
  execution.output_limit_kb
app/test_switches.py::test_what_is_beyond_a_limit_of_output_logs_or_artifacts_is_left_out
  execution.artifact_limit_mb
ext_role/test_web_explorer.py::test_a_browser_that_does_not_start_is_told
  web_explorer.browser_path
ext_role/test_web_explorer.py::test_a_task_ends_with_its_steps_and_is_given_up_while_a_page_loads
  web_explorer.max_steps
ext_role/test_web_explorer.py::test_an_action_that_fails_is_told_to_the_model_and_time_and_hosts_are_as_configured
  web_explorer.page_timeout_s web_explorer.allowed_hosts
treesearch/engine/test_search_keys.py::test_a_run_has_a_memory_where_it_is_enabled
  memory.enabled
treesearch/engine/test_search_keys.py::test_a_run_ends_after_its_steps_in_its_folder
  search.folder search.steps
treesearch/engine/test_search_keys.py::test_words_are_those_of_the_configured_folder
  search.prompt_dir
treesearch/engine/test_search_keys.py::test_as_many_attempts_at_a_time_as_configured
  search.workers
treesearch/engine/test_search_on_dask.py::test_what_dask_needs_is_told_before_the_first_attempt
  search.executor search.scheduler
treesearch/engine/test_search_keys.py::test_each_stage_has_as_many_nodes_as_configured
  search.stage1_nodes search.stage2_nodes search.stage3_nodes search.stage4_nodes
  search.num_drafts
treesearch/engine/test_search_keys.py::test_a_failed_attempt_is_repaired_as_configured
  search.debug_prob search.max_debug_depth
treesearch/engine/test_search_keys.py::test_the_best_node_is_repeated_as_often_as_configured
  search.num_seeds search.seed
treesearch/engine/test_search_keys.py::test_the_policy_is_the_configured_one
  search.policy search.uct_c
treesearch/engine/test_search_again.py::test_a_line_of_scripts_is_run_again_and_says_so_when_it_fails
  search.phase_mode
treesearch/execution/test_search_scripts.py::test_a_kernel_that_cannot_be_forked_is_new
  search.fork_kernels
treesearch/execution/test_search_installing.py::test_an_installer_has_as_many_steps_as_configured
  search.install search.phase1_max_steps
treesearch/engine/test_search_durability.py::test_a_run_keeps_to_its_time
  search.time_limit_s
treesearch/engine/test_search_budgets.py::test_tokens_are_counted_call_by_call
  search.token_limit
treesearch/engine/test_search_budgets.py::test_no_call_is_made_when_the_money_is_spent
  search.cost_limit
treesearch/engine/test_search_budgets.py::test_only_so_many_calls_are_made_at_a_time
  search.model_calls
treesearch/execution/test_search_installing.py::test_one_command_that_fails_again_and_again_ends_it
  search.download_timeout_s
treesearch/engine/test_after_run.py::test_programs_that_draw_nothing_are_told_why
  search.compile_timeout_s
treesearch/engine/test_search_faults.py::test_a_run_that_hangs_is_stopped
  search.run_timeout_s
treesearch/engine/test_search_durability.py::test_a_worker_that_is_killed_costs_an_attempt
  search.attempts
treesearch/engine/test_after_run.py::test_calls_that_fail_after_a_run_leave_it_as_it_was
  search.retries
treesearch/engine/test_search_keys.py::test_a_model_is_asked_for_what_is_configured
  search.phase0 search.review search.summaries search.plots
treesearch/engine/test_after_run.py::test_a_model_nobody_knows_is_told_at_once
  search.vlm_alias
treesearch/agent/test_two_calls.py::test_an_attempt_takes_two_calls
  search.calls
treesearch/agent/test_two_calls.py::test_models_are_chosen_by_their_work
  search.code_alias search.feedback_alias search.summary_alias
treesearch/engine/test_evaluator.py::test_timed_runs_have_the_machine_alone
  search.timed
treesearch/agent/test_two_calls.py::test_a_reply_may_begin_late
  search.first_token_timeout_s
treesearch/engine/test_search_substages.py::test_a_model_sets_goals_until_they_are_reached
  search.goals
treesearch/engine/test_search_substages.py::test_goals_are_set_for_as_many_substages_as_configured
  search.max_substages
treesearch/engine/test_search_judge.py::test_nobody_is_asked_who_was_not_wanted
  search.judge
cli/test_cli_search.py::test_a_resource_file_counts_from_the_current_folder
  search.resources
app/test_project_keys.py::test_the_log_has_lines_of_its_level
  logging.level
logging_/test_tracing.py::test_a_key_or_a_variable_switches_tracing_on
  tracing.enabled
logging_/test_tracing.py::test_a_key_goes_before_the_variable
  tracing.exporter
logging_/test_tracing.py::test_spans_and_metrics_reach_a_collector_with_the_end_of_the_application
  tracing.endpoint tracing.service_name
app/test_spans.py::test_contents_are_recorded_when_asked_for_and_masked
  tracing.contents
"""


def _read(rows: str) -> dict[str, str]:
    tests: dict[str, str] = {}
    test = ""
    for line in rows.strip().splitlines():
        if not line.startswith(" "):
            test = line
            continue
        for key in line.split():
            if key in tests:
                raise ValueError(f"{key} has two rows")
            tests[key] = test
    return tests


TESTS: dict[str, str] = _read(_ROWS)
"""The test of each key."""
