"""Each row of a database of the original is shown, kept under a digest, or named in the account."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from original_files import WINDOW, OriginalTree, make_file

from taskweaver.memory.branched import BranchSealed, MemoryConfig, MemoryManager
from taskweaver.memory.branched.migration.migration_report import MigrationReport, migration_reports

QUIET = MemoryConfig(memory_log_enabled=False, recall_max_events=WINDOW)


def report_of(path: Path) -> MigrationReport:
    (report,) = migration_reports(path)
    return report


def recall_lines(memory: MemoryManager, branch: str) -> list[str]:
    """Return the lines of the recall section of a prompt, without the numbers of events."""
    sections = memory.render_for_prompt_with_log(branch, no_limit=True).sections
    text = next((part.text for part in sections if part.title == "Recall Memory"), "")
    lines = [line.removeprefix("- ") for line in text.splitlines()[1:]]
    return [line.partition(") ")[2] if line.startswith("(#") else line for line in lines]


@pytest.fixture(params=range(4))
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> OriginalTree:
    made = OriginalTree(tmp_path / "memory.sqlite", request.param)
    made.fill(levels=4, width=4, rows=260)
    assert any(made.summaries.values())
    return made


def test_prompts_show_the_summaries_and_events_that_the_original_showed(tree: OriginalTree) -> None:
    with MemoryManager(tree.path, QUIET) as memory:
        for branch in tree.parents:
            lines = recall_lines(memory, branch)
            texts = tree.summaries.get(branch, [])
            shown = "\n".join(lines)
            places = [shown.index(text.splitlines()[0]) for text in texts]
            assert places == sorted(places)  # newest first
            others = {text for found in tree.summaries.values() for text in found} - {*texts}
            assert not [text for text in others if text.splitlines()[0] in shown]
            events = [line for line in lines if line.startswith(("[step]", "[run_", "[node_"))]
            assert events == tree.shown_events(branch)


def test_every_row_is_there_by_name(tree: OriginalTree) -> None:
    with MemoryManager(tree.path, QUIET) as memory:
        assert memory.verify().is_sound
        assert {branch.id for branch in memory.branches()} == {*tree.parents}
        numbers = {branch.id: branch.number for branch in memory.branches()}
        parents = {branch.number: branch.parent for branch in memory.branches()}
        for branch, parent in tree.parents.items():
            assert parents[numbers[branch]] == (None if parent is None else numbers[parent])
            assert memory.branch(f"uid-{branch}").id == branch
        for (branch, key), value in tree.core.items():
            entry = memory[branch].core.entries()[key]
            assert (entry.value, entry.branch) == (value, numbers[branch])
        for branch in tree.parents:
            line = tree.chain(branch)
            visible = {event.text for event in memory[branch].events()}
            hidden = tree.excluded.get(branch, set())
            for id_, owner, _, text in tree.events:
                assert (owner in line and id_ not in hidden) <= (text in visible)
            assert {record.text for record in memory[branch].records()} == {
                text for owner, text in tree.archival.values() if owner in line
            }
        report = report_of(tree.path)
        for id_, branch, _, text in tree.events:
            events = {event.seq: event.text for event in memory[branch].events()}
            assert events[report.ids["events"][id_]] == text
        for id_, (branch, text) in tree.archival.items():
            found = memory.mem_archival_get(report.ids["archival"][id_], branch_id=branch)
            assert found["text"] == text


def test_the_account_counts_every_row(tree: OriginalTree) -> None:
    names = ("branches", "core_kv", "core_meta", "events", "archival")
    tables = (*names, "inherited_exclusions", "inherited_summaries")
    with closing(sqlite3.connect(tree.path)) as connection:
        counts = {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in tables
        }
    MemoryManager(tree.path, QUIET).close()
    report = report_of(tree.path)
    assert report.rows == counts
    assert not report.left
    assert {table: sum(forms.values()) for table, forms in report.taken.items()} == counts


def test_a_long_summary_leaves_room_for_events(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    make_file(
        path,
        "INSERT INTO branches VALUES ('r', NULL, NULL, 1), ('a', 'r', NULL, 2)",
        "INSERT INTO events (branch_id, kind, text, created_at) VALUES ('r', 'old', 'o', 3)",
        "INSERT INTO events (branch_id, kind, text, created_at) VALUES ('a', 'new', 'n', 4)",
        "INSERT INTO inherited_exclusions VALUES ('a', 1, 5)",
        f"INSERT INTO inherited_summaries VALUES (1, 'a', '{'long ' * 4000}', '[1]', 'old', 6)",
    )
    with MemoryManager(path, QUIET) as memory:
        text = memory.render_for_prompt("a", budget_chars=2000)
        assert "long long" in text
        assert "[new] n" in text
        assert "[old] o" not in text
        assert [event.text for event in memory["a"].events()] == ["n", "o"]  # a search finds it


def test_a_fork_made_later_starts_from_the_digest_and_siblings_do_not(tree: OriginalTree) -> None:
    branch = next(name for name, found in tree.summaries.items() if found)
    with MemoryManager(tree.path, QUIET) as memory:
        memory.fork(branch, "later")
        assert recall_lines(memory, "later") == recall_lines(memory, branch)


def test_rows_of_branches_that_do_not_exist_are_kept_on_sealed_ones(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    make_file(
        path,
        "INSERT INTO branches VALUES ('r', NULL, NULL, 5), ('child', 'ghost', NULL, 1)",
        "INSERT INTO core_kv VALUES ('ghost', 'k', 'of a ghost', 2), ('x', 'k', 'of x', 2)",
        "INSERT INTO core_meta VALUES ('r', 'nothing', 4, NULL, 2)",
        "INSERT INTO events (branch_id, kind, text) VALUES ('y', 'e', 'of y'), (NULL, 'e', 'of 0')",
        "INSERT INTO archival (branch_id, text) VALUES ('z', 'of z')",
        "INSERT INTO inherited_summaries (branch_id, summary_text, summarized_event_ids, kind)"
        " VALUES ('s', 'of s', '[1]', 'e')",
        "INSERT INTO inherited_exclusions VALUES ('nowhere', 1, 2), ('r', 99, 2)",
    )
    with MemoryManager(path, QUIET) as memory:
        assert memory.root_branch_id == "r"
        states = {branch.id: branch.state for branch in memory.branches()}
        made = {"ghost", "x", "y", "z", "s", "rows-without-a-branch"}
        assert {name for name, state in states.items() if state == "sealed"} == made
        assert memory.mem_core_get(branch_id="x") == {"k": "of x"}
        assert memory.mem_core_get(branch_id="child") == {"k": "of a ghost"}  # as it was shown
        assert [event.text for event in memory["y"].events()] == ["of y"]
        assert [event.text for event in memory["rows-without-a-branch"].events()] == ["of 0"]
        assert [record.text for record in memory["z"].records()] == ["of z"]
        assert "of s" in memory.render_for_prompt("s")
        with pytest.raises(BranchSealed):
            memory.mem_core_set("k", "1", branch_id="x")
        assert memory.verify().is_sound
    report = report_of(path)
    assert {(row.table, row.row) for row in report.left} == {
        ("core_meta", "r/nothing"),
        ("inherited_exclusions", "nowhere/1"),
        ("inherited_exclusions", "r/99"),
    }
    for name in made:
        assert any(f"branch '{name}' was made" in line for line in report.changed)


def test_a_digest_of_core_refers_to_the_record_by_its_present_id(tmp_path: Path) -> None:
    path = tmp_path / "m.sqlite"
    make_file(
        path,
        "INSERT INTO branches VALUES ('r', NULL, NULL, 1)",
        "INSERT INTO archival VALUES (7, 'r', 'Core memory snapshot', '[]', 9)",
        "INSERT INTO events VALUES (3, 'r', 'e', 'before', '[]', 2, NULL, NULL)",
        "INSERT INTO core_kv VALUES ('r', 'CoreDigest', 'short' || char(10) || '(ref: 7)', 10)",
        "INSERT INTO core_kv VALUES ('r', 'mine', '(ref: 7)', 11)",
    )
    with MemoryManager(path, QUIET) as memory:
        core = memory.mem_core_get(branch_id="r")
        number = core["CoreDigest"].partition("(ref: ")[2].removesuffix(")")
        assert memory.mem_archival_get(number, branch_id="r")["text"] == "Core memory snapshot"
        assert core["mine"] == "(ref: 7)"  # words of a user stay as they are
    assert report_of(path).ids["archival"] == {7: int(number)}


@pytest.mark.parametrize(
    ("branches", "roots"),
    [
        ("('a', 'b', NULL, 1), ('b', 'a', NULL, 2), ('c', 'a', NULL, 0)", 1),
        ("('child', 'parent', NULL, 1), ('parent', NULL, NULL, 2)", 1),
        ("('a', 'a', NULL, 1), ('b', 'nobody', NULL, NULL)", 2),
        ("('', NULL, NULL, 1), ('odd' || char(10), '', NULL, 2), (' ', NULL, NULL, 3)", 2),
    ],
)
def test_trees_that_the_original_accepts_become_sound(
    tmp_path: Path, branches: str, roots: int
) -> None:
    path = tmp_path / "m.sqlite"
    make_file(path, f"INSERT INTO branches VALUES {branches}")
    with MemoryManager(path, QUIET) as memory:
        found = memory.branches()
        assert memory.verify().is_sound
        assert sum(branch.parent is None for branch in found) == roots
        for branch in found:
            assert memory.branch(branch.id) == branch


def test_a_copy_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    path, kept = tmp_path / "m.sqlite", tmp_path / "m.sqlite.original"
    kept.write_text("a file of the user")
    make_file(path, "INSERT INTO branches VALUES ('r', NULL, NULL, 1)")
    MemoryManager(path, QUIET).close()
    assert kept.read_text() == "a file of the user"
    assert (tmp_path / "m.sqlite.original-2").exists()
    assert report_of(path).original == "m.sqlite.original-2"
    assert not [*tmp_path.glob("*.partial")]


def test_half_a_character_in_a_tag_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    make_file(
        path,
        "INSERT INTO branches VALUES ('root', NULL, NULL, 1.0)",
        r"""INSERT INTO archival VALUES (1, 'root', 'text', '["a\ud83d"]', 1.0)""",
    )
    with MemoryManager(path, MemoryConfig(memory_log_enabled=False)) as memory:
        assert memory["root"].records()[0].tags == ("a?",)
