"""What the author of a cell reads of its outcome: names like the missing one, and no library."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels import Shared, run

from taskweaver.ces.common import Client
from taskweaver.ces.errors import KernelError
from taskweaver.ces.kernel.outcome import readable_trace, readable_warnings


@pytest.fixture(scope="module")
def table(shared: Shared) -> Client:
    client, folder = shared
    (folder / "prices.csv").write_text("Region,Price\nNorth,3\n")
    run(client, "df = pd.read_csv('prices.csv')\nrates = {'alpha': 1}\ncounter = 1")
    return client


HINTS = {
    "df['Regoin']": "'Region' in df",
    "pd.DataFrame({'unit_price': [1]}).price": "'unit_price'",
    "df.groupby('Region').Prise.sum()": "'Price'",
    "df.query('Prise > 2')": "'Price' in df",
    "rates['alhpa']": "'alpha' in rates",
    "countr + 1": "'counter'",
    "pd.read_csv('price.csv')": "'prices.csv'",
    "open('Prices.CSV')": "'prices.csv'",
    "import pandsa": "'pandas'",
    "import numpy.linlag": "'linalg'",
    "pd.read_cvs": "'read_csv'",
}


def test_a_missing_name_is_answered_with_those_like_it(table: Client) -> None:
    for code, hint in HINTS.items():
        error = run(table, code).error or ""
        last = error.strip().splitlines()[-1]
        assert "(names like it: " in last, code
        assert hint in last
        assert "site-packages" not in error
        assert "Cell In[" in error


def test_an_error_about_no_name_has_no_hint(table: Client) -> None:
    for code in ("1 / 0", "raise KeyError(3)", "raise KeyError", "{}[None]"):
        assert "names like it" not in str(run(table, code).error)


def test_an_object_that_fails_to_list_its_names_does_not_hide_the_error(table: Client) -> None:
    code = (
        "class Odd:\n    def __dir__(self):\n        raise RuntimeError('no')\n"
        "odd = Odd()\nodd.nothing"
    )
    error = run(table, code).error or ""
    assert "AttributeError" in error
    assert "failed: RuntimeError" in error


def test_frames_of_libraries_are_counted_and_those_of_the_user_are_shown(shared: Shared) -> None:
    client, folder = shared
    (folder / "helper.py").write_text("def broken(frame):\n    return frame['nothing_like_it']\n")
    error = run(client, "import helper\nhelper.broken(pd.DataFrame())").error or ""
    assert "helper.py" in error
    assert "inside pandas" in error
    assert error.count("Traceback") == 1


def test_a_warning_names_the_line_of_the_cell(table: Client) -> None:
    code = "import warnings\nwarnings.warn('careful')"
    assert "Cell, line 2: UserWarning: careful" in "".join(run(table, code).stderr)


FRAME = "  File /x/lib/python3.11/site-packages/pandas/a.py:1 in f\n    code\n"
CELL = "  Cell In[1], line 1\n    f()\n"


def test_causes_that_never_passed_through_a_cell_are_left_out() -> None:
    link = "\n\nThe above exception was the direct cause of the following exception:\n\n"
    trace = f"Traceback\n{FRAME}{FRAME}KeyError: 1{link}Traceback\n{CELL}{FRAME}KeyError: 2"
    shown = readable_trace(trace)
    assert shown == f"Traceback\n{CELL}  ... 1 frame inside pandas\nKeyError: 2"


def test_a_traceback_without_a_cell_stays() -> None:
    trace = f"Traceback\n{FRAME}KeyError: 1"
    assert readable_trace(trace) == trace


_PARTS = st.sampled_from(
    [FRAME, CELL, "Traceback\n", "KeyError: 1\n", "\n\nThe above exception was"]
)


@given(st.lists(_PARTS | st.text(max_size=20), max_size=12).map("".join))
def test_any_text_is_taken_as_a_traceback(text: str) -> None:
    assert readable_trace(text).count("\n  Cell In[1]") <= text.count("\n  Cell In[1]")
    assert isinstance(readable_warnings(text), str)


ODD_CLASS = "class Odd(Exception):\n    {}\nraise Odd('words')"
ODD_ERRORS = [
    ("raise ValueError('\\ud800 words')", "ValueError: ? words"),
    ("raise OSError(2, 'no', 'file\\udcff')", "[Errno 2] no: 'file"),
    (ODD_CLASS.format("def __str__(self): raise RuntimeError"), "Odd: "),
    (ODD_CLASS.format("def __str__(self): return 5"), "Odd: "),
    (ODD_CLASS.format("def __repr__(self): raise RuntimeError"), "Odd: words"),
    (ODD_CLASS.format("__notes__ = property(lambda self: 1 / 0)"), "Odd object"),
    (ODD_CLASS.format("__notes__ = 5"), "Odd: words\n5"),
    (ODD_CLASS.format("def _render_traceback_(self): return 5"), "Odd: words"),
    (ODD_CLASS.format("def _render_traceback_(self): return ['\\ud800 own']"), "? own"),
    ("class M(type):\n    __name__ = property(lambda kind: 1 / 0)\n"
     "class Odd(Exception, metaclass=M): pass\nraise Odd('words')", "Odd"),
    ("e = ValueError('words'); e.add_note('a note'); raise e", "words\na note"),
    ("raise ExceptionGroup('all', [ValueError('one'), KeyError('two')])", "KeyError: 'two'"),
    ("raise ValueError('x' * 80_000_000 + 'END')", "xEND"),
    ("import sys; sys.exit(2)", "SystemExit: 2"),
    ("raise KeyboardInterrupt('words')", "KeyboardInterrupt: words"),
    ("def f(): f()\nf()", "RecursionError"),
    ("a = []\nfor _ in range(100_000): a = [a]\nrepr(a)", "RecursionError"),
    ("raise SyntaxError('words', ('\\ud800.py', 99, 3, 'text'))", "words"),
    ("e = SyntaxError('words'); e.lineno, e.filename = 'q', 5; raise e", "words"),
    ("exec('a b')", "SyntaxError: invalid syntax"),
    ("x = '\\ud800'; exec(x)", "UnicodeEncodeError"),
    ("e = ValueError('words'); e.__cause__ = e; raise e", "ValueError: words"),
    ("'abc", "SyntaxError"),
    ("%nosuch", "UsageError: Line magic function `%nosuch` not found"),
]  # fmt: skip


def test_an_exception_is_shown_whatever_its_own_code_does(table: Client) -> None:
    for code, words in ODD_ERRORS:
        result = run(table, code)
        assert result.status == "error", code
        assert words in str(result.error), code
        assert len(str(result.error)) < 2 << 20
        assert "Unexpected exception" not in "".join([*result.stdout, *result.stderr])
    assert run(table, "len(rates)").is_success


def test_an_operation_that_fails_in_the_kernel_is_an_error_and_ends_nothing(table: Client) -> None:
    run(table, "kept = 5")
    with pytest.raises(KernelError, match=r"could not do `overview`: KeyError"):
        table.overview([{}])
    assert run(table, "kept").output == 5
