"""Copying a working directory for a branch: relative to open directories, and by path.

The share of a fork is measured on a session whose kernel forks too.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.common import sized
from taskweaver.app.app import TaskWeaverApp
from taskweaver.utils.file_system.copy_tree import CopyRules, copy_tree
from taskweaver.utils.file_system.safe_fs import Folder

FILES = sized(500, 5)
RUNS = sized(9, 2)
GOAL = 1.1


def _fill(folder: Path) -> None:
    for n in range(FILES):
        place = folder / f"folder-{n % 10}"
        place.mkdir(exist_ok=True)
        (place / f"{n}.csv").write_bytes(b"a,b\n1,2\n" * 500)


def _safe(source: Path, target: Path) -> None:
    target.mkdir()
    with Folder.at(source) as old, Folder.at(target) as new:
        copy_tree(old, new, CopyRules(1 << 30))


def _by_path(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)


def _seconds(copy: Callable[[Path, Path], None], source: Path, target: Path) -> float:
    began = time.perf_counter()
    copy(source, target)
    taken = time.perf_counter() - began
    shutil.rmtree(target)
    return taken


def _fork_s(folder: Path) -> float:
    """Return the median time of a fork of a session with these files and a live kernel."""

    def reply(_: object) -> str:
        return '{"thought": "", "reply_type": "python", "reply_content": "x = 1; x"}'

    (folder / "taskweaver_config.json").write_text('{"session.roles": ["code_interpreter"]}')
    with TaskWeaverApp(folder, model=reply) as app:
        session = app.get_session()
        session.send_message("run")
        _fill(session.execution_cwd)
        taken = []
        for n in range(RUNS):
            began = time.perf_counter()
            session.fork(f"branch-{n}")
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def run() -> dict[str, float]:
    """Return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        source = root / "source"
        source.mkdir()
        _fill(source)
        pairs = [
            (_seconds(_safe, source, root / "safe"), _seconds(_by_path, source, root / "path"))
            for _ in range(RUNS)
        ]
        safe, by_path = (statistics.median(column) for column in zip(*pairs, strict=True))
        (root / "project").mkdir()
        fork_s = _fork_s(root / "project")
    return {
        "files": FILES,
        "safe_copy_ms": safe * 1e3,
        "copytree_ms": by_path * 1e3,
        "copy_ratio": safe / by_path,
        "fork_ms": fork_s * 1e3,
        "fork_ratio": fork_s / max(fork_s - safe + by_path, 1e-9),
    }


def show(figures: Mapping[str, float]) -> None:
    """Print the figures with their goal."""
    print(
        f"  {figures['files']:.0f} files: {figures['safe_copy_ms']:.1f} ms,"
        f" shutil.copytree {figures['copytree_ms']:.1f} ms (ratio {figures['copy_ratio']:.2f})"
    )
    print(
        f"  fork with these files: {figures['fork_ms']:.0f} ms,"
        f" {figures['fork_ratio']:.2f} of one that copies by path (goal {GOAL})"
    )
