"""Each kind of object survives a save and a load in another process, or is listed as lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from ces.state import trips
from sizes import some


@dataclass(frozen=True)
class Kind:
    """One kind of object, as kinds.txt describes it; `lost` is a variable and a type, or empty."""

    name: str
    make: str
    check: str
    lost: tuple[str, ...]
    is_slow: bool


def _kinds() -> Iterator[Kind]:
    text = Path(__file__).with_name("kinds.txt").read_text("utf8")
    for section in text.split("# %% ")[1:]:
        name, _, body = section.partition("\n")
        make, _, check = body.partition("# check\n")
        needs, lost = (re.findall(rf"^# {word} (.*)$", make, re.M) for word in ("needs", "lost"))
        if all(find_spec(package) for package in " ".join(needs).split()):
            found = tuple(lost[0].split()) if lost else ()
            shown = f"assert type({found[0]}).__name__ == 'LostObject'\n" if found else ""
            yield Kind(name, make, check or shown, found, is_slow="# slow\n" in make)


KINDS = sorted(_kinds(), key=lambda kind: kind.is_slow)
CHOSEN = some(KINDS, sum(not kind.is_slow for kind in KINDS))
"""In the gate without those that import what takes seconds: pickling them is like others."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> trips.Saved:
    cells = "\n".join(kind.make for kind in CHOSEN)
    return trips.save(tmp_path_factory.mktemp("kinds"), cells, made_by={"k_con": "cell-7"})


@pytest.fixture(scope="module")
def loaded(saved: trips.Saved) -> trips.Loaded:
    return trips.load(saved, {kind.name: kind.check for kind in CHOSEN})


@pytest.mark.parametrize("kind", CHOSEN, ids=lambda kind: kind.name)
def test_a_kind_survives_or_is_listed(kind: Kind, saved: trips.Saved, loaded: trips.Loaded) -> None:
    assert not loaded.results[kind.name], loaded.results[kind.name]
    if kind.lost:
        name, lost = kind.lost
        assert lost in saved.lost()[name]


def test_an_unchanged_namespace_writes_nothing_and_nothing_else_is_lost(
    saved: trips.Saved, loaded: trips.Loaded
) -> None:
    assert saved.again["written"] == {}
    assert saved.again["manifest"] == saved.manifest
    assert set(saved.lost()) == {kind.lost[0] for kind in CHOSEN if kind.lost} | {"k_conns"}
    assert loaded.problems == []
