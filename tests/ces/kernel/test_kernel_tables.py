"""The functions that read tables in kernels: there without import, and no user's variables."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernels import Shared, Started, run

from taskweaver.ces.kernel.kernel import Kernel
from taskweaver.tables.files.profile_report import merged
from taskweaver.tables.plans.plan import Tidy, ToTime

DATA = "day,n\n13/01/2024,1\n02/03/2024,2\n"


@pytest.fixture(scope="module")
def kernel(shared: Shared) -> Kernel:
    client, folder = shared
    (folder / "visits.csv").write_text(DATA)
    return client


def test_a_table_is_read_and_the_decisions_are_printed(kernel: Kernel) -> None:
    result = run(kernel, "visits = read_table('visits.csv')\nstr(visits.day.min().date())")
    assert result.output == "2024-01-13"
    assert "".join(result.stdout).splitlines() == [
        "visits.csv: 2 rows x 2 columns, comma, UTF-8",
        "Dates: `day` day first ('13/01/2024')",
    ]
    assert [name for name, _ in result.variables] == ["visits"]
    assert [(read.path, read.sheet) for read in result.tables] == [("visits.csv", None)]
    assert result.tables[0].plan.steps == (ToTime("day", "%d/%m/%Y"),)
    assert run(kernel, "1").tables == []
    told = "MissingTableError: There is no file 'visit.csv'; did you mean 'visits.csv'?"
    assert run(kernel, "read_table('visit.csv')").error == told


def test_profiles_are_read_back_by_the_host(kernel: Kernel) -> None:
    result = run(kernel, "profile_tables('visits.csv', find='n per day')")
    (profile,) = tuple(merged({}, str(result.output)).values())
    assert profile.id.file == "visits.csv"
    assert [column.kind for column in profile.columns] == ["time", "integer"]


def test_a_name_bound_anew_is_the_users(fresh: Kernel) -> None:
    assert dict(run(fresh, "read_table = 3").variables) == {"read_table": "3"}


def test_a_forked_kernel_has_the_names_and_the_last_profile(fresh: Kernel, tmp_path: Path) -> None:
    (tmp_path / "cwd").mkdir(exist_ok=True)
    (tmp_path / "cwd" / "visits.csv").write_text(DATA)
    code = "profile_tables('visits.csv')\ndef total(): return int(read_table('visits.csv').n.sum())"
    run(fresh, code)
    snapshot = fresh.snapshot()
    forked = snapshot.fork("fork", session_dir=tmp_path / "f", cwd=tmp_path / "cwd")
    result = run(forked, "total()")
    assert result.output == 3
    assert result.variables == []
    forked.stop()
    snapshot.close()


def test_reports_of_reads_are_taken_as_claims(kernel: Kernel) -> None:
    """Code in the kernel can report anything; the host takes plans alone."""
    forged = (
        "from taskweaver.tables.session import READS\n"
        "plan = {'reader': 'csv', 'path': 'x', 'options': {}, 'steps': []}\n"
        "plans = ['os.system', plan | {'options': {'converters': 'x'}},"
        " plan | {'steps': [{'step': 'tidy', 'kind': 'x'}]},"
        " plan | {'steps': [{'step': 'tidy', 'kind': 'rows'}]}]\n"
        "READS.done = [1, *({'path': 'x', 'sheet': None, 'plan': item} for item in plans)]\n"
    )
    assert [read.plan.steps for read in run(kernel, forged).tables] == [(Tidy("rows"),)]


def test_the_readers_are_imported_at_the_first_call(started: Started) -> None:
    """A kernel that starts from nothing waits for none of them; a warm process has them."""
    code = "import sys\n(callable(profile_tables), 'taskweaver.tables.reading' in sys.modules)"
    assert run(started(), code).output == "(True, False)"
