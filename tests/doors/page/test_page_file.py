"""Files in a browser: a conversation without a server, and one that leads to the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_payloads import PAYLOADS
from page_server import start_address
from page_tab import PageTab, page_tab
from served import Served

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


@pytest.fixture(scope="module")
def file_tab() -> Iterator[PageTab]:
    """Give a tab of its own: no other page asks for anything."""
    with page_tab() as made:
        yield made


def test_a_conversation_is_read_without_a_server(page: PageTab, server: Served) -> None:
    """The door gives what the console's export writes; here the door's."""
    page.ask("/run\nfrom PIL import Image\nImage.new('L', (9, 9)).save('a.png')\n6 * 7")
    page.finished(1)
    session = page.address().split("/")[2]
    client = server.client()
    branches = f"/agent/v1/sessions/{session}/branches"
    found = client.get(f"{branches}/main/page")
    assert (found.status_code, found.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "data:image/png;base64," in found.text
    assert client.get(f"{branches}/none/page").status_code == 404
    assert client.get(f"{branches}/main/page?until=x").status_code == 422
    cells = client.get(f"{branches}/main/export?kind=notebook").json()["cells"]
    assert "6 * 7" in json.dumps(cells)
    assert "6 * 7" in client.get(f"{branches}/main/export?kind=script").text
    assert client.get(f"{branches}/main/export?kind=film").status_code == 422


def test_hostile_text_in_a_file_is_text(file_tab: PageTab, tmp_path: Path) -> None:
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
        text = conversation_page(rounds, folder, "</title><b>t", "main")
    file = tmp_path / "page.html"
    file.write_text(text, "utf-8", errors="replace")
    file_tab.tab.load(file)
    file_tab.until("document.body.dataset.ready === 'yes'")
    assert file_tab.value("document.querySelectorAll('article.round').length") == len(rounds)
    assert file_tab.value("document.title") == "</title><b>t"
    assert file_tab.value("document.querySelectorAll('script').length") == 2
    assert [one for one in file_tab.tab.requests if not one.startswith(("file:", "data:"))] == []
    file_tab.until("[...document.images].some((one) => one.naturalWidth > 0)")
    assert [one for one in file_tab.tab.complaints if "exception" in one.lower()] == []


def test_a_file_of_this_machine_leads_to_the_page(
    tab: PageTab, server: Served, tmp_path: Path
) -> None:
    target = json.dumps(f"0; url={start_address(server)}")
    (tmp_path / "open.html").write_text(f'<meta http-equiv="refresh" content={target}>')
    tab.tab.call("Page.navigate", url=(tmp_path / "open.html").as_uri())
    tab.shows("What do you want to know?")
