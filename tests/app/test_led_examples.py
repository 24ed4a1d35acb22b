"""Shipped examples in the prompt of a Planner that writes cells itself."""

from __future__ import annotations

import shutil
from pathlib import Path

from support import Script, make_project, planner_reply

from taskweaver.app.app import TaskWeaverApp

SHIPPED = Path(__file__).parents[2] / "project" / "examples"


def test_shipped_examples_carry_their_cells_and_teach_no_orders_in_words(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", has_table=False)
    shutil.copytree(SHIPPED, project / "examples")
    for form in ("tools", "json", "fences"):
        script = Script([planner_reply("User", "Hello.")])
        with TaskWeaverApp(project, model=script, config={"llm.form": form}) as app:
            app.get_session().send_message("hello")
        (prompt,) = script.prompts
        text = "\n".join(str(message) for message in prompt)
        assert "## Code\\n```python" not in text
        assert "orders = pd.read_csv" in text
        assert text.count("guests_per_weekday.png") > 1
        calls = [call for message in prompt for call in message.get("tool_calls", [])]
        names = {call["function"]["name"] for call in calls}
        assert names <= {"run_python", "set_plan"}
        assert ("run_python" in names) is (form == "tools")
        assert "### CodeInterpreter" not in str(prompt[0]["content"])
