"""Layout of code: a long chain of calls over several lines."""

from __future__ import annotations

import re

MOST_CHARS = 96
_TOKEN = re.compile(
    r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[(\[{]|[)\]}]|\.(?=[a-z_]+\()|.""", re.DOTALL
)
_START = re.compile(r"(?P<indent> *)(?P<target>(?:\w+ = )?)(?P<chain>.*)", re.DOTALL)


def laid_out(line: str) -> str:
    """Return a line of code; a chain of calls that is too long has a line for each call."""
    if len(line) <= MOST_CHARS or "\n" in line:
        return line
    match = _START.fullmatch(line)
    links = _links(match["chain"]) if match else []
    if match is None or len(links) < 3:
        return line
    indent = match["indent"]
    inner = f"\n{indent}    ".join(links)
    return f"{indent}{match['target']}(\n{indent}    {inner}\n{indent})"


def _links(chain: str) -> list[str]:
    """Return an object with its first call, and each further call, of a chain of calls."""
    links, depth = [""], 0
    for token in _TOKEN.findall(chain):
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token == "." and depth == 0 and links != [""]:
            links.append("")
        links[-1] += token
    return ["".join(links[:2]), *links[2:]]
