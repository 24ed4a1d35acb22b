"""Facts about the machine, as the system states them."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskweaver.treesearch.execution import machine
from taskweaver.treesearch.execution.machine import collect_environment


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
    assert facts["python"].__class__ is str
    assert isinstance(facts["cpus"], int)
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
    assert collect_environment()["caches"] == [
        "L0 Data 32K (shared by 2 CPUs)",
        "L1 Data 32K",
        "L2 Data 32K",
    ]
