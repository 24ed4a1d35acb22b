"""The configuration keys of the tree search."""

from __future__ import annotations

from taskweaver.config.key import Key, enum

SEARCH_KEYS: tuple[Key, ...] = (
    Key("memory.enabled", "bool", True, "Whether attempts of a search have a memory."),
    Key(
        "search.folder",
        "path",
        "${AppBaseDir}/experiments",
        "Where runs are kept, a folder each.",
    ),
    Key("search.prompt_dir", "path", "${AppBaseDir}/prompts", "Texts that replace ours."),
    Key("search.workers", "int", 2, "Attempts that are made at the same time.", minimum=1),
    Key("search.steps", "int", 40, "Most nodes of a run; 0 sets no limit.", minimum=0),
    Key("search.stage1_nodes", "int", 10, "Most nodes of the first stage.", minimum=1),
    Key("search.stage2_nodes", "int", 10, "Most nodes of the second; 0 leaves it out.", minimum=0),
    Key("search.stage3_nodes", "int", 12, "Most nodes of the third; 0 leaves it out.", minimum=0),
    Key("search.stage4_nodes", "int", 6, "Most nodes of the fourth; 0 leaves it out.", minimum=0),
    Key("search.num_drafts", "int", 3, "First attempts, each from nothing.", minimum=1),
    Key(
        "search.debug_prob",
        "float",
        0.5,
        "How often a failed attempt is mended rather than a good one improved, from 0 to 1.",
        minimum=0.0,
    ),
    Key("search.max_debug_depth", "int", 3, "Longest chain of attempts at mending.", minimum=0),
    Key("search.num_seeds", "int", 3, "Repetitions of a stage's best node; 0 none.", minimum=0),
    enum("search.policy", "best_first", "best_first uct", "Which attempt is built on next."),
    Key("search.seed", "int", 0, "Seed of everything random in a run."),
    enum(
        "search.phase_mode",
        "split",
        "split single",
        "Attempts in phases (download, coding, compile, run), or as one script in a kernel.",
    ),
    Key(
        "search.fork_kernels",
        "bool",
        True,
        "Whether a script starts with the variables of its parent's kernel (single).",
    ),
    enum(
        "search.install",
        "iterative",
        "iterative batch",
        "Whether the model installs command by command, seeing each result, or all at once.",
    ),
    Key("search.phase1_max_steps", "int", 12, "Most commands of the installer.", minimum=1),
    Key("search.time_limit_s", "float", 0.0, "Longest time of a run; 0 sets none.", minimum=0.0),
    Key("search.token_limit", "int", 0, "Tokens a run may consume; 0 sets none.", minimum=0),
    Key("search.cost_limit", "float", 0.0, "Money a run may cost; 0 sets none.", minimum=0.0),
    Key("search.download_timeout_s", "float", 600.0, "Longest download command.", minimum=1.0),
    Key("search.compile_timeout_s", "float", 300.0, "Longest compile command.", minimum=1.0),
    Key("search.run_timeout_s", "float", 3600.0, "Longest run command, or script.", minimum=1.0),
    Key("search.attempts", "int", 2, "Attempts at a node whose worker is lost.", minimum=1),
    Key("search.retries", "int", 3, "Replies to a question that may be unusable.", minimum=1),
    Key("search.phase0", "bool", True, "Whether each attempt is planned before it is written."),
    Key("search.review", "bool", True, "Whether a model judges each attempt that ran."),
    Key("search.summaries", "bool", True, "Whether a model says what each attempt taught."),
    Key("search.plots", "bool", True, "Whether a model writes programs that draw the results."),
    Key(
        "search.vlm_alias",
        "str",
        "",
        "A model of `ext_llms.llm_configs` that looks at plots; empty for none.",
    ),
    Key("search.goals", "bool", False, "Whether a model sets goals of further substages."),
    Key("search.max_substages", "int", 3, "Most substages of a stage.", minimum=1),
    Key("search.resources", "path", "", "A file of resources: data, code and models to use."),
)
