"""Saving and loading: lists of losses, limits, order, versions, process state."""

from __future__ import annotations

import copy
import inspect
import io
import json
import pickle
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from ces.state import trips
from ces.state.kept import Kept, load, namespace_of, save
from cloudpickle import cloudpickle

from taskweaver.ces.inkernel.namespace import add_usual_names
from taskweaver.ces.inkernel.state import save as saving
from taskweaver.ces.inkernel.state.load import load_state, mark_missing
from taskweaver.ces.inkernel.state.placeholder import LostObject

pytestmark = pytest.mark.usefixtures("warm_trips")


def test_a_placeholder_names_the_lost_object_and_breaks_nothing() -> None:
    lost = LostObject("sqlite3.Connection", "it cannot be pickled", "c-7")
    with pytest.raises(AttributeError, match=r"sqlite3.Connection.*pickled.*/rebuild"):
        lost.execute("select 1")
    uses: list[Callable[[Any], object]] = [
        iter, next, lambda it: it["a"], lambda it: it(), lambda it: it + 1, lambda it: it > 1,
        lambda it: it.__enter__(), lambda it: 1 in it,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(TypeError, match=r"sqlite3.Connection.*pickled.*/rebuild"):
            use(lost)
    assert lost
    assert lost == lost
    with pytest.raises(AttributeError) as dunder:
        lost.__len__()
    assert "/rebuild" not in str(dunder.value)
    assert copy.copy(lost) is copy.deepcopy(lost) is lost
    assert repr(pickle.loads(pickle.dumps(lost))) == repr(lost)
    assert "sqlite3.Connection is not in the restored state" in repr(lost)
    assert "c-7" not in repr(lost)  # an id that is shown nowhere else
    assert repr(LostObject("", "it changed")).startswith("<A variable is not")


def test_placeholders_are_listed_again_by_the_next_save() -> None:
    kept = Kept()
    cells = "import sqlite3\ncon = sqlite3.connect(':memory:'); held = {'c': con}"
    first = save(namespace_of(cells), kept, made_by={"con": "c-1", "held": "c-2"})
    found, _ = load(first, kept)
    second = save(found, kept, made_by={"con": "c-9"})
    assert second["lost"] == first["lost"]
    assert second["islands"] == first["islands"]


def test_names_come_back_in_their_old_order_and_one_object_by_all_its_names(tmp_path: Path) -> None:
    cells = "z = 1; a = [2]; con = __import__('sqlite3').connect(':memory:'); m = a; b = 3"
    names = "[name for name in globals() if name in ('z', 'a', 'con', 'm', 'b')]"
    check = f"assert m is a and {names} == ['z', 'a', 'con', 'm', 'b'], {names}"
    trips.checked(trips.save(tmp_path, cells), check)


def test_limits_and_skipped_names_are_listed() -> None:
    kept = Kept()
    namespace = namespace_of("large = b'x' * 100_000; small = 1; hung = 2; plugin = 3")
    namespace["n" * 501] = 4
    add_usual_names(namespace)
    manifest = save(
        namespace, kept, hidden=frozenset({"plugin"}), skip={"hung": "it did not end within 60 s"},
        made_by={"hung": "c-3"}, max_variable_bytes=50_000,
    )  # fmt: skip
    lost = {entry["name"]: entry for entry in manifest["lost"]}
    assert "too large" in lost["large"]["reason"]
    assert lost["hung"]["reason"] == "it did not end within 60 s"
    assert lost["hung"]["cell"] == "c-3"
    assert list(manifest["variables"]) == ["small"]
    assert kept.progress == ["large", "small", "small"]
    assert all(len(str(value)) <= 500 for entry in manifest["lost"] for value in entry.values())
    assert not {"plugin", "pd", "np", "plt"} & set(manifest["order"])
    found, problems = load(manifest, kept)
    assert list(found)[1:] == ["large", "small", "hung"]
    assert problems == []


def test_more_variables_than_a_manifest_holds_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saving, "MAX_VARIABLES", 50)
    namespace = {f"v{n}": n for n in range(52)}
    manifest = save({"__name__": "__main__", **namespace}, Kept())
    assert len(manifest["order"]) == 50
    assert manifest["order"][0] == "v2"
    assert [entry["reason"] for entry in manifest["lost"]] == ["2 older variables are not stored"]


def test_many_losses_in_one_variable_are_one_sentence() -> None:
    cells = "many = [(n for n in ()) for _ in range(1000)]; one = 1"
    manifest = save(namespace_of(cells), Kept())
    assert len(manifest["lost"]) == 21
    assert manifest["lost"][-1]["reason"] == "980 more"


def test_a_variable_that_holds_the_namespace_is_listed(tmp_path: Path) -> None:
    cells = """
class Holder: pass
holder = Holder(); holder.parts = {'a': [globals()]}
shell = get_ipython(); hook = __import__('threading').excepthook
own = 1
"""
    saved = trips.save(tmp_path, cells)
    assert saved.reason("holder") == "it holds the kernel's namespace"
    assert set(saved.lost()) == {"holder"}
    assert all(len(names) == 1 for names in saved.islands)


def test_other_versions_are_a_problem_once() -> None:
    kept = Kept()
    manifest = save(namespace_of("import numpy as np\na = np.arange(3); b = np.arange(4)"), kept)
    manifest["versions"]["numpy"] = "1.26.4"
    manifest["python"] = "3.9.1"
    found, problems = load(manifest, kept)
    told = [problem.reason.partition(",")[0] for problem in problems]
    assert told == ["stored with python 3.9.1", "stored with numpy 1.26.4"]
    assert list(found["b"]) == [0, 1, 2, 3]


def test_a_state_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="format 99"):
        load_state({"format": 99}, {}, Kept())


PROCESS = """
import os, random, sys
import matplotlib.pyplot as plt, numpy as np, pandas as pd
random.seed(5); random.random(); np.random.seed(6); np.random.rand()
state = random.getstate(), np.random.get_state()
nexts = random.random(), np.random.rand()
random.setstate(state[0]); np.random.set_state(state[1]); del state
pd.set_option('display.precision', 2); np.set_printoptions(precision=3)
os.environ['COLOUR'] = 'red'; os.environ['MY_API_KEY'] = 'sk-secret-secret'
del os.environ['REMOVED_HERE']
sys.path.insert(0, '/my/modules'); sys.path.append('/more/modules')
plt.switch_backend('agg'); f1 = plt.figure(); f2 = plt.figure()
"""
CHECKS = {
    "random": "import random; assert random.random() == nexts[0]",
    "numpy.random": "assert np.random.rand() == nexts[1]",
    "pandas": "assert pd.get_option('display.precision') == 2",
    "our pandas options": "assert pd.get_option('display.width') == 300",
    "numpy printing": "assert np.get_printoptions()['precision'] == 3",
    "environment": "assert os.environ['COLOUR'] == 'red' and 'REMOVED_HERE' not in os.environ",
    "secrets": "assert 'MY_API_KEY' not in os.environ",
    "import path": "assert sys.path[0] == '/my/modules' and sys.path[-1] == '/more/modules'",
    "figures": "assert plt.figure(f1.number) is f1",
}


def test_the_state_of_the_process_comes_back_without_secrets(tmp_path: Path) -> None:
    saved = trips.save(tmp_path, PROCESS)
    loaded = trips.load(saved, CHECKS)
    assert {part: told for part, told in loaded.results.items() if told} == {}
    assert loaded.problems == []
    (lost,) = saved.manifest["lost"]
    assert lost["name"] == "os.environ['MY_API_KEY']"
    assert "set it again" in lost["reason"]
    assert not any(b"sk-secret" in chunk.read_bytes() for chunk in tmp_path.glob("chunks/*"))
    assert "sk-secret" not in json.dumps(saved.manifest)


def test_structures_that_are_too_deep_are_listed(tmp_path: Path) -> None:
    cells = """
deep = []
for _ in range(20_000): deep = [deep]
class Endless:
    def __reduce__(self): return list, ([Endless()],)
endless = Endless()
fine = 1
"""
    saved = trips.save(tmp_path, cells)
    assert set(saved.lost()) == {"deep", "endless"}
    assert saved.reason("deep") == "it is nested too deeply"
    trips.checked(saved, "assert fine == 1")


def test_a_lazy_module_is_stored_where_it_has_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trips, "_WARM", [])
    saved = trips.save(tmp_path, "arrays = np; numbers = [np]")
    assert saved.manifest["order"] == ["arrays", "numbers"]
    trips.checked(saved, "import numpy; assert arrays is numpy and numbers[0] is numpy")


def test_files_of_the_working_directory_are_found_in_its_copy(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    cells = """
from pathlib import Path
Path('text').write_text('one')
file = open(Path('text').absolute())
array = np.memmap('numbers', 'u1', 'w+', shape=(3,)); array[:] = 7; array.flush()
gone = open('text', 'rb')
"""
    saved = trips.save(before, cells)
    shutil.move(before, after)
    moved = trips.Saved(after, saved.first, saved.again)
    (after / "text").write_text("two")
    trips.checked(moved, "assert file.read() == 'two' and list(array) == [7, 7, 7]")
    (after / "text").unlink()
    problems = trips.checked(moved, "assert 'text' in repr(gone) and array[0] == 7").problems
    assert [name for name, _ in problems] == ["file", "gone"]


def test_frames_of_polars_are_stored_after_its_threads_ran(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    cells = """
import polars as pl
pl.DataFrame({'a': range(200_000), 's': [f'x{n}' for n in range(200_000)]}).write_parquet('t')
read = pl.read_parquet('t')
grouped = read.group_by(pl.col('a') % 100).agg(pl.col('s').count())
kinds = read.with_columns(pl.col('s').cast(pl.Categorical))
"""
    check = """
assert read.height == 200_000 and grouped.height == 100
assert kinds.schema['s'] == pl.Categorical and kinds['s'][7] == 'x7'
"""
    loaded = trips.checked(trips.save(tmp_path, cells), check)
    assert loaded.problems == []


def test_private_parts_of_cloudpickle_are_as_we_know_them() -> None:
    assert version("cloudpickle").startswith("3.")
    names = (
        "_DYNAMIC_CLASS_TRACKER_BY_CLASS _DYNAMIC_CLASS_TRACKER_BY_ID _DYNAMIC_CLASS_TRACKER_LOCK"
        " _BUILTIN_TYPE_NAMES _class_reduce _should_pickle_by_reference"
        " _lookup_module_and_qualname"
    ).split()
    assert all(hasattr(cloudpickle, name) for name in names)
    reduce = cloudpickle.Pickler._dynamic_function_reduce
    assert list(inspect.signature(reduce).parameters) == ["self", "func"]

    calls = []

    class Probe(cloudpickle.Pickler):
        def _dynamic_function_reduce(self, func):
            calls.append(func)
            return super()._dynamic_function_reduce(func)

    Probe(io.BytesIO()).dump(local := lambda: None)
    assert calls == [local]


def test_variables_that_changed_after_the_state_are_marked() -> None:
    namespace = {"kept": 1, "changed": 2}
    mark_missing(namespace, {"changed": "round 3 was not stored", "new": "round 3 was not stored"})
    assert namespace["kept"] == 1
    assert "round 3" in repr(namespace["changed"])
    assert list(namespace) == ["kept", "changed", "new"]
