"""The configuration keys of the place where code runs."""

from __future__ import annotations

from taskweaver.config.keys.key import Key, enum

EXECUTION_KEYS: tuple[Key, ...] = (
    Key(
        "execution_service.env_dir",
        "path",
        "${AppBaseDir}/workspace/env",
        "Where kernels keep logs.",
    ),
    Key(
        "execution.start_timeout_s",
        "float",
        60.0,
        "Longest wait in seconds for a kernel to start.",
        minimum=0.1,
    ),
    Key(
        "execution.cell_timeout_s",
        "float",
        600.0,
        "Longest time in seconds for one cell.",
        minimum=0.1,
    ),
    enum(
        "execution.sandbox",
        "auto",
        "auto bwrap landlock none",
        "The sandbox code runs in: the best that works, or only this one, or none.",
    ),
    Key("execution.network", "bool", False, "Whether code in the sandbox may use the network."),
    Key(
        "execution.allowed_hosts",
        "list",
        [],
        "Hosts that code in the sandbox may reach without `execution.network`, through a proxy: "
        "`example.org`, `*.example.org` for all names below it, `example.org:8080` for another "
        "port than 80 and 443.",
    ),
    Key("execution.read_only_paths", "list", [], "Further paths it may read."),
    Key("execution.writable_paths", "list", [], "Further paths it may write."),
    Key(
        "execution.process_limit",
        "int",
        512,
        "Processes and threads of a session; 0 sets no limit.",
        minimum=0,
    ),
    Key(
        "execution.open_file_limit",
        "int",
        4096,
        "Open files of each process; 0 keeps the system's limit.",
        minimum=0,
    ),
    Key(
        "execution.file_limit_mb",
        "int",
        2048,
        "Largest file in MiB that code can write; 0 sets no limit.",
        minimum=0,
    ),
    Key(
        "execution.folder_limit_mb",
        "int",
        10240,
        "Size in MiB of a session's working folders together; 0 sets no limit. A cell that makes "
        "them larger is stopped.",
        minimum=0,
    ),
    Key(
        "execution.log_limit_mb",
        "int",
        16,
        "Size in MiB of a session's `kernel.log`; the oldest lines are removed. 0 sets no limit.",
        minimum=0,
    ),
    Key(
        "execution.cpu_limit_s",
        "int",
        0,
        "Processor time in seconds of each process, the kernel too; 0 sets no limit.",
        minimum=0,
    ),
    Key(
        "execution.zygote",
        "bool",
        True,
        "Whether a process with pandas, numpy and matplotlib is kept, to start kernels from.",
    ),
    Key(
        "execution.memory_limit_mb",
        "int",
        None,
        "Resident memory in MiB of all processes of a session together; none takes half of the "
        "machine's (or of the container's), 0 sets no limit.",
        minimum=0,
    ),
    Key(
        "execution.output_limit_kb",
        "int",
        1024,
        "Output kept of one cell in KiB; the rest is counted and dropped.",
        minimum=1,
    ),
    Key("execution.artifact_limit_mb", "int", 256, "Largest artifact file in MiB that is listed."),
)
