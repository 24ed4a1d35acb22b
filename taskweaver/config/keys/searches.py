"""Keys of the tree search and the branched memory."""

from __future__ import annotations

from taskweaver.config.keys.key import Key, enum, key, path

_MODEL = "The model of `ext_llms.llm_configs` that"
_MAIN = "empty for the main model"

SEARCH_KEYS: tuple[Key, ...] = (
    key("memory.enabled", True, "Whether attempts of a search have a memory."),
    path("search.folder", "${AppBaseDir}/experiments", "Where runs are kept, a folder each."),
    path("search.prompt_dir", "${AppBaseDir}/prompts", "Texts that replace ours."),
    key("search.workers", 2, "Attempts that are made at the same time.", minimum=1),
    enum("search.executor", "local", "local dask", "Where commands run: here, or on Dask workers."),
    key("search.scheduler", "", "Address of the Dask scheduler, like `tls://head:8786`."),
    key("search.steps", 40, "Most nodes of a run; 0 sets no limit."),
    key("search.stage1_nodes", 10, "Most nodes of the first stage.", minimum=1),
    key("search.stage2_nodes", 10, "Most nodes of the second; 0 leaves it out."),
    key("search.stage3_nodes", 12, "Most nodes of the third; 0 leaves it out."),
    key("search.stage4_nodes", 6, "Most nodes of the fourth; 0 leaves it out."),
    key("search.num_drafts", 3, "First attempts, each from nothing.", minimum=1),
    key(
        "search.debug_prob",
        0.5,
        "Probability that a failed attempt is repaired rather than a good one improved, 0 to 1.",
    ),
    key("search.max_debug_depth", 3, "Longest chain of repairs."),
    enum(
        "search.timed",
        "auto",
        "auto always never",
        "Whether the run phase of an attempt has the machine to itself; `auto`: where the metric is"
        " a time or a rate.",
    ),
    key("search.num_seeds", 3, "Repetitions of a stage's best node; 0 none."),
    enum("search.policy", "best_first", "best_first uct", "Which attempt is built on next."),
    key("search.uct_c", 0.25, "Weight of rarely tried attempts (policy uct).", minimum=0.0),
    key("search.seed", 0, "Seed of everything random in a run."),
    enum(
        "search.phase_mode",
        "split",
        "split single",
        "Attempts in phases (download, coding, compile, run), or as one script in a kernel.",
    ),
    key(
        "search.fork_kernels",
        True,
        "Whether a script starts with the variables of its parent's kernel (single).",
    ),
    enum(
        "search.install",
        "iterative",
        "iterative batch",
        "Whether the model installs command by command, seeing each result, or all at once.",
    ),
    key("search.phase1_max_steps", 12, "Most commands of the installer.", minimum=1),
    key("search.time_limit_s", 0.0, "Longest time of a run; 0 sets none."),
    key("search.token_limit", 0, "Tokens a run may consume; 0 sets none."),
    key("search.cost_limit", 0.0, "Money a run may cost; 0 sets none."),
    key("search.model_calls", 4, "Calls of models made at the same time.", minimum=1),
    key("search.download_timeout_s", 600.0, "Longest download command.", minimum=1.0),
    key("search.compile_timeout_s", 300.0, "Longest compile command.", minimum=1.0),
    key("search.run_timeout_s", 3600.0, "Longest run command, or script.", minimum=1.0),
    key("search.attempts", 2, "Attempts at a node whose worker is lost.", minimum=1),
    key("search.retries", 3, "Replies to a question that may be unusable.", minimum=1),
    enum(
        "search.calls",
        "two",
        "two seeds",
        "Questions about an attempt: itself and its review, which may update the memory as well, or"
        " each step alone, as in the original.",
    ),
    enum(
        "search.phase0",
        "draft",
        "draft node off true false",
        "Attempts planned before they are written: first ones (others inherit the plan, and ask"
        " again on another machine or with other resources), each (`node`, or `true`), or none"
        " (`off`, or `false`).",
    ),
    key("search.review", True, "Whether a model judges each attempt that ran."),
    key("search.summaries", True, "Whether a model says what each attempt taught."),
    key(
        "search.plots",
        True,
        "Whether a model writes programs that draw the results: where the review asks for a plot,"
        " or of each attempt that ran (`search.calls = seeds`).",
    ),
    key("search.code_alias", "", f"{_MODEL} writes attempts; {_MAIN}."),
    key("search.feedback_alias", "", f"{_MODEL} judges attempts that ran; {_MAIN}."),
    key("search.vlm_alias", "", f"{_MODEL} looks at plots; empty for none."),
    key("search.summary_alias", "", f"{_MODEL} sums up stages and chooses the best; {_MAIN}."),
    key(
        "search.first_token_timeout_s",
        900.0,
        "Longest wait for the first token of a reply, in seconds, instead of the chat's.",
        minimum=1.0,
    ),
    key("search.goals", False, "Whether a model sets goals of further substages."),
    key("search.max_substages", 3, "Most substages of a stage.", minimum=1),
    key("search.judge", False, "Whether a model chooses the best of the best attempts."),
    path("search.resources", "", "A file of resources: data, code and models to use."),
)


_BUDGETS = {
    "metrics_extraction": "reading metrics from results",
    "plotting_code": "writing plotting code",
    "plot_selection": "choosing plots",
    "vlm_analysis": "looking at plots",
    "node_summary": "summing a node up",
}
_SECTIONS = {
    "idea_summary": (9600, "the summary of idea.md"),
    "idea_section_limit": (4800, "each of its bullets"),
    "phase0_summary": (5000, "the summary of the Phase 0 information"),
    "archival_snippet": (3000, "each archival record in a prompt"),
    "results": (8000, "the results of memory reads shown to a model"),
}

MEMORY_KEYS: tuple[Key, ...] = (
    key("memory.core_max_chars", 16000, "Core memory in view, in characters.", minimum=100),
    key("memory.recall_max_events", 20, "Newest events shown in a prompt.", minimum=1),
    key("memory.retrieval_k", 8, "Archival records shown in a prompt."),
    enum(
        "memory.use_fts",
        "auto",
        "auto on off",
        "Full-text search: where SQLite has FTS5, always (else an error), or never.",
    ),
    enum(
        "memory.synchronous",
        "FULL",
        "FULL NORMAL",
        "`FULL` keeps every write through a power failure; `NORMAL` may lose the newest then.",
    ),
    key(
        "memory.archival_max_chars",
        8000,
        "Longest archival record in characters; longer texts are compressed.",
        minimum=100,
    ),
    key("memory.memory_budget_chars", 24000, "Memory shown in a prompt, in characters."),
    *(
        key(f"memory.{name}_budget_chars", 4000, f"The same for {what}.")
        for name, what in _BUDGETS.items()
    ),
    *(
        key(f"memory.section_budgets.{name}", chars, f"Characters of {what}.", minimum=10)
        for name, (chars, what) in _SECTIONS.items()
    ),
    key("memory.memory_log_enabled", True, "Whether memory operations are logged."),
    path(
        "memory.memory_log_dir",
        None,
        "Folder of these logs; none takes `logs` beside the database.",
    ),
    key("memory.memory_log_max_chars", 400, "Longest text in a log line.", minimum=20),
    key(
        "memory.use_llm_compression",
        True,
        "Whether a model shortens what is too long, where there is one.",
    ),
    key(
        "memory.max_compression_iterations",
        5,
        "Times a text is shortened again when it is still too long.",
        minimum=1,
    ),
    path(
        "memory.prompt_dir",
        "${AppBaseDir}/prompts/config/memory",
        "Folder whose `compression.txt`, `importance_evaluation.txt` and `consolidation.txt`"
        " replace ours.",
    ),
    key("memory.auto_consolidate", True, "Whether old events are summarised by themselves."),
    enum(
        "memory.consolidation_trigger",
        "high",
        "medium high critical",
        "Pressure from which `relieve_if_needed` acts.",
    ),
    key(
        "memory.recall_consolidation_threshold",
        1.5,
        "Events in view, as a multiple of `memory.recall_max_events`, that start a summary.",
        minimum=1,
    ),
    key("memory.pressure_thresholds.medium", 0.7, "Share of a budget that is medium."),
    key("memory.pressure_thresholds.high", 0.85, "Share of a budget that is high."),
    key("memory.pressure_thresholds.critical", 0.95, "Share that is critical."),
    key(
        "memory.max_memory_read_rounds",
        3,
        "Times a model that reads its memory is asked again with the results.",
    ),
    key("memory.final_memory_enabled", True, "Whether a run ends with its final memory."),
    key(
        "memory.final_memory_filename_md",
        "final_memory_for_paper.md",
        "Name of the final memory as text.",
    ),
    key(
        "memory.final_memory_filename_json",
        "final_memory_for_paper.json",
        "Name of the final memory as data.",
    ),
)
