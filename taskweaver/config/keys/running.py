"""Keys of sessions, limits, kernels, cells, the server and traces."""

from __future__ import annotations

from taskweaver.config.keys.key import Key, enum, key, path

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


EXECUTION_KEYS: tuple[Key, ...] = (
    path("execution_service.env_dir", "${AppBaseDir}/workspace/env", "Where kernels keep logs."),
    key(
        "execution.start_timeout_s",
        60.0,
        "Longest wait in seconds for a kernel to start.",
        minimum=0.1,
    ),
    key("execution.cell_timeout_s", 600.0, "Longest time in seconds for one cell.", minimum=0.1),
    enum(
        "execution.sandbox",
        "auto",
        "auto bwrap landlock none",
        "The sandbox code runs in: the best that works, or only this one, or none.",
    ),
    key(
        "execution.server",
        "",
        "Address of a server whose kernels run the code, as `taskweaver serve` prints it without "
        "its token; empty runs code here.",
    ),
    key("execution.server_token", "", "Token for `execution.server`."),
    key("execution.network", False, "Whether code in the sandbox may use the network."),
    key(
        "execution.allowed_hosts",
        [],
        "Hosts that code in the sandbox may reach without `execution.network`, through a proxy: "
        "`example.org`, `*.example.org` for all names below it, `example.org:8080` for another "
        "port than 80 and 443.",
    ),
    key("execution.read_only_paths", [], "Further paths it may read."),
    key(
        "execution.pass_environment",
        [],
        "Environment variables that commands of a search are given: `CC`, `MODULEPATH`, `SPACK_*` "
        "for all that begin so. Downloads have those of package indexes, proxies and certificates.",
    ),
    key("execution.writable_paths", [], "Further paths it may write."),
    key("execution.process_limit", 512, "Processes and threads of a session; 0 sets no limit."),
    key(
        "execution.open_file_limit", 4096, "Open files of each process; 0 keeps the system's limit."
    ),
    key(
        "execution.file_limit_mb", 2048, "Largest file in MiB that code can write; 0 sets no limit."
    ),
    key(
        "execution.folder_limit_mb",
        10240,
        "Size in MiB of a session's working folders together; 0 sets no limit. A cell that makes "
        "them larger is stopped.",
    ),
    key(
        "execution.log_limit_mb",
        16,
        "Size in MiB of a session's `kernel.log`; the oldest lines are removed. 0 sets no limit.",
    ),
    key(
        "execution.cpu_limit_s",
        0,
        "Processor time in seconds of each process, the kernel too; 0 sets no limit.",
    ),
    key(
        "execution.zygote",
        True,
        "Whether a process with pandas, numpy and matplotlib is kept, to start kernels from.",
    ),
    Key(
        "execution.memory_limit_mb",
        "int",
        None,
        "Resident memory in MiB of all processes of a session together; none takes half of the "
        "machine's (or of the container's), 0 sets no limit.",
    ),
    key(
        "execution.output_limit_kb",
        1024,
        "Output kept of one cell in KiB, half of it the end; what lies between is counted.",
        minimum=1,
    ),
    key("execution.artifact_limit_mb", 256, "Largest artifact file in MiB that is listed."),
)


SERVER_KEYS: tuple[Key, ...] = (
    key(
        "server.database",
        "",
        "PostgreSQL database that several `taskweaver serve` share for users, spending, audit log "
        "and the index of sessions, as `postgresql://user@host:5432/database` (extra "
        "`serve-postgres`); empty keeps them in SQLite files.",
    ),
    key(
        "server.database_password",
        "",
        "Password for `server.database`. Better set as `SERVER_DATABASE_PASSWORD`.",
    ),
)


TRACING_KEYS: tuple[Key, ...] = (
    Key(
        "tracing.enabled",
        "bool",
        None,
        "Whether OpenTelemetry spans and metrics are recorded (extra `otel`). While it is not set,"
        " `OTEL_TRACES_EXPORTER` or `OTEL_EXPORTER_OTLP_ENDPOINT` in the environment switches it"
        " on.",
    ),
    enum(
        "tracing.exporter",
        None,
        "otlp console none",
        "Where they go: to a collector by OTLP over HTTP, to standard error, or nowhere. Not set"
        " takes `OTEL_TRACES_EXPORTER`, else `otlp`.",
    ),
    Key(
        "tracing.endpoint",
        "str",
        None,
        "Address of the collector, such as `http://127.0.0.1:4318`. Not set takes"
        " `OTEL_EXPORTER_OTLP_ENDPOINT`, else that address.",
    ),
    Key(
        "tracing.service_name",
        "str",
        None,
        "Name of the service. Not set takes `OTEL_SERVICE_NAME`, else `taskweaver`.",
    ),
    key(
        "tracing.contents",
        False,
        "Whether spans carry prompts, replies, code and results, with secrets masked.",
    ),
)
