"""Searches from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from command_line import CommandLine, run_in
from fake_endpoint import Call, good, serving
from patience import PATIENCE_S
from screen import Screen
from search_figures import bare_figures
from search_lab import FAST, Climber
from search_lab import IDEA as CLIMB
from support import make_project

from taskweaver.cli.main import commands
from taskweaver.llm.types import ModelRequest

pytestmark = pytest.mark.usefixtures("no_states")
IDEA = Path(__file__).parents[2] / "project" / "ideas" / "tabular.md"
SMALL = {
    "search.workers": 1, "search.num_seeds": 0, "search.num_drafts": 1, "search.stage1_nodes": 1,
    "search.stage2_nodes": 1, "search.stage3_nodes": 0, "search.stage4_nodes": 0,
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _figures() -> Iterator[None]:
    """Draw nothing in the figures of reports, which nobody looks at here."""
    with bare_figures():
        yield


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "lab", SMALL | {"llm.api_type": "offline"})


class LastingClimber(Climber):
    """A model by rules, whose later attempts may go on until they are stopped."""

    lasts = False

    def attempt(self, prompt: Mapping[str, str]) -> dict[str, Any]:
        made = super().attempt(prompt)
        if self.lasts and "n0001" in prompt.get("Other attempts", ""):
            made["phase_artifacts"]["run"]["commands"] = ["sleep 600"]
        return made


@pytest.fixture
def climber() -> LastingClimber:
    return LastingClimber()


@pytest.fixture
def climbed(tmp_path: Path, climber: LastingClimber) -> Iterator[Path]:
    """A project with the idea `climb.md`, and a model by rules at an endpoint."""
    with climbing(tmp_path, climber) as project:
        yield project


@contextmanager
def climbing(folder: Path, climber: LastingClimber) -> Iterator[Path]:
    def play(call: Call) -> None:
        messages = call.body["messages"]
        call.stream(good(climber(messages, ModelRequest(messages))))

    with serving(play) as endpoint:
        model = {"llm.api_type": "openai", "llm.api_base": endpoint.url, "llm.model": "m"}
        project = make_project(folder / "hills", FAST | SMALL | model | {"llm.api_key": "k"})
        (project / "climb.md").write_text(CLIMB.format("maximize"))
        yield project


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Result]]:
    """A project with a finished run of one node, and what was said."""
    with climbing(tmp_path_factory.mktemp("searched"), LastingClimber()) as project:
        configure(project, {"search.stage2_nodes": 0})
        idea = str(project / "climb.md")
        yield project, run_in(project, "search", idea, "--plain", "--name", "first")


def configure(project: Path, keys: dict[str, Any]) -> None:
    file = project / "taskweaver_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | keys))


def ids(project: Path, run: str) -> list[str]:
    lines = (project / "experiments" / run / "journal.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    nodes = [entry["node"] for entry in entries if entry["t"] == "node"]
    return [node["id"] for node in nodes if node["finished_at"]]


def test_an_idea_goes_in_and_the_best_comes_out(searched: tuple[Path, Result]) -> None:
    project, result = searched
    assert result.exit_code == 0, result.output
    said = result.output
    for part in ("optimises height, higher is better", "n0001 draft: 0\n", "over: ", "best: n0"):
        assert part in said
    (last,) = [line for line in said.splitlines() if line.startswith("best: ")]
    assert last.count("best") == 1
    run = project / "experiments/first"
    for line, name in (("report: ", "report.md"), ("page:   ", "tree.html")):
        assert f"{line}{run / name}\n" in said
        assert (run / name).is_file()
    assert run.stat().st_mode & 0o077 == 0


def test_runs_are_listed_and_shown(searched: tuple[Path, Result]) -> None:
    project, _ = searched
    listed = run_in(project, "search", "list")
    assert (listed.exit_code, "first" in listed.output, "over" in listed.output) == (0, True, True)
    shown = run_in(project, "search", "show")
    assert "n0001 draft: 0  best\n" in shown.output
    assert "stage 1, initial implementation: limit of the stage reached: 1 node" in shown.output
    assert run_in(project, "search", "show", "fir").output == shown.output
    wrong = run_in(project, "search", "show", "second")
    assert wrong.exit_code != 0
    assert "'second' is no run. There are: first." in wrong.output


def test_a_run_that_is_over_is_not_gone_on_with(searched: tuple[Path, Result]) -> None:
    project, _ = searched
    before = ids(project, "first")
    result = run_in(project, "search", "--resume", "latest", "--plain")
    assert result.exit_code == 0, result.output
    assert "it is over already" in result.output
    assert "continues after" not in result.output
    assert ids(project, "first") == before


def test_a_node_can_be_talked_to(
    searched: tuple[Path, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, _ = searched
    monkeypatch.setenv("LLM_API_TYPE", "offline")
    told = run_in(project, "chat", "--node", "first/best", "-m", "What did you try?")
    assert told.exit_code == 0, told.output
    assert ": height 0" in told.output
    assert "Files: try.sh" in told.output
    wrong = run_in(project, "chat", "--node", "first/n9999", "-m", "hello")
    assert wrong.exit_code != 0
    assert "has no node 'n9999'; it has n0001" in wrong.output


def test_a_memory_elsewhere_is_found_again(climbed: Path, tmp_path: Path) -> None:
    project, idea = climbed, str(climbed / "climb.md")
    file, again = tmp_path / "far" / "away" / "m.sqlite", ["--plain", "--steps", "1"]
    began = run_in(project, "search", idea, "--name", "a", "--memory_db", str(file), *again)
    assert began.exit_code == 0, began.output
    link = project / "experiments/a/memory/memory.sqlite"
    assert link.is_symlink()
    for path in (file, link):
        assert "n0001" in run_in(project, "memory", "tree", str(path)).output
    more = run_in(project, "search", "--resume", "a", "--plain", "--steps", "2")
    assert more.exit_code == 0, more.output
    assert "n0002" in run_in(project, "memory", "tree", str(file)).output
    assert run_in(project, "search", "report", "a").exit_code == 0
    moved = run_in(project, "search", "--resume", "a", "--memory_db", str(tmp_path / "b"))
    assert "--memory_db: only for a new run" in moved.output
    file.unlink()
    gone = run_in(project, "chat", "--node", "a/best", "-m", "hello")
    assert gone.exit_code != 0
    assert "m.sqlite" in gone.output
    assert not file.exists()


def test_an_idea_of_a_list_is_chosen_by_its_number(climbed: Path) -> None:
    project, ideas = climbed, climbed / "ideas.json"
    second = {"Title": "Second", "Evaluation": "Metric: error, lower is better"}
    ideas.write_text(json.dumps([{"Title": "A"}, second]))
    arguments = ["--idea_idx", "1", "--name", "two", "--time", "0.001s", "--no-memory", "--plain"]
    result = run_in(project, "search", str(ideas), *arguments)
    assert "over: its time of 0.001 s is over" in result.output
    assert "optimises error, lower is better" in result.output
    assert (project / "experiments/two/idea.md").read_text().startswith("# Second")


def test_settings_of_the_original_are_understood(climbed: Path) -> None:
    project, idea = climbed, str(climbed / "climb.md")
    file = project / "bfts_config.yaml"
    file.write_text(
        "exec:\n  timeout: 77\n  format_tb_ipython: false\n  singularity_image: /x.sif\n"
        "agent:\n  num_workers: 1\n  unknown: 5\n  steps: 0\n"
        "  code: {model: gpt-5.2, temp: 1.0}\n"
        "  stages: {stage1_max_iters: 1, stage2_max_iters: 0, stage4_max_iters: 0}\n"
        "  multi_seed_eval: {num_seeds: 0}\n  search: {num_drafts: 1, debug_prob: 0.25}\n"
        "memory:\n  enabled: false\n"
    )
    configure(project, {"ext_llms.llm_configs": {"gpt-5.2": {"llm.model": "m"}}})
    arguments = ["--config", str(file), "--name", "b", "--plain", "--seed", "7"]
    result = run_in(project, "search", idea, *arguments, "--time", "0.001s")
    assert "over: its time of 0.001 s is over" in result.output
    (told,) = [line for line in result.output.splitlines() if "not used of" in line]
    named = "exec.format_tb_ipython, exec.singularity_image, agent.unknown, agent.code;"
    assert told.partition("bfts_config.yaml: ")[2].startswith(named)
    assert not (project / "experiments/b/memory").exists()
    kept = json.loads((project / "experiments/b/config.json").read_text())
    expected = {
        "search.run_timeout_s": 77, "search.workers": 1, "search.steps": 0, "search.num_seeds": 0,
        "search.stage1_nodes": 1, "search.stage2_nodes": 0, "search.stage3_nodes": 0,
        "search.stage4_nodes": 0, "search.num_drafts": 1, "search.debug_prob": 0.25,
        "search.code_alias": "gpt-5.2", "search.seed": 7, "memory.enabled": False,
    }  # fmt: skip
    assert {name: kept[name] for name in expected} == expected


def test_ctrl_c_stops_it_and_it_can_be_gone_on_with(
    climbed: Path, climber: LastingClimber, command_line: CommandLine
) -> None:
    project, idea = climbed, str(climbed / "climb.md")
    climber.lasts = True
    arguments = ["-p", str(project), "search", idea, "--plain", "--name", "stopped"]
    more = {"search.num_drafts": 6, "search.stage1_nodes": 6, "search.workers": 1}
    more["memory.enabled"] = False
    configure(project, more)
    with subprocess.Popen(
        [*command_line.program, *arguments], env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        before = [next(process.stdout)]
        while not before[-1].startswith("n0001"):
            before.append(next(process.stdout))
        assert "  running now" in run_in(project, "search", "list").output
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "stopping: what is being tried is given up" in said
    assert f"stopped; continue with: taskweaver -p {project} search --resume stopped" in said
    assert (project / "experiments/stopped/report.md").is_file()
    done = ids(project, "stopped")
    assert done == ["n0001"]
    listed = run_in(project, "search", "list").output
    assert "  stopped\n" in listed
    assert f"taskweaver -p {project} search --resume RUN" in listed
    climber.lasts = False
    again = run_in(project, "search", "--resume", "stopped", "--plain", "--steps", "2")
    assert again.exit_code == 0, again.output
    assert "continues after 1 node" in again.output
    assert "over: limit of the run reached: 2 nodes" in again.output
    assert ids(project, "stopped") == ["n0001", "n0002"]


def test_a_resource_file_counts_from_the_current_folder(
    climbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, idea = climbed, str(climbed / "climb.md")
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("local: []\n")
    Path("bfts_config.yaml").write_text(
        "exec: {resources: mine.yaml}\nmemory: {db_path: m.sqlite}\n"
    )
    steps = ["--steps", "1", "--plain"]
    options = {"a": ["--resources", "mine.yaml"], "b": ["--config", "bfts_config.yaml"]}
    for name, option in options.items():
        result = run_in(project, "search", idea, "--name", name, *steps, *option)
        assert result.exit_code == 0, result.output
        kept = json.loads((project / f"experiments/{name}/config.json").read_text())
        assert kept["search.resources"] == str(tmp_path / "mine.yaml")
    assert "n0001" in run_in(project, "memory", "tree", str(tmp_path / "m.sqlite")).output
    more = ["--resume", "b", "--config", "bfts_config.yaml", "--plain", "--steps", "1"]
    assert "not used of bfts_config.yaml: memory.db_path" in run_in(project, "search", *more).output


WRONG_USAGE = [
    (["--plain"], "Give an idea, or --resume RUN"),
    (["idea.md", "--resume", "latest"], "Give an idea, or --resume RUN"),
    (["idea.md", "--time", "soon"], "write a time with its unit, like 8h"),
    (["idea.md", "--time", "1h30"], "write a time with its unit, like 8h"),
    (["idea.md", "--budget", "much"], "write an amount like 5"),
    (["idea.md", "--workers", "0"], "Invalid value for '--workers'"),
    (["idea.md", "--resources", "none.yaml"], "Invalid value for '--resources'"),
    (["idea.md", "--name", "../up"], "is no name of a run"),
    (["missing.md"], "There is no file missing.md"),
    (["n" * 300], "cannot be read: File name too long"),
    (["idea.md", "--config", "n" * 300], "cannot be read: File name too long"),
    (["lst"], "There is no file lst. Did you mean `search list`?"),
    (["empty.md"], "empty.md is empty"),
    (["list.json", "--idea_idx", "2"], "there is no number 2"),
    (["broken.json"], "is not JSON"),
    (["untitled.json"], "holds no idea"),
    (["latin.md"], "not UTF-8"),
    (["--resume", "latest"], "There are: none"),
    (["--resume", "x", "--name", "a", "--idea_idx", "3"], "--name and --idea_idx: only for a new"),
    (["idea.md", "--config", "none.yaml"], "There is no file none.yaml"),
    (["idea.md", "--config", "list.json"], "must be a mapping"),
    (["plain.md"], "No model is configured, and no built-in one knows this idea"),
]


def test_a_project_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    result = run_in(tmp_path / "nope", "search", str(IDEA))
    assert result.exit_code == 2
    assert "There is no folder" in result.output
    assert not list(tmp_path.iterdir())
    result = run_in(tmp_path, "search", "list")
    assert "is a plain folder" in result.output
    assert "There are no runs yet" in result.output


def test_the_help_of_the_group_shows_the_options_of_a_search() -> None:
    result = CliRunner().invoke(commands, ["search", "--help"])
    for word in ("--workers", "--steps", "--time", "--budget", "--resume", "list", "show"):
        assert word in result.output
    assert "--memory_core_max_chars" not in result.output  # hidden


def test_what_cannot_be_done_is_told_and_leaves_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    Path("idea.md").write_text(IDEA.read_text())
    Path("plain.md").write_text("just try something\n")
    Path("empty.md").write_text(" \n\n")
    Path("latin.md").write_bytes("# Größe".encode("latin-1"))
    Path("list.json").write_text('[{"Title": "a"}, {"Title": "b"}]')
    Path("broken.json").write_text("[{")
    Path("untitled.json").write_text('{"Name": "x"}')
    for arguments, reason in WRONG_USAGE:
        result = run_in(project, "search", *arguments)
        assert result.exit_code in {1, 2}, (arguments, result.output)
        assert reason in " ".join(result.output.split()), (arguments, result.output)
        assert "Traceback" not in result.output
    assert not list(project.glob("experiments/*"))
    assert "no runs yet" in run_in(project, "search", "list").output


def test_a_memory_belongs_to_one_run(project: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken.sqlite"
    taken.write_bytes(b"somebody's")
    wrong = [
        ([str(IDEA), "--memory_db", str(taken)], "is there already, and each run has a memory"),
        ([str(IDEA), "--memory_db", str(taken / "m")], "cannot be made"),
        ([str(IDEA), "--memory_db", str(tmp_path / "m"), "--no-memory"], "has none to keep"),
    ]
    for arguments, reason in wrong:
        result = run_in(project, "search", *arguments)
        assert result.exit_code == 2, (arguments, result.output)
        assert reason in " ".join(result.output.split()), (arguments, result.output)
    assert taken.read_bytes() == b"somebody's"
    assert not (tmp_path / "m").exists()
    assert not list(project.glob("experiments/*"))


FORTY = {f"search.stage{number}_nodes": 10 for number in range(1, 5)} | {
    "memory.enabled": False, "search.num_drafts": 3, "search.num_seeds": 3,
}  # fmt: skip


@pytest.mark.measured
def test_what_is_said_stands_above_the_live_tree(climbed: Path, climber: LastingClimber) -> None:
    project = climbed
    climber.lasts = True
    configure(project, FORTY)
    arguments = ["-p", str(project), "search", str(project / "climb.md"), "--name", "a"]
    screen = Screen(*arguments, NO_COLOR="")
    screen.wait_for("n0002")
    drawn = screen.drawn
    assert "stage 1, initial implementation" in drawn
    assert "Ctrl-C stops" in drawn
    screen.process.send_signal(signal.SIGINT)
    assert screen.wait_for_end() == 0, screen.drawn
    rest = screen.drawn[len(drawn) :]
    # It is written where the tree was taken away, and the tree again below it.
    assert "\x1b[2Kstopping: what is being tried is given up, the rest is kept ..." in rest
    last = rest.rpartition("initial implementation")[2]
    assert " of 40 nodes" in last
    assert "Ctrl-C stops" not in last
    assert "stopped; continue with: " in last
