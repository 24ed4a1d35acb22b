"""A finished conversation is a program: run again, exported, with other values and other data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from rounds import ALONE
from support import Script, code_reply, make_project

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.errors import ConversationError
from taskweaver.session.errors import SessionError
from taskweaver.session.export import export
from taskweaver.session.replay import differences
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

CELLS = (
    "import pandas as pd\ntable = pd.read_csv('tiny.csv')\ntable",
    "factor = 2\ntotal = int(table.Count.sum()) * factor\nprint('total', total)\ntotal",
    "plt.plot([1, 2]); plt.savefig('line.png')\nround(total / 3, 9)",
)


@pytest.fixture(scope="module")
def model() -> list[str]:
    """What the model is going to say, next."""
    return []


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, model: list[str]) -> Iterator[TaskWeaverApp]:
    """A project with a warm process, from which the kernels of all replays start."""
    folder = make_project(tmp_path_factory.mktemp("replay") / "project")
    script = Script(iter(lambda: model.pop(0), None))
    with TaskWeaverApp(folder, model=script, config=ALONE | {"execution.zygote": True}) as app:
        yield app


@pytest.fixture(scope="module")
def session(app: TaskWeaverApp, model: list[str]) -> Session:
    """A conversation, held once."""
    model += [code_reply("1/0"), code_reply("nonsense", "text"), *map(code_reply, CELLS)]
    session = app.get_session()
    session.send_message("what fails is not replayed")
    for number, _ in enumerate(CELLS):
        session.send_message(f"step {number} with tiny.csv ☃")
    session.wait_until_stored()
    return session


@pytest.fixture(scope="module")
def saved(session: Session, app: TaskWeaverApp) -> Path:
    return session.memory.save_experience(app.app_dir / "experience", thin_mode=False)


@pytest.fixture
def project(app: TaskWeaverApp, session: Session) -> Path:
    """The project, its data as they were."""
    (app.app_dir / "data" / "tiny.csv").write_text("Region,Count\nNorth,3\nSouth,5\n")
    return app.app_dir


def replayed(
    app: TaskWeaverApp, file: Path, **options: object
) -> list[tuple[str, tuple[str, ...]]]:
    return [(step.verdict, step.details) for step in app.replay(file, **options)]  # type: ignore[arg-type]


def test_the_same_data_gives_the_same_results_without_a_model(project: Path, saved: Path) -> None:
    with TaskWeaverApp(project, model=Script([])) as another:
        assert replayed(another, saved) == [("same", ())] * 3


def test_other_values_and_data_show_where_results_differ(
    app: TaskWeaverApp, project: Path, saved: Path
) -> None:
    first, second, third = replayed(app, saved, settings={"factor": "10"})
    assert first[0] == "same"
    assert second == (
        "differs",
        ("Result, line 1: '16' was recorded, now '80'",
         "Output, line 1: 'total 16' was recorded, now 'total 80'"),
    )  # fmt: skip
    assert third[0] == "differs"
    other = project / "other.csv"
    other.write_text("Region,Count\nNorth,3\nSouth,5\nEast,1\n")
    first, second, _ = replayed(app, saved, data={"tiny.csv": other})
    assert (first[0], second[0]) == ("differs", "differs")


def test_a_step_that_fails_is_told_and_passed_over(
    app: TaskWeaverApp, project: Path, saved: Path
) -> None:
    (project / "data" / "tiny.csv").write_text("Region\nNorth\n")
    verdicts = replayed(app, saved)
    assert [verdict for verdict, _ in verdicts] == ["differs", "failed", "failed"]
    assert "Count" in verdicts[1][1][0]


def test_a_model_may_correct_a_step_that_fails(
    app: TaskWeaverApp, project: Path, saved: Path, model: list[str]
) -> None:
    (project / "data" / "tiny.csv").write_text("Region,Amount\nNorth,3\nSouth,5\n")
    better = CELLS[1].replace("table.Count", "table.Amount")
    model.append(f"Here it is:\n```python\n{better}\n```\nGood luck!")
    steps = list(app.replay(saved, repair=True))
    assert [step.verdict for step in steps] == ["differs", "repaired", "same"]
    assert "Count" in steps[1].details[0]
    model.extend(["IMPOSSIBLE"] * 2)
    assert [step.verdict for step in app.replay(saved, repair=True)][1:] == ["failed"] * 2


def test_what_cannot_be_replayed_is_said(
    app: TaskWeaverApp, project: Path, saved: Path, session: Session
) -> None:
    thin = session.memory.save_experience(project / "thin")
    (project / "bad.yaml").write_text("rounds: 5")
    for file, options, error in (
        (saved, {"settings": {"nothing": "1"}}, SessionError),
        (saved, {"settings": {"factor": "1 +"}}, SessionError),
        (saved, {"data": {"other.csv": project}}, SessionError),
        (thin, {}, SessionError),
        (project / "bad.yaml", {}, ConversationError),
    ):
        with pytest.raises(error):
            replayed(app, file, **options)


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("1.0000000001", "1.0", True),
        ("a  1\nb  2", "a 1.0\nb    2", True),
        ("1.01", "1.0", False),
        ("8234000", "8234001", False),
        ("8234000.0", "8234001.0", True),
        ("x", "y", False),
        ("1\n2", "1", False),
        ("[1, 2.5]", "[1,  2.5000000001]", True),
        ("nan", "nan", True),
    ],
)
def test_results_are_compared_by_content(old: str, new: str, is_same: bool) -> None:
    reports = [f"### Execution\nok\n\n### Result\n{text}\n" for text in (old, new)]
    assert (differences(*reports) == []) is is_same


def test_the_notebook_holds_the_stored_outputs_and_figures(session: Session) -> None:
    target = session.execution_cwd / "shown.ipynb"
    rounds = session.memory.conversation.rounds
    export(rounds, target, title="A session", folder=session.execution_cwd)
    notebook = nbformat.read(target, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert [cell.execution_count for cell in cells] == [1, 2, 3]
    table, total, figure = (cell.outputs for cell in cells)
    assert "North" in table[0].data["text/plain"]
    assert total[0] == {"output_type": "stream", "name": "stdout", "text": "total 16\n"}
    assert total[1].data["text/plain"] == "16"
    assert figure[0].data["image/png"].startswith("iVBOR")
    assert figure[1].data["text/plain"] == "5.333333333"
    questions = [cell.source for cell in notebook.cells if cell.id.endswith("-q")]
    assert questions[1] == "> step 0 with tiny.csv ☃"


def test_the_report_shows_figures(session: Session) -> None:
    rounds, report = session.memory.conversation.rounds, session.execution_cwd / "r.md"
    export(rounds, report, title="A session")
    text = report.read_text("utf-8")
    assert "![line.png](line.png)" in text
    assert "total = int(table.Count.sum()) * factor" in text
    with pytest.raises(SessionError, match="must end in"):
        export(rounds, report.with_suffix(".docx"), title="x")
    with pytest.raises(SessionError, match="no finished round"):
        export([], report, title="x")
