"""The configuration keys of the branched memory; see `known_keys`."""

from __future__ import annotations

from taskweaver.config.keys.key import Key, enum, key, path

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
    "results": (4000, "the results of memory reads shown to a model"),
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
