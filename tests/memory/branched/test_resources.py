"""Resource files and their snapshots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from taskweaver.memory.branched import InvalidUpdate, MemoryManager
from taskweaver.memory.branched.run.resources import (
    build_resource_snapshot,
    track_resource_usage,
    update_resource_snapshot_if_changed,
)


@pytest.fixture
def listed(tmp_path: Path) -> dict[str, Any]:
    code = tmp_path / "host" / "code"
    code.mkdir(parents=True)
    (code / "main.c").write_text("int main(void) { return 0; }\n")
    (code / "big.py").write_text("".join(f"line_{n} = {n}\n" for n in range(2000)))
    (code / "data.bin").write_bytes(b"\0\1\2" * 100)
    (code / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "secret.txt").write_text("outside")
    (code / "link.txt").symlink_to(tmp_path / "secret.txt")
    return {
        "local": [{"name": "code", "host_path": str(code), "mount_path": "/workspace/code"}],
        "github": [{"name": "lib", "repo": "a/b", "ref": "v1", "dest": "/workspace/lib"}],
        "items": [
            {"name": "base", "class": "template", "source": "local", "resource": "code"},
            {"name": "blas", "class": "library", "source": "github", "resource": "lib",
             "notes": "linked statically", "include_tree": True},
        ],
    }  # fmt: skip


def write(folder: Path, data: Any) -> Path:
    path = folder / "resources.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def test_items_are_looked_at_and_quoted_within_bounds(
    tmp_path: Path, listed: dict[str, Any]
) -> None:
    snapshot = build_resource_snapshot(write(tmp_path, listed), tmp_path / "ws")
    blas, base = snapshot.items
    assert (blas.availability, blas.fetch_status) == ("pending_fetch", "pending")
    assert (base.availability, base.container_path) == ("available", "/workspace/code")
    assert "main.c" in base.tree
    assert "int main" in base.content
    assert "Summary:\nline_0 = 0" in base.content
    assert len(base.content) < 12_500
    assert "outside" not in base.content
    assert "\0" not in base.content
    again = build_resource_snapshot(write(tmp_path, listed), tmp_path / "ws")
    assert again.resource_digest == snapshot.resource_digest


def test_a_snapshot_is_kept_once_and_again_when_something_was_fetched(
    memory: MemoryManager, tmp_path: Path, listed: dict[str, Any]
) -> None:
    path, workspace = write(tmp_path, listed), tmp_path / "ws"
    options = {"folder": tmp_path}
    assert update_resource_snapshot_if_changed(memory["root"], path, workspace, **options)
    then = memory.seq
    assert not update_resource_snapshot_if_changed(memory["root"], path, workspace, **options)
    assert memory.seq == then
    memory.fork("root", "node")
    shown = memory.render_for_prompt("node", task="statically linked blas")
    assert shown.startswith("Resource Index:")
    assert "library/blas (github:lib) pending at /workspace/lib: linked statically" in shown
    assert "Resource Memory:" in shown

    (workspace / "lib").mkdir(parents=True)
    (workspace / "lib" / "blas.h").write_text("void dgemm(void);\n")
    assert update_resource_snapshot_if_changed(memory["root"], path, workspace, **options)
    records = memory["root"].records(tags=["RESOURCE_ITEM"])
    assert len(records) == 2
    (blas,) = memory["root"].records(tags=["resource:library:blas"])
    assert "Status: available" in blas.text
    assert "blas.h" in blas.text
    assert "previous_digest" in (memory.get_core("root", "RESOURCE_INDEX") or "")
    kept = json.loads((tmp_path / "resource_snapshot.json").read_text())
    assert [item["fetch_status"] for item in kept["items"]] == ["available", "available"]


def test_use_is_noted_once(memory: MemoryManager, tmp_path: Path, listed: dict[str, Any]) -> None:
    update_resource_snapshot_if_changed(memory["root"], write(tmp_path, listed), tmp_path / "ws")
    assert track_resource_usage(memory["root"], "blas", note="draft")
    assert not track_resource_usage(memory["root"], "library:blas:github:lib:.")
    assert memory.root.events()[0].text == "library:blas:github:lib:. | draft"
    with pytest.raises(InvalidUpdate, match="0 of the items"):
        track_resource_usage(memory["root"], "nothing")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.update(extra=1), "no field extra"),
        (lambda data: data.update(items={}), "items: must be a list"),
        (lambda data: data["local"][0].update(host_path="/no/such"), "local[0].host_path"),
        (lambda data: data["github"][0].update(repo="no repository"), "github[0].repo"),
        (lambda data: data["github"][0].update(ref=1.10), "github[0].ref"),
        (
            lambda data: data["github"].append(
                {"name": "in", "repo": "a/c", "dest": "/workspace/lib/in"}
            ),
            "in each other's way",
        ),
        (lambda data: data["github"][0].update(dest="/etc"), "github[0].dest"),
        (lambda data: data["github"][0].update(dest="/workspace/../etc"), "github[0].dest"),
        (lambda data: data["github"][0].pop("repo"), "github[0].repo"),
        (lambda data: data["items"][0].update({"class": "toy"}), "items[0].class"),
        (lambda data: data["items"][0].update(path="../x"), "items[0].path"),
        (lambda data: data["items"][0].update(resource="none"), "items[0].resource"),
        (lambda data: data["items"][0].update(max_files=-1), "items[0].max_files"),
        (lambda data: data["items"][0].update(name="a\nb"), "items[0].name"),
        (lambda data: data["items"].append(dict(data["items"][0])), "twice"),
    ],
)
def test_a_wrong_entry_is_named(
    memory: MemoryManager, tmp_path: Path, listed: dict[str, Any], change: Any, said: str
) -> None:
    change(listed)
    before = memory.seq
    with pytest.raises(InvalidUpdate) as caught:
        update_resource_snapshot_if_changed(memory["root"], write(tmp_path, listed), tmp_path)
    assert said in str(caught.value)
    assert memory.seq == before


@pytest.mark.parametrize(
    "text",
    ["- 1", "a: [", "", "just text", "a: !!bool maybe", "a: !!timestamp never", "a: !!int x"],
)
def test_a_file_that_is_no_list_of_resources_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "resources.yaml"
    path.write_text(text)
    with pytest.raises(InvalidUpdate, match=r"resources\.yaml"):
        build_resource_snapshot(path, tmp_path)
