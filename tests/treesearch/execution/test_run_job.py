"""Carrying out the phases of a node: real files, real commands, a real compiler."""

from __future__ import annotations

import json
import math
import pickle
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from phase_plans import LIMITS, artifacts, in_c, with_code

from taskweaver.ces.errors import SandboxUnavailable
from taskweaver.ces.policy import SandboxPolicy, Tier
from taskweaver.ces.sandbox import sandbox
from taskweaver.treesearch.execution.job import Job, JobResult
from taskweaver.treesearch.execution.phases import first_errors, run_download_command, run_job
from taskweaver.treesearch.model.phase_plan import PhasePlan


def available(tier: Tier) -> bool:
    try:
        sandbox.require(tier)
    except SandboxUnavailable:
        return False
    return True


TIERS = [tier for tier in get_args(Tier) if available(tier)]
NO_TIER = pytest.param(None, marks=[pytest.mark.long] if TIERS else [])  # as `plain`, which stays
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
Make = Callable[..., Job]


@pytest.fixture
def plain(tmp_path: Path) -> Make:
    def job(data: Any, node_id: str = "n", **fields: Any) -> Job:
        folder = tmp_path / "run" / "nodes" / node_id
        usual = {"limits": LIMITS, "workspace": folder / "workspace", "log_dir": folder / "logs"}
        return Job(tmp_path / "run", node_id, plan=PhasePlan.from_dict(data), **(usual | fields))

    return job


@pytest.fixture(params=[NO_TIER, *TIERS], ids=str)
def make(request: pytest.FixtureRequest, plain: Make) -> Make:
    policy = None if request.param is None else SandboxPolicy(tier=request.param)
    return lambda *args, **fields: plain(*args, **({"sandbox": policy} | fields))


def statuses(result: JobResult) -> dict[str, str]:
    return {phase.name: phase.status for phase in result.phases}


def failure(result: JobResult) -> tuple[str, str]:
    return result.error.kind, result.error.message


def test_python_runs(make: Make) -> None:
    code = (
        "import json, os, numpy\n"
        "print('hello', os.environ['OMP_NUM_THREADS'], os.environ['TASKWEAVER_SEED'])\n"
        "json.dump({'metric': {'a': 1, 'b': 2.5}, 'valid': True, 'details': {'n': [1]}},\n"
        "    open('working/result.json', 'w'))\n"
        "numpy.save('working/x_data.npy', numpy.ones(2))\n"
    )
    run = {"commands": ["python main.py"], "expected_outputs": ["working/x_data.npy"]}
    job = make(with_code(code, run=run), seed=7)
    result = run_job(job)
    assert result.error is None
    assert list(statuses(result).values()) == ["skipped", "ok", "skipped", "ok"]
    metric = {"a": 1.0, "b": 2.5}
    assert result.result == {"metric": metric, "valid": True, "details": {"n": [1]}}
    assert result.files == ("working/result.json", "working/x_data.npy")
    assert result.output == "hello 1 7\n"
    assert result.exec_seconds == result.phases[-1].seconds > 0
    assert result.phases[-1].log == "nodes/n/logs/run.log"
    log = (job.log_dir / "run.log").read_text()
    assert log.startswith("$ python main.py\nhello 1 7\n\nexit_code=0")
    assert (job.log_dir / "coding.log").read_text().startswith("main.py (")
    assert pickle.loads(pickle.dumps(result)) == result


@needs_gcc
def test_c_is_compiled_and_its_first_errors_are_told(make: Make) -> None:
    code = '#include <stdio.h>\nint main() { printf("%d\\n", X); return 0; }\n'
    result = run_job(make(in_c(code, cflags=["-O1", "-DX=6 * 7"])))
    assert result.error is None
    assert (statuses(result)["compile"], result.output, result.result) == ("ok", "42\n", None)
    missing = run_job(make(in_c("#include <nothing-of-this-name.h>\n"), "missing"))
    kind, message = failure(missing)
    assert kind == "CompilationError"
    assert "fatal error: nothing-of-this-name.h" in message
    assert statuses(missing) == {"download": "skipped", "coding": "ok", "compile": "failed"}
    unknown = run_job(make(in_c("int f(); int main() { return f(); }\n"), "unknown"))
    assert "undefined reference to `f'" in failure(unknown)[1]


def test_a_flood_of_errors_is_cut_and_a_run_error_carries_the_last_lines(plain: Make) -> None:
    flood = "".join(f"m.c:{n}:1: error: x{n}\n  {n} | source\n" for n in range(5000))
    assert first_errors(flood).splitlines()[:2] == ["m.c:0:1: error: x0", "  0 | source"]
    assert len(first_errors(flood).splitlines()) == 12
    assert first_errors("all is well") == ""
    result = run_job(plain(with_code("print('x\\n' * 500)\n1 / 0\n")))
    kind, message = failure(result)
    assert kind == "RuntimeError"
    assert "`python main.py`: exit status 1" in message
    assert message.endswith("ZeroDivisionError: division by zero")
    assert len(message) < 2500
    assert result.phases[-1].exit_code == 1


@pytest.mark.parametrize(
    ("phase", "kind"),
    [("download", "DownloadError"), ("compile", "CompilationError"), ("run", "RuntimeError")],
)
def test_the_first_command_that_fails_or_hangs_ends_it(plain: Make, phase: str, kind: str) -> None:
    job = plain(artifacts(**{phase: {"commands": ["kill -9 $$", "touch never"]}}))
    result = run_job(job)
    assert failure(result)[0] == kind
    assert result.phases[-1].name == phase
    assert not (job.workspace / "never").exists()
    hang = {"commands": ["echo begun; trap '' TERM; sleep 60 & wait"]}
    limits = replace(LIMITS, **{f"{phase}_s": 0.5})
    job = plain(artifacts(**{phase: hang}), "late", limits=limits)
    result = run_job(job)
    kind, message = failure(result)
    assert (kind, result.phases[-1].status, result.output) == ("TimeoutError", "timeout", "begun\n")
    assert "its time limit" in message
    assert "exit_code=none  # stopped after" in (job.log_dir / f"{phase}.log").read_text()


@pytest.mark.parametrize("tier", TIERS)
def test_only_a_download_reaches_the_network(plain: Make, tier: Tier) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        reach = f"echo > /dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        policy = SandboxPolicy(has_network=True, tier=tier)
        data = artifacts(download={"commands": [reach]}, run={"commands": [reach]})
        result = run_job(plain(data, sandbox=policy))
        assert (statuses(result)["download"], statuses(result)["run"]) == ("ok", "failed")
        without = run_job(plain(data, sandbox=SandboxPolicy(tier=tier)))
        assert statuses(without) == {"download": "failed"}


def test_a_link_in_the_workspace_is_told(plain: Make, tmp_path: Path) -> None:
    linking = artifacts(download={"commands": [f"ln -s {tmp_path} src"]})
    kind, message = failure(run_job(plain(linking)))
    assert kind == "PhasePlanError"
    assert "src is a link" in message
    assert not (tmp_path / "main.py").exists()


def test_what_was_there_before_is_no_output(plain: Make, tmp_path: Path) -> None:
    """A child begins where its parent was, without what the parent's run wrote."""
    (tmp_path / "secret").write_text("x")
    parent = plain(artifacts(run={"commands": ["echo 1 | tee data.npy working/old.npy"]}))
    assert run_job(parent).files == ("working/old.npy",)
    for command, output, problem in [
        ("true", "working/old.npy", "did not write what it should: working/old.npy"),
        ("true", "data.npy", "left as it was before: data.npy"),
        (f"ln -s {tmp_path}/secret o", "o", "did not write what it should: o"),
        ("ln -s l l", "l", "did not write what it should: l"),
        ("echo 1 > data.npy", "data.npy", ""),
    ]:
        run = {"commands": [command], "expected_outputs": [output]}
        child = plain(artifacts(run=run), command[:9], parent_workspace=parent.workspace)
        shutil.rmtree(child.workspace, ignore_errors=True)
        error = run_job(child).error
        assert problem in (error.message if error else "")
        assert bool(problem) == (error is not None)
    gone = run_job(plain(artifacts(), "gone", parent_workspace=tmp_path / "none"))
    assert failure(gone)[0] == "CodingError"


def written(text: str) -> dict[str, Any]:
    """Return a plan whose run writes this as its result."""
    return with_code(f"open('working/result.json', 'w').write({text!r})")


BAD_RESULTS = [
    "{", "[]", '{"metric": null}', '{"metric": true}', '{"metric": {}}',
    '{"metric": {"a": {"b": 1}}}', '{"metric": 1, "valid": "yes"}', '{"metric": 1, "details": [1]}',
    "[" * 100_000, '{"metric": 1, "details": {"a": "\\ud800"}}',
    json.dumps({"metric": 1, "details": {"a": "x" * (1 << 20)}}),
    json.dumps({"metric": {str(n): 1 for n in range(1001)}}),
    json.dumps({"metric": {"x" * 300: 1}}),
]  # fmt: skip


def test_a_result_that_is_none(plain: Make) -> None:
    for number, text in enumerate(BAD_RESULTS):
        kind, message = failure(run_job(plain(written(text), f"n{number}")))
        assert kind == "MetricError", text[:40]
        assert len(message) < 1000
    refused = json.dumps({"metric": 9.0, "valid": False, "details": {"residual": 0.1}})
    result = run_job(plain(written(refused)))
    kind, message = failure(result)
    assert (kind, result.result, result.phases[-1].status) == ("ValidityError", None, "failed")
    assert "residual" in message
    # Numbers beyond all measure are for the caller to judge.
    text = '{"metric": {"a": 1' + "0" * 400 + ', "b": -Infinity, "c": NaN}}'
    one, two, three = run_job(plain(written(text), "vast")).result["metric"].values()
    assert (one, two, math.isnan(three)) == (math.inf, -math.inf, True)


def test_a_result_that_is_no_file(plain: Make) -> None:
    for number, command in enumerate((
        "ln -s /etc/hostname working/result.json", "mkfifo working/result.json",
        r"printf '\377\376' > working/result.json",
        "rmdir working; ln -s . working; echo '{\"metric\": 1}' > result.json",
    )):  # fmt: skip
        result = run_job(plain(artifacts(run={"commands": [command]}), f"n{number}"))
        assert failure(result)[0] == "MetricError", command
        assert result.files in ((), ("working/result.json",))


def test_commands_of_an_installer(make: Make) -> None:
    job = make(artifacts())
    done = run_download_command(job, "echo one; exit 2")
    assert (done.exit_code, done.tail) == (2, "one\n")
    early = "mkdir -p .pydeps working; echo 'x=1' > .pydeps/m.py; echo 1 > working/result.json"
    assert run_download_command(job, early).is_ok
    assert (job.log_dir / "download.log").read_text().count("exit_code=") == 2
    run = run_job(make(with_code("import m; print(m.x)"), phases=("coding", "compile", "run")))
    assert (run.output, run.result) == ("1\n", None)  # what was there before its run is gone
    assert pickle.loads(pickle.dumps(done)) == done


def test_compiling_works_where_the_plan_says(plain: Make) -> None:
    compile_ = {"build_plan": {"workdir": "/workspace/src"}, "commands": ["pwd"]}
    data = artifacts(compile=compile_)
    assert run_job(plain(data, phases=("coding", "compile"))).output.strip().endswith("/src")
    compile_["build_plan"] = {"workdir": "none"}
    kind, message = failure(run_job(plain(data)))
    assert kind == "CompilationError"
    assert "no folder none" in message


def test_without_its_sandbox_nothing_runs(
    plain: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.require.cache_clear()
    try:
        result = run_job(plain(artifacts(), sandbox=SandboxPolicy()))
    finally:
        sandbox.require.cache_clear()
    assert "not started: No sandbox: bubblewrap is not installed" in failure(result)[1]
