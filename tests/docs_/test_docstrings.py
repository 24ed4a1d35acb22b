"""Docstrings in plain technical English, one name for one concept, and the map made of both."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from module_map import PACKAGE, PAGE, Module, module, page

VAGUE = {
    "what", "told", "tell", "tells", "said", "somebody", "nobody", "ours", "such",
    "mend", "mends", "mended", "mending",
}  # fmt: skip
"""Words that stand where a noun of the field would be clear."""
MOST_PER_1000 = 2.0
OPENINGS = re.compile(r"(What|Who|Where|How|Why)\b")
KEPT: frozenset[str] = frozenset()
"""Names of public classes that several packages use, each for a concept of its own."""


def modules() -> Iterator[tuple[str, Module]]:
    """Yield the path and the facts of each module of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), module(path)


def docstrings() -> list[tuple[str, str]]:
    """Return the place and the text of each docstring of the package."""
    return [
        (f"{path}:{line}", text) for path, found in modules() for line, text in found.docstrings
    ]


def test_a_docstring_begins_with_a_noun_phrase_or_an_imperative() -> None:
    assert not [place for place, text in docstrings() if OPENINGS.match(text)]


def test_vague_words_are_rare() -> None:
    words, vague = 0, defaultdict(int)
    for place, text in docstrings():
        all_words = re.findall(r"[a-z']+", text.lower())
        words += len(all_words)
        vague[place] += sum(word in VAGUE for word in all_words)
    most = sorted(vague, key=lambda place: vague[place], reverse=True)[:10]
    assert sum(vague.values()) <= MOST_PER_1000 * words / 1000, f"most of them: {most}"


def test_names_of_public_classes_are_unique() -> None:
    places = defaultdict(set)
    for path, found in modules():
        for name in found.classes:
            places[name].add(path)
    repeated = {name: sorted(in_) for name, in_ in places.items() if len(in_) > 1}
    assert not {name: in_ for name, in_ in repeated.items() if name not in KEPT}


def test_the_map_is_that_of_the_package() -> None:
    assert PAGE.read_text("utf-8") == page(), "write it anew: see docs/map.md"


def test_each_module_states_its_purpose() -> None:
    missing = re.findall(r"^- `(\w+)` — $", page(), re.MULTILINE)
    assert [name for name in missing if name != "__main__"] == []
