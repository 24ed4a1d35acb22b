"""Requests that docs/models.md names: those it says are answered, and those it says are refused."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sizes import some, spread

from taskweaver.app.app import TaskWeaverApp
from taskweaver.memory.attachment import AttachmentType
from taskweaver.session.session import Session

pytestmark = pytest.mark.usefixtures("no_states")

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs" / "models.md").read_text("utf-8").partition("## The offline analyst")[2]
ANSWERED, FOLLOW_UPS, REFUSED = (
    block.strip().splitlines()
    for block in re.findall(r"^```text\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    (folder / "taskweaver_config.json").write_text("{}")
    shutil.copy(ROOT / "project" / "data" / "sales.csv", folder / "data")
    config = {"llm.api_type": "offline", "execution.sandbox": "none"}
    with TaskWeaverApp(folder, config=config) as app, app.get_session() as session:
        yield session


def test_documented_requests_are_answered_and_refused(session: Session) -> None:
    *others, last = ANSWERED
    for request in (*some(spread(others, 2), len(others) // 2), last, *FOLLOW_UPS):
        post = session.send_message(request).post_list[-1]
        assert post.get_attachment(AttachmentType.stop)[0].content == "Completed", (
            request,
            post.message,
        )
    for request in REFUSED:
        post = session.send_message(request).post_list[-1]
        assert post.get_attachment(AttachmentType.stop)[0].content == "TaskFailure", request
