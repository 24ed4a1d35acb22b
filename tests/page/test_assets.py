"""Files of the page: their form, and their size."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from taskweaver.page.assets import page_files

MOST_LINES = 300
MOST_PACKED_BYTES_AT_FIRST, MOST_PACKED_BYTES = 115_000, 300_000


def test_modules_are_short_and_build_no_html_from_strings() -> None:
    own = {path: file for path, file in page_files().files.items() if "vendor/" not in path}
    texts = {path: file.content.decode() for path, file in own.items() if path.endswith(".js")}
    assert {path for path, text in texts.items() if text.count("\n") > MOST_LINES} == set()
    html = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    risky = re.compile(html)
    assert {path for path, text in texts.items() if risky.search(text)} == set()
    bare = re.compile(r"(?<!\*/\n)^export (?:async )?(?:function|class) (\w+)", re.M)
    undocumented = {f"{path}: {name}" for path in texts for name in bare.findall(texts[path])}
    assert undocumented == set()


def test_modules_import_names_that_are_exported() -> None:
    """Also modules that no test opens in a browser."""
    files = {path: file.content.decode() for path, file in page_files().files.items()}
    missing = []
    for path, text in files.items():
        for names, wanted in re.findall(r"^import \{([^}]*)\} from '(\.[^']+)'", text, re.M):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), wanted))
            exported = re.findall(r"^export (?:async )?\w+\*? (\w+)", files.get(target, ""), re.M)
            asked = {part.split(" as ")[0].strip() for part in names.split(",")} - {""}
            if "vendor/" not in target:
                missing += [f"{path}: {name} of {target}" for name in asked - set(exported)]
    assert missing == []


def test_what_a_browser_loads_is_small() -> None:
    """No browser loads the licence of the library; screens that are shown later come later."""
    files = page_files()
    start = files.start.content.decode()
    paths = [path for path in files.files if path.endswith((".css", ".svg")) and path in start]
    first = [files.start, *(files.files[path] for path in (*files.modules, *paths))]
    assert sum(len(file.packed) for file in first) <= MOST_PACKED_BYTES_AT_FIRST
    everything = (files.start, *files.files.values())
    assert sum(len(file.packed) for file in everything) <= MOST_PACKED_BYTES


def test_screens_that_are_shown_later_are_not_loaded_at_first() -> None:
    files = page_files()
    modules = {path for path in files.files if path.endswith(".js")}
    start = files.start.content.decode()
    preloaded = set(re.findall(r'rel="modulepreload" href="page/\w+/([^"]+)"', start))
    assert preloaded == set(files.modules)
    fetched = set(re.findall(r"import\('\./([^']+)'\)", files.files["later.js"].content.decode()))
    assert {"searches/screen.js", "branches/compare.js", "project/settings.js"} <= fetched
    assert fetched <= modules - set(files.modules)


def test_examples_of_searches_are_those_of_the_project() -> None:
    ideas = Path(__file__).parents[2] / "project" / "ideas"
    found = {
        path.rpartition("/")[2].removesuffix(".txt"): file.content
        for path, file in page_files().files.items()
        if path.startswith("searches/examples/")
    }
    assert len(found) == 6
    assert {name for name, text in found.items() if (ideas / name).read_bytes() != text} == set()
