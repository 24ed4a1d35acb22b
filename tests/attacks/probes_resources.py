"""Attacks on what the machine has to share: processes, memory, files, disk."""

from __future__ import annotations

from attacks.attack import Attack, Outcome
from attacks.world import World

GROUP = "resources"
_MEMORY_LIMIT_MB = 512
_LOG_BYTES = 100 << 20


def _tries(name: str, code: str) -> Attack:
    return Attack(name, code, group=GROUP)


def _has_grown(outside: World, _: Outcome) -> bool:
    """The kernel's log holds as much as was written to it; it is emptied again."""
    is_large = outside.log.stat().st_size >= _LOG_BYTES
    with outside.log.open("r+b") as log:
        log.truncate(0)
    return is_large


ATTACKS = (
    _tries(
        "lift its limits",
        (
            "inf = resource.RLIM_INFINITY; resource.setrlimit(resource.RLIMIT_FSIZE, (inf, inf))\n"
            "done = resource.getrlimit(resource.RLIMIT_FSIZE)[0] == inf"
        ),
    ),
    _tries(
        "start 600 processes",
        (
            "import time; pids = []\n"
            "try:\n"
            "    for _ in range(600):\n"
            "        pids.append(os.posix_spawn('/bin/sleep', ['sleep', '60'], {}))\n"
            "    time.sleep(2); done = True\n"  # until a watcher can see them
            "finally:\n"
            "    for pid in pids: os.kill(pid, 9); os.waitpid(pid, 0)"
        ),
    ),
    _tries(
        "open 5,000 files",
        (
            "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard)); fds = []\n"
            "try:\n"
            "    for _ in range(5000): fds.append(os.open('/dev/null', 0))\n"
            "    done = True\n"
            "finally:\n"
            "    for fd in fds: os.close(fd)"
        ),
    ),
    Attack(
        f"take more memory than a limit of {_MEMORY_LIMIT_MB} MiB",
        (  # a watcher looks four times a second: it may miss a shorter burst
            f"import time; pages = np.ones(({_MEMORY_LIMIT_MB} + 256) << 17)\n"
            "time.sleep(2); done = True; del pages"
        ),
        group=GROUP,
        keys=(("execution.memory_limit_mb", _MEMORY_LIMIT_MB),),
    ),
    _tries(
        "write one file of 9 GiB",
        (
            "f = open('huge', 'wb')\n"
            "try: f.truncate(9 << 30); done = True\n"
            "finally: f.close(); os.remove('huge')"
        ),
    ),
    _tries(
        "fill the working folder with 24 GiB",
        (
            "os.mkdir('full')\n"
            "try:\n"
            "    for n in range(4):\n"
            "        with open(f'full/{n}', 'wb') as f:\n"
            "            os.posix_fallocate(f.fileno(), 0, 6 << 30)\n"
            "    done = True\n"
            "finally: shutil.rmtree('full')"
        ),
    ),
    _tries(
        "fill shared memory with 320 MiB",
        (
            "f = open('/dev/shm/tw-fill-@OWNER@', 'wb')\n"
            "try: os.posix_fallocate(f.fileno(), 0, 320 << 20); done = True\n"
            "finally: os.remove('/dev/shm/tw-fill-@OWNER@')"
        ),
    ),
    Attack(
        "write 100 MiB to the kernel's log",
        "with open('../kernel.log', 'ab') as f:\n    for _ in range(100): f.write(bytes(1 << 20))",
        _has_grown,
        GROUP,
    ),
)
