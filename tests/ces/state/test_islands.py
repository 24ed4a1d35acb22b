"""Identity within islands, and independence between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ces.state import trips
from ces.state.kept import Kept, load, namespace_of, save, trip
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from taskweaver.ces.inkernel.state.pickling.reducers import note_classes

pytestmark = pytest.mark.usefixtures("warm_trips")


def test_variables_that_share_nothing_have_islands_of_their_own() -> None:
    cells = """
import collections
text = 'a text that both hold'
a, b = [text, (1, 2)], {'t': text}
shared = [1]
c, d = [shared], {'s': shared}
def f(): return a
def g(): return f()
"""
    manifest = save(namespace_of(cells), Kept())
    islands = [set(island["names"]) for island in manifest["islands"]]
    assert {"shared", "c", "d"} in islands
    assert all({name} in islands for name in ("text", "a", "b", "f", "g", "collections"))


def test_two_frames_have_islands_of_their_own(tmp_path: Path) -> None:
    cells = """
one = pd.DataFrame({'a': [1.], 's': ['x']})
two = pd.DataFrame({'b': [1.], 's': ['y']})
three = one.copy(deep=False)
half = one[['a']]
"""
    saved = trips.save(tmp_path, cells)
    assert {"two"} in saved.islands
    check = """
three.loc[0, 'a'] = 5.; assert one.loc[0, 'a'] == 1.
half.loc[0, 'a'] = 6.; assert one.loc[0, 'a'] == 1.
one.loc[0, 's'] = 'z'; assert three.loc[0, 's'] == 'x'
"""
    trips.checked(saved, check)


def test_arrays_that_share_memory_are_copies(tmp_path: Path) -> None:
    cells = "a = np.arange(40_000.); part, back, x = a[10:20_000], a[::-1], a.reshape(200, 200)"
    saved = trips.save(tmp_path, cells)
    check = """
assert part[0] == 10 and back[0] == 39_999 and x[1, 0] == 200
a[15] = -1; assert part[5] == 15 and x[0, 15] == 15
"""
    assert trips.checked(saved, check).problems == []


def test_one_bad_variable_takes_no_other_with_it() -> None:
    cells = """
class Odd(Exception):
    def __init__(self, a, b): super().__init__(a)
shared = [1]
bad = Odd(1, 2); bad.shared = shared
left, right = {'s': shared}, [shared]
class Late:
    def __reduce__(self): return list, (), None, self.items()
    def items(self):
        yield 1
        raise KeyError('late')
late = Late()
class Exits:
    def __reduce__(self): raise SystemExit(3)
exits = [Exits(), shared]
fine = 5
"""
    kept = Kept()
    manifest = save(namespace_of(cells), kept, made_by={"bad": "c-2", "late": "c-3"})
    lost = {entry["name"]: entry for entry in manifest["lost"]}
    assert set(lost) == {"bad", "late", "exits"}
    assert lost["bad"]["cell"] == "c-2"
    assert "cannot be read back" in lost["bad"]["reason"]
    assert "late" in lost["late"]["reason"]
    found, problems = load(manifest, kept)
    assert problems == []
    assert found["left"]["s"] is found["right"][0] is found["shared"]
    assert found["exits"][1] is found["shared"]
    assert found["fine"] == 5
    assert "missing 1 required positional argument" in repr(found["bad"])


HOSTILE = {
    "class_raises": "class It:\n    @property\n    def __class__(self): raise OSError",
    "class_lies": "class It:\n    @property\n    def __class__(self): return type",
    "reduce_returns_text": "class It:\n    def __reduce__(self): return 'nowhere'",
    "reduce_returns_nonsense": "class It:\n    def __reduce__(self): return 3",
    "reduce_is_no_callable": "class It:\n    def __reduce__(self): return (3, ())",
    "reduce_ends_oddly": "class It:\n    def __reduce__(self): raise GeneratorExit",
    "comparison_raises": "class It:\n    def __eq__(self, o): raise OSError\n    __hash__ = None",
    "truth_raises": "class It:\n    def __bool__(self): raise OSError\n    __len__ = __bool__",
    "attributes_raise": "class It:\n    def __getattribute__(self, n): raise OSError(n)",
    "unhashable_class": "class M(type):\n    __hash__ = None\nclass It(metaclass=M): pass",
    "error_without_text": (
        "class E(Exception):\n    def __str__(self): raise OSError\n"
        "class It:\n    def __reduce__(self): raise E"
    ),
    "module_is_odd": "class It: pass\nIt.__module__ = 5",
    "pickles_twice": (
        "class It:\n    n = 0\n    def __reduce__(self):\n"
        "        It.n += 1\n        assert It.n < 3, 'often'\n        return list, ()"
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_object_can_make_a_save_fail(name: str) -> None:
    cells = f"{HOSTILE[name]}\nit = It(); box = [it]; fine = [1]; alias = fine"
    kept = Kept()
    namespace = namespace_of(cells)
    note_classes(namespace)
    found, _ = load(save(namespace, kept), kept)
    assert found["fine"] == [1]
    assert found["alias"] is found["fine"]
    assert {"it", "box"} <= found.keys()


def test_variables_that_cannot_be_pickled_together_are_kept_apart() -> None:
    cells = f"{HOSTILE['pickles_twice']}\nit = It(); box = [it]"
    kept = Kept()
    manifest = save(namespace_of(cells), kept)
    found, problems = load(manifest, kept)
    assert found["it"] == found["box"][0] == []
    assert manifest["lost"] == []
    assert "it and box no longer share memory" in problems[0].reason


def test_objects_read_back_to_prove_them_are_not_destroyed(tmp_path: Path) -> None:
    cells = """
import os
from pathlib import Path
class Owner:
    def __init__(self, path): self.path = path
    def __del__(self): os.remove(self.path)
Path('owned.txt').write_text('x')
owner = Owner(os.path.abspath('owned.txt'))
"""
    trips.checked(trips.save(tmp_path, cells), "assert os.path.exists(owner.path)")


def test_classes_and_functions_go_on_working_together(tmp_path: Path) -> None:
    cells = """
rate = 2
class Account:
    all = []
    def __init__(self, sum): self.sum = sum; Account.all.append(self)
    def grow(self): self.sum *= rate; return helper(self)
def helper(account): return isinstance(account, Account)
savings = Account(10)
grow = savings.grow
by_name = {'s': savings}
"""
    check = """
rate = 3
assert grow() and savings.sum == 30 and by_name['s'] is savings
assert Account.all == [savings] and type(savings) is Account
assert isinstance(Account(1), Account) and len(Account.all) == 2
"""
    saved = trips.save(tmp_path, cells)
    trips.checked(saved, check)


_leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_keys = st.text(max_size=3) | st.integers()


@st.composite
def _graphs(draw: st.DrawFn) -> dict[str, Any]:
    """Return variables made of containers that hold each other and themselves."""
    objects: list[Any] = draw(st.lists(_leaves | st.binary(), min_size=1, max_size=5))
    for kind in draw(st.lists(st.sampled_from("ldst"), max_size=12)):
        held = [objects[n] for n in draw(_places(len(objects)))]
        if kind == "l":
            objects.append(held)
        elif kind == "t":
            objects.append(tuple(held))
        elif kind == "d":
            objects.append({draw(_keys): item for item in held})
        else:
            objects.append({item for item in held if item.__hash__ and not _is_deep(item)})
    lists = [item for item in objects if isinstance(item, list)]
    for owner in lists:
        owner.extend(objects[n] for n in draw(_places(len(objects))))
    numbers = draw(_places(len(objects)))
    return {f"v{n}": objects[place] for n, place in enumerate(numbers)}


def _places(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, count - 1), max_size=4)


def _is_deep(item: Any) -> bool:
    return isinstance(item, tuple)


def _shape(value: Any, seen: dict[int, int]) -> Any:
    """Return a form of a graph that is equal for graphs of the same values and identities."""
    if isinstance(value, list | dict | set):
        if id(value) in seen:
            return ("again", seen[id(value)])
        seen[id(value)] = len(seen)
    if isinstance(value, list | tuple):
        return (type(value).__name__, [_shape(item, seen) for item in value])
    if isinstance(value, dict):
        return ("dict", [(key, _shape(item, seen)) for key, item in value.items()])
    if isinstance(value, set):
        return ("set", sorted(map(repr, value)))
    return (type(value).__name__, repr(value))


@settings(max_examples=examples(60))
@given(_graphs())
def test_any_graph_of_containers_keeps_its_shape(variables: dict[str, Any]) -> None:
    found = trip({"__name__": "__main__", **variables})
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    for name, value in variables.items():
        assert _shape(found[name], after) == _shape(value, before)
