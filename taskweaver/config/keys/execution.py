"""The configuration keys of the place where code runs."""

from __future__ import annotations

from taskweaver.config.keys.key import Key, enum, key, path

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
        "its token; empty runs code here. See docs/server.md.",
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
