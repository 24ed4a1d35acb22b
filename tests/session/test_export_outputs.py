"""Outputs of exports: taken from stored outcomes, bounded, and inert."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from markdown_payloads import PAYLOADS

from taskweaver.ces.common import ExecutionResult
from taskweaver.code_interpreter.code_executor import sections
from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.cells import ExecutedCell, parts_of
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.session import export_cells as subject
from taskweaver.session.export import export

PNG = b"\x89PNG\r\n\x1a\n"


def cell(report: str = "", artifacts: tuple[str, ...] = ()) -> ExecutedCell:
    return ExecutedCell(1, "p", "CodeInterpreter", "x", True, report, (), artifacts)


def report(output: object = "", stdout: str = "", stderr: str = "") -> str:
    ran = ExecutionResult("1", "x", is_success=True, output=output)
    ran.stdout, ran.stderr = [stdout], [stderr]
    return sections(ran, level=3)


@pytest.mark.parametrize("payload", [*PAYLOADS, "```\n### Output\n```\nx", "### Result\n```\n1"])
def test_hostile_outputs_stay_in_their_part(payload: str) -> None:
    parts = parts_of(report(payload, payload, payload))
    assert parts.pop("Execution") == "The code ran to its end."
    assert set(parts) <= {"Result", "Output", "Warnings"}
    printed = {parts[name] for name in ("Output", "Warnings") if name in parts}
    assert len(printed) <= 1
    assert all(payload.rstrip().endswith(text) for text in printed)  # the last state of a line
    if payload.strip():
        assert parts["Result"] == payload.rstrip()


@pytest.mark.parametrize("payload", PAYLOADS)
def test_outputs_of_a_notebook_are_plain_text(tmp_path: Path, payload: str) -> None:
    contents = {
        AttachmentType.reply_content: "x",
        AttachmentType.execution_status: "SUCCESS",
        AttachmentType.execution_result: report(payload, payload, payload),
        AttachmentType.artifact_paths: [payload, "../../etc/passwd", "//127.0.0.1/x.png"],
    }
    attached = [Attachment.create(kind, content) for kind, content in contents.items()]
    post = Post.create("done", "User", "ok", attached)
    target = tmp_path / "a.ipynb"
    export([Round("r", "q", "finished", [post])], target, title="t", folder=tmp_path)
    notebook = nbformat.read(target, as_version=4)
    nbformat.validate(notebook)
    (code,) = (found for found in notebook.cells if found.cell_type == "code")
    kinds = {key for output in code.outputs for key in output.get("data", {})}
    assert kinds <= {"text/plain"}
    assert "\x1b" not in json.dumps(notebook)


def test_pictures_are_bounded_and_only_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "MAX_PICTURE_BYTES", 100)
    monkeypatch.setattr(subject, "MAX_PICTURES_BYTES", 150)
    folder = tmp_path / "cwd"
    folder.mkdir()
    (tmp_path / "out.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "out.png")
    (folder / "large.png").write_bytes(PNG + bytes(100))
    (folder / "one.png").write_bytes(PNG + bytes(80))
    (folder / "two.png").write_bytes(PNG + bytes(80))
    (folder / "script.svg").write_text("<svg><script>alert(1)</script></svg>")
    (folder / "page.png").write_text("<script>alert(1)</script>")
    names = ("link.png", "../out.png", str(tmp_path / "out.png"), "large.png", "one.png",
             "two.png", "script.svg", "page.png", "gone.png", "", "\0")  # fmt: skip
    outputs = subject.NotebookOutputs(folder).of(cell(artifacts=names), 1)
    assert [set(output["data"]) for output in outputs] == [{"image/png"}]
    assert subject.NotebookOutputs(None).of(cell(artifacts=names), 1) == []


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("a = 1\na", "a = 1\nprint(a)"),
        ("a, b", "print((a, b))"),
        ("(a,\n b)", "print(((a,\n b)))"),
        ("(\n  a\n  .b()\n)  # é", "(\n  print(a\n  .b())\n)  # é"),
        ("'é'; 'é' + b", "'é'; print('é' + b)"),
        ("(x := 3)", "(print(x := 3))"),
        ("for i in a:\n    i", "for i in a:\n    i"),
        ("%%bash\nls", "%%bash\nls"),
        ("a\r\nb", "a\r\nb"),
        ("", ""),
        ("\ud800", "\ud800"),
    ],
)
def test_the_last_expression_is_printed_if_it_had_a_result(code: str, printed: str) -> None:
    assert subject.printing(code, report("1")) == printed
    assert subject.printing(code, report("", "1")) == code


def test_a_long_chain_of_calls_is_exported(tmp_path: Path) -> None:
    code = f"profile_tables{'()' * 500}"
    post = Post.create("done", "User", "ok")
    post.add_attachment(Attachment.create(AttachmentType.reply_content, code))
    post.add_attachment(Attachment.create(AttachmentType.execution_status, "SUCCESS"))
    export([Round("r", "q", "finished", [post])], tmp_path / "a.py", title="t")
    assert code in (tmp_path / "a.py").read_text("utf-8")
