"""Pictures over the agent API."""

from __future__ import annotations

from pathlib import Path

import pytest
from agents import SteeredModel, ask, new_session, serving_agents

pytestmark = pytest.mark.usefixtures("no_states")


def test_artifacts_that_are_pictures_have_their_size(tmp_path: Path) -> None:
    code = "from PIL import Image\nImage.new('RGB', (300, 200)).save('drawn.jpg')"
    with serving_agents(tmp_path, SteeredModel()) as server:
        client = server.client()
        session = new_session(client)
        ask(client, session, f"{code}\nopen('notes.txt', 'w').write('x')", kind="code")
        found = client.get(f"{session}/artifacts").json()["artifacts"]
    sizes = {item["path"]: (item["width"], item["height"]) for item in found}
    assert sizes == {"drawn.jpg": (300, 200), "notes.txt": (None, None)}
