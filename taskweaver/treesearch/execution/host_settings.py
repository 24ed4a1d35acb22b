"""Settings of the host that commands of an attempt are given: variables, and files they name."""

from __future__ import annotations

import os
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path

_FETCHING = (
    "HF_ENDPOINT", "PIP_*", "UV_*", "CONDARC", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS",
)  # fmt: skip
"""Variables of package indexes and certificates."""
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
_OWN_WAYS = frozenset({"PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_ROOT", "PIP_UPGRADE"})
"""Variables that say where pip installs, which the search decides."""
_PIP_FILE = "PIP_CONFIG_FILE"


def host_variables(
    names: Collection[str], *, is_fetching: bool, has_network: bool
) -> dict[str, str]:
    """Return variables of this process for a command.

    Those are the variables whose names match one of `names`, and where the command fetches, those
    of package indexes and certificates. A command that has the network itself, and no proxy of the
    sandbox, uses the host's proxies too, and pip's configuration file.
    """
    patterns = [*names, *(_FETCHING if is_fetching else ())]
    if is_fetching and has_network:
        patterns += [*_PROXIES, *(name.upper() for name in _PROXIES)]
    found = {
        name: value
        for name, value in os.environ.items()
        if name not in _OWN_WAYS and any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    file = _pip_file() if is_fetching else None
    return found if file is None else {_PIP_FILE: str(file), **found}


def named_files(variables: Collection[str]) -> tuple[Path, ...]:
    """Return the files and folders of this host that values of variables name."""
    paths = map(Path, variables)
    return tuple(path for path in paths if path.is_absolute() and path.exists())


def _pip_file() -> Path | None:
    """Return the configuration file of pip that this user has; commands have another home."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    files = (settings / "pip/pip.conf", Path.home() / ".pip/pip.conf")
    return next((file for file in files if file.is_file()), None)
