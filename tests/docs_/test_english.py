"""Docstrings in plain technical English, and one name for one concept."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "taskweaver"
VAGUE = {
    "what", "told", "tell", "tells", "said", "somebody", "nobody", "ours", "such",
    "mend", "mends", "mended", "mending",
}  # fmt: skip
"""Words that stand where a noun of the field would be clear."""
MOST_PER_1000 = 2.0
OPENINGS = re.compile(r"(What|Who|Where|How|Why)\b")
KEPT: frozenset[str] = frozenset()
"""Names of public classes that several packages use, each for a concept of its own."""


@cache
def docstrings() -> list[tuple[str, str]]:
    """Return the place and the text of each docstring of the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                place = f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 1)}"
                found += [(place, text)] if text else []
    return found


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
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(path.relative_to(PACKAGE).as_posix())
    repeated = {name: sorted(in_) for name, in_ in places.items() if len(in_) > 1}
    assert not {name: in_ for name, in_ in repeated.items() if name not in KEPT}
