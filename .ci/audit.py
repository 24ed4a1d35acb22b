"""Compare the installed packages with the known vulnerabilities, by pip-audit.

Fails for a vulnerability that `audit-ignore.toml` does not list, and for a pip-audit that does not
work. A service of advisories that does not answer within `AUDIT_LIMIT_S` seconds (28) is reported
and does not fail: the gate is not to depend on it. Arguments go to pip-audit.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

IGNORED = Path(__file__).with_name("audit-ignore.toml")
_LIMIT_S = float(os.environ.get("AUDIT_LIMIT_S", "28"))
_SOCKET_S = 5
_NO_SERVICE = re.compile(
    r"requests\.exceptions\.|ConnectionError|ServiceError|Could not connect|JSONDecodeError"
)
"""Errors of pip-audit that come from the service, or from the way to it."""


def main(arguments: list[str]) -> int:
    """Run the audit; return the exit status."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
    command += ["--timeout", str(_SOCKET_S), *(arguments or ["--skip-editable"])]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"audit: NOT DONE: the service did not answer within {_LIMIT_S:g} s")
        return 0
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, LookupError, TypeError):
        if _NO_SERVICE.search(done.stderr):
            print(f"audit: NOT DONE: no service: {done.stderr.strip().splitlines()[-1]}")
            return 0
        print(f"audit: pip-audit failed ({done.returncode}):\n{done.stderr}")
        return 1
    return _report(packages)


def _report(packages: list[dict[str, Any]]) -> int:
    ignored = read_ignored(IGNORED, datetime.datetime.now(datetime.UTC).date())
    found = list(vulnerabilities(packages, ignored))
    unknown = [package["name"] for package in packages if "vulns" not in package]
    print(f"audit: {len(packages) - len(unknown)} packages, {len(found)} vulnerable")
    if unknown:
        print(f"audit: NOT DONE for {len(unknown)} packages, unknown to the service:")
        print("  " + ", ".join(unknown))
    for line in found:
        print(f"  {line}")
    return 1 if found else 0


def read_ignored(file: Path, today: datetime.date) -> set[tuple[str, str]]:
    """Return the vulnerabilities that are ignored today, each as package and id.

    Raises:
        ValueError: If an entry lacks its reason, its date or another part.
    """
    entries = tomllib.loads(file.read_text("utf-8")).get("ignored", [])
    found = set()
    for entry in entries:
        until = entry.get("until")
        parts = [entry.get(name) for name in ("package", "id", "reason")]
        if not all(isinstance(part, str) and part for part in parts):
            raise ValueError(f"{file}: an entry needs package, id and reason: {entry}")
        if not isinstance(until, datetime.date):
            raise ValueError(f"{file}: an entry needs the date `until`: {entry}")
        if today <= until:
            found.add((entry["package"], entry["id"]))
    return found


def vulnerabilities(packages: list[dict[str, Any]], ignored: set[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each vulnerability of a report that is not ignored."""
    for package in packages:
        for item in package.get("vulns", ()):
            ids = [item["id"], *item.get("aliases", ())]
            if not any((package["name"], id_) in ignored for id_ in ids):
                fixed = ", ".join(item["fix_versions"]) or "no version"
                yield f"{package['name']} {package['version']}: {item['id']}, fixed in {fixed}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
