"""A host that runs share: turns, GPUs, programs, settings, and full disks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from phase_plans import LIMITS, artifacts, in_c, with_code
from search_lab import ONE, PLACE, Climber, lab, proposal, search
from search_story import node

from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.bwrap import bwrap_command
from taskweaver.treesearch.engine.bench import check_room
from taskweaver.treesearch.errors import PhasePlanError, SearchError
from taskweaver.treesearch.execution import machine, timing
from taskweaver.treesearch.execution.job import Job
from taskweaver.treesearch.execution.machine import collect_environment, devices_of, gpus
from taskweaver.treesearch.execution.phases import host_variables, named_files, run_job
from taskweaver.treesearch.execution.timing import host_turn
from taskweaver.treesearch.model.journal import Journal
from taskweaver.treesearch.model.node import USED_BY_OTHERS, Measurement, NodeKind, Objective
from taskweaver.treesearch.model.phase_plan import PhasePlan
from taskweaver.treesearch.record.run_statistics import certainty

FEW_S = 0.3


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that temporary files of this test alone go to."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # for worker processes, too
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_wait_for_the_turn_ends_where_it_is_cut_off(place: Path) -> None:
    cut_off = threading.Event()
    cut_off.set()
    with host_turn(), host_turn(cut_off):
        pass


def test_a_turn_that_cannot_be_had_ends_a_timed_search_at_its_start(place: Path) -> None:
    with host_turn():
        (file,) = place.glob("*.lock")
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
    job = Job(tmp_path, "n", tmp_path / "w", tmp_path / "logs", plan, LIMITS, is_timed=True)
    forever = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
    with subprocess.Popen(forever, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        timed = run_job(job)
        other.kill()
    untimed = run_job(replace(job, is_timed=False))
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


def test_compilers_and_mpi_are_those_on_the_path_with_their_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_compiler_that_an_attempt_brings_is_not_refused() -> None:
    installed = in_c("", compiler_selected="icx")
    installed["download"]["commands"] = ["pip install ziglang"]
    loaded = in_c("", compiler_selected="icx")
    loaded["compile"]["commands"].insert(0, "module load intel")
    for data in (installed, loaded):
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
    sandboxed = given(is_fetching=True, has_network=False)
    assert "https_proxy" not in sandboxed  # the sandbox has its own
    assert given("C*", is_fetching=False).get("CC") == "gcc-13"
    assert given(is_fetching=False) == {}


def test_full_disk_is_no_fault_of_the_attempt(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        plan = artifacts(run={"commands": ["dd if=/dev/zero of=big bs=1k count=4096"]})
        job = Job(tmp_path, "n", small / "w", tmp_path / "logs", PhasePlan.from_dict(plan), LIMITS)
        with pytest.raises(OSError, match="No space left on device"):
            check_room(run_job(job), job.workspace)
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_search_passes_the_variables_of_its_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODULEPATH", "/opt/modules")
    project = lab(tmp_path, **{"execution.pass_environment": ["MODULE*"]})
    command = """[ "$MODULEPATH" = /opt/modules ] && echo '{"metric": 1}' > working/result.json"""
    attempt = json.dumps(proposal(PLACE, run={"commands": [command]}))
    made = search(project, lambda _: attempt, **ONE, memory=False)
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


def test_gpus_are_known_by_name(cards: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpus(*cards) == NAMES
    numbered = {"-1": (), "1,-1,0": ("GPU-bb22",), "GPU-bb, 9": ("GPU-bb", "9")}
    for named, found in numbered.items():
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
        assert gpus(*cards) == found


def test_a_job_is_given_the_devices_of_its_gpus(cards: tuple[Path, Path]) -> None:
    dev, driver = cards
    assert not devices_of("-1", dev, driver)
    own = {"GPU-bb,GPU-cc33": ["nvidia0", "nvidia2"], "0": EVERY, "GPU-aa11,MIG-1": EVERY}
    for named, devices in own.items():
        given = [str(path.relative_to(dev)) for path in devices_of(named, dev, driver)]
        assert given == devices + SHARED


def test_the_command_line_names_them(tmp_path: Path) -> None:
    policy = SandboxPolicy(devices=(Path("/dev/nvidia1"), Path("/dev/nvidiactl")))
    words = " ".join(bwrap_command(policy, [tmp_path], 3))
    empty, first = words.index("--dev /dev "), words.index("--dev-bind-try /dev/nvidia1 /dev/nv")
    assert empty < first < words.index("--dev-bind-try /dev/nvidiactl /dev/nvidiactl")
    assert "--ro-bind-try /sys/module /sys/module" in words
    without = " ".join(bwrap_command(SandboxPolicy(), [tmp_path], 3))
    assert "--dev-bind" not in without
    assert "/sys" not in without.replace("/proc/sys", "")


def test_the_compiler_of_a_gpu_is_named_where_a_gpu_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It prints its version on a line below its name."""
    lines = {"nvcc": "nvcc: compiler driver\\nCuda tools, release 12.4, V12.4.131"}
    for name, text in (lines | {"nvidia-smi": "A100"}).items():
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '{text}\\n'\n")
    (tmp_path / "nvcc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert "nvcc" not in str(collect_environment().get("compilers"))
    (tmp_path / "nvidia-smi").chmod(0o755)
    facts = collect_environment()
    assert facts["gpus"] == ["A100"]
    assert "nvcc: Cuda tools, release 12.4, V12.4.131" in facts["compilers"]  # type: ignore[operator]


def test_the_machine_is_described_by_what_it_says() -> None:
    facts = collect_environment()
    assert isinstance(facts["python"], str)
    assert facts["cpus"] >= 1
    words = set(Path("/proc/cpuinfo").read_text().split())
    assert set(facts.get("simd", [])) <= words  # type: ignore[arg-type]
    assert ("avx2" in words) == ("avx2" in facts.get("simd", []))  # type: ignore[operator]
    has_caches = Path("/sys/devices/system/cpu/cpu0/cache/index0/size").exists()
    assert has_caches == any(one.startswith("L1") for one in facts.get("caches", []))  # type: ignore[union-attr]
    assert all(":" in tool or tool.isalnum() for tool in facts.get("tools", []))  # type: ignore[union-attr]
    has_huge_pages = Path("/sys/kernel/mm/transparent_hugepage/enabled").exists()
    assert not has_huge_pages or "transparent: " in str(facts["huge_pages"])


def test_odd_files_of_a_cache_hide_no_other_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, sharing in (("index0", "0-1"), ("index1", "none"), ("index2", None)):
        place = tmp_path / "cpu/cpu0/cache" / name
        place.mkdir(parents=True)
        files = {"level": name[-1], "type": "Data", "size": "32K", "shared_cpu_list": sharing}
        for file, text in files.items():
            if text is not None:
                (place / file).write_text(f"{text}\n")
    monkeypatch.setattr(machine, "_SYSTEM", tmp_path)
    caches = ["L0 Data 32K (shared by 2 CPUs)", "L1 Data 32K", "L2 Data 32K"]
    assert collect_environment()["caches"] == caches
