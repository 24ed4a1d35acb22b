"""Commands outside of kernels: what they do, what they may use, and that nothing outlives them."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from kernels import TIERS, needs_bwrap
from patience import PATIENCE_S

from taskweaver.ces.command import Command, CommandLimits, CommandResult, run_command
from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox import sandbox
from taskweaver.utils.system.cancel import CancelToken

Policy = SandboxPolicy | None
LIMITS = CommandLimits(timeout_s=30, process_limit=64)


@pytest.fixture(params=[None, *TIERS], ids=str)
def policy(request: pytest.FixtureRequest) -> SandboxPolicy | None:
    return None if request.param is None else SandboxPolicy(tier=request.param)


def run(command: Any, folder: Path, policy: Policy = None, **limits: float) -> CommandResult:
    bounds: Any = limits
    return run_command(Command(command, folder, sandbox=policy, limits=replace(LIMITS, **bounds)))


def still_there(word: str) -> list[psutil.Process]:
    """Return the processes, but those that have ended, with a word in their command line."""
    return [p for p in psutil.process_iter(["cmdline"]) if word in (p.info["cmdline"] or ())]


def test_a_text_is_for_bash_and_words_are_for_themselves(tmp_path: Path, policy: Policy) -> None:
    done = run("x=1; [[ $x == 1 ]] && echo one > f; cat f", tmp_path, policy)
    assert (done.status, done.exit_code, done.tail) == ("ok", 0, "one\n")
    assert run(("echo", "$x; a  b"), tmp_path, policy).tail == "$x; a  b\n"
    assert (tmp_path / "f").read_text() == "one\n"


@pytest.mark.parametrize(
    ("command", "exit_code", "signal"),
    [("exit 3", 3, ""), ("kill -9 $$", 137, "SIGKILL"), (("there-is-no-such",), 127, "")],
)
def test_how_it_failed_is_told(
    tmp_path: Path, policy: Policy, command: Any, exit_code: int, signal: str
) -> None:
    done = run(command, tmp_path, policy)
    assert (done.status, done.exit_code, done.signal) == ("failed", exit_code, signal)


def test_the_environment_is_built(
    tmp_path: Path, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    command = Command("env", tmp_path, sandbox=policy, variables={"GIVEN": "a b"})
    lines = run_command(command).tail.splitlines()
    assert "GIVEN=a b" in lines
    assert f"HOME={tmp_path}" in lines
    assert "MPLBACKEND=Agg" in lines
    assert not any("SOME_API_KEY" in line for line in lines)
    which = run(("python", "-c", "import sys; print(sys.prefix)"), tmp_path, policy)
    assert which.tail.strip() == sys.prefix


def test_the_working_directory(tmp_path: Path, policy: Policy) -> None:
    (tmp_path / "sub").mkdir()
    done = run_command(Command("pwd", tmp_path, cwd=tmp_path / "sub", sandbox=policy))
    assert done.tail.strip() == str(tmp_path / "sub")
    (tmp_path / "link").symlink_to(".")
    by_link = tmp_path / "link"
    done = run_command(Command("pwd; touch f", by_link, cwd=by_link / "sub", sandbox=policy))
    assert done.tail.strip() == str(tmp_path / "sub")
    assert (tmp_path / "sub" / "f").exists()


@needs_bwrap
def test_the_workspace_has_a_second_name_in_the_sandbox(tmp_path: Path) -> None:
    done = run("echo x > /workspace/f && cat f && cd /workspace && pwd", tmp_path, SandboxPolicy())
    assert done.tail == "x\n/workspace\n"


def test_nothing_else_is_reached_in_the_sandbox(tmp_path: Path, policy: Policy) -> None:
    if policy is None:
        pytest.skip("without a sandbox")
    (tmp_path / "w").mkdir()
    (tmp_path / "canary").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        attempts = [f"cat {tmp_path}/canary", "touch /usr/made", f"echo >/dev/tcp/127.0.0.1/{port}"]
        for attempt in attempts:
            assert run(attempt, tmp_path / "w", policy).status == "failed"
        run(f"touch {tmp_path}/made", tmp_path / "w", policy)
        assert not (tmp_path / "made").exists()
        granted = replace(policy, has_network=True)
        assert run(attempts[-1], tmp_path / "w", granted).is_ok


@needs_bwrap
def test_an_allowed_host_is_asked_for_by_the_proxy(tmp_path: Path) -> None:
    policy = SandboxPolicy(allowed_hosts=("data.invalid",))
    code = (
        "import os, urllib.request as u\n"
        "for host in ('other.invalid', 'data.invalid'):\n"
        "    try: u.urlopen(f'http://{host}/')\n"
        "    except Exception as e: print(e)\n"
    )
    done = run(("python", "-c", code), tmp_path, policy)
    refused, unknown = done.tail.splitlines()
    assert "403" in refused
    assert "502" in unknown


def test_a_flood_is_counted_and_dropped(tmp_path: Path, policy: Policy) -> None:
    limits = replace(LIMITS, output_bytes=1000, tail_bytes=100)
    flood = "printf first; head -c 200000000 /dev/zero; printf last"
    command = Command(flood, tmp_path, sandbox=policy, limits=limits)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with (tmp_path / "log").open("ab", buffering=0) as log:
        done = run_command(command, log=log)
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    kept = (tmp_path / "log").read_bytes()
    assert done.is_ok
    assert grown_kb < 64 << 10
    assert kept.startswith(b"first\0")
    assert kept.endswith(b"\0last")
    assert f"{200_000_000 + 9 - 1100:,} bytes left out".encode() in kept
    assert len(done.tail) == 100


def test_a_character_is_not_cut(tmp_path: Path) -> None:
    assert run("printf 'aéé'", tmp_path, tail_bytes=3).tail == "é"


STUBBORN = (
    "python -c '\n"
    "import os, signal, subprocess, sys\n"
    "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\n"
    'p = [subprocess.Popen(["sleep", "WORD"], start_new_session=n) for n in (0, 1)]\n'
    'print("ready", flush=True); signal.pause()\''
)


def test_at_its_deadline_everything_ends(tmp_path: Path, policy: Policy) -> None:
    done = run(STUBBORN.replace("WORD", "600.31"), tmp_path, policy, timeout_s=1.5)
    assert (done.status, done.exit_code) == ("timeout", None)
    assert "its time limit" in done.ending
    assert done.tail == "ready\n"
    assert still_there("600.31") == []


def test_cancelled_everything_ends(tmp_path: Path, policy: Policy) -> None:
    token = CancelToken()
    command = Command(STUBBORN.replace("WORD", "600.32"), tmp_path, sandbox=policy, limits=LIMITS)
    log: Any = SimpleNamespace(write=lambda _: token.cancel())
    done = run_command(command, log=log, cancel=token)
    assert done.status == "cancelled"
    assert still_there("600.32") == []
    assert run_command(command, cancel=token).status == "cancelled"


def test_what_it_leaves_running_ends(tmp_path: Path, policy: Policy) -> None:
    command = "setsid sleep 600.33 & (setsid sleep 600.33 >/dev/null 2>&1 &) & echo x"
    assert run(command, tmp_path, policy).status == "ok"
    assert still_there("600.33") == []


CHAIN = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
until = time.monotonic() + 20
while time.monotonic() < until:
    if os.fork(): os._exit(0)
    time.sleep(0.005)
"""
"""A program that goes on as a child of itself, again and again, away from its group."""


def test_what_forks_on_and_on_ends(tmp_path: Path) -> None:
    for n in range(3):
        command = Command((sys.executable, "-ISc", CHAIN, f"chain {n}"), tmp_path)
        assert run_command(command).status == "ok"
        assert not any(still_there(f"chain {n}") for _ in range(3))


def test_a_file_that_is_too_large(tmp_path: Path, policy: Policy) -> None:
    done = run("head -c 5000000 /dev/zero > big", tmp_path, policy, file_bytes=1 << 20)
    assert (done.status, done.signal) == ("failed", "SIGXFSZ")
    assert (tmp_path / "big").stat().st_size == 1 << 20


def test_memory_that_is_too_much(tmp_path: Path, policy: Policy) -> None:
    code = ("python", "-c", "x = b'1' * (600 << 20)")
    done = run(code, tmp_path, policy, memory_bytes=200 << 20)
    assert (done.is_ok, "execution.memory_limit_mb" in done.ending) == (False, True)


def test_processor_time_that_is_too_much(tmp_path: Path) -> None:
    assert run("while :; do :; done", tmp_path, cpu_s=1).signal == "SIGXCPU"


@pytest.mark.parametrize("command", ["a\0b", ("a", "b\0"), (), ("",), "x" * 5_000_000])
def test_what_cannot_be_started_is_refused(tmp_path: Path, policy: Policy, command: Any) -> None:
    done = run(command, tmp_path, policy)
    assert (done.status, done.exit_code) == ("refused", None)
    assert done.reason


def test_without_its_sandbox_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.require.cache_clear()
    try:
        done = run("true", tmp_path, SandboxPolicy())
    finally:
        sandbox.require.cache_clear()
    assert done.status == "refused"
    assert "bubblewrap is not installed" in done.reason


def test_a_log_that_cannot_be_written_ends_it(tmp_path: Path) -> None:
    with Path("/dev/full").open("ab", buffering=0) as log, pytest.raises(OSError, match="space"):
        run_command(Command("echo x; sleep 600.35", tmp_path), log=log)
    assert still_there("600.35") == []


def test_nothing_is_left_behind(tmp_path: Path, policy: Policy) -> None:
    run("true", tmp_path, policy)
    before = open_things()
    for command in ("true", "exit 1", "sleep 5", "a\0"):
        run(command, tmp_path, policy, timeout_s=0.2)
    assert open_things() == before


def open_things() -> tuple[int, int, list[Path]]:
    folders = [*Path(tempfile.gettempdir()).glob(f"tw-{os.getpid()}-*")]
    # Groups of other programs end meanwhile, which `os.walk` passes over.
    groups = [Path(path) for path, _, _ in os.walk("/sys/fs/cgroup")]
    own = [path for path in groups if path.name.startswith(f"taskweaver-{os.getpid()}-")]
    return len([*Path("/proc/self/fd").iterdir()]), threading.active_count(), folders + own


@needs_bwrap
def test_it_ends_with_its_owner(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from taskweaver.ces.command import Command, run_command\n"
        "from taskweaver.ces.policy import SandboxPolicy\n"
        "from types import SimpleNamespace as Log\n"
        "say = lambda data: print('ready', flush=True)\n"
        "command = Command('echo x; setsid sleep 600.36 & sleep 600.36', Path(sys.argv[1]),\n"
        "    sandbox=SandboxPolicy())\n"
        "run_command(command, log=Log(write=say))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout
        assert owner.stdout.readline() == b"ready\n"
        owner.kill()
    psutil.wait_procs(still_there("600.36"), timeout=PATIENCE_S)
    assert still_there("600.36") == []


@needs_bwrap
def test_a_bomb_of_processes_is_contained(tmp_path: Path) -> None:
    done = run(":(){ :|:& };: ; sleep 600.34", tmp_path, SandboxPolicy(), timeout_s=1)
    assert done.status in {"timeout", "failed"}
    assert still_there("600.34") == []
