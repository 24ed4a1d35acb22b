"""Whatever a name, a path or a file says: nothing outside its folder is made, read or changed."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sizes import examples
from support import Script, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ces.kernel.outcome import accept, contained
from taskweaver.ces.manager import code_execution_service_factory
from taskweaver.errors import TaskWeaverError
from taskweaver.memory.branched import MemoryConfig, MemoryManager
from taskweaver.memory.branched.errors import InvalidUpdate
from taskweaver.memory.conversation import Conversation
from taskweaver.memory.experience import ExperienceGenerator, save_raw_experience
from taskweaver.plugin.registry import PluginRegistry
from taskweaver.session.errors import FileNotAdded, SessionError
from taskweaver.session.export import export
from taskweaver.session.storage.compare import differing_files
from taskweaver.session.storage.store import SessionFiles
from taskweaver.session.storage.stored_sessions import remove_session
from taskweaver.session.storage.workdir import WorkingFiles, add_files, copy_working_folder
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.files import write_text, write_yaml
from taskweaver.utils.named_files import Finder

pytestmark = pytest.mark.usefixtures("no_states")

TYPED = (TaskWeaverError, ValueError, OSError)
QUIET = MemoryConfig(memory_log_enabled=False)
KNOWN = (
    "", ".", "..", "/", "//", "~", "~root", "~nobody-there/x", "../outside.txt", "../../outside",
    "/etc/passwd", "/tmp/x", "a/../../outside.txt", "..\\outside.txt", "C:\\x", "C:x",
    "\\\\host\\x",
    "a\0b", "\0", "a\nb", "a\r\nb", "\x1b[2J", "x" * 300, "x/" * 200, "\u202egpj.exe", "\ud800",
    "\uff0e\uff0e/x", "\u2024\u2024/x", "..%2foutside.txt", "%2e%2e/x", "con",
    "-rf", "--help", "$HOME", "`id`",
    ".hidden", " ", "a ", "*", "link/x", "link", "fifo", "hard", "folder", "./x",
    "file:///etc/passwd",
)  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(KNOWN),
    st.text(max_size=40),
    st.lists(st.sampled_from(["..", ".", "a", "/", "\\", "\0", "link", "~", " "]), max_size=6).map(
        "/".join
    ),
)
FUZZ = settings(
    max_examples=examples(15),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def tree(root: Path, inside: Path) -> dict[str, tuple[int, str]]:
    """Return everything below a folder with mode and content, but for what is in another."""
    found = {}
    for folder, folders, names in os.walk(root):
        if Path(folder) == inside:
            folders.clear()
            continue
        for name in [*folders, *names]:
            path = Path(folder, name)
            facts = path.lstat()
            content = str(path.readlink()) if path.is_symlink() else ""
            if stat.S_ISREG(facts.st_mode):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path)] = (facts.st_mode, content)
    return found


@contextmanager
def untouched(root: Path, inside: Path) -> Iterator[None]:
    """Check that the block changes nothing but inside a folder, and leaves no odd modes there."""
    before = tree(root, inside)
    yield
    assert tree(root, inside) == before
    for path in inside.rglob("*"):
        if not path.is_symlink():
            assert not path.lstat().st_mode & 0o7002, path


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    """Return a working directory in which code has laid its traps."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("keep")
    (tmp_path / "outside.txt").write_text("keep")
    folder = tmp_path / "cwd"
    (folder / "folder").mkdir(parents=True)
    (folder / "link").symlink_to(outside)
    (folder / "link.txt").symlink_to(outside / "secret.txt")
    (folder / "new.txt").symlink_to(outside / "made.txt")
    (folder / "round.txt").symlink_to("round.txt")
    (folder / "null.txt").symlink_to("/dev/null")
    os.link(outside / "secret.txt", folder / "hard.txt")
    os.mkfifo(folder / "fifo.txt")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(folder)  # a socket's path is short
        server.bind("socket.txt")
        os.chdir(here)
    return folder


TRAPS = ("link", "link.txt", "new.txt", "round.txt", "null.txt", "hard.txt", "fifo.txt",
         "socket.txt", "folder")  # fmt: skip


@given(name=NAMES)
@FUZZ
def test_added_files_stay_in_the_folder(cwd: Path, name: str) -> None:
    with untouched(cwd.parent, cwd):
        try:
            (added,) = add_files(cwd, [{"name": name, "content": b"1"}])
        except FileNotAdded:
            return
        assert (cwd / added).read_bytes() == b"1"
        assert added.isprintable()
        (cwd / added).unlink()


@given(path=NAMES)
@FUZZ
def test_a_file_from_anywhere_is_a_copy_or_a_typed_error(cwd: Path, path: str) -> None:
    with untouched(cwd.parent, cwd), suppress(FileNotAdded):
        WorkingFiles(cwd).bring([{"name": "a.txt", "path": path}], {})


@pytest.mark.parametrize("way", ["path", "content", "upload", "export"])
@pytest.mark.parametrize("name", TRAPS)
def test_nothing_is_written_through_what_code_left(
    cwd: Path, name: str, way: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    manager = code_execution_service_factory(tmp_path_factory.mktemp("env"))
    client = manager.get_session_client("s", cwd=cwd)
    (source := cwd.parent / "source.txt").write_text("text")
    ways: dict[str, Callable[[], object]] = {
        "path": lambda: add_files(cwd, [{"name": name, "path": source}]),
        "content": lambda: add_files(cwd, [{"name": name, "content": "text"}]),
        "upload": lambda: client.upload_file(name, b"text"),
        "export": lambda: write_text(cwd / name, "text"),
    }
    with untouched(cwd.parent, cwd):
        for _ in range(2):
            try:
                ways[way]()
            except TYPED:
                assert (cwd / name).is_dir()
    assert (cwd / name).is_dir() or (cwd / name).read_text() == "text"
    manager.clean_up()


def test_a_working_directory_that_became_a_link_is_not_written_to(cwd: Path) -> None:
    cwd.rename(cwd.with_name("away"))
    cwd.symlink_to(cwd.parent / "outside")
    with untouched(cwd.parent, cwd), pytest.raises(FileNotAdded):
        add_files(cwd, [{"name": "a.txt", "content": b"1"}])


def test_pipes_and_devices_are_not_waited_for(cwd: Path) -> None:
    for source in (cwd / "fifo.txt", "/dev/zero", cwd / "socket.txt", cwd / "round.txt"):
        with pytest.raises(FileNotAdded):
            add_files(cwd, [{"name": "a.txt", "path": source}])
    (cwd / "plugins").mkdir()
    for name in ("a.yaml", "b.py", "c.py", "_helper.py"):
        os.mkfifo(cwd / "plugins" / name)
    (cwd / "plugins" / "b.yaml").write_text(
        "name: b\ndescription: d\nparameters: []\nreturns: []\n"
    )
    assert set(PluginRegistry(cwd / "plugins").broken) == {"a", "b", "c"}
    with pytest.raises(TaskWeaverError):
        Conversation.from_yaml(cwd / "fifo.txt")


def test_copies_of_a_working_directory_hold_nothing_of_elsewhere(cwd: Path) -> None:
    (cwd / "run.sh").write_text("x")
    (cwd / "run.sh").chmod(0o6777)
    (cwd / "hard.txt").unlink()
    copy = cwd.parent / "copy"
    copy.mkdir()
    with Folder.at(cwd) as source, Folder.at(copy) as target:
        copy_working_folder(source, target, limit_bytes=1 << 20)
        assert differing_files(source, target) == {}
    kept = {path.name for path in copy.iterdir() if not path.is_symlink()}
    assert kept == {"folder", "run.sh"}
    assert (copy / "run.sh").stat().st_mode & 0o7777 == 0o755


@given(message=st.lists(NAMES, max_size=5).map(" ".join))
@FUZZ
def test_mentions_find_only_files_of_the_folder(cwd: Path, message: str) -> None:
    found = Finder(None, cwd).in_text(message)
    assert all(named.source.parent == cwd for named in found)


@given(name=NAMES | st.sampled_from(TRAPS))
@FUZZ
def test_artifacts_lie_in_the_working_directory(cwd: Path, name: str) -> None:
    contents = contained(cwd, name)
    if contents is not None:
        found, _ = contents
        place = (cwd / found).resolve()
        assert place.is_file()
        assert place.is_relative_to(cwd)
        assert found.isprintable()
    claim = {"name": name, "type": name, "file_name": name, "original_name": name, "preview": name}
    with untouched(cwd.parent, cwd):
        accepted, _ = accept([claim, {**claim, "file_name": "hard.txt"}], cwd, 1000)
        for item in accepted:
            assert not {"\n", "\r"} & set(item.name + item.original_name + item.file_name)
            assert len(item.name) < 300


@given(name=NAMES)
@FUZZ
def test_sessions_and_branches_have_plain_names(tmp_path: Path, name: str) -> None:
    root = tmp_path / "sessions"
    (tmp_path / "memory.sqlite").touch()  # what `..` would find
    root.mkdir(exist_ok=True)
    with untouched(tmp_path, root):
        with pytest.raises(SessionError):
            remove_session(root, name)
        files = SessionFiles("s", root / "s", QUIET)
        try:
            files.fork("main", files.new_name(name), None, limit_bytes=1 << 20)
        except SessionError:
            pass
        finally:
            files.close()


def test_an_imported_branch_does_not_become_a_folder_elsewhere(tmp_path: Path) -> None:
    other, name = tmp_path / "other.sqlite", "../../../away"
    with MemoryManager(other, QUIET) as memory:
        memory.create_branch(None, branch_id="first")
        memory.fork("first", name)
        memory.export(tmp_path / "export.jsonl")
    files = SessionFiles("s", tmp_path / "sessions" / "s", QUIET)
    files.store.import_(tmp_path / "export.jsonl")
    files.set_current(name)
    assert files.current == "main"
    with pytest.raises(SessionError):
        files.require(name)
    files.close()


@given(session_id=NAMES)
@FUZZ
def test_a_session_is_asked_for_by_a_plain_id(tmp_path: Path, session_id: str) -> None:
    project = tmp_path / "project"
    if not project.exists():
        make_project(project, has_table=False)
    with (
        TaskWeaverApp(project, model=Script([])) as app,
        untouched(tmp_path, project / "logs"),
    ):
        for ask in (app.get_session, app.resume_session):
            with pytest.raises(SessionError):
                ask(session_id)


@given(name=NAMES)
@FUZZ
def test_experiences_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "experience"
    folder.mkdir(exist_ok=True)
    (tmp_path / "exp_a.yaml").write_text("keep")
    generator = ExperienceGenerator(_Model(), folder, embedding_model="m")
    with untouched(tmp_path, folder):
        with suppress(*TYPED):
            save_raw_experience(Conversation.init(), name, folder)
        # No file holds halves of surrogate pairs.
        facts = {"exp_id": name.encode("utf-8", "replace").decode(), "experience_text": "t"}
        write_yaml(folder / "handcrafted_exp_a.yaml", facts)
        write_yaml(folder / "exp_b.yaml", facts)
        generator.refresh()
        assert {item.exp_id for item in generator.load_experience()} >= {"a", "b"}


class _Model:
    def summarize(self, instructions: str, text: str, llm_alias: str = "") -> str:
        return f"{instructions[:1]}{text[:1]}{llm_alias}"

    def get_embedding_list(self, texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]


@given(
    name=NAMES, field=st.sampled_from(["name", "code", "parameters", "configurations", "returns"])
)
@FUZZ
def test_plugin_files_name_files_beside_them(tmp_path: Path, name: str, field: str) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir(exist_ok=True)
    (tmp_path / "outside.py").write_text("x = 1")
    keys: dict[str, Any] = {"name": "a", "description": "d", "parameters": [], "returns": []}
    (plugins / "a.yaml").write_text(json.dumps(keys | {field: name}))
    registry = PluginRegistry(plugins)
    for entry in registry.plugins.values():
        assert entry.path.parent == plugins
    assert all(str(error) for error in registry.broken.values())


@given(target=NAMES)
@FUZZ
def test_an_export_goes_where_it_is_told_or_nowhere(cwd: Path, target: str) -> None:
    conversation = Conversation.from_dict(
        {"rounds": [{"user_query": "q", "state": "finished", "post_list": []}]}
    )
    name = target.replace("/", "_") + ".md"
    with untouched(cwd.parent, cwd), suppress(*TYPED):
        export(conversation.rounds, cwd / name, title="t")


def _exported(folder: Path) -> list[dict[str, Any]]:
    path = folder / "good.jsonl"
    if not path.exists():
        with MemoryManager(folder / "good.sqlite", QUIET) as memory:
            memory.create_branch(None, branch_id="main")
            memory.mem_core_set("key", "value", branch_id="main")
            memory.mem_recall_append({"kind": "note", "summary": "event"}, branch_id="main")
            memory.mem_archival_write("record", tags=["t"], branch_id="main")
            memory.fork("main", "child")
            memory.export(path)
    return [json.loads(line) for line in path.read_text().splitlines()][:-1]


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(),
    st.sampled_from([10**30, -1, 2**63 - 1, 1.5, "x" * 300]),
    st.just([]), st.just({}), NAMES,
)  # fmt: skip


@given(data=st.data())
@settings(FUZZ, max_examples=examples(25))
def test_an_import_is_taken_whole_and_sound_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    items = _exported(tmp_path)
    item = items[data.draw(st.integers(0, len(items) - 1))]
    inner = next((value for value in item.values() if isinstance(value, dict)), item)
    inner[data.draw(st.sampled_from([*inner, "more"]))] = data.draw(ODD)
    if data.draw(st.booleans()):
        more = [[], 1, "branch", None, {"table": "sqlite_master"}]
        items.append(data.draw(st.sampled_from(more)))
    body = "".join(json.dumps(line) + "\n" for line in items)
    end = {"rows": 1, "sha256": hashlib.sha256(body.encode()).hexdigest()}
    source, file = tmp_path / "bad.jsonl", tmp_path / "into.sqlite"
    source.write_text(body + json.dumps(end) + "\n")
    for path in tmp_path.glob("into.sqlite*"):
        path.unlink()
    with MemoryManager(file, QUIET) as memory:
        memory.create_branch(None, branch_id="mine")
        memory.mem_core_set("mine", "kept", branch_id="mine")
        with suppress(InvalidUpdate):
            memory.import_(source)
        assert memory.verify().is_sound, memory.verify().problems
        memory.mem_core_set("after", "works", branch_id="mine")
        found = memory.mem_core_get(["mine", "after"], branch_id="mine")
        assert found == {"mine": "kept", "after": "works"}
        for branch in memory.branches():
            memory.render_for_prompt(branch.id)


def test_an_import_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    body = "[" * 100_000 + "\n" + "{}\n"
    (tmp_path / "deep.jsonl").write_text(body)
    with MemoryManager(tmp_path / "m.sqlite", QUIET) as memory, pytest.raises(InvalidUpdate):
        memory.import_(tmp_path / "deep.jsonl")
