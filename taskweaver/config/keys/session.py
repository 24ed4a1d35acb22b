"""Configuration keys under ``session.`` and ``limits.``."""

from __future__ import annotations

from taskweaver.config.keys.key import key, path

SESSION_KEYS = (
    key("session.roles", ["planner", "code_interpreter"], "Roles of a session, by name."),
    key(
        "session.max_internal_chat_round_num",
        20,
        "Most messages between roles in one round, retries included.",
        minimum=1,
    ),
    key(
        "session.leader_writes_code",
        True,
        "Whether the Planner writes cells itself; else, or where the code model has texts of its"
        " own, it gives orders in words.",
    ),
    path("session.experience_dir", "${AppBaseDir}/experience", "Where `/save` writes."),
    path(
        "session.data_dir", "${AppBaseDir}/data", "Files a message may name without loading them."
    ),
    key(
        "session.fork_limit_mb",
        2048,
        "Working files in MiB that a fork copies where the file system cannot share storage.",
    ),
    key(
        "session.snapshot_memory_mb",
        1024,
        "Memory in MiB for kernel states at round ends, to go back to at once; 0 keeps none.",
    ),
    key(
        "session.state_limit_mb",
        4096,
        "Disk space in MiB for the stored variables of a session; 0 stores none.",
    ),
    key(
        "session.stuck_after",
        2,
        "Times the same is said in a row before a nudge; once more after it ends the round.",
        minimum=1,
    ),
    key(
        "answers.check",
        True,
        "Whether numbers of a model's answer that stand in no outcome are sent back once, and"
        " marked if they stay.",
    ),
    key("limits.round_tokens", 0, "Tokens after which a round stops; 0 sets no limit."),
    key("limits.session_tokens", 0, "Tokens after which a session asks to go on; 0 sets no limit."),
    key(
        "limits.session_cost",
        0.0,
        "Money after which a session asks to go on, in the prices' currency; 0 sets no limit.",
    ),
    key("limits.session_rounds", 0, "Rounds after which a session asks to go on; 0 sets no limit."),
)
