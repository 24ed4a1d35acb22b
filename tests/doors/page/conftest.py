"""One server with the page and one tab for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from agents import new_session
from page_server import DirectedModel, page_server, start_address
from page_tab import PageTab, page_tab
from served import Served
from test_agent_searches import write_run

from taskweaver.treesearch.model.node import Measurement, Node, NodeKind, NodeStatus


@pytest.fixture(scope="module")
def model() -> DirectedModel:
    return DirectedModel()


@pytest.fixture(scope="module")
def tab() -> Iterator[PageTab]:
    """Give a tab for pages of servers; each is left before its server stops."""
    with page_tab() as made:
        made.tab.view(1280)
        yield made


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, model: DirectedModel, tab: PageTab
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("page")
    write_run(folder / "searches" / "run-one")
    draft = Node("n0001", 1, NodeKind.DRAFT, 1, status=NodeStatus.OK, metric=Measurement({"": 0.5}))
    again = replace(draft, id="n0002", step=2, kind=NodeKind.SEED, parent="n0001")
    better = replace(again, id="n0003", step=3, kind=NodeKind.IMPROVE)
    better = replace(better, metric=Measurement({"": 0.7}))
    write_run(folder / "searches" / "repeated", "A repeated attempt", [draft, again, better])
    with page_server(folder, model, {"search.folder": str(folder / "searches")}) as running:
        yield running
        tab.leave()


@pytest.fixture
def page(server: Served, tab: PageTab, request: pytest.FixtureRequest) -> Iterator[PageTab]:
    """Give the page in a new session; nothing of it may complain, or leave the server.

    It is loaded again where the test before loaded it, or another one, and after a failure.
    """
    mark = f"{server.token.text} {request.session.testsfailed}"
    if tab.value("window.mark") != mark:
        tab.open(start_address(server))
        tab.value(f"window.mark = {mark!r}")
    else:
        tab.tab.requests.clear()
        tab.tab.complaints.clear()
    tab.go(f"#/s/{new_session(server.client()).rpartition('/')[2]}/main")
    tab.until("document.body.dataset.ready && document.querySelector('.composer textarea')")
    tab.value("document.querySelector('.data-pane .tab').click()")
    tab.shows("Variables", ".tab-panel")
    yield tab
    assert [text for text in tab.tab.complaints if "exception" in text.lower()] == []
    own = (server.url, "blob:", "about:")
    foreign = [one for one in tab.tab.requests if not one.startswith(own)]
    assert foreign == []
