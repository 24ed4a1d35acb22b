"""``taskweaver memory`` on real files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from taskweaver.cli.main import commands
from taskweaver.memory.branched import MemoryConfig, MemoryManager

pytestmark = pytest.mark.measured

QUIET = MemoryConfig(memory_log_enabled=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.sqlite"
    with MemoryManager(path, QUIET) as memory:
        memory.create_branch(None, branch_id="run", live=True)
        memory.set_core("run", "goal", "twice as fast")
        memory.write_event("run", "start", "began \x1b[31mred")
        memory.write_archival("run", "linker error: install openblas", ["ERROR"])
        memory.fork("run", "a")
        memory.fork("a", "b")
        memory.set_core("b", "flags", "-O3")
        memory.write_event("b", "run_failed", "segfault")
        memory.write_archival("b", "align the buffer")
        memory.seal("a")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(commands, ["memory", *map(str, arguments)])


def test_the_tree_shows_who_wrote_what(file: Path) -> None:
    lines = run("tree", file).output.splitlines()
    assert lines == [
        "run  live  1 core, 1 event, 1 archival",
        "  a  sealed",
        "    b  1 core, 1 event, 1 archival",
    ]
    data = json.loads(run("tree", file, "--json").output)
    assert [item["wrote"]["events"] for item in data] == [1, 0, 1]


def test_a_branch_is_shown_with_where_things_come_from(file: Path) -> None:
    shown = run("show", file, "b").output
    for part in ("twice as fast", "-O3", "segfault", "linker error", "align the buffer"):
        assert part in shown
    assert "\x1b" not in shown
    assert "goal" in run("show", file).output
    assert "- goal: twice as fast" in run("show", file, "b", "--prompt").output
    past = json.loads(run("show", file, "b", "--at", 3, "--json").output)
    assert [entry["key"] for entry in past["core"]] == ["goal"]
    assert past["digest"] is None


def test_search_diff_and_history(file: Path) -> None:
    assert "linker error" in run("search", file, "linker", "-b", "b", "-t", "ERROR").output
    nothing = "Nothing matches in the records and events that run sees."
    assert nothing in run("search", file, "zebra").output
    said = run("search", file, "segfault", "-b", "b").output
    assert "conversation" in said
    assert "segfault" in said
    assert "Nothing matches" not in said
    assert "linker" not in said
    assert "no record with these tags" in run("search", file, "x", "-t", "NONE").output
    difference = run("diff", file, "b", "a").output
    assert "-O3" in difference
    assert "segfault" in difference
    assert "align the buffer" in difference
    assert "see the same" in run("diff", file, "a", "run").output
    assert "segfault" in run("history", file, "b").output
    assert json.loads(run("search", file, "linker", "--json").output)[0]["tags"] == ["ERROR"]


def test_export_import_verify_and_collection(file: Path, tmp_path: Path) -> None:
    assert "rows written" in run("export", file, tmp_path / "out.jsonl", "-b", "b").output
    copy = tmp_path / "copy.sqlite"
    assert "3 branches added" in run("import", copy, tmp_path / "out.jsonl").output
    assert run("verify", copy).output.startswith("sound: 3 branches")
    with MemoryManager(copy, QUIET) as memory:
        memory.prune("b")
    assert "1 branch and" in run("gc", copy, "--dry-run").output
    assert json.loads(run("gc", copy, "--json").output)["branches"] == ["b"]
    assert run("tree", copy).output.count("\n") == 2


def test_what_is_wrong_is_one_line(file: Path, tmp_path: Path) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(b"nothing" * 1000)
    for arguments, said in (
        (("show", file, "nobody"), "'nobody' is no branch"),
        (("tree", noise), "damaged, or no memory"),
        (("tree", tmp_path / "none"), "does not exist"),
        (("import", tmp_path / "new.sqlite", noise), "no export"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert said in result.output
        assert "Traceback" not in result.output


def test_a_record_and_an_event_are_hidden_from_a_branch_on(file: Path) -> None:
    with MemoryManager(file, QUIET) as memory:
        record, event = memory["b"].records()[0].id, memory["b"].events()[0].seq
    assert run("delete", file, "b", record).output == f"record {record} is hidden from b on\n"
    assert "is no id; ids are numbers" in run("delete", file, "b", "x7").output
    assert run("delete", file, "b", f"#{event}").output == f"event {event} is hidden from b on\n"
    with MemoryManager(file, QUIET) as memory:
        assert [item.text for item in memory["b"].records()] == ["linker error: install openblas"]
        assert [item.kind for item in memory["b"].events()] == ["start"]
    again = run("delete", file, "b", record)
    assert again.exit_code == 2
    assert f"Branch 'b' sees no record or event {record}." in again.output


def test_an_erasure_asks_first_and_names_the_places(file: Path) -> None:
    secret = "align the buffer"
    logs = file.with_name("prompts")
    logs.mkdir()
    (logs / "prompt.md").write_text(f"- {secret}")
    command = ["erase", file, "--text", secret, "--logs", logs]
    would = run(*command, "--dry-run")
    assert would.output == (
        f"1 of archival would be erased\nnot changed: {logs / 'prompt.md'}: it holds the text\n"
    )
    asked = run(*command)
    assert "Erase it?" in asked.output
    assert asked.exit_code != 0
    assert secret.encode() in file.read_bytes()
    done = run(*command, "--yes", "--json")
    assert done.exit_code == 1
    left = {"path": str(logs / "prompt.md"), "reason": "it holds the text"}
    assert json.loads(done.output) == {
        "rows": {"archival": 1}, "files": [], "untouched": [left], "is_dry": False,
    }  # fmt: skip
    assert secret.encode() not in file.read_bytes()


def test_a_text_to_erase_can_come_by_the_standard_input(file: Path) -> None:
    def piped(*arguments: str) -> Result:
        command = ["memory", "erase", str(file), "--text", "-", *arguments]
        return CliRunner().invoke(commands, command, input="align the buffer\n")

    assert piped().exit_code == 2
    done = piped("--yes")
    assert (done.exit_code, done.output) == (0, "1 of archival erased\n"), done
    assert run("erase", file, "--yes").exit_code == 2
    assert run("erase", file, "--key", "flags", "--yes").output == "1 of core_kv erased\n"
    assert run("erase", file, "--record", "999", "--yes").output == "nothing erased\n"
    assert run("verify", file).exit_code == 0


def test_reading_an_empty_file_makes_no_memory_of_it(tmp_path: Path) -> None:
    file = tmp_path / "m.sqlite"
    file.touch()
    done = run("tree", file)
    assert done.exit_code != 0
    assert "it has no memory yet" in " ".join(done.output.split())
    assert [path.name for path in tmp_path.iterdir()] == ["m.sqlite"]
    assert not file.stat().st_size


def test_an_import_that_fails_leaves_no_new_file(file: Path, tmp_path: Path) -> None:
    bad, new = tmp_path / "bad.jsonl", tmp_path / "new" / "new.sqlite"
    new.parent.mkdir()
    bad.write_text("no export")
    assert run("import", new, bad).exit_code != 0
    assert list(new.parent.iterdir()) == []
