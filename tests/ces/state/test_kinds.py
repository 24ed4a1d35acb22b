"""Each kind of object survives a save and a load in another process, or is listed as lost."""

from __future__ import annotations

import pytest
from ces.state import trips
from ces.state.kinds import KINDS, Kind
from sizes import some

CHOSEN = some(sorted(KINDS, key=lambda kind: kind.is_slow), sum(not k.is_slow for k in KINDS))
"""In the gate without those that import what takes seconds: pickling them is like others."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> trips.Saved:
    cells = "\n".join(kind.make for kind in KINDS if kind in CHOSEN)
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


def test_an_unchanged_namespace_writes_nothing(saved: trips.Saved) -> None:
    assert saved.again["written"] == {}
    assert saved.again["manifest"] == saved.manifest


def test_nothing_else_is_lost(saved: trips.Saved, loaded: trips.Loaded) -> None:
    expected = {kind.lost[0] for kind in CHOSEN if kind.lost} | {"k_conns"}
    assert set(saved.lost()) == expected
    assert loaded.problems == []
