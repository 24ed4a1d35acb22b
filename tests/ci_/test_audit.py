"""The audit of the gate, with pip-audit itself and a service of advisories on this machine."""

from __future__ import annotations

import datetime
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from fake_endpoint import Call, serving
from patience import PATIENCE_S

SCRIPT = Path(__file__).parents[2] / ".ci" / "audit.py"
AUDIT = runpy.run_path(str(SCRIPT))
TODAY = datetime.date(2026, 11, 22)
AFFECTED = {
    "package": {"name": "leaky", "ecosystem": "PyPI"},
    "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.0"}]}],
}
VULNERABILITY = {
    "id": "GHSA-test-0000-0001", "aliases": ["CVE-2099-1"], "summary": "it does what it should not",
    "affected": [AFFECTED],
}  # fmt: skip
SOUND = '{"dependencies": [{"name": "sound", "version": "3.1", "vulns": []}]}'


def advise(call: Call) -> None:
    """Answer as a service of advisories that knows one vulnerability."""
    is_known = call.body["package"]["name"] == "leaky" and call.body["version"] == "1.0"
    call.answer(200, {"vulns": [VULNERABILITY]} if is_known else {})


def audit(folder: Path, url: str, **packages: str) -> tuple[int, str]:
    """Audit a folder in which packages seem to be installed; return status and output."""
    for name, version in packages.items():
        place = folder / f"{name}-{version}.dist-info"
        place.mkdir(parents=True)
        (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}")
    arguments = ["--path", str(folder), "--vulnerability-service", "osv", "--osv-url", url]
    environment = {name: os.environ[name] for name in os.environ if "proxy" not in name.lower()}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        env=environment | {"AUDIT_LIMIT_S": str(PATIENCE_S)},  # a busy machine is slow
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_a_known_vulnerability_fails(tmp_path: Path) -> None:
    with serving(advise) as endpoint:
        status, output = audit(tmp_path, f"{endpoint.url}/query", leaky="1.0", sound="3.1")
    assert status == 1
    assert output == ("audit: 2 packages, 1 vulnerable\n  leaky 1.0: CVE-2099-1, fixed in 2.0\n")


@pytest.mark.parametrize(
    ("output", "errors", "status", "said"),
    [
        (SOUND, "", 0, "audit: 1 packages, 0 vulnerable\n"),
        ("", "usage: pip-audit [-h]", 1, "audit: pip-audit failed (3):\nusage: pip-audit [-h]\n"),
        ("", "requests.exceptions.X: y", 0, "audit: NOT DONE: no service: requests.exceptions.X"),
    ],
    ids=["sound", "broken", "no service"],
)
def test_an_end_of_pip_audit_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    output: str, errors: str, status: int, said: str,
) -> None:  # fmt: skip
    stand_in = tmp_path / "python"
    stand_in.write_text(f"#!/bin/sh\necho '{output}'\necho '{errors}' >&2\nexit 3\n")
    stand_in.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(stand_in))
    assert AUDIT["main"]([]) == status
    assert capsys.readouterr().out.startswith(said)


def test_packages_unknown_to_the_service_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    sound = {"name": "b", "version": "1", "vulns": []}
    packages = [{"name": "a", "skip_reason": "not found"}, sound]
    assert AUDIT["_report"](packages) == 0
    assert "NOT DONE for 1 packages, unknown to the service:\n  a" in capsys.readouterr().out


ENTRY = 'package = "leaky"\nid = "CVE-2099-1"\nreason = "not reached"\n'


def test_an_entry_ignores_a_vulnerability_until_its_date(tmp_path: Path) -> None:
    file = tmp_path / "ignore.toml"
    file.write_text(f"[[ignored]]\n{ENTRY}until = 2026-11-22\n")
    vulnerability = {"id": "GHSA-1", "aliases": ["CVE-2099-1"], "fix_versions": []}
    packages = [{"name": "leaky", "version": "1", "vulns": [vulnerability]}]
    read, find = AUDIT["read_ignored"], AUDIT["vulnerabilities"]
    assert list(find(packages, read(file, TODAY))) == []
    late = read(file, TODAY + datetime.timedelta(days=1))
    assert list(find(packages, late)) == ["leaky 1: GHSA-1, fixed in no version"]
    other = [{"name": "other", "version": "1", "vulns": [vulnerability]}]
    assert len(list(find(other, read(file, TODAY)))) == 1


@pytest.mark.parametrize("entry", [ENTRY, 'package = "a"\nid = "b"\nuntil = 2026-11-22\n'])
def test_an_entry_needs_a_reason_and_a_date(tmp_path: Path, entry: str) -> None:
    file = tmp_path / "ignore.toml"
    file.write_text(f"[[ignored]]\n{entry}")
    with pytest.raises(ValueError, match=r"reason|until"):
        AUDIT["read_ignored"](file, TODAY)


def test_the_list_of_the_gate_can_be_read() -> None:
    AUDIT["read_ignored"](AUDIT["IGNORED"], TODAY)
