"""The whole of a memory file as one HTML page that needs nothing else.

Each row is in the page once, with the branch that wrote it; views of branches are computed in the
page, so its size grows with the file and not with the depth of the tree.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from taskweaver.memory.branched.errors import StoreUnwritable
from taskweaver.memory.branched.storage.database import Database
from taskweaver.memory.branched.tiers.core import RESERVED
from taskweaver.utils.files import write_text
from taskweaver.utils.markup.html import fill_page

_QUERIES = {
    "branches": "SELECT id, name, node_uid, parent_id, fork_seq, live, state FROM branches",
    "core": "SELECT seq, branch_id, key, value, importance, expires_at FROM core_kv",
    "events": "SELECT seq, branch_id, kind, text, tags, data, repeats, created_at FROM events",
    "archival": "SELECT seq, branch_id, record, text, tags, created_at, is_deleted FROM archival",
    "exclusions": "SELECT seq, branch_id, event_seq FROM exclusions",
    "digests": "SELECT seq, branch_id, up_to_seq, count, text FROM digests",
    "injections": "SELECT seq, branch_id, task_hint, chars, created_at FROM injections",
}
_JSON_COLUMNS = {"events": (4, 5), "archival": (4,)}


def write_page(database: Database, target: Path, *, title: str = "Memory") -> None:
    """Write a memory file as a page, which is replaced when the whole of it is written.

    Raises:
        StoreUnwritable: If the page cannot be written.
    """
    try:
        write_text(target, build_page(database, title=title))
    except OSError as error:
        raise StoreUnwritable(f"{target} cannot be written: {error}") from error


def build_page(database: Database, *, title: str = "Memory") -> str:
    """Return a memory file as a page; nothing in it can end the page's script."""
    with database.snapshot() as connection:
        data = {name: _rows(connection, name, query) for name, query in _QUERIES.items()}
        facts = {
            "title": title,
            "seq": database.now_seq(connection),
            "now": database.clock(),
            "reserved": RESERVED,
        }
    template = Path(__file__).with_name("page.html").read_text("utf-8")
    with database.guarded():
        return fill_page(template, title, {**data, **facts})


def _rows(connection: sqlite3.Connection, name: str, query: str) -> list[list[Any]]:
    order = "id" if name == "branches" else "seq"
    rows = [list(row) for row in connection.execute(f"{query} ORDER BY {order}")]
    for row in rows:
        for column in _JSON_COLUMNS.get(name, ()):
            row[column] = json.loads(row[column])
    return rows
