"""Follow-ups about a file whose profile is so long that later rounds show a part of it."""

from __future__ import annotations

from pathlib import Path

from taskweaver import TaskWeaver

BARE = {"execution.sandbox": "none", "execution.zygote": False, "llm.api_type": "offline"}
TOWNS = [f"the borough of {name} and its surroundings" for name in map(chr, range(97, 123))]


def test_a_follow_up_changes_the_answer_before(tmp_path: Path) -> None:
    rows = [
        f"Person {at},{TOWNS[at % 26]},{TOWNS[-1 - at % 26]},{'north' if at % 3 else 'south'}"
        for at in range(600)
    ]
    (tmp_path / "people.csv").write_text("\n".join(["name,home,office,side", *rows]))
    with TaskWeaver(tmp_path, BARE) as tw:
        assert "**200**" in tw.ask("how many people are from south?").text
        assert "**400**" in tw.ask("and from north?").text
        assert "`home`" in tw.ask("per home").text.partition("\n")[0]
