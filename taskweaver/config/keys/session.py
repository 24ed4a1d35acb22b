"""Configuration keys under ``session.`` and ``limits.``."""

from __future__ import annotations

from taskweaver.config.keys.key import Key

SESSION_KEYS = (
    Key("session.roles", "list", ["planner", "code_interpreter"], "Roles of a session, by name."),
    Key(
        "session.max_internal_chat_round_num",
        "int",
        20,
        "Most messages between roles in one round, retries included.",
        minimum=1,
    ),
    Key(
        "session.leader_writes_code",
        "bool",
        True,
        "Whether the Planner writes cells itself; else it gives orders in words to the role that"
        " does.",
    ),
    Key("session.experience_dir", "path", "${AppBaseDir}/experience", "Where `/save` writes."),
    Key(
        "session.data_dir",
        "path",
        "${AppBaseDir}/data",
        "Files a message may name without loading them.",
    ),
    Key(
        "session.fork_limit_mb",
        "int",
        2048,
        "Working files in MiB that a fork copies where the file system cannot share storage.",
    ),
    Key(
        "session.snapshot_memory_mb",
        "int",
        1024,
        "Memory in MiB for kernel states at round ends, to go back to at once; 0 keeps none.",
        minimum=0,
    ),
    Key(
        "session.state_limit_mb",
        "int",
        4096,
        "Disk space in MiB for the stored variables of a session; 0 stores none.",
        minimum=0,
    ),
    Key(
        "session.stuck_after",
        "int",
        2,
        "Times the same is said in a row before a nudge; once more after it ends the round.",
        minimum=1,
    ),
    Key(
        "answers.check",
        "bool",
        True,
        "Whether numbers of a model's answer that stand in no outcome are sent back once, and"
        " marked if they stay.",
    ),
    Key(
        "limits.round_tokens",
        "int",
        0,
        "Tokens after which a round stops; 0 sets no limit.",
        minimum=0,
    ),
    Key(
        "limits.session_tokens",
        "int",
        0,
        "Tokens after which a session asks to go on; 0 sets no limit.",
        minimum=0,
    ),
    Key(
        "limits.session_cost",
        "float",
        0.0,
        "Money after which a session asks to go on, in the prices' currency; 0 sets no limit.",
        minimum=0.0,
    ),
    Key(
        "limits.session_rounds",
        "int",
        0,
        "Rounds after which a session asks to go on; 0 sets no limit.",
        minimum=0,
    ),
)
