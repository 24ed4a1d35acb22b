"""Links among a project's files that lead out of it are followed with the user's consent alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support import Script, planner_reply

from taskweaver.app.app import TaskWeaverApp
from taskweaver.ext_role.document_retriever.index import DocumentIndex
from taskweaver.session.receipt import Input, ReceiptError
from taskweaver.session.receipt_content import files_for
from taskweaver.utils.file_system.safe_fs import Folder
from taskweaver.utils.named_files import Finder

pytestmark = pytest.mark.usefixtures("no_states")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose data and documents hold links to a file beside it."""
    folder = tmp_path / "project"
    (tmp_path / "secret.txt").write_text("the password is swordfish\n")
    (tmp_path / "secret.csv").write_text("n\n41\n")
    (folder / "shared").mkdir(parents=True)
    (folder / "shared" / "own.csv").write_text("n\n42\n")
    for name in ("data", "knowledge_base"):
        (folder / name).mkdir()
        (folder / name / "leak.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "data" / "leak.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "data" / "own.csv").symlink_to("../shared/own.csv")
    (folder / "taskweaver_config.json").write_text("{}")
    return folder


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_session_brings_and_shows_them_or_not_also_when_a_copy_vanishes(
    project: Path, monkeypatch: pytest.MonkeyPatch, *, is_trusted: bool
) -> None:
    """Code can list a file of the same name, and remove it before its beginning is read."""
    replies = Script([planner_reply("User", "done")] * 2)
    config = {"execution.sandbox": "none", "execution.zygote": False}
    with TaskWeaverApp(project, config, model=replies, trust=is_trusted) as app:
        bringing, session = app.get_session(), app.get_session()
        bringing.send_message("use leak.csv and own.csv")
        names = {path.name for path in bringing.execution_cwd.iterdir()}
        assert ("leak.csv" in names) is is_trusted
        assert (bringing.execution_cwd / "own.csv").read_text() == "n\n42\n"
        assert not (bringing.execution_cwd / "own.csv").is_symlink()
        copy = session.execution_cwd / "leak.csv"
        copy.write_text("n\n43\n")
        facts = Folder.stat

        def removing(folder: Folder, name: str) -> os.stat_result | None:
            found = facts(folder, name)
            if name == "leak.csv":
                copy.unlink(missing_ok=True)
            return found

        monkeypatch.setattr(Folder, "stat", removing)
        session.send_message("hello")
    assert ('["41"]' in str(replies.prompts[1])) is is_trusted
    assert '["42"]' in str(replies.prompts[1])


@pytest.mark.parametrize("start", ["", "data"])
def test_a_word_of_the_user_follows_none_inside_the_project(
    project: Path, tmp_path: Path, start: str
) -> None:
    here = project / start
    word = "leak.csv" if start else "data/leak.csv"
    (held,) = Finder(here, None, project).in_text(word)
    (free,) = Finder(here).in_text(word)
    assert held.problem == "leads out of the project by a link"
    assert (free.path, free.problem) == (tmp_path / "secret.csv", "")
    # A file elsewhere that the user names by its own path is the user's choice.
    beside = tmp_path / "secret.csv"
    (named,) = Finder(here, None, project).in_text(str(beside))
    assert (named.path, named.problem) == (beside, "")


@pytest.mark.parametrize("is_trusted", [True, False])
def test_documents_are_indexed_or_not(project: Path, tmp_path: Path, *, is_trusted: bool) -> None:
    place, root = project / "knowledge_base", None if is_trusted else project
    index = DocumentIndex(tmp_path / "index.db", place, 400, project / "workspace", root)
    passages, _ = index.search("password", 3, lambda _: None)
    assert bool(passages) is is_trusted


def test_inputs_of_a_receipt_are_not_found_there(project: Path) -> None:
    wanted = [Input("leak.csv", 5, "0" * 64, "", None)]
    folders = [project / "data"]
    assert files_for(wanted, {}, folders)["leak.csv"]
    with pytest.raises(ReceiptError, match="is not in the receipt"):
        files_for(wanted, {}, folders, project)
