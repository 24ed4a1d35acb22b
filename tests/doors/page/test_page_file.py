"""A conversation as one file, in a browser and without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_payloads import PAYLOADS
from page_tab import PageTab, page_tab

from taskweaver.memory.attachment import Attachment, AttachmentType
from taskweaver.memory.post import Post
from taskweaver.memory.round import Round
from taskweaver.page.one_file import conversation_page
from taskweaver.utils.file_system.safe_fs import Folder

pytestmark = pytest.mark.usefixtures("no_states")
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63"
    "f8cfc0f01f0005000101a5f64e5d0000000049454e44ae426082"
)


def test_a_conversation_is_read_without_a_server(
    tab: PageTab, server: object, page: PageTab
) -> None:
    """The door gives what the console's export writes; here the door's."""
    page.ask("/run\nfrom PIL import Image\nImage.new('L', (9, 9)).save('a.png')\n6 * 7")
    page.finished(1)
    session = page.address().split("/")[2]
    client = server.client()  # type: ignore[attr-defined]
    found = client.get(f"/agent/v1/sessions/{session}/branches/main/page")
    assert (found.status_code, found.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "data:image/png;base64," in found.text
    assert client.get(f"/agent/v1/sessions/{session}/branches/none/page").status_code == 404
    refused = client.get(f"/agent/v1/sessions/{session}/branches/main/page?until=x")
    assert refused.status_code == 422


def test_hostile_text_in_a_file_is_text(tmp_path: Path) -> None:
    rounds = []
    for number, payload in enumerate((*PAYLOADS, "</script><script>document.title='RUN'</script>")):
        post = Post.create(payload, "CodeInterpreter", "Planner")
        for kind, content in (
            (AttachmentType.reply_content, payload),
            (AttachmentType.execution_status, "SUCCESS"),
            (AttachmentType.execution_result, f"### Result\n```\n{payload}\n```"),
            (AttachmentType.artifact_paths, ["a.png", payload]),
        ):
            post.add_attachment(Attachment.create(kind, content))
        answer = Post.create(payload, "Planner", "User")
        rounds.append(Round(f"r{number}", payload, "finished", [post, answer]))
    (tmp_path / "a.png").write_bytes(PNG)
    with Folder.at(tmp_path) as folder:
        text = conversation_page(rounds, folder, title="</title><b>t", branch="main")
    file = tmp_path / "page.html"
    file.write_text(text, "utf-8", errors="replace")
    with page_tab() as tab:  # a tab of its own: no other page asks for anything
        tab.tab.load(file)
        tab.until("document.body.dataset.ready === 'yes'")
        assert tab.value("document.querySelectorAll('article.round').length") == len(rounds)
        assert tab.value("document.title") == "</title><b>t"
        assert tab.value("document.querySelectorAll('script').length") == 2
        assert [one for one in tab.tab.requests if not one.startswith(("file:", "data:"))] == []
        tab.until("[...document.images].some((one) => one.naturalWidth > 0)")
        assert [one for one in tab.tab.complaints if "exception" in one.lower()] == []


def test_a_file_shows_answers_tables_and_code(tmp_path: Path) -> None:
    post = Post.create("It is **42**.", "Planner", "User")
    with page_tab() as tab:
        file = tmp_path / "page.html"
        rounds = [Round("r1", "How much?", "finished", [post])]
        file.write_text(conversation_page(rounds, None, title="Sales", branch="main"), "utf-8")
        tab.tab.load(file)
        tab.shows("It is 42.", ".answer")
        tab.shows("How much?", ".question")
