"""The configuration keys of the branched memory; see `known_keys`."""

from __future__ import annotations

from taskweaver.config.keys.key import Key, enum

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
    Key("memory.core_max_chars", "int", 16000, "Core memory in view, in characters.", minimum=100),
    Key("memory.recall_max_events", "int", 20, "Newest events shown in a prompt.", minimum=1),
    Key("memory.retrieval_k", "int", 8, "Archival records shown in a prompt."),
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
    Key(
        "memory.archival_max_chars",
        "int",
        8000,
        "Longest archival record in characters; longer texts are compressed.",
        minimum=100,
    ),
    Key("memory.memory_budget_chars", "int", 24000, "Memory shown in a prompt, in characters."),
    *(
        Key(f"memory.{name}_budget_chars", "int", 4000, f"The same for {what}.")
        for name, what in _BUDGETS.items()
    ),
    *(
        Key(f"memory.section_budgets.{name}", "int", chars, f"Characters of {what}.", minimum=10)
        for name, (chars, what) in _SECTIONS.items()
    ),
    Key("memory.memory_log_enabled", "bool", True, "Whether memory operations are logged."),
    Key(
        "memory.memory_log_dir",
        "path",
        None,
        "Folder of these logs; none takes `logs` beside the database.",
    ),
    Key("memory.memory_log_max_chars", "int", 400, "Longest text in a log line.", minimum=20),
    Key(
        "memory.use_llm_compression",
        "bool",
        True,
        "Whether a model shortens what is too long, where there is one.",
    ),
    Key(
        "memory.max_compression_iterations",
        "int",
        5,
        "Times a text is shortened again when it is still too long.",
        minimum=1,
    ),
    Key(
        "memory.prompt_dir",
        "path",
        "${AppBaseDir}/prompts/config/memory",
        "Folder whose `compression.txt`, `importance_evaluation.txt` and `consolidation.txt`"
        " replace ours.",
    ),
    Key(
        "memory.auto_consolidate", "bool", True, "Whether old events are summarised by themselves."
    ),
    enum(
        "memory.consolidation_trigger",
        "high",
        "medium high critical",
        "Pressure from which `relieve_if_needed` acts.",
    ),
    Key(
        "memory.recall_consolidation_threshold",
        "float",
        1.5,
        "Events in view, as a multiple of `memory.recall_max_events`, that start a summary.",
        minimum=1,
    ),
    Key("memory.pressure_thresholds.medium", "float", 0.7, "Share of a budget that is medium."),
    Key("memory.pressure_thresholds.high", "float", 0.85, "Share of a budget that is high."),
    Key("memory.pressure_thresholds.critical", "float", 0.95, "Share that is critical."),
    Key(
        "memory.max_memory_read_rounds",
        "int",
        3,
        "Times a model that reads its memory is asked again with the results.",
    ),
    Key("memory.final_memory_enabled", "bool", True, "Whether a run ends with its final memory."),
    Key(
        "memory.final_memory_filename_md",
        "str",
        "final_memory_for_paper.md",
        "Name of the final memory as text.",
    ),
    Key(
        "memory.final_memory_filename_json",
        "str",
        "final_memory_for_paper.json",
        "Name of the final memory as data.",
    ),
)
