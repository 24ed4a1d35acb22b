"""The host as it is: its programs, its settings for downloads, and its full disks."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from phase_plans import artifacts, in_c
from search_lab import lab, proposal, search

from taskweaver.treesearch.engine.node_executor import check_room
from taskweaver.treesearch.errors import PhasePlanError
from taskweaver.treesearch.execution.executors import toolchain
from taskweaver.treesearch.execution.host_settings import host_variables, named_files
from taskweaver.treesearch.execution.job import Job
from taskweaver.treesearch.execution.phases import run_job
from taskweaver.treesearch.model.phase_plan import PhasePlan


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
    there = toolchain.programs()
    found = toolchain.compilers(there, has_gpus=False)
    assert "notes" not in there
    assert toolchain.versions(found) == [
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
