"""What follows an attempt that ran: review, metric, plots, a look at them, a summary."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from desk import DRAWN, SEEING, Asked, Desk, at_desk
from search_lab import ONE, PLACE, proposal, remembering, search

from taskweaver.llm.errors import ModelError
from taskweaver.memory.branched.manager import MemoryManager
from taskweaver.treesearch.engine.search import Search

ALL = {"review": True, "plots": True, "summaries": True, "vlm_alias": "eye"}


def in_turn(*replies: str | int) -> Callable[[Asked], str | int]:
    """Answer with one reply after the other; the last is repeated."""
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def running(*commands: str) -> Callable[[Asked], str]:
    """Propose to run commands."""
    return lambda _: json.dumps(proposal(PLACE, run={"commands": list(commands)}))


def searched(folder: Path, desk: Desk, *, nodes: int = 1, **settings: Any) -> Search:
    """Search for as many drafts as there are nodes."""
    with at_desk(folder, desk) as (project, _):
        made = search(
            project, None, **ONE | {"stage1_nodes": nodes, "num_drafts": nodes} | settings
        )
    assert made.state.is_over
    return made


def test_each_step_has_its_memory_and_its_image(tmp_path: Path) -> None:
    core = {"seen": "blue", "long": "much " * 400}
    reads = {"core": core, "core_get": ["seen"]}

    def recall(asked: Asked) -> str:
        return remembering(asked.prompt, "", {} if "Memory Read Results" in asked.prompt else reads)

    vision = {"plot_analyses": [], "valid_plots_received": True, "vlm_feedback_summary": "it rises"}
    answers = {
        "attempt": running("echo top 7"),
        "metrics": lambda _: points(("height", 7)),
        "review memory": recall,
        "summary memory": lambda _: "<memory_update>\nno JSON\n</memory_update>",
        "vision": lambda _: f"I looked:\n```json\n{json.dumps(vision)}\n```\nThat is {{all}}.",
    }
    desk = Desk(answers)
    made = searched(tmp_path, desk, **ALL, **{"memory.vlm_analysis_budget_chars": 30})
    (node,) = made.state.journal.nodes
    assert (node.is_good, node.plot_feedback, node.analysis) == (True, "it rises", "well")
    assert node.summary["findings"] == "well"
    assert [(a.step, a.is_memory, a.model) for a in desk.asked] == [
        ("attempt", False, "desk"),
        ("metrics", True, "desk"), ("metrics", False, "desk"),
        ("review", True, "desk"), ("review", True, "desk"), ("review", False, "desk"),
        ("plotting", False, "desk"),
        ("vision", True, SEEING), ("vision", False, SEEING),
        *[("summary", True, "desk")] * 3, ("summary", False, "desk"),
        ("stage summary", True, "desk"), ("stage summary", False, "desk"),
    ]  # fmt: skip
    picture = f"data:image/png;base64,{base64.b64encode(DRAWN).decode()}"
    assert [asked.images for asked in desk.of("vision")] == [(picture,)] * 2
    assert not any(asked.images for asked in desk.asked if asked.step != "vision")
    review = desk.of("review", is_memory=False)[0].prompt
    assert "blue" in review["Memory Read Results"]
    assert "- seen: blue" in review["Memory"]  # as the first question left it
    assert '{"is_bug": true|false, ' in review["Reply"]
    assert desk.of("summary")[0].prompt["Before"] == "none"
    assert desk.of("stage summary")[0].prompt["What was learnt"] == "- n0001: well"
    assert all("Memory" in asked.prompt for asked in desk.asked)
    assert "<memory_update>" in desk.of("plotting")[0].prompt["Introduction"]
    assert node.plots == ("nodes/n0001/plots/height.png",)
    assert (made.places.folder / node.plots[0]).read_bytes() == DRAWN
    with MemoryManager(made.places.memory) as store:
        hints = {entry.task_hint: entry.chars for entry in store[node.branch].injections()[::-1]}
        kinds = [event.kind for event in reversed(store[node.branch].events())]
        assert store.get_core(node.branch, "kept by vision") == "yes"
        assert store.get_core(node.branch, "last_vlm_analysis") == "node:n0001, plots:1"
    assert list(hints) == [
        "draft", "metrics_extraction", "execution_review", "plotting_code", "vlm_analysis",
        "node_summary",
    ]  # fmt: skip
    assert hints["vlm_analysis"] <= 30 < hints["node_summary"]
    steps = ["metrics_extracted", "vlm_analysis_complete", "node_summary", "node_result"]
    assert [kind for kind in kinds if kind in steps] == steps


def test_a_script_is_plotted_too(tmp_path: Path) -> None:
    code = (
        "import json\njson.dump({'metric': 3}, open('working/result.json', 'w'))\n"
        "open('working/curve.csv', 'w').write('1,2')\n"
    )
    desk = Desk({"attempt": lambda _: json.dumps({"plan": "write", "code": code})})
    made = searched(tmp_path, desk, phase_mode="single", memory=False, **ALL)
    (node,) = made.state.journal.nodes
    assert node.value == 3.0
    assert node.plots == ("nodes/n0001/plots/height.png",)
    assert "- working/curve.csv\n- working/result.json" in desk.of("plotting")[0].prompt["Files"]
    assert [len(asked.images) for asked in desk.of("vision")] == [1]
    assert not any(asked.is_memory or "Memory" in asked.prompt for asked in desk.asked)
    assert "<memory_update>" not in desk.of("plotting")[0].prompt["Introduction"]


def test_a_model_that_sees_nothing_costs_no_node(tmp_path: Path) -> None:
    blind = in_turn("I am blind.", 400)
    desk = Desk({"vision": blind, "vision memory": in_turn("What?", 400, 401)})
    made = searched(tmp_path, desk, nodes=3, retries=1, plots=True, vlm_alias="eye")
    assert len(made.state.journal) == 3
    for node in made.state.journal.nodes:
        assert node.is_good
        assert len(node.plots) == 1
        assert node.plot_feedback.startswith("The plots were not looked at: ")


def test_a_model_nobody_knows_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="did you mean 'eye'"):
        searched(tmp_path, Desk(), vlm_alias="eyes")
    assert not (tmp_path / "lab/experiments/run").exists()


def test_calls_that_fail_after_a_run_leave_it_as_it_was(tmp_path: Path) -> None:
    steps = ("review", "summary", "stage summary", "plotting")
    made = searched(tmp_path, Desk(dict.fromkeys(steps, lambda _: 400)), **(ALL | {"retries": 1}))
    (node,) = made.state.journal.nodes
    assert (node.is_good, node.value, node.plots) == (True, 0.0, ())
    assert node.analysis.startswith("It was not reviewed: Model call failed")
    assert made.state.passed[0].summary.startswith("1_initial_implementation_1: 1 nodes, 1 good")


def test_what_ran_is_kept_when_the_budget_is_spent(tmp_path: Path) -> None:
    desk = Desk()
    made = searched(tmp_path, desk, token_limit=1, **ALL)
    (node,) = made.state.journal.nodes
    assert (node.is_good, node.value, node.plots, node.summary) == (True, 0.0, (), {})
    assert node.analysis.startswith("It was not reviewed: The search stops: it has used")
    assert [asked.step for asked in desk.asked] == ["attempt"]


def test_programs_that_draw_nothing_are_told_why(tmp_path: Path) -> None:
    raises = "x = 1\nraise KeyError('loss')"
    odd = (
        "import os\n"
        "open('working/text.png', 'w').write('no picture')\n"
        f"open('working/half.png', 'wb').write({DRAWN[:-9]!r})\n"
        "os.symlink('/etc/passwd', 'working/link.png')\n"
        f"open(b'working/\\xff\\n.png', 'wb').write({DRAWN!r})\n"
    )
    last = f"open('working/last.png', 'wb').write({DRAWN!r})\n1 / 0"
    hangs = "import signal; signal.pause()"
    programs = [raises, hangs, "print('none')", odd, odd, odd, raises, odd, last]
    replies = [json.dumps({"code": code}) for code in programs]
    replies[1] = f"Try this:\n```python\n{programs[1]}\n```\nIt works."
    desk = Desk({"plotting": in_turn(*replies)})
    settings = {"plots": True, "memory": False, "vlm_alias": "eye", "compile_timeout_s": 1.0}
    made = searched(tmp_path, desk, nodes=3, **settings)
    first, second, third = made.state.journal.nodes
    assert all(node.is_good for node in (first, second, third))
    assert (first.plots, second.plots) == ((), ())
    assert third.plots == ("nodes/n0003/plots/last.png",)
    asked = [question.prompt.get("Last program", "") for question in desk.of("plotting")]
    assert len(asked) == len(programs)
    assert asked[0] == ""
    assert raises in asked[1]
    assert 'File "/workspace/.plots/plot.py", line 2' in asked[1]
    assert "KeyError: 'loss'" in asked[1]
    assert str(tmp_path) not in "".join(asked)
    assert "stopped after 1" in asked[2]
    assert asked[4].endswith("It failed: it left no .png file in working/")
    assert [len(question.images) for question in desk.of("vision")] == [1]
    compiled = made.places.node("n0001").phase_logs / "compile.log"
    assert "plot.py" not in compiled.read_text()


MANY = [f"p{n:02d}.png" for n in range(12)]
CHOICES: list[tuple[Any, list[str]]] = [
    ({"selected_plots": ["none.png", "working/p11.png", "p03.png", "p03.png"]}, ["p11", "p03"]),
    ({"selected_plots": ["none.png", 7, None, ["p01.png"]]}, [name[:3] for name in MANY[:10]]),
    ({"plots": []}, [name[:3] for name in MANY[:10]]),
]


def test_of_many_plots_some_are_chosen(tmp_path: Path) -> None:
    replies = [json.dumps(reply) for reply, _ in CHOICES]
    drawn = shlex.quote(base64.b64encode(DRAWN).decode())
    write = "; ".join(f"echo {drawn} | base64 -d > working/{name}" for name in MANY)
    desk = Desk({"attempt": running("sh try.sh", write), "selection": in_turn(*replies)})
    made = searched(tmp_path, desk, nodes=3, retries=1, memory=False, plots=True)
    for node, (_, wanted) in zip(made.state.journal.nodes, CHOICES, strict=True):
        assert [Path(plot).stem for plot in node.plots] == wanted
    assert desk.of("selection")[0].prompt["Plots"].count("- p") == 12
    assert not desk.of("plotting")
    assert not desk.of("vision")


def points(*metrics: tuple[str, Any]) -> str:
    """Return an answer with a figure each of some metrics."""
    entries = [
        {"metric_name": name, "lower_is_better": False, "description": "",
         "data": [{"dataset_name": "all", "value": value}]}
        for name, value in metrics
    ]  # fmt: skip
    return json.dumps({"valid_metrics_received": True, "metric_names": entries})


READ: list[tuple[str | int, float | None]] = [
    (points(("loss", 1.0), ("Height ", 7.5)), 7.5),
    ("As printed:\n" + points(("top", 7)), 7.0),
    (points(("loss", 1.0), ("error", 2.0)), None),
    (points(("height", float("nan"))), None),
    (points(("height", 10**400)), None),
    (points(("height", True)), None),
    ('{"valid_metrics_received": true, "metric_names": ["height"]}', None),
    ('{"valid_metrics_received": false, "metric_names": []}', None),
    (400, None),
]


def test_a_metric_is_read_with_care_where_there_is_no_file(tmp_path: Path) -> None:
    desk = Desk({"attempt": running("echo top 7"), "metrics": in_turn(*(r for r, _ in READ))})
    made = searched(tmp_path, desk, nodes=len(READ), retries=1, memory=False)
    for node, (reply, value) in zip(made.state.journal.nodes, READ, strict=True):
        assert node.is_good is (value is not None), (reply, node.error)
        assert node.value == value
        assert value is not None or node.error.kind == "MetricError"
    assert all("top 7" in asked.prompt["Execution output"] for asked in desk.of("metrics"))
