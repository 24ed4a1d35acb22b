"""Compare the size of the package with its limit in pyproject.toml.

The size is the number of Python tokens without comments, docstrings, line ends and indentation; an
f-string counts as one token, so that all versions of Python count alike. The limit,
`tool.taskweaver.max_tokens`, only goes down, unless a decision names what a rise pays for.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FREE = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENCODING", "ENDMARKER"}
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_LARGEST = 10


def main(root: Path = ROOT) -> int:
    """Print the size beside the limit; return 1 if the size is over the limit."""
    with (root / "pyproject.toml").open("rb") as file:
        most: int = tomllib.load(file)["tool"]["taskweaver"]["max_tokens"]
    sizes = sizes_by_folder(root / "taskweaver")
    total = sizes.total()
    print(f"taskweaver has {total:,} tokens; its limit is {most:,} (pyproject.toml).")
    if total <= most:
        return 0
    print(f"Remove {total - most:,} tokens. The largest folders:")
    for folder, tokens in sizes.most_common(_LARGEST):
        print(f"  {tokens:>8,}  {folder}")
    return 1


def sizes_by_folder(package: Path) -> Counter[str]:
    """Return the tokens of each folder of a package, without those of the folders in it."""
    sizes: Counter[str] = Counter()
    for path in package.rglob("*.py"):
        folder = path.parent.relative_to(package.parent).as_posix()
        sizes[folder] += count_tokens(path.read_text("utf-8"))
    return sizes


def count_tokens(source: str) -> int:
    """Return the tokens of a module.

    Since Python 3.12 an f-string is a row of tokens from its start to its end, which may hold
    further f-strings; the outermost end is counted.
    """
    docstrings = _lines_of_docstrings(source)
    count = depth = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        depth += kind.endswith("STRING_START") - kind.endswith("STRING_END")
        if depth == 0 and kind not in _FREE:
            count += token.start[0] not in docstrings
    return count


def _lines_of_docstrings(source: str) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            lines.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return lines


if __name__ == "__main__":
    sys.exit(main())
