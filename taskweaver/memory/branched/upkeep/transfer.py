"""Copies of a memory for elsewhere: exports as JSON Lines, and one HTML page.

The first line of an export names the format, then come the branches, then their rows in order, and
the last line counts them and has the SHA-256 of all lines before it, so that a file that was cut
off or changed is refused. Secrets in it are masked, unless it stays with its owner; a cell that was
masked would not run as it did, so a file with one is refused too.

The page has each row once, with the branch that wrote it; views of branches are computed in the
page, so its size grows with the file and not with the depth of the tree.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from taskweaver.memory.branched.errors import InvalidUpdate, StoreUnwritable
from taskweaver.memory.branched.storage.connections import Writer
from taskweaver.memory.branched.storage.database import Database, replacing
from taskweaver.memory.branched.storage.schema import TIERS
from taskweaver.memory.branched.storage.soundness import JSON_COLUMNS, check_values, invariants
from taskweaver.memory.branched.tiers.branches import Branches, BranchView
from taskweaver.memory.branched.tiers.core import RESERVED
from taskweaver.memory.branched.types import FOREVER, Segment
from taskweaver.memory.branched.values import dump
from taskweaver.memory.branched.values import name as checked_name
from taskweaver.utils.files import create_private, write_text
from taskweaver.utils.markup.html import fill_page
from taskweaver.utils.redact import MASK, has_mask, redact_secrets_in
from taskweaver.utils.sqlite_files import column_names, insert_row

FORMAT = "taskweaver-memory"
FORMAT_VERSION = 4
_READABLE_VERSIONS = (1, 2, 3, 4)
BRANCH_COLUMNS = ("id", "name", "node_uid", "parent_id", "fork_seq", "live", "state", "created_at")
ADDED_COLUMNS: dict[str, dict[str, object]] = {
    "archival": {"is_deleted": 0, "valid_from": None, "valid_to": None, "replaced_by": None}
}
"""Columns that exports of earlier versions lack, and their values there."""
_CODE = "reply_content"
"""Type of the attachments of a post that hold its code."""
_RECORD = "reply_record"
"""Type of the attachments that go back to a model's provider unchanged: masked they are refused."""
_REFERENCES = {
    "archival": "replaced_by",
    "events": "repeats",
    "exclusions": "event_seq",
    "digests": "up_to_seq",
    "posts": "round_seq",
    "round_ends": "round_seq",
    "summaries": "up_to_seq",
}


@dataclass
class Transfer:
    """Exports and imports branches."""

    _database: Database
    _branches: Branches

    def export(
        self, target: Path, branch_id: str | None = None, *, is_private: bool = False
    ) -> int:
        """Write the view of a branch, or everything, to a file, and return the number of rows.

        Args:
            target: The file; it is replaced when the whole of it is written.
            branch_id: The branch; None is the whole tree.
            is_private: Whether secrets stay in it, and only its owner can read it.

        Raises:
            UnknownBranch: If the branch does not exist.
            StoreUnwritable: If the file cannot be written.
        """
        digest, count = hashlib.sha256(), 0
        with replacing(target) as partial:
            if is_private:
                create_private(partial)
            with (
                self._database.guarded(),
                partial.open("w", encoding="utf-8", newline="\n") as file,
            ):
                for item in self._items(branch_id):
                    item = item if is_private else _masked(item)
                    line = json.dumps(item, ensure_ascii=False, separators=(",", ":")) + "\n"
                    digest.update(line.encode())
                    file.write(line)
                    count += "table" in item
                end = {"rows": count, "sha256": digest.hexdigest()}
                file.write(json.dumps(end) + "\n")
        return count

    def _items(self, branch_id: str | None) -> Iterator[dict[str, Any]]:
        with self._database.snapshot() as connection:
            branches = self._branches.all(connection)
            if branch_id is None:
                segments = [Segment(branch.number, FOREVER) for branch in branches]
            else:
                chosen = self._branches.find(connection, branch_id)
                segments = list(self._branches.path(BranchView(connection, chosen)))
            yield {
                "format": FORMAT,
                "version": FORMAT_VERSION,
                "seq": self._database.now_seq(connection),
            }
            ends = dict(segments)
            for row in connection.execute(
                f"SELECT {', '.join(BRANCH_COLUMNS)} FROM branches ORDER BY id"
            ):
                if row[0] in ends:
                    yield {"branch": dict(zip(BRANCH_COLUMNS, row, strict=True))}
            for table in TIERS:
                names = column_names(connection, table)
                query = f"SELECT {', '.join(names)} FROM {table} ORDER BY seq"
                for values in connection.execute(query):
                    row = dict(zip(names, values, strict=True))
                    if row["seq"] <= ends.get(row["branch_id"], -1):
                        yield {"table": table, "row": row}

    def import_(self, source: Path) -> list[str]:
        """Add the branches of a file to this one, in one transaction, and return the ids.

        Rows keep their order and stand after all that is here.

        Raises:
            InvalidUpdate: If the file is no export, was cut off or changed, a cell in it holds a
                mask, a branch of the same id is here, or the two together would not be sound.
        """
        items = _read(source)

        def act(writer: Writer) -> list[str]:
            offset = writer.seq
            numbers: dict[int, int] = {}
            names = [
                _add_branch(writer, item["branch"], numbers, offset)
                for item in items
                if "branch" in item
            ]
            for item in items:
                if "table" in item:
                    _add_row(writer.connection, item["table"], item["row"], numbers, offset)
            _refuse_masked_cells(items, source)
            writer.advance(offset + items[0]["seq"])
            problems = invariants(writer.connection)
            if writer.connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
                problems.append("a row refers to one that is not there")
            if problems:
                raise InvalidUpdate(str(source), f"does not fit: {problems[0]}")
            return names

        try:
            return self._database.write(act)
        except (
            sqlite3.Error,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
            OverflowError,
        ) as error:
            raise InvalidUpdate(str(source), f"is malformed: {error}") from error


def _masked(item: dict[str, Any]) -> dict[str, Any]:
    """Return a line with the secrets masked, also inside of the columns that hold JSON."""
    columns = JSON_COLUMNS.get(item.get("table", ""), {})
    if not columns:
        return cast("dict[str, Any]", redact_secrets_in(item))
    if item["table"] == "posts":
        item = {**item, "row": _without_records(item["row"])}
    row = {
        name: dump(redact_secrets_in(json.loads(value)))
        if name in columns
        else redact_secrets_in(value)
        for name, value in item["row"].items()
    }
    return {**item, "row": row}


def _without_records(row: dict[str, Any]) -> dict[str, Any]:
    """Return a post without the records of replies."""
    body = json.loads(row["body"])
    kept = [part for part in _attachments(body) if part.get("type") != _RECORD]
    return {**row, "body": json.dumps({**body, "attachment_list": kept}, ensure_ascii=False)}


def _attachments(post: dict[str, Any]) -> list[dict[str, Any]]:
    parts = post.get("attachment_list")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _refuse_masked_cells(items: list[Any], source: Path) -> None:
    """Raise if code of a conversation holds a mask, so that another code ran.

    The rows have been checked before.
    """
    number = 0
    for item in items:
        posts = [json.loads(item["row"]["body"])] if item.get("table") == "posts" else []
        codes = [
            str(part.get("content"))
            for post in posts
            for part in _attachments(post)
            if part.get("type") == _CODE
        ]
        number += bool(codes)
        if any(map(has_mask, codes)):
            problem = f"cell {number} holds {MASK} in place of a secret"
            raise InvalidUpdate(str(source), f"{problem}; bring a copy that `backup` made instead")


def _read(source: Path) -> list[dict[str, Any]]:
    try:
        text = source.read_bytes()
    except OSError as error:
        raise InvalidUpdate(str(source), f"cannot be read: {error.strerror}") from error
    body, _, last = text.rstrip(b"\n").rpartition(b"\n")
    try:
        end = json.loads(last)
        items = [json.loads(line) for line in body.split(b"\n")]
        is_ours = items[0].get("format") == FORMAT
        is_ours = is_ours and items[0].get("version") in _READABLE_VERSIONS
        is_whole = end.get("sha256") == hashlib.sha256(body + b"\n").hexdigest()
    except (ValueError, AttributeError, IndexError, RecursionError) as error:
        raise InvalidUpdate(str(source), "is no export of a memory, or was cut off") from error
    if not is_ours or not is_whole:
        raise InvalidUpdate(str(source), "is no export of this version, or was changed")
    return items


def _add_branch(writer: Writer, facts: dict[str, Any], numbers: dict[int, int], offset: int) -> str:
    checked_name("branch_id", facts["name"])
    parent = facts["parent_id"]
    values = {name: facts[name] for name in BRANCH_COLUMNS[1:]}
    values["parent_id"] = None if parent is None else numbers[parent]
    values["fork_seq"] += offset
    try:
        numbers[facts["id"]] = insert_row(writer.connection, "branches", values)
    except sqlite3.IntegrityError as error:
        raise InvalidUpdate("branch", f"{facts['name']!r} is here already") from error
    return str(facts["name"])


def _add_row(
    connection: sqlite3.Connection,
    table: str,
    row: dict[str, Any],
    numbers: dict[int, int],
    offset: int,
) -> None:
    if table not in TIERS:
        raise InvalidUpdate("table", f"{table!r} is no table of a memory")
    values = {**ADDED_COLUMNS.get(table, {}), **row, "branch_id": numbers[row["branch_id"]]}
    check_values(table, row)
    for name in ("seq", "record", _REFERENCES.get(table, "seq")):
        if values.get(name) is not None:
            values[name] = row[name] + offset
    if set(values) != set(column_names(connection, table)):
        raise InvalidUpdate(table, "a row has other columns than its table")
    insert_row(connection, table, values)


_QUERIES = {
    "branches": "SELECT id, name, node_uid, parent_id, fork_seq, live, state FROM branches",
    "core": "SELECT seq, branch_id, key, value, importance, expires_at FROM core_kv",
    "events": "SELECT seq, branch_id, kind, text, tags, data, repeats, created_at FROM events",
    "archival": "SELECT seq, branch_id, record, text, tags, created_at, is_deleted, valid_from,"
    " valid_to, replaced_by FROM archival",
    "exclusions": "SELECT seq, branch_id, event_seq FROM exclusions",
    "digests": "SELECT seq, branch_id, up_to_seq, count, text FROM digests",
    "injections": "SELECT seq, branch_id, task_hint, chars, created_at FROM injections",
}
_JSON_COLUMNS = {"events": (4, 5), "archival": (4,)}


def write_page(
    database: Database, target: Path, *, title: str = "Memory", run_page: str = ""
) -> None:
    """Write a memory file as a page, which is replaced only by a complete page.

    No data can end the page's script.
    Each node's branch has a link to `run_page`, a relative address, if there is one.

    Raises:
        StoreUnwritable: If the page cannot be written.
    """
    with database.snapshot() as connection:
        data = {name: _page_rows(connection, name, query) for name, query in _QUERIES.items()}
        facts = {
            "title": title,
            "page": run_page,
            "seq": database.now_seq(connection),
            "now": database.clock(),
            "reserved": RESERVED,
        }
    template = Path(__file__).with_name("page.html").read_text("utf-8")
    with database.guarded():
        page = fill_page(template, title, {**data, **facts})
    write_whole(target, page)


def write_whole(target: Path, text: str) -> None:
    """Write a file whole or not at all.

    Raises:
        StoreUnwritable: If the file cannot be written.
    """
    try:
        write_text(target, text)
    except OSError as error:
        raise StoreUnwritable(f"{target} cannot be written: {error}") from error


def _page_rows(connection: sqlite3.Connection, name: str, query: str) -> list[list[Any]]:
    order = "id" if name == "branches" else "seq"
    rows = [list(row) for row in connection.execute(f"{query} ORDER BY {order}")]
    for row in rows:
        for column in _JSON_COLUMNS.get(name, ()):
            row[column] = json.loads(row[column])
    return rows
