"""The table of attacks: what is expected, kept as data, and its form in docs/security.md.

``python -m attacks.table`` runs all attacks in all tiers that this machine has, keeps the results
of those it has not, and writes both files. ``python -m attacks.table docs`` writes the document
from the expected results alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from attacks.corpus import ATTACKS
from attacks.users import COLUMNS, run_all

EXPECTED = Path(__file__).with_name("expected.json")
DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
BEGIN, END = "<!-- attacks: begin -->", "<!-- attacks: end -->"
_HEADS = {"bwrap": "bubblewrap", "landlock": "Landlock", "none": "none"}

Results = Mapping[str, Mapping[str, bool]]
"""Whether each attack succeeded, by column and attack."""


def expected() -> dict[str, dict[str, bool]]:
    """Return the expected results, by column and attack."""
    if not EXPECTED.exists():
        return {}
    rows: dict[str, dict[str, str]] = json.loads(EXPECTED.read_text(encoding="utf8"))
    return {
        column.title: {name: row[column.title] == "succeeds" for name, row in rows.items()}
        for column in COLUMNS
    }


def write_expected(results: Results) -> None:
    """Write the data table: a line for each attack."""
    lines = []
    for attack in ATTACKS:
        cells = {
            column.title: "succeeds" if results[column.title][attack.name] else "held"
            for column in COLUMNS
        }
        lines.append(f"  {json.dumps(attack.name)}: {json.dumps(cells)}")
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf8")


def rendered(results: Results) -> str:
    """Return the table: a row for each attack, and one with the counts of each group.

    Snippets of code that differ in their spelling alone are counted, and have no row.
    """
    titles = [column.title for column in COLUMNS]
    lines = [
        f"| attack | {' | '.join(f'{_HEADS[c.tier]}, {c.user}' for c in COLUMNS)} |",
        "| --- |" + " --- |" * len(titles),
    ]
    for group in dict.fromkeys(attack.group for attack in ATTACKS):
        names = [attack.name for attack in ATTACKS if attack.group == group]
        counts = [sum(results[title][name] for name in names) for title in titles]
        cells = " | ".join(f"{count}" for count in counts)
        lines.append(f"| **{group}, {len(names)}** | {cells} |")
        lines += (
            f"| {name} | {' | '.join(_cell(results[title][name]) for title in titles)} |"
            for name in names
            if not name.rpartition(" ")[2].isdigit()
        )
    return "\n".join(lines)


def _cell(has_succeeded: bool) -> str:
    return "yes" if has_succeeded else "–"  # noqa: RUF001 - a dash between words


def documented(results: Results) -> str:
    """Return the text of docs/security.md with the table of some results."""
    text = DOCUMENT.read_text(encoding="utf8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{rendered(results)}\n{END}{after}"


def main() -> None:
    """Write the table."""
    results = expected()
    if sys.argv[1:] != ["docs"]:
        reasons = {column: column.why_not() for column in COLUMNS}
        results |= run_all(column for column, reason in reasons.items() if not reason)
        for column, reason in reasons.items():
            count = f"{sum(results[column.title].values())} succeed"
            print(f"{column.title}: {f'kept as it is: {reason}' if reason else count}")
        write_expected(results)
    DOCUMENT.write_text(documented(results), encoding="utf8")


if __name__ == "__main__":
    main()
