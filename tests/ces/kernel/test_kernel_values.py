"""What cells give: values, output, figures, files, variables."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from kernels import LIMITS, Shared, Started, answers, run

from taskweaver.ces.common import Client, PluginCode, Stream
from taskweaver.ces.errors import KernelError

pytestmark = pytest.mark.measured


def test_the_last_value_is_the_output(shared: Shared) -> None:
    for code, output in [
        ("1 + 1", 2), ("x = 5", 5), ("None", ""), ("1;", ""), ("(1, 2)", "(1, 2)"),
        ("[1, None, 2.5, 'é', {'a': [True]}]", [1, None, 2.5, "é", {"a": [True]}]),
        ("b'bytes'", "b'bytes'"), ("float('nan')", "nan"), ("'\\ud800'", "?"),
        ("import numpy; numpy.float64(2.5)", 2.5),
    ]:  # fmt: skip
        result = run(shared[0], code)
        assert (result.output, result.error) == (output, None), code


def test_a_kernel_made_no_list_for_a_debugger(shared: Shared) -> None:
    """Listing all modules would copy the memory that kernels share."""
    code = (
        "import sys, ipykernel.ipkernel as i\nkernel = get_ipython().kernel\n"
        "[getattr(kernel, '_kernel_modules', []), i.sys is sys]"
    )
    assert run(shared[0], code).output == [[], True]


def test_a_value_that_cannot_be_shown_does_not_stop_the_report(shared: Shared) -> None:
    for method in ("__repr__", "_repr_html_"):
        for error in ("ValueError", "SystemExit"):
            code = f"class Bad:\n    def {method}(self): raise {error}\nBad()"
            assert run(shared[0], code).is_success, code
    assert run(shared[0], "loop = []\nloop.append(loop)\nloop").is_success
    assert answers(shared[0])


def test_a_cell_that_removes_its_own_folder_leaves_the_next_one_whole(fresh: Client) -> None:
    run(fresh, "import shutil, os\nshutil.rmtree(os.getcwd())")
    assert answers(fresh)


def test_tables_show_whole(shared: Shared) -> None:
    result = run(shared[0], "pd.DataFrame({f'column_{n}': range(20) for n in range(12)})")
    lines = result.output.splitlines()
    assert len(lines) == 21
    assert "column_0" in lines[0]
    assert "column_11" in lines[0]


def test_output_arrives_while_the_cell_runs_and_in_order(shared: Shared) -> None:
    heard: list[tuple[Stream, str]] = []
    code = "import sys\nprint('one')\nprint('two', file=sys.stderr)\n!echo three"
    result = shared[0].execute_code("x", code, lambda stream, text: heard.append((stream, text)))
    assert "".join(text for stream, text in heard if stream == "stdout") == "one\nthree\n"
    assert "".join(result.stderr) == "two\n"


def test_odd_cells_leave_the_next_one_whole(shared: Shared) -> None:
    for code in (
        "import sys; sys.stdout = None", "import sys; sys.stdout.close()",
        "import os; os.chdir('/')", "print('\\ud800')", "x = 1; breakpoint()",
        "import threading; threading.Thread(target=lambda: print('late' * 500)).start()",
    ):  # fmt: skip
        run(shared[0], code)
        result = run(shared[0], "import os; print('seen'); os.getcwd()")
        assert result.output == str(shared[1]), code
        assert "".join(result.stdout).endswith("seen\n"), code


def test_variables_are_listed_shortly(shared: Shared) -> None:
    code = (
        "frame = pd.DataFrame({'a': [1, 2]})\narray = np.zeros((100, 3))\nword = 'w' * 5000\n"
        "class Rude:\n    def __repr__(self): raise ValueError('no')\nrude = Rude()\n_hidden = 1\n"
        "handle = open('a.txt', 'w'); handle.close()"
    )
    variables = dict(run(shared[0], code).variables)
    assert variables["frame"].startswith("DataFrame 2x1: a:int64")
    assert "shape=(100, 3)" in variables["array"]
    assert len(variables["word"]) < 700
    assert "cannot be shown: ValueError" in variables["rude"]
    assert not {"_hidden", "pd", "np", "plt", "Rude", "handle"} & variables.keys()


def test_large_values_are_shown_without_the_text_of_all_of_them(fresh: Client) -> None:
    code = (
        "import resource\nx = b'1' * (150 << 20)\nwide = np.ones((2, 10 << 20))[:, ::2]\n"
        "parts, names = [x], {n: [x] for n in range(50)}\nmany = list(range(100_000))\n"
        "cycle = [x]; cycle.append(cycle)\none = (x,)"
    )
    variables = dict(run(fresh, code).variables)
    assert variables["x"].startswith("b'111")
    assert "157,286,400 in all" in variables["x"]
    assert "value=array([1., 1., 1., 1., 1.])..." in variables["wide"]
    assert "157,286,400 in all" in variables["parts"]
    assert "100,000 in all" in variables["many"]
    assert variables["one"].endswith(",)")
    assert max(map(len, variables.values())) < 700
    assert {"names", "cycle"} <= variables.keys()
    for shown in ("x", "parts", "bytearray(x)", "names"):
        assert "157,286,400 in all" in run(fresh, shown).output
    # The bytes and the array, a copy of the bytes, and what Python itself needs.
    assert run(fresh, "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10").output < 650


def test_small_values_are_listed_as_python_writes_them(shared: Shared) -> None:
    texts = (
        "[1, [2, 'a'], {'b': b'c'}]", "(1,)", "set()", "frozenset({1})", "deque([1, 2], maxlen=2)",
        "Counter({'a': 2, 'b': 1})", "defaultdict(<class 'int'>, {1: 2})",
        "{(1, None): PosixPath('/a')}", f"{list(range(60))}",
    )  # fmt: skip
    code = (
        "from collections import Counter, defaultdict, deque\nfrom pathlib import Path\n"
        "v0 = [1, [2, 'a'], {'b': b'c'}]; v1 = (1,); v2 = set(); v3 = frozenset({1})\n"
        "v4 = deque([1, 2], maxlen=2); v5 = Counter('aba'); v6 = defaultdict(int, {1: 2})\n"
        "v7 = {(1, None): Path('/a')}; v8 = list(range(60))"
    )
    variables = dict(run(shared[0], code).variables)
    assert [variables[f"v{number}"] for number in range(len(texts))] == list(texts)


def test_a_value_that_takes_forever_to_show_does_not_hold_the_report(fresh: Client) -> None:
    slow = "class Slow:\n    def __repr__(self):\n        while True: time.sleep(600)"
    result = run(fresh, f"import time\n{slow}\nslow = Slow()\nslow")
    assert result.is_success
    assert "too long" in result.output


@pytest.mark.parametrize(
    ("code", "first", "last"),
    [
        ("for n in range(200_000): print('line', n)", "line 0\n", "line 199999\n"),
        ("for _ in range(1000): print('x' * 100_000)\nprint('end')", "xx", "xx\nend\n"),
        ("print('a' + '☃' * 25_000_000 + 'end')", "a☃", "☃end\n"),
        ("!seq 200000", "1\n2\n", "199999\n200000\n"),
        ("import sys\nfor n in range(200_000): print(n, file=sys.stderr)", "0\n1\n", "9\n"),
    ],
)
def test_the_beginning_and_the_end_of_a_long_output_are_kept(
    shared: Shared, code: str, first: str, last: str
) -> None:
    memory = psutil.Process().memory_info().rss
    result = run(shared[0], code)
    text = "".join(result.stderr if "stderr" in code else result.stdout)
    head, note, tail = text.rpartition(" characters left out ...\n")
    assert result.is_success
    assert result.is_truncated
    assert head.startswith(first)
    assert note
    assert tail.endswith(last)
    assert LIMITS.output_limit_bytes * 0.8 < len(text.encode()) <= LIMITS.output_limit_bytes + 100
    assert psutil.Process().memory_info().rss - memory < 64 << 20
    assert not run(shared[0], "print('short')").is_truncated


FIGURES = [
    ("fig, ax = plt.subplots(); ax.plot([1, 2]); ax.set_title('A');", ["A"]),
    ("1", []),
    ("fig", ["A"]),
    ("ax.set_title('B'); fig", ["B"]),
    ("display(fig)", ["B"]),
    ("plt.show()", ["B"]),
    ("ax", ["B"]),
    ("display(fig); plt.show(); fig.show(); fig", ["B"]),
    ("display(fig); ax.set_title('C'); display(fig)", ["B", "C"]),
    ("ax.set_title('D');", ["D"]),
    ("ax.set_title('E'); fig.canvas.draw()", ["E"]),
    ("ax.set_title('F'); fig.savefig('f.png')\nfig", ["F"]),
    ("fig.savefig('f.pdf'); 1", ["F"]),
    ("ax.set_title('G'); fig.savefig('g.pdf')", ["G", "G"]),
    ("[label.get_text() for label in ax.get_xticklabels()];", []),
    ("plt.plot([5]); plt.title('New'); None", ["New"]),
    ("plt.figure(1);", ["G"]),
    ("plt.figure(2); plt.title('Newer'); plt.show(); plt.show()", ["Newer"]),
    ("ax.set_title('H');", ["H"]),
    ("plt.show()", ["H"]),
    ("plt.close(fig); fig", ["H"]),
    ("def made(): return plt.figure().suptitle('I').figure\nmine = made()", ["I"]),
    ("mine", ["I"]),
    ("made()", ["I"]),
    ("axes = pd.DataFrame({'a': [1, 2]}).plot(title='P')", ["P"]),
    ("axes.set_title('Q');", ["Q"]),
    ("fig, pair = plt.subplots(1, 2); fig.suptitle('S');", ["S"]),
    ("pair[1].bar([1], [2]);", ["S"]),
    ("plt.close('all')", []),
    ("plt.show()", []),
    ("for n in range(12): plt.figure(); plt.plot([n]); plt.title('N')", ["N"] * 12),
    ("plt.plot([1]); plt.title('L'); None", ["L"]),
    ("plt.get_fignums();", []),
    ("len(plt.get_fignums()) < 20", []),
    ("import matplotlib; matplotlib.use('Agg'); plt.plot(1); plt.title('R'); plt.show()", ["R"]),
    ("plt.switch_backend('pdf'); plt.plot(1); plt.title('T'); plt.show()", ["T"]),
    ("plt.plot(1); plt.title('U'); plt.savefig('u.png')", ["U"]),
    ("%matplotlib inline\nplt.plot([1]); plt.title('M'); None", ["M"]),
    ("from matplotlib.figure import Figure; f = Figure(); f.suptitle('O'); f", ["O"]),
]


def test_a_figure_is_shown_again_when_it_is_asked_for_or_changed(fresh: Client) -> None:
    for code, titles in FIGURES:
        result = run(fresh, code)
        assert result.is_success, result.error
        shown = [made.preview.partition('"')[2].partition('"')[0] for made in result.artifact]
        assert shown == titles, code
    assert "nothing is drawn" in "".join(run(fresh, "plt.gcf()").stdout)


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        (
            "plt.bar(['North', 'South'], [3, 5], label='count'); plt.xlabel('region')",
            ['x "region" North, South', "y (no label) 0 to 5", 'bars "count": 2'],
        ),
        (
            "plt.plot(pd.date_range('2024-01-01', periods=6, freq='MS'), range(6), label='a')\n"
            "plt.title('x' * 1000)",
            ["2024-01-01 to 2024-06-01", 'line "a" of 6 points', '"xxxx'],
        ),
        (
            "months = pd.period_range('2023-01', periods=24, freq='M')\n"
            "pd.Series(range(24), index=months).rolling(4).mean().plot()",
            ["2023-04 to 2024-12", "line of 21 points"],
        ),
        (
            "plt.scatter([1, 2, 3, 4], [10, 20, 1e5, np.nan]); plt.yscale('log')",
            ["log scale", "markers: 3"],
        ),
        (
            "axes = plt.subplots(1, 3)[1]; axes[0].imshow([[1, 2, 3]]); axes[1].plot([])\n"
            "axes[2].set_title('Right')",
            ["image of 1 x 3", "without data", "nothing is drawn", '| "Right"'],
        ),
        ("plt.figure().add_subplot(projection='3d').plot([1], [2], [3])", ["line of 1 point"]),
    ],
)
def test_a_figure_is_described_by_its_axes(shared: Shared, code: str, parts: list[str]) -> None:
    (chart,) = run(shared[0], f"{code}\nplt.savefig('described.png')").artifact
    for part in parts:
        assert part in chart.preview
    assert len(chart.preview) < 700


def test_an_object_is_shown_as_its_text(shared: Shared) -> None:
    run(shared[0], "from IPython.display import *")
    for code, text in {
        "Markdown('# Title')": "# Title",
        "Latex('$x^2$')": "$x^2$",
        "JSON({'a': [1]})": '{"a": [1]}',
        "type('Own', (), {'_repr_markdown_': lambda self: '*own*'})()": "*own*",
        "type('Own', (), {'__repr__': lambda self: 'words'})()": "words",
        "pd.DataFrame({'a': [5]}).style": "0 5",
    }.items():
        assert text in str(run(shared[0], code).output)
        displayed = run(shared[0], f"display({code})")
        assert text in "".join([*displayed.stdout, *(one.preview for one in displayed.artifact)])


def test_displays_are_updated_and_none_is_lost(shared: Shared) -> None:
    code = (
        "from IPython.display import *\nshown = display(HTML('<b>first</b>'), display_id=True)\n"
        "shown.update(HTML('<b>second &amp; last</b>'))\n"
        "text = display('one', display_id=True); text.update('two')\n"
        "display({'text/markdown': 'marked'}, raw=True)\ndisplay({'x/y': 'z'}, raw=True)"
    )
    result = run(shared[0], code)
    (page,) = result.artifact
    assert (shared[1] / page.file_name).read_text() == "<b>second &amp; last</b>"
    assert "".join(result.stdout) == "'one'\n'two'\nmarked\n<x/y: data without a text>\n"
    rich = "class Rich:\n    def _repr_html_(self): return '<i>rich</i>'\nRich()"
    assert [made.type for made in run(shared[0], rich).artifact] == ["html"]
    many = run(shared[0], "for n in range(120): display(HTML(f'<i>page {n}</i>'))")
    assert len(many.artifact) == 100
    assert "page 119" in "".join(many.stdout)


def test_output_after_the_end_of_a_cell_comes_with_a_later_one(fresh: Client) -> None:
    run(
        fresh,
        "import asyncio, threading\nfrom IPython.display import HTML\n"
        "go, done = threading.Event(), threading.Event()\n"
        "def work():\n    go.wait(); print('of a thread'); display(HTML('late')); done.set()\n"
        "async def task():\n    await asyncio.to_thread(done.wait); print('of a task')\n"
        "threading.Thread(target=work).start(); kept = asyncio.create_task(task());",
    )
    first = run(fresh, "print('first'); go.set(); done.wait(); await kept; print('second')")
    assert sorted("".join(first.stdout).splitlines()) == [
        "Output of earlier cells, which came after their end:",
        *("first", "of a task", "of a thread", "second"),
    ]
    assert [artifact.type for artifact in first.artifact] == ["html"]
    folder = Path(str(run(fresh, "import os; os.getcwd()").output))
    for name in ("go", "over"):
        os.mkfifo(folder / name)
    code = (
        "def after():\n    open('go').read(); print('idle'); display(HTML('idle'))\n"
        "    open('over', 'w').close()\n"
        "threading.Thread(target=after).start()"
    )
    run(fresh, code)
    (folder / "go").write_text("")
    (folder / "over").read_text()
    result = run(fresh, "1")
    assert "".join(result.stdout) == "Output of earlier cells, which came after their end:\nidle\n"
    assert [artifact.type for artifact in result.artifact] == ["html"]


def test_operations_between_cells_lose_no_output_but_their_own(fresh: Client) -> None:
    run(
        fresh,
        "import builtins, threading\ngo, done = threading.Event(), threading.Event()\n"
        "def work():\n    go.wait(); print('of a thread'); done.set()\n"
        "builtins.work_now = lambda: (go.set(), done.wait(), go.clear(), done.clear())\n"
        "def start(): threading.Thread(target=work).start()\nstart()",
    )
    loud = PluginCode("loud", "work_now()\nprint('of nobody')\n1 / 0", {})
    assert "ZeroDivisionError" in fresh.load_plugins([loud])["loud"]
    late = "Output of earlier cells, which came after their end:\nof a thread\n"
    assert "".join(run(fresh, "start()").stdout) == late
    with pytest.raises(KernelError):
        fresh.overview([{}])
    assert "".join(run(fresh, "work_now(); print('own')").stdout) == "of a thread\nown\n"


def test_what_the_shell_pages_or_shows_by_itself_is_printed(shared: Shared) -> None:
    assert "Docstring" in "".join(run(shared[0], "print?").stdout)
    assert "ZeroDivisionError" in "".join(
        run(shared[0], "get_ipython().run_cell('1 / 0'); None").stderr
    )


def test_a_parser_of_arguments_finds_none(shared: Shared) -> None:
    code = (
        "import argparse, sys\nparser = argparse.ArgumentParser(); parser.add_argument('-n')\n"
        "[vars(parser.parse_args()), len(sys.argv)]"
    )
    assert run(shared[0], code).output == [{"n": None}, 1]


def test_a_directory_that_is_left_is_named(shared: Shared) -> None:
    for code in ("import os; os.chdir('/')", "%cd /", "import os; os.chdir('/'); 1 / 0"):
        told = "".join(run(shared[0], code).stderr)
        assert "The directory / is left with this cell" in told
        assert str(shared[1]) in told
    assert run(shared[0], "import contextlib\nwith contextlib.chdir('/'): pass").stderr == []


def test_files_a_cell_makes_are_listed(shared: Shared) -> None:
    code = (
        "pd.DataFrame({'a': [1]}).to_csv('made.csv')\n"
        "import os\nos.makedirs('sub', exist_ok=True)\n"
        "open('sub/n.txt', 'w').write('1')"
    )
    result = run(shared[0], code)
    assert {a.file_name: a.type for a in result.artifact} == {"made.csv": "df", "sub/n.txt": "txt"}


def test_files_elsewhere_links_and_large_ones_are_not_listed(started: Started) -> None:
    client = started(artifact_limit_bytes=1000)
    (client.place.folder / "secret.txt").write_text("secret")
    code = (
        "import os\nos.symlink('../secret.txt', 'link.txt')\nopen('../other.txt', 'w').write('1')\n"
        "open('large.bin', 'wb').write(bytes(2000))\n"
        "from taskweaver.ces.inkernel.cell.current import ARTIFACTS\nfrom pathlib import Path\n"
        "for name in ('../secret.txt', 'link.txt', '/etc/hostname', 'gone'):\n"
        "    ARTIFACTS.add(Path(name), 'file')"
    )
    result = run(client, code)
    assert result.is_success, result.error
    assert result.artifact == []


def test_no_key_of_the_host_is_in_the_kernel(
    fresh: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "LLM_API_KEY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "sk-canary")
    assert "canary" not in str(run(fresh, "import os; str(dict(os.environ))").output)
