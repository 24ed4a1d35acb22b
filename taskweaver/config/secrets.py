"""Makes the secrets of a configuration and of the environment known, so that they are masked."""

from __future__ import annotations

import os

from taskweaver.config.config_mgt import AppConfigSource
from taskweaver.utils.redact import keep_places, register_configured, register_environment


def register_secrets(src: AppConfigSource) -> None:
    """Register the keys, tokens and passwords of a configuration and of the environment.

    They are masked from then on in everything this process shows, logs or exports. A value that is
    also a part of the path of a folder the user works in is left out: every path would be masked.
    """
    keep_places(str(src.app_base_path), os.environ.get("PWD", ""), os.environ.get("HOME", ""))
    register_environment(os.environ)
    for name in ("llm.api_key", *src.names()):
        setting = src.lookup(name)
        register_configured(name, setting.value if setting else None)
