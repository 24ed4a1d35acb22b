"""Hosts that keys of the environment may be sent to, and hosts that were not called before."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from taskweaver.llm.errors import ModelError
from taskweaver.llm.selection.config import LLMServiceConfig
from taskweaver.llm.transport.endpoint import is_loopback
from taskweaver.utils.system.installation import state_folder

_AZURE = tuple(
    f".{service}.{cloud}"
    for service in ("openai", "cognitiveservices", "services.ai")
    for cloud in ("azure.com", "azure.us", "azure.cn")
)


def require_own_host(config: LLMServiceConfig, base: str, *, is_own: bool) -> None:
    """Refuse to send a key of the environment to a host that a project names.

    A host that the environment names, the program or a project that is trusted, is the user's
    choice.

    Args:
        config: The model's configuration.
        base: The address the key is for.
        is_own: Whether it belongs to the provider whose key it is.

    Raises:
        ModelError: Of kind ``configuration``, if the key is not sent there.
    """
    if is_own or config.address_source != "json" or config.src.trusts_addresses:
        return
    host = urlsplit(base).hostname
    detail = f"a key or sign-in of yours is not sent to {host}, which the project names."
    hint = "Trust the project (taskweaver trust), or set LLM_API_BASE."
    raise ModelError("configuration", detail, hint=hint)


def is_azure(base: str) -> bool:
    """Return whether an address is one of Azure's own, by https."""
    parts = urlsplit(base.strip())
    return parts.scheme == "https" and (parts.hostname or "").endswith(_AZURE)


def is_first_call(base: str) -> bool:
    """Return whether no model at a host was called before, and note that it is now.

    This machine is known. Without a home folder every host is new to each process.
    """
    parts = urlsplit(base.strip())
    folder = state_folder()
    if is_loopback(base) or not parts.hostname:
        return False
    if folder is None:
        return True
    name = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    try:
        (folder / "hosts").mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(folder / "hosts" / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    except OSError:  # it cannot be noted: it is said again next time
        return True
    return True
