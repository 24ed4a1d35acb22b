"""The map of the modules is up to date, and each module says its purpose in one line."""

from __future__ import annotations

import re

from module_map import PAGE, page


def test_the_map_is_that_of_the_package() -> None:
    assert PAGE.read_text("utf-8") == page(), "write it anew: see docs/map.md"


def test_each_module_states_its_purpose() -> None:
    missing = re.findall(r"^- `(\w+)` — $", page(), re.MULTILINE)
    assert [name for name in missing if name != "__main__"] == []
