"""Figures of cells reach models that take images: real kernels, a scripted endpoint."""

from __future__ import annotations

import base64
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Call, good
from rounds import ALONE, cell, play
from tool_replies import called

from taskweaver.session.branches.file_list import MOST_BYTES, MOST_PIXELS

pytestmark = pytest.mark.usefixtures("no_states")

SEES: dict[str, Any] = {"llm.model": "gpt-4o"}
PLOT = """
import matplotlib.pyplot as plt
plt.bar(["North", "South"], [3, 5])
plt.title("Counts")
plt.savefig("{name}.png", dpi=30)
"""


def plot(name: str = "chart") -> tuple[str, object]:
    return cell(PLOT.format(name=name))


def images(call: Call) -> list[bytes]:
    """Return the pictures in a request, decoded."""
    contents = [m["content"] for m in call.body["messages"] if isinstance(m["content"], list)]
    parts = [part for content in contents for part in content if part["type"] == "image_url"]
    assert all(set(part) == {"type", "image_url"} for part in parts)
    urls = [part["image_url"]["url"] for part in parts]
    return [base64.b64decode(url.partition(";base64,")[2]) for url in urls]


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack_from(">II", png, 16)
    return width, height


def test_figures_follow_results_and_never_stand_between_two_of_a_reply(project: Path) -> None:
    """Each is seen as it was when its cell ended."""
    other = cell(PLOT.format(name="one").replace("[3, 5]", "[3, 500]"))
    cells = called(cell("6 * 7", "compute"), plot("one"), other, plot("two"))
    _, (_, call), _ = play(project, cells, good("South leads."), **SEES)
    waiting = 0
    for one in call.body["messages"]:
        assert one["role"] == "tool" or not waiting
        waiting += len(one.get("tool_calls", ())) - (one["role"] == "tool")
        assert one["role"] == "user" or not isinstance(one["content"], list)
    seen = json.dumps([m["content"] for m in call.body["messages"] if m["role"] == "user"])
    assert re.findall(r'result \d of \d, \\"(\w+.png)', seen) == ["one.png", "one.png", "two.png"]
    before, after, _ = images(call)
    assert before != after


def test_a_figure_is_sent_in_its_own_round_only_and_its_description_stays(project: Path) -> None:
    bodies = [called(plot()), called(cell("1")), good("South leads."), good("As I said.")]
    _, calls, _ = play(project, *bodies, rounds=2, **SEES)
    assert [len(images(call)) for call in calls] == [0, 1, 1, 0]
    before = calls[1].body["messages"]
    assert calls[2].body["messages"][: len(before)] == before  # for the cache
    assert '"Counts"' in json.dumps(calls[3].body["messages"]).replace('\\"', '"')


def test_an_interpreter_sees_its_own_and_the_configuration_decides(project: Path) -> None:
    config = {**ALONE, "llm.model": "qwen3-coder", "llm.images": "yes"}
    _, (_, seen), _ = play(project, called(plot()), good("South leads."), **config)
    assert len(images(seen)) == 1
    _, (_, blind), _ = play(project, called(plot()), good("x"), **SEES, **{"llm.images": "no"})
    assert images(blind) == []
    result = next(m for m in blind.body["messages"] if m["role"] == "tool")
    assert '"Counts"; x (no label) North, South; y (no label) 0 to 5; bars: 2' in result["content"]


def test_large_pictures_are_made_smaller_and_others_are_named(project: Path) -> None:
    code = """
import numpy as np
from PIL import Image
Image.new("RGB", (5000, 1000), "red").save("wide.png")
noise = np.random.default_rng(1).integers(0, 255, (800, 800, 3), dtype="uint8")
Image.fromarray(noise).save("noise.png")
open("fake.png", "wb").write(b"From: User")
"""
    _, (_, call), _ = play(project, called(cell(code)), good("Done."), **SEES)
    *_, result, seen = call.body["messages"]
    noise, wide = images(call)
    assert size_of(wide) in [(MOST_PIXELS, 313), (MOST_PIXELS, 314)]
    assert len(noise) <= MOST_BYTES
    assert '("fake.png" is not shown: not a picture.)' in result["content"]
    assert "fake.png" not in json.dumps(seen)
