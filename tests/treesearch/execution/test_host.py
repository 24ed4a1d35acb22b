"""A host that runs share: turns, GPUs, programs, settings, and full disks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from patience import PATIENCE_S
from phase_plans import artifacts, in_c, with_code
from search_lab import Climber, lab, proposal, search
from search_story import node

from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.bwrap import bwrap_command
from taskweaver.treesearch.engine.node_executor import check_room
from taskweaver.treesearch.errors import PhasePlanError, SearchError
from taskweaver.treesearch.execution import machine, timing
from taskweaver.treesearch.execution.commands import host_variables, named_files
from taskweaver.treesearch.execution.job import Job
from taskweaver.treesearch.execution.machine import devices_of, gpus
from taskweaver.treesearch.execution.phases import run_job
from taskweaver.treesearch.execution.timing import host_turn
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.metric import USED_BY_OTHERS, Measurement, Objective
from taskweaver.treesearch.model.node import NodeKind
from taskweaver.treesearch.model.phase_plan import PhasePlan
from taskweaver.treesearch.record.run_statistics import certainty

FEW_S = 0.3
FOREVER = "print(flush=True)\nwhile True: pass"


@contextmanager
def burning() -> Iterator[None]:
    """Have another program use a processor until the end."""
    command = [sys.executable, "-c", FOREVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            yield
        finally:
            other.kill()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that temporary files of this test alone go to."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # for worker processes, too
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def lock_file(place: Path) -> Path:
    with host_turn():
        (file,) = place.glob("*.lock")
    return file


def test_one_has_the_turn_at_a_time(place: Path) -> None:
    has_it, ended = threading.Event(), threading.Event()

    def wait() -> None:
        with host_turn(threading.Event()):
            has_it.set()
        ended.set()

    with host_turn():
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not has_it.wait(0.5)
    assert ended.wait(PATIENCE_S)
    waiting.join()
    cut_off = threading.Event()
    cut_off.set()
    with host_turn(), host_turn(cut_off):  # a wait that is cut off ends
        pass


def test_a_turn_that_cannot_be_had_ends_a_timed_search_at_its_start(place: Path) -> None:
    file = lock_file(place)
    file.unlink()
    file.symlink_to("elsewhere")
    project = lab(place, goal="seconds (minimize)")
    with pytest.raises(SearchError, match="cannot be opened") as caught:
        search(project, Climber(), steps=1, timed="always")
    assert "Remove it" in str(caught.value)
    assert search(project, Climber(), name="other", steps=1, timed="never").state.journal.good


def test_a_timed_result_tells_what_other_processes_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "_FEWEST_S", FEW_S)  # else the attempt has to take longer
    details = {"n": 3, USED_BY_OTHERS: "none, says the attempt"}
    result = json.dumps({"metric": 1.5, "details": details})
    burn = f"import time\nwhile time.process_time() < {FEW_S}: pass\n"
    plan = PhasePlan.from_dict(
        with_code(f"{burn}open('working/result.json', 'w').write({result!r})")
    )
    job = Job(tmp_path, "n", tmp_path / "w", tmp_path / "logs", plan, is_timed=True)
    with burning():
        timed = run_job(job)
    untimed = run_job(replace(job, is_timed=False))
    assert timed.result is not None
    assert untimed.result is not None
    told = timed.result["details"]
    assert told.pop(USED_BY_OTHERS) > 0
    assert told == untimed.result["details"] == {"n": 3}


def test_a_report_tells_how_busy_the_host_was() -> None:
    journal = Journal(Objective("speed", unit="MFLOPS"))
    for step, used in ((1, {}), (2, {USED_BY_OTHERS: 1.7})):
        done = node(step, NodeKind.DRAFT, 5.0 + step)
        journal.put(replace(done, metric=Measurement({"": 5.0 + step}, used)))
    told = certainty(journal)
    assert "Beside 1 of 2 timed runs other processes" in told
    assert "used up to 1.7 CPUs" in told


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that say their version, alone on the path with the system's shell."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("mpicc", "ifx", "icpx", "nvc++", "nvfortran", "hipcc", "gcc-13", "julia", "ftn",
                 "mpirun", "mycc"):  # fmt: skip
        (folder / name).write_text(f'#!/bin/sh\necho "{name} 4.2"\n')
        (folder / name).chmod(0o755)
    (folder / "go").write_text('#!/bin/sh\n[ "$1" = version ] && echo "go 1.22" || exit 2\n')
    (folder / "go").chmod(0o755)
    (folder / "cc").symlink_to("gcc-13")
    (folder / "notes").write_text("no program")
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.mark.usefixtures("tools")
def test_compilers_and_mpi_are_those_on_the_path_with_their_versions() -> None:
    there = machine.programs()
    found = machine.compilers(there, has_gpus=False)
    assert "notes" not in there
    assert machine.collect_environment()["compilers"] == [
        "ftn: ftn 4.2", "gcc-13: gcc-13 4.2", "go: go 1.22", "hipcc: hipcc 4.2",
        "icpx: icpx 4.2", "ifx: ifx 4.2", "julia: julia 4.2", "mpicc: mpicc 4.2",
        "mpirun: mpirun 4.2", "nvc++: nvc++ 4.2", "nvfortran: nvfortran 4.2",
    ]  # fmt: skip
    for name in ("mpicc", "mycc"):  # any program may compile
        PhasePlan.from_dict(in_c("", compiler_selected=name), found, there)
    with pytest.raises(PhasePlanError, match="icx is not on the path here"):
        PhasePlan.from_dict(in_c("", compiler_selected="icx"), found, there)


@pytest.mark.parametrize(
    "brings",
    [{"download": {"commands": ["pip install ziglang"]}}, {"compile": "module load intel"}],
)
def test_compiler_that_an_attempt_brings_is_not_refused(brings: dict[str, object]) -> None:
    data = in_c("", compiler_selected="icx")
    sections = data.get("phase_artifacts", data)
    if "compile" in brings:
        sections["compile"]["commands"].insert(0, brings["compile"])
    else:
        sections |= brings
    PhasePlan.from_dict(data, ("gcc",), {"gcc"})


def test_downloads_have_the_host_s_index_proxy_and_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("PIP_"):
            monkeypatch.delenv(name)
    cert, conf = tmp_path / "ca.pem", tmp_path / "pip/pip.conf"
    conf.parent.mkdir()
    conf.write_text("[global]\nindex-url = https://index.test/simple\n")
    cert.write_text("cert")
    usual = {
        "PIP_INDEX_URL": "https://index.test/simple", "SSL_CERT_FILE": str(cert),
        "https_proxy": "http://proxy.test:3128",
    }  # fmt: skip
    for name, value in {**usual, "CC": "gcc-13", "PIP_TARGET": "/x", "SECRET": "s"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def given(*names: str, is_fetching: bool, has_network: bool = True) -> dict[str, str]:
        return host_variables(names, is_fetching=is_fetching, has_network=has_network)

    fetching = given(is_fetching=True)
    known = {"PIP_CONFIG_FILE": str(conf), **usual}
    assert {name: fetching.get(name) for name in known} == known
    assert not {"CC", "SECRET", "PIP_TARGET"} & fetching.keys()
    assert set(named_files(fetching)) >= {cert, conf}
    assert named_files({"HOME": str(tmp_path)}) == ()
    assert "https_proxy" not in given(
        is_fetching=True, has_network=False
    )  # the sandbox has its own
    assert given("C*", is_fetching=False).get("CC") == "gcc-13"
    assert given(is_fetching=False) == {}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB, where one may be mounted."""
    place = tmp_path / "small"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_full_disk_is_no_fault_of_the_attempt(tmp_path: Path, small_disk: Path) -> None:
    plan = artifacts(run={"commands": ["dd if=/dev/zero of=big bs=1k count=4096"]})
    job = Job(tmp_path, "n", small_disk / "w", tmp_path / "logs", PhasePlan.from_dict(plan))
    with pytest.raises(OSError, match="No space left on device"):
        check_room(run_job(job), job.workspace)


def test_a_search_passes_the_variables_of_its_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODULEPATH", "/opt/modules")
    project = lab(tmp_path, **{"execution.pass_environment": ["MODULE*"]})
    command = """[ "$MODULEPATH" = /opt/modules ] && echo '{"metric": 1}' > working/result.json"""
    attempt = json.dumps(proposal({"x": 0, "y": 0, "z": 0}, run={"commands": [command]}))
    one = {"stage1_nodes": 1, "num_drafts": 1, "stage2_nodes": 0, "num_seeds": 0, "memory": False}
    made = search(project, lambda *_: attempt, **one)
    assert made.state.journal.nodes[0].value == 1.0


NAMES = ("GPU-aa11", "GPU-bb22", "GPU-cc33")
SHARED = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"]
EVERY = ["dri/renderD128", "kfd", "nvidia0", "nvidia1", "nvidia2"]


@pytest.fixture
def cards(tmp_path: Path) -> tuple[Path, Path]:
    """Three GPUs, numbered by the driver in another order than by their place; one more is away."""
    dev, driver = tmp_path / "dev", tmp_path / "driver"
    (dev / "dri").mkdir(parents=True)
    for name in (*SHARED, *EVERY, "nvme0", "dri/card0"):
        (dev / name).touch()
    for place, (uuid, minor) in enumerate(zip((*NAMES, "GPU-gone"), (1, 0, 2, 7), strict=True)):
        folder = driver / f"0000:0{place}:00.0"
        folder.mkdir(parents=True)
        text = f"Model: \t\t Some GPU\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n"
        (folder / "information").write_text(text)
    return dev, driver


@pytest.mark.parametrize(
    ("named", "found"),
    [
        (None, NAMES),
        ("-1", ()),
        ("1,-1,0", ("GPU-bb22",)),
        ("GPU-bb, 9", ("GPU-bb", "9")),
    ],
)
def test_gpus_are_known_by_name(
    cards: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    named: str | None,
    found: tuple[str, ...],
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert gpus(*cards) == found


@pytest.mark.parametrize(
    ("named", "own"),
    [
        ("-1", None),
        ("GPU-bb,GPU-cc33", ["nvidia0", "nvidia2"]),
        ("0", EVERY),
        ("GPU-aa11,MIG-1", EVERY),
    ],
)
def test_a_job_is_given_the_devices_of_its_gpus(
    cards: tuple[Path, Path], named: str, own: list[str] | None
) -> None:
    dev, driver = cards
    given = devices_of(named, dev, driver)
    assert [str(path.relative_to(dev)) for path in given] == (own + SHARED if own else [])


def test_the_command_line_names_them(tmp_path: Path) -> None:
    policy = SandboxPolicy(devices=(Path("/dev/nvidia1"), Path("/dev/nvidiactl")))
    words = " ".join(bwrap_command(policy, [tmp_path], 3))
    empty, first = words.index("--dev /dev "), words.index("--dev-bind-try /dev/nvidia1 /dev/nv")
    assert empty < first < words.index("--dev-bind-try /dev/nvidiactl /dev/nvidiactl")
    assert "--ro-bind-try /sys/module /sys/module" in words
    without = " ".join(bwrap_command(SandboxPolicy(), [tmp_path], 3))
    assert "--dev-bind" not in without
    assert "/sys" not in without.replace("/proc/sys", "")
