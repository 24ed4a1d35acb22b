"""Settings of the host that commands of an attempt are given: variables, and files they name."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

_FILES = frozenset(
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO CONDARC PIP_CERT"
    " NODE_EXTRA_CA_CERTS PIP_CLIENT_CERT PIP_CONFIG_FILE PIP_FIND_LINKS UV_CONFIG_FILE".split()
)
"""Variables of certificates and configurations, whose files downloads may read."""
_FETCHING = ("HF_ENDPOINT", "PIP_*", "UV_*", *_FILES)
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
_OWN_WAYS = frozenset(
    "PIP_TARGET PIP_PREFIX PIP_USER PIP_ROOT PIP_UPGRADE PIP_CACHE_DIR UV_CACHE_DIR PIP_LOG".split()
)
"""Variables of the places pip writes to, which the search decides."""


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
        patterns += [*_PROXIES, *map(str.upper, _PROXIES)]
    found = {
        name: value
        for name, value in os.environ.items()
        if name not in _OWN_WAYS and any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    file = _pip_file() if is_fetching else None
    return found if file is None else {"PIP_CONFIG_FILE": str(file), **found}


def named_files(variables: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the files of this host that variables of certificates and configurations name."""
    paths = (Path(value) for name, value in variables.items() if name in _FILES)
    return tuple(path for path in paths if path.is_absolute() and path.exists())


def _pip_file() -> Path | None:
    """Return the configuration file of pip that this user has; commands have another home."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    files = (settings / "pip/pip.conf", Path.home() / ".pip/pip.conf")
    return next((file for file in files if file.is_file()), None)
