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
from phase_plans import artifacts, in_c, with_code
from sizes import some

from taskweaver.ces.command.command import CommandLimits
from taskweaver.ces.errors import SandboxUnavailable
from taskweaver.ces.policy import SandboxPolicy, Tier
from taskweaver.ces.sandbox import sandbox
from taskweaver.treesearch.execution.commands import first_errors
from taskweaver.treesearch.execution.job import Job, JobResult
from taskweaver.treesearch.execution.phases import run_download_command, run_job
from taskweaver.treesearch.model.limits import PhaseLimits
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
LIMITS = PhaseLimits(30, 30, 30, CommandLimits(process_limit=64))


def limits_with(**of_commands: int) -> PhaseLimits:
    """Return the limits with others for each command."""
    return replace(LIMITS, command=replace(LIMITS.command, **of_commands))


RESULT = "import json\njson.dump({}, open('working/result.json', 'w'))\n"

Make = Callable[..., Job]


@pytest.fixture(params=[NO_TIER, *TIERS], ids=str)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    policy = None if request.param is None else SandboxPolicy(tier=request.param)

    def job(data: Any, node_id: str = "n", **fields: Any) -> Job:
        folder = tmp_path / "run" / "nodes" / node_id
        usual = {"limits": LIMITS, "sandbox": policy}
        return Job(
            run_dir=tmp_path / "run", node_id=node_id, workspace=folder / "workspace",
            log_dir=folder / "logs", plan=PhasePlan.from_dict(data), **(usual | fields),
        )  # fmt: skip

    return job


@pytest.fixture
def plain(tmp_path: Path) -> Make:
    def job(data: Any, **fields: Any) -> Job:
        usual = {"workspace": tmp_path / "w", "log_dir": tmp_path / "logs", "limits": LIMITS}
        return Job(tmp_path, "n", plan=PhasePlan.from_dict(data), **(usual | fields))

    return job


def statuses(result: JobResult) -> dict[str, str]:
    return {phase.name: phase.status for phase in result.phases}


def written(text: str) -> dict[str, Any]:
    """Return a plan whose run writes this as its result."""
    return with_code(f"open('working/result.json', 'w').write({text!r})")


def test_a_job_may_take_as_long_as_its_commands(plain: Make) -> None:
    limits = PhaseLimits(download_s=600, compile_s=300, run_s=3600)
    data = {"download": {"commands": ["a", "b"]}, "run": {"commands": ["c"]}}
    job = plain(data, limits=limits)
    assert job.longest_s == 2 * 600 + 3600
    assert replace(job, phases=("coding", "compile", "run")).longest_s == 3600


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
    assert statuses(result) == {
        "download": "skipped", "coding": "ok", "compile": "skipped", "run": "ok",
    }  # fmt: skip
    assert result.result == {
        "metric": {"a": 1.0, "b": 2.5}, "valid": True, "details": {"n": [1]},
    }  # fmt: skip
    assert result.files == ("working/result.json", "working/x_data.npy")
    assert result.output == "hello 1 7\n"
    assert result.exec_seconds == result.phases[-1].seconds > 0
    assert result.phases[-1].log == "nodes/n/logs/run.log"
    log = (job.log_dir / "run.log").read_text()
    assert log.startswith("$ python main.py\nhello 1 7\n\nexit_code=0")
    assert (job.log_dir / "coding.log").read_text().startswith("main.py (")
    assert pickle.loads(pickle.dumps(result)) == result


@needs_gcc
def test_c_is_compiled_and_runs(make: Make) -> None:
    code = '#include <stdio.h>\nint main() { printf("%d\\n", X); return 0; }\n'
    result = run_job(make(in_c(code, cflags=["-O1", "-DX=6 * 7"])))
    assert result.error is None
    assert statuses(result)["compile"] == "ok"
    assert result.output == "42\n"
    assert result.result is None


@needs_gcc
def test_a_compile_error_carries_the_first_errors(make: Make) -> None:
    code = "#include <nothing-of-this-name.h>\nint main() { return 0; }\n"
    result = run_job(make(in_c(code)))
    assert result.error
    assert result.error.kind == "CompilationError"
    assert "fatal error: nothing-of-this-name.h" in result.error.message
    assert statuses(result) == {"download": "skipped", "coding": "ok", "compile": "failed"}
    unknown = run_job(make(in_c("int f(); int main() { return f(); }\n"), "m"))
    assert unknown.error
    assert "undefined reference to `f'" in unknown.error.message


def test_a_flood_of_errors_is_cut() -> None:
    flood = "".join(f"m.c:{n}:1: error: x{n}\n  {n} | source\n" for n in range(5000))
    assert first_errors(flood).splitlines()[:2] == ["m.c:0:1: error: x0", "  0 | source"]
    assert len(first_errors(flood).splitlines()) == 12
    assert first_errors("all is well") == ""


def test_a_run_error_carries_the_last_lines(make: Make) -> None:
    result = run_job(make(with_code("print('x\\n' * 500)\n1 / 0\n")))
    assert result.error
    assert result.error.kind == "RuntimeError"
    assert "`python main.py`: exit status 1" in result.error.message
    assert result.error.message.endswith("ZeroDivisionError: division by zero")
    assert len(result.error.message) < 2500
    assert result.phases[-1].exit_code == 1


@pytest.mark.parametrize(
    ("sections", "kind", "phase"),
    [
        ({"download": {"commands": ["exit 5", "touch never"]}}, "DownloadError", "download"),
        (
            {"compile": {"build_plan": {}, "commands": ["exit 5", "touch never"]}},
            "CompilationError",
            "compile",
        ),
        ({"run": {"commands": ["exit 5", "touch never"]}}, "RuntimeError", "run"),
        ({"run": {"commands": ["kill -9 $$", "touch never"]}}, "RuntimeError", "run"),
    ],
)
def test_the_first_command_that_fails_ends_it(
    plain: Make, sections: Any, kind: str, phase: str
) -> None:
    result = run_job(plain(artifacts(**sections)))
    assert result.error
    assert result.error.kind == kind
    assert result.phases[-1].name == phase
    assert not (plain(artifacts()).workspace / "never").exists()


@pytest.mark.parametrize("phase", ["download", "compile", "run"])
def test_what_hangs_is_a_timeout(plain: Make, phase: str) -> None:
    hang = {"commands": ["echo begun; trap '' TERM; sleep 60 & wait"]}
    limits = replace(LIMITS, **{f"{phase}_s": 0.5})
    result = run_job(plain(artifacts(**{phase: hang}), limits=limits))
    assert result.error
    assert result.error.kind == "TimeoutError"
    assert "its time limit" in result.error.message
    assert result.phases[-1].status == "timeout"
    assert result.output == "begun\n"
    log = (plain(artifacts()).log_dir / f"{phase}.log").read_text()
    assert "exit_code=none  # stopped after" in log


def test_a_command_sets_its_own_number_of_threads(plain: Make) -> None:
    run = {"commands": ["OMP_NUM_THREADS=3 bash -c 'echo $OMP_NUM_THREADS'"]}
    assert run_job(plain(artifacts(run=run))).output == "3\n"


def test_a_gpu_is_named(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-2")
    run = {"commands": ["echo $CUDA_VISIBLE_DEVICES"]}
    assert run_job(make(artifacts(run=run))).output == "GPU-2\n"


@pytest.mark.parametrize("tier", TIERS)
def test_only_a_download_reaches_the_network(tmp_path: Path, plain: Make, tier: Tier) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        reach = f"echo > /dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        policy = SandboxPolicy(has_network=True, tier=tier)
        data = artifacts(download={"commands": [reach]}, run={"commands": [reach]})
        result = run_job(plain(data, sandbox=policy))
        assert statuses(result)["download"] == "ok"
        assert statuses(result)["run"] == "failed"
        without = run_job(plain(data, sandbox=SandboxPolicy(tier=tier)))
        assert statuses(without) == {"download": "failed"}


def test_a_link_in_the_workspace_is_told(make: Make, tmp_path: Path) -> None:
    data = artifacts(download={"commands": [f"ln -s {tmp_path} src"]})
    result = run_job(make(data))
    assert result.error
    assert result.error.kind == "PhasePlanError"
    assert "src is a link" in result.error.message
    assert not (tmp_path / "main.py").exists()


def test_phases_may_come_one_by_one(plain: Make) -> None:
    data = artifacts(download={"commands": ["echo x > fetched"]}, run={"commands": ["cat fetched"]})
    first = run_job(plain(data, phases=("download",)))
    assert statuses(first) == {"download": "ok"}
    second = run_job(plain(data, phases=("coding", "compile", "run")))
    assert second.error is None
    assert second.output == "x\n"


def test_a_child_begins_where_its_parent_was(make: Make) -> None:
    parent = make(with_code("open('working/old.npy', 'w'); open('out', 'w')", compile={}))
    assert run_job(parent).files == ("working/old.npy",)
    child = make(
        artifacts(
            coding={},
            run={"commands": ["ls", "ls working"], "expected_outputs": ["working/old.npy"]},
        ),
        "child",
        parent_workspace=parent.workspace,
    )
    result = run_job(child)
    assert result.error
    assert "did not write what it should: working/old.npy" in result.error.message
    assert result.output == ""
    assert (child.workspace / "main.py").exists()


def test_what_was_there_before_is_no_output(make: Make) -> None:
    parent = make(artifacts(run={"commands": ["echo 1 > data.npy"]}))
    run_job(parent)
    for command, is_stale in [("true", True), ("echo 1 > data.npy", False)]:
        run = {"commands": [command], "expected_outputs": ["data.npy"]}
        child = make(artifacts(run=run), f"c{is_stale}", parent_workspace=parent.workspace)
        error = run_job(child).error
        assert ("left as it was before: data.npy" in error.message if error else False) == is_stale


def test_an_output_outside_is_none(make: Make, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    run = {"commands": [f"ln -s {tmp_path}/secret o; ln -s l l"], "expected_outputs": ["o", "l"]}
    error = run_job(make(artifacts(run=run))).error
    assert error
    assert "o, l" in error.message


@pytest.mark.parametrize("text", ['{"metric": NaN}', '{"metric": {"a": 1, "b": NaN}}'])
def test_nan_is_for_the_caller_to_judge(plain: Make, text: str) -> None:
    result = run_job(plain(written(text)))
    assert result.error is None
    assert result.result
    metric = result.result["metric"]
    assert math.isnan(metric["b"] if isinstance(metric, dict) else metric)


def test_numbers_beyond_all_measure(plain: Make) -> None:
    result = run_job(plain(written('{"metric": {"a": 1' + "0" * 400 + ', "b": -Infinity}}')))
    assert result.result
    assert result.result["metric"] == {"a": math.inf, "b": -math.inf}


def test_a_run_may_say_that_it_is_not_valid(plain: Make) -> None:
    text = json.dumps({"metric": 9.0, "valid": False, "details": {"residual": 0.1}})
    result = run_job(plain(written(text)))
    assert result.error
    assert result.error.kind == "ValidityError"
    assert "residual" in result.error.message
    assert result.result is None
    assert result.phases[-1].status == "failed"


BAD_RESULTS = [
    "", "{", "[]", "3", "{}", '{"metric": null}', '{"metric": "1"}', '{"metric": true}',
    '{"metric": [1]}', '{"metric": {}}', '{"metric": {"a": null}}', '{"metric": {"a": {"b": 1}}}',
    '{"metric": 1, "valid": "yes"}', '{"metric": 1, "details": [1]}', "[" * 100_000,
    '{"metric": 1, "details": {"a": "\\ud800"}}', '{"metric": 1' + "0" * 5000 + "}",
    json.dumps({"metric": 1, "details": {"a": "x" * (1 << 20)}}),
    json.dumps({"metric": {str(n): 1 for n in range(1001)}}),
    '{"metric": {"' + "x" * 300 + '": 1}}',
]  # fmt: skip


@pytest.mark.parametrize("text", BAD_RESULTS, ids=lambda text: text[:30])
def test_a_result_that_is_none(plain: Make, text: str) -> None:
    result = run_job(plain(written(text)))
    assert result.error
    assert result.error.kind == "MetricError"
    assert len(result.error.message) < 1000


@pytest.mark.parametrize(
    "command",
    [
        "ln -s /etc/hostname working/result.json", "mkfifo working/result.json",
        "mkdir working/result.json", r"printf '\377\376' > working/result.json",
        "rmdir working; ln -s /etc working; true", "rmdir working; ln -s . working;"
        " echo '{\"metric\": 1}' > result.json",
    ],
)  # fmt: skip
def test_a_result_that_is_no_file(make: Make, command: str) -> None:
    result = run_job(make(artifacts(run={"commands": [command]})))
    assert result.error
    assert result.error.kind == "MetricError"
    assert result.files == () or result.files == ("working/result.json",)


def test_a_result_that_was_written_before_the_run_is_gone(plain: Make) -> None:
    early = {"commands": ["mkdir working; echo '{\"metric\": 1}' > working/result.json"]}
    result = run_job(plain(artifacts(download=early)))
    assert result.error is None
    assert result.result is None


def test_a_disk_that_is_full(make: Make) -> None:
    code = "f = open('working/big', 'wb')\nfor _ in range(99): f.write(bytes(1 << 20))\n"
    result = run_job(make(with_code(code), limits=limits_with(file_bytes=4 << 20)))
    assert result.error
    assert result.error.kind == "RuntimeError"
    assert "File too large" in result.error.message


@pytest.mark.parametrize("count", some([40_000_000, 200_000_000], 1))
def test_a_flood_and_bytes_that_are_no_text(make: Make, count: int) -> None:
    run = {"commands": [rf"head -c {count} /dev/zero | tr '\0' '\377'; exit 3"]}
    job = make(artifacts(run=run), limits=limits_with(output_bytes=10_000))
    result = run_job(job)
    assert result.error
    assert result.error.kind == "RuntimeError"
    assert (job.log_dir / "run.log").stat().st_size < 100_000
    result.error.message.encode()
    result.output.encode()


def test_commands_of_an_installer(make: Make) -> None:
    job = make(artifacts())
    done = run_download_command(job, "echo one; exit 2")
    assert (done.exit_code, done.tail) == (2, "one\n")
    assert run_download_command(job, "mkdir -p .pydeps && echo 'x=1' > .pydeps/m.py").is_ok
    assert (job.log_dir / "download.log").read_text().count("exit_code=") == 2
    run = run_job(make(with_code("import m; print(m.x)"), phases=("coding", "compile", "run")))
    assert run.output == "1\n"
    assert pickle.loads(pickle.dumps(done)) == done


def test_compiling_works_where_the_plan_says(make: Make) -> None:
    compile_ = {"build_plan": {"workdir": "/workspace/src"}, "commands": ["pwd"]}
    data = artifacts(compile=compile_)
    assert run_job(make(data, phases=("coding", "compile"))).output.strip().endswith("/src")
    compile_["build_plan"] = {"workdir": "none"}
    error = run_job(make(data)).error
    assert error
    assert error.kind == "CompilationError"
    assert "no folder none" in error.message


def test_a_parent_that_is_gone(plain: Make, tmp_path: Path) -> None:
    result = run_job(plain(artifacts(), parent_workspace=tmp_path / "none"))
    assert result.error
    assert result.error.kind == "CodingError"
    assert "cannot be taken over" in result.error.message


def test_without_its_sandbox_nothing_runs(
    plain: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.require.cache_clear()
    try:
        result = run_job(plain(artifacts(), sandbox=SandboxPolicy()))
    finally:
        sandbox.require.cache_clear()
    assert result.error
    assert "not started: No sandbox: bubblewrap is not installed" in result.error.message
