"""Questions through the library: answers with their parts, sessions, branches, errors."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from fake_endpoint import Call, good, serving
from support import Script, add_table, code_reply, make_project, planner_reply

from taskweaver import TaskWeaver
from taskweaver.ces.common import TABLE_CHARS, CellTables
from taskweaver.face import RoundFailed
from taskweaver.session.errors import FileNotAdded, SessionClosed, SessionError

pytestmark = pytest.mark.usefixtures("no_states")

OFFLINE = {"llm.api_type": "offline"}
KEPT = OFFLINE | {"session.snapshot_memory_mb": 512, "session.state_limit_mb": 512}
"""Settings of a session that goes back to a state, from memory or from disk."""
ALONE = {"session.roles": ["code_interpreter"]}
BARE = {"execution.zygote": False, "execution.sandbox": "none"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", has_table=False)


@pytest.fixture
def stocked(project: Path) -> Path:
    """Give a project with a table."""
    add_table(project)
    return project


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.csv"
    file.write_text("city,price\nRome,1.5\nRome,2.5\nOslo,10\n")
    return file


def test_facts_are_asked_for_and_accepted_through_the_library(project: Path) -> None:
    told = planner_reply("User", "Noted.", remember="User prefers short answers")
    with TaskWeaver(project, model=Script([told])) as tw, tw.session() as session:
        (line,) = session.ask("I like short answers.").memory
        assert line.startswith("Use this in other sessions too? p1: ")
        assert session.ask("yes").text.startswith("kept as p1")
        (fact,) = session.memory.all()
        assert (fact.state, fact.said) == ("kept", "I like short answers.")


def test_a_question_about_a_file_is_answered_without_a_key(stocked: Path, shop: Path) -> None:
    with TaskWeaver(stocked, OFFLINE) as tw:
        assert "offline" in tw.model
        about = tw.ask("What is in it?", files=[shop])
        first, *_ = about.suggestions
        assert (first.text, first.shows) == (
            "What is the mean price per city in shop.csv?", "table"
        )  # fmt: skip
        assert first.text in about.text
        assert "Oslo" in tw.ask("1").text
        (nearest,) = tw.ask("mean price of gnus").suggestions
        assert nearest.shows == "number"
        assert tw.ask("median price per city").notes == ("From `shop.csv`.",)
        answer = tw.ask("What is the mean of price?", files=[shop])
        assert "4.6666" in answer.text
        assert str(answer) == answer.text
        assert answer.round.state == "finished"
        assert answer.tables == []
        again = tw.ask("and per city?")
        assert (again.is_answered, tw.ask("what is love?").is_answered) == (True, False)
        assert again._repr_html_().count("<table") == 1
        assert "Oslo" in again._repr_markdown_()
    (table,) = again.tables
    pd.testing.assert_series_equal(
        table.iloc[:, 0], pd.Series({"Oslo": 10.0, "Rome": 2.0}), check_names=False
    )
    assert "read_table" in answer.code
    assert "groupby" in again.code
    assert again.cost.calls > 0
    assert again.cost.money is None


def test_without_a_project_the_current_folder_is_read_and_stays_as_it_is(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    with TaskWeaver(config=OFFLINE | BARE) as tw:
        answer = tw.ask("plot the mean of price per city in shop.csv")
        shown = answer._repr_html_()
        assert shown.count("<table") == shown.count('src="data:image/png') == 1
    (figure,) = answer.figures
    assert figure.mime == "image/png"
    assert figure.path.read_bytes() == figure.data
    assert figure.path.is_relative_to(tmp_path / "state")
    assert {path.name for path in tmp_path.iterdir()} == {"shop.csv", "state"}


def test_figures_and_files_cells_that_ran_and_code_that_succeeded_are_told_apart(
    project: Path,
) -> None:
    code = (
        "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.savefig('line.svg')\n"
        "plt.figure(); plt.plot([3]); open('out.csv', 'w').write('a\\n1\\n')\n"
        "open('fake.png', 'w').write('no picture')"
    )
    replies = [code_reply(cell) for cell in (code, "1 / 0", "6 * 7")]
    with TaskWeaver(project, ALONE, model=Script(replies)) as tw:
        answer = tw.ask("draw")
        shown = {figure.path.name: bool(figure.data) for figure in answer.figures}
        assert shown == {"figure_1.png": True, "line.svg": False, "fake.png": False}
        assert [path.name for path in answer.files] == ["out.csv"]
        assert answer.files[0].read_text() == "a\n1\n"
        answer = tw.ask("go")
    ran = [(cell.code, cell.is_success) for cell in answer.cells]
    assert ran == [("1 / 0", False), ("6 * 7", True)]
    assert answer.code == "6 * 7"


def test_a_model_at_an_endpoint_answers_with_its_account_or_raises(stocked: Path) -> None:
    replies = [
        planner_reply("CodeInterpreter", "Sum `Count` in `tiny.csv`."),
        code_reply("pd.read_csv('tiny.csv').groupby('Region').sum()"),
        planner_reply("User", "North has 3."),
    ]

    def play(call: Call) -> None:
        call.stream(good(replies.pop(0))) if replies else call.refuse(401, "bad key")

    with serving(play) as endpoint:
        config = {
            "llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.api_key": "k",
            "llm.prompt_price": 1e6, "llm.completion_price": 2e6,
        }  # fmt: skip
        with TaskWeaver(stocked, config, model="tiny-model") as tw, tw.session() as session:
            answer = session.ask("sum of Count per Region in tiny.csv?")
            with pytest.raises(RoundFailed, match="key"):
                session.ask("hi")
            assert session.answer is not None
            assert session.answer.text == ""
            replies.append(planner_reply("User", "hello"))
            assert session.ask("hi").text == "hello"
        assert {call.body["model"] for call in endpoint.calls} == {"tiny-model"}
    assert answer.text == "North has 3."
    assert answer.tables[0]["Count"].to_dict() == {"North": 3, "South": 5}
    assert (answer.cost.calls, answer.cost.tokens, answer.cost.money) == (3, 42, 51.0)
    assert str(answer.cost) == "42 tokens in 3 calls, 51.0000"


def test_paths_in_the_question_name_files_and_two_of_one_name_stay_apart(
    stocked: Path, tmp_path: Path
) -> None:
    for folder in ("here", "the other", "third"):
        (tmp_path / folder).mkdir()
    (tmp_path / "here" / "o.csv").write_text("n\n0\n1")
    (tmp_path / "the other" / "o.csv").write_text("n\n0\n1\n2")
    (tmp_path / "third" / "o.csv.gz").write_bytes(gzip.compress(b"n\n0\n1\n2\n3"))
    with TaskWeaver(stocked, OFFLINE) as tw, tw.session() as session:

        def answer(path: str) -> str:
            return session.ask(f"how many rows are in {path}?").text.split("**")[1]

        assert answer(f"{tmp_path}/here/o.csv") == "2"
        assert answer(f"'{tmp_path}/the other/o.csv'") == "3"
        assert answer(f"file://{tmp_path}/third/o.csv.gz") == "4"
        assert answer(f"{tmp_path}/HERE/O.csv") == "2"
        (session.folder / "o.csv").write_text("n\n1\n")  # as code may
        assert answer("o.csv") == "1"
        assert answer(f"{tmp_path}/here/o.csv") == "2"
        (tmp_path / "the other" / "o.csv").write_text("n\n1\n2\n3\n4\n5\n")
        assert answer(f"{tmp_path}/the\\ other/o.csv") == "5"
        refused = session.ask(f"how many rows are in {tmp_path}/here?").text
        assert f"{tmp_path}/here is a folder: name a file in it." in refused
        both = [tmp_path / folder / "o.csv" for folder in ("here", "the other")]
        session.ask("how many rows are in o-2.csv?", files=both)
        assert (session.folder / "o-2.csv").read_bytes() == both[1].read_bytes()
        # A door hands over what users elsewhere write: paths in it name no file.
        elsewhere = session.core.at(session.branch)
        elsewhere.send_message(f"how many rows are in {tmp_path}/third/o.csv.gz, tiny.csv?")
        assert elsewhere.rounds()[-1].notes == ["files added: tiny.csv."]


def test_errors_name_the_remedy(stocked: Path, tmp_path: Path) -> None:
    tw = TaskWeaver(stocked, OFFLINE)
    with pytest.raises(FileNotAdded, match=r"no file none\.csv in /.*Give its path"):
        tw.ask("mean of price", files="none.csv")
    with pytest.raises(FileNotAdded, match="is a folder"):
        tw.ask("mean of price", files=[tmp_path])
    with pytest.raises(FileNotAdded, match=r"DataFrame is not the path of a file.*to_csv"):
        tw.ask("mean of price", files=[pd.DataFrame()])  # type: ignore[list-item]
    with pytest.raises(SessionError, match="text"):
        tw.ask("")
    session = tw.session()
    session.close()
    with pytest.raises(SessionClosed, match="another"):
        session.ask("mean of price")
    tw.close()
    tw.close()
    for use in (tw.session, lambda: tw.ask("mean of price")):
        with pytest.raises(SessionClosed, match=r"Make another one: TaskWeaver\(\)"):
            use()
    assert "closed" in repr(tw)


def test_a_fork_answers_from_its_own_variables(project: Path) -> None:
    with TaskWeaver(project, KEPT) as tw, tw.session() as session:
        session.ask("run this code: x = 1")
        other = session.fork("other")
        other.ask("run this code: x = 2")
        assert "1" in session.ask("run this code: x").text
        assert "2" in other.ask("run this code: x").text
        assert (session.branch, other.branch) == ("main", "other")
        assert session.folder != other.folder
        difference = session.compare(other)
        assert "x = 2" in str(difference)
        session.merge(other)
        other.undo()
        other.undo()
        assert "1" in other.ask("run this code: x").text
    with TaskWeaver(project, KEPT) as tw:
        assert "1" in tw.session(session.id).ask("run this code: x").text


def test_what_is_not_closed_ends_without_a_trace(project: Path) -> None:
    tw = TaskWeaver(project, OFFLINE)
    core = tw.session().core
    del tw
    assert core.is_closed
    code = (
        "from taskweaver import TaskWeaver\n"
        f"tw = TaskWeaver({str(project)!r}, {OFFLINE | {'execution.zygote': True}!r})\n"
        "print(tw.ask('run this code: 3 + 5'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "8" in done.stdout
    assert done.stderr == ""


def test_an_application_without_the_library_keeps_no_tables_and_with_it_the_newest() -> None:
    tables, names = CellTables(), [str(number) for number in range(100)]
    tables.add("cell", "{}")
    assert tables.take({"cell"}) == []
    tables.is_kept = True
    for name in names:
        tables.add(name, "{}")
    tables.add("bad", 7)
    assert [table.exec_id for table in tables.take({*names, "bad"})] == names[36:]
    for name in names[:20]:
        tables.add(name, "x" * TABLE_CHARS)
    assert [table.exec_id for table in tables.take(set(names))] == names[4:20]


def test_a_file_that_comes_with_a_question_is_the_one_that_is_meant(
    project: Path, shop: Path
) -> None:
    for number in range(2):
        (project / "data" / f"old_{number}.csv").write_text("city,price\nRome,100\n")
    second = shop.with_name("second.csv")
    second.write_text("city,price\nRome,7\n")
    with TaskWeaver(project, OFFLINE) as tw:
        assert "4.6666" in tw.ask("mean of price", files=shop).text
        assert "**7**" in tw.ask("mean of price", files=second).text
        assert "**7**" in tw.ask("and the median?").text
        assert "100" in tw.ask("mean of price in old_1.csv", files=shop).text
