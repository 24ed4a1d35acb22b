"""Which GPUs there are, and which devices a job that has one is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskweaver.ces.policy import SandboxPolicy
from taskweaver.ces.sandbox.bwrap import bwrap_command
from taskweaver.treesearch.execution.gpus import devices_of, gpus

NAMES = ("GPU-aa11", "GPU-bb22", "GPU-cc33")
SHARED = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"]
EVERY = ["dri/renderD128", "kfd", "nvidia0", "nvidia1", "nvidia2"]


@pytest.fixture
def machine(tmp_path: Path) -> tuple[Path, Path]:
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
    machine: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    named: str | None,
    found: tuple[str, ...],
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert gpus(*machine) == found


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
    machine: tuple[Path, Path], named: str, own: list[str] | None
) -> None:
    dev, driver = machine
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
