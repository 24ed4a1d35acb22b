"""Each key that holds something back, set through an application: what it forbids fails.

Those of the sandbox's tier, of hosts, of confirmations and of tokens have tests of their own.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from rounds import write
from support import NO_STATES, Script, code_reply, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.errors import SandboxUnavailable
from taskweaver.ces.sandbox import sandbox
from taskweaver.memory.attachment import AttachmentType
from taskweaver.memory.post import Post
from taskweaver.module.event_emitter import RoundEventType

pytestmark = pytest.mark.usefixtures("no_states")

BOXED = {"execution.sandbox": "bwrap"}
VERIFIED = {"code_interpreter.code_verification_on": True}
WRITE = "open('/tmp/x', 'wb').write(b'0' * (3 << 20))"
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "execution.cell_timeout_s": (
        {"execution.cell_timeout_s": 0.5}, "import time; time.sleep(600)", "cell_timeout_s",
    ),
    "execution.memory_limit_mb": (
        {"execution.memory_limit_mb": 300}, "x = b'1' * (900 << 20)", "execution.memory_limit_mb",
    ),
    "execution.open_file_limit": (
        {"execution.open_file_limit": 300},
        "x = [open('/dev/null') for _ in range(500)]", "execution.open_file_limit",
    ),
    "execution.folder_limit_mb": (
        {"execution.folder_limit_mb": 8},
        "for n in range(5): open(f'{n}', 'wb').write(b'1' * (4 << 20))",
        "execution.folder_limit_mb",
    ),
    "execution.process_limit": (
        BOXED | {"execution.process_limit": 40} | NO_STATES,
        "import subprocess\nx = [subprocess.Popen(['sleep', '9']) for _ in range(80)]",
        "unavailable",
    ),
    "execution.file_limit_mb": (BOXED | {"execution.file_limit_mb": 1}, WRITE, "File too large"),
    "execution.network": (
        BOXED, "import socket; socket.create_connection(('1.1.1.1', 53), 2)", "nreachable",
    ),
    "execution.read_only_paths": (BOXED, "open('OUTSIDE/a.txt').read()", "No such file"),
    "execution.writable_paths": (
        BOXED | {"execution.read_only_paths": ["OUTSIDE"]},
        "open('OUTSIDE/a.txt', 'w')", "Read-only",
    ),
    "code_interpreter.allowed_modules": (
        VERIFIED | {"code_interpreter.allowed_modules": ["math"]}, "import json", "json",
    ),
    "code_interpreter.blocked_modules": (
        VERIFIED | {"code_interpreter.blocked_modules": ["json"]}, "import json", "json",
    ),
    "code_interpreter.allowed_functions": (
        VERIFIED | {"code_interpreter.allowed_functions": ["len"]}, "print(1)", "print",
    ),
    "code_interpreter.blocked_functions": (
        VERIFIED | {"code_interpreter.blocked_functions": ["print"]}, "print(1)", "print",
    ),
}  # fmt: skip
TOGETHER = [
    ("execution.memory_limit_mb", "execution.open_file_limit", "execution.folder_limit_mb"),
    (
        "execution.file_limit_mb", "execution.network", "execution.read_only_paths",
        "execution.process_limit",
    ),
]  # fmt: skip
"""Keys set in one session: a kernel with a limit of its own is not forked from a warm one."""
ALONE = [(key,) for key in CASES if not any(key in keys for keys in TOGETHER)]


def run(folder: Path, config: dict[str, Any], *codes: str) -> list[str]:
    """Have cells run in a session, one after another; return all that was said of each."""
    project = make_project(folder / "project", has_table=False)
    script = Script([code_reply(code) for code in codes])
    usual = {"session.roles": ["code_interpreter"], "code_interpreter.max_retry_count": 0}
    with TaskWeaverApp(project, model=script, config=usual | config) as app:
        session = app.get_session()
        return [said_in(session.send_message("go").post_list) for _ in codes]


def said_in(posts: list[Post]) -> str:
    said = [item for post in posts for item in post.attachment_list]
    kinds = {AttachmentType.execution_result, AttachmentType.code_error}
    more = {AttachmentType.verification, AttachmentType.artifact_paths}
    return "\n".join(str(item.content) for item in said if item.type in kinds | more) + str(posts)


def test_landlock_keeps_code_from_files_of_elsewhere(tmp_path: Path) -> None:
    try:
        sandbox.require("landlock")
    except SandboxUnavailable:
        pytest.skip("Landlock does not run here")
    (tmp_path / "a.txt").write_text("keep")
    config = {"execution.sandbox": "landlock"}
    (said,) = run(tmp_path, config, f"open('{tmp_path}/a.txt').read()")
    assert "Permission denied" in said


@pytest.mark.parametrize("keys", [*TOGETHER, *ALONE], ids=", ".join)
def test_what_a_key_forbids_fails(tmp_path: Path, keys: tuple[str, ...]) -> None:
    config = {name: value for key in keys for name, value in CASES[key][0].items()}
    if "execution.sandbox" in config and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("keep")
    paths = {
        name: [str(outside)] if value == ["OUTSIDE"] else value for name, value in config.items()
    }
    codes = [CASES[key][1].replace("OUTSIDE", str(outside)) for key in keys]
    for key, said in zip(keys, run(tmp_path, paths, *codes), strict=True):
        assert CASES[key][2] in said, key
        assert "The code ran to its end" not in said, key
    assert (outside / "a.txt").read_text() == "keep"


LEFT = "import subprocess; left = [subprocess.Popen(['sleep', '50']) for _ in range(2)]"
SAID = "2 processes that cells started still run: sleep (2)."


def test_what_a_cell_leaves_behind_is_reported_to_user_and_model(tmp_path: Path) -> None:
    (first, _), script, listener = write(
        make_project(tmp_path / "project", has_table=False), LEFT, "20 + 1"
    )
    assert listener.messages(RoundEventType.round_warning) == [SAID, SAID]
    assert SAID in first.post_list[-1].message
    assert SAID in script.last()


def test_what_is_beyond_a_limit_of_output_logs_or_artifacts_is_left_out(tmp_path: Path) -> None:
    log = (
        "import sys\n"
        "log = open(sys.stdout._original_stdstream_copy, 'wb', closefd=False)\n"
        "for n in range(4): log.write(b'x' * (1 << 20)); log.flush()"
    )
    files = "open('small.bin', 'wb').write(b'1')\nopen('large.bin', 'wb').write(b'1' * (2 << 20))"
    limits = ("output_limit_kb", "log_limit_mb", "artifact_limit_mb")
    config = {f"execution.{name}": 1 for name in limits}
    output, logged, listed = run(tmp_path, config, "print('y' * 3000)", log, files)
    assert "left out" in output
    assert "y" * 2000 not in output
    assert "execution.log_limit_mb" in logged
    logs = list(tmp_path.rglob("kernel.log"))
    assert [path.stat().st_size <= 1 << 20 for path in logs] == [True]
    assert "small.bin" in listed
    assert "file: large.bin" not in listed
