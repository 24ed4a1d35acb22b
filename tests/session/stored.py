"""A small session on disk, for tests of its check, its repair and what an enemy makes of it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from taskweaver.memory.branched import MemoryConfig
from taskweaver.memory.post import Post
from taskweaver.session.storage.store import SessionFiles

QUIET = MemoryConfig(memory_log_enabled=False)


def make_session(root: Path, session_id: str = "s", rounds: int = 8) -> Path:
    """Write a session with some rounds, a branch, records and a file; return its folder."""
    files = SessionFiles(session_id, root / session_id, QUIET)
    memory = files.memory("main")
    for number in range(rounds):
        round_ = memory.create_round(f"question {number} {'x' * 200}")
        memory.add_post(round_, Post.create(f"question {number}", "User", "Planner"))
        memory.add_post(round_, Post.create(f"answer {number} " * 40, "Planner", "User"))
        memory.end_round(round_, "finished")
        files.store["main"].remember(f"record {number}")
    (files.working_folder("main") / "data.csv").write_text("a\n1\n")
    files.fork("main", "idea", 2, limit_bytes=1 << 20)
    files.close()
    return root / session_id


def queries(folder: Path, branch: str = "main") -> list[str]:
    """Return the questions of a session that opens."""
    with closing(SessionFiles(folder.name, folder, QUIET)) as files:
        rounds = files.memory(branch).conversation.rounds
        return [round_.user_query.partition(" x")[0] for round_ in rounds]
