"""Pictures over the agent API: their sizes, and smaller copies of large ones."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

import httpx2
import pytest
from agents import SteeredModel, ask, new_session, serving_agents
from PIL import Image
from served import Served, problem

from taskweaver.utils.images import image_header

pytestmark = pytest.mark.usefixtures("no_states")


def png(width: int, height: int, mode: str = "L") -> bytes:
    made = io.BytesIO()
    Image.new(mode, (width, height), 0 if mode == "L" else (200, 20, 20, 0)).save(made, "PNG")
    return made.getvalue()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_agents(tmp_path_factory.mktemp("pictures"), SteeredModel()) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Served) -> httpx2.Client:
    return server.client()


@pytest.fixture(scope="module")
def session(client: httpx2.Client) -> str:
    return new_session(client)


def put(client: httpx2.Client, session: str, name: str, content: bytes) -> str:
    """Write a file; return its address."""
    headers = {"Content-Type": "application/octet-stream"}
    where = f"{session}/files/{name}"
    assert client.put(where, content=content, headers=headers).status_code == 200
    return where


def test_artifacts_that_are_pictures_have_their_size(client: httpx2.Client, session: str) -> None:
    code = "from PIL import Image\nImage.new('RGB', (300, 200)).save('drawn.jpg')"
    ask(client, session, f"{code}\nopen('notes.txt', 'w').write('x')", kind="code")
    found = client.get(f"{session}/artifacts").json()["artifacts"]
    sizes = {item["path"]: (item["width"], item["height"]) for item in found}
    assert sizes == {"drawn.jpg": (300, 200), "notes.txt": (None, None)}


@pytest.mark.parametrize(
    ("width", "height", "mode", "wanted", "most"),
    [
        (7_000, 7_200, "L", (1_556, 1_600), 1_600),
        (20_000, 50, "RGBA", (1_600, 4), 4_000),
        (500, 400, "RGBA", (50, 40), 50),
    ],
)
def test_a_copy_is_within_bounds(
    client: httpx2.Client,
    session: str,
    width: int,
    height: int,
    mode: str,
    wanted: tuple[int, int],
    most: int,
) -> None:
    where = put(client, session, "large.png", png(width, height, mode))
    response = client.get(where, params={"width": most})
    assert response.status_code == 200, response.text
    header = image_header(response.content)
    assert header is not None
    assert (header.width, header.height) == wanted
    assert response.headers["content-type"] == f"image/{header.kind}"
    with Image.open(io.BytesIO(response.content)) as image:
        assert (image.getextrema()[-1] == (0, 0)) == (mode == "RGBA")  # it stays transparent


def test_a_small_picture_stays_as_it_is(client: httpx2.Client, session: str) -> None:
    content = png(60, 40)
    where = put(client, session, "small.png", content)
    assert client.get(where, params={"width": 60}).content == content
    assert client.get(where, params={"width": 0}).content == content


def test_no_picture_is_refused(server: Served, client: httpx2.Client, session: str) -> None:
    def refused(content: bytes, status: int, kind: str, width: str = "100") -> None:
        where = put(client, session, "wrong.png", content)
        problem(client.get(where, params={"width": width}), status, kind)

    huge = bytearray(png(9, 9))
    struct.pack_into(">II", huge, 16, 30_000, 30_000)
    refused(b"<svg/>", 422, "no-picture")
    refused(png(400, 400)[:60], 422, "no-picture")
    refused(bytes(huge), 413, "too-large")
    refused(png(9, 9), 422, "invalid-query", width="wide")
    problem(client.get(f"{session}/files/none.png?width=9"), 404, "not-found")
    problem(client.get(f"{session}/files/..%2Fnone.png?width=9"), 404, "not-found")
    eve = server.client(server.accounts.add("eve").text)
    problem(eve.get(f"{session}/files/wrong.png?width=9"), 404, "not-found")
