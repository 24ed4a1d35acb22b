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
    risky = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    )
    assert {path for path, text in texts.items() if risky.search(text)} == set()
    undocumented = {
        f"{path}: {match[1]}"
        for path, text in texts.items()
        for match in re.finditer(
            r"(?<!\*/\n)^export (?:async )?(?:function|class) (\w+)", text, re.M
        )
    }
    assert undocumented == set()


def test_modules_import_what_is_there_and_in_no_circle() -> None:
    files = page_files().files
    found: dict[str, list[str]] = {}
    for path, file in files.items():
        if not path.endswith(".js") or "vendor/" in path:
            continue
        for wanted in re.findall(r"from '(\.[^']+)'", file.content.decode()):
            parts = path.split("/")[:-1]
            for part in wanted.split("/"):
                if part == "..":
                    parts.pop()
                elif part != ".":
                    parts.append(part)
            found.setdefault(path, []).append("/".join(parts))
    assert {target for targets in found.values() for target in targets} <= set(files)
    assert unknown_names({path: files[path].content.decode() for path in found}) == []
    done: set[str] = set()
    while left := [path for path in found if path not in done]:
        free = [
            path for path in left if all(one in done or one not in found for one in found[path])
        ]
        assert free, f"a circle among {left}"
        done.update(free)


def unknown_names(texts: dict[str, str]) -> list[str]:
    """Return the names that modules import from one that does not export them."""
    missing = []
    for path, text in texts.items():
        for names, wanted in re.findall(r"^import \{([^}]*)\} from '(\.[^']+)'", text, re.M):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), wanted))
            exported = set(re.findall(r"^export (?:async )?\w+ (\w+)", texts.get(target, ""), re.M))
            asked = {part.split(" as ")[0].strip() for part in names.split(",")} - {""}
            if target in texts:
                missing += [f"{path}: {name} of {target}" for name in sorted(asked - exported)]
    return missing


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
