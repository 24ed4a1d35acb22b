"""Requests of a client: the blocks of a prompt, and errors in the protocol's words."""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from mimetypes import guess_extension
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from acp.exceptions import RequestError
from acp.helpers import ContentBlock
from acp.schema import (
    EmbeddedResourceContentBlock,
    HttpMcpServer,
    ImageContentBlock,
    McpServerStdio,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from taskweaver.errors import TaskWeaverError
from taskweaver.logging.log import TelemetryLogger
from taskweaver.mcp.config import ServerConfig, server_config
from taskweaver.session.storage.workdir import AddedFile
from taskweaver.utils.named_files import Finder, numbered
from taskweaver.utils.redact import redact_known

INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_FOUND = -32002

AnyMethod = TypeVar("AnyMethod", bound=Callable[..., Awaitable[Any]])


def refused(code: int, sentence: str) -> RequestError:
    """Return the error of a request that is not carried out."""
    return RequestError(code, redact_known(sentence))


def worded(method: AnyMethod) -> AnyMethod:
    """Turn the errors of a method into errors of the protocol. The method's object has a `log`."""

    @functools.wraps(method)
    async def carry_out(*args: Any, **kwargs: Any) -> Any:
        log: TelemetryLogger = args[0].log
        try:
            return await method(*args, **kwargs)
        except RequestError:
            raise
        except (TaskWeaverError, OSError) as error:
            raise refused(INTERNAL_ERROR, str(error)) from error
        except Exception as error:
            log.exception(f"{method.__name__} failed")
            name = type(error).__name__
            raise refused(INTERNAL_ERROR, f"{name}: the log has the details.") from error

    return carry_out  # type: ignore[return-value]


def client_servers(servers: Sequence[Any] | None, cwd: str) -> list[ServerConfig]:
    """Return the MCP servers of a client as configured ones, for which each call is confirmed.

    Raises:
        RequestError: If one is of a kind that is not used here.
        ConfigError: If one is not of the right form.
    """
    found = []
    for server in servers or ():
        fields: dict[str, Any] = {}
        match server:
            case McpServerStdio():
                env = {one.name: one.value for one in server.env}
                fields = {"command": server.command, "args": server.args, "env": env, "cwd": cwd}
            case HttpMcpServer():
                headers = {one.name: one.value for one in server.headers}
                fields = {"url": server.url, "headers": headers}
            case _:
                detail = (
                    f"The MCP server {server.name} is of type {server.type}, not stdio or http."
                )
                raise refused(INVALID_PARAMS, detail)
        found.append(server_config(server.name, fields, Path(cwd)))
    return found


_LOCAL = {"", "localhost"}


@dataclass(slots=True)
class AcpPrompt:
    """A prompt.

    Attributes:
        text: Its text; files stand in it by their names.
        files: The files, by name.
    """

    text: str = ""
    files: dict[str, AddedFile] = field(default_factory=dict)


def read_prompt(blocks: Sequence[ContentBlock], folder: Path) -> AcpPrompt:
    """Read the blocks of a prompt, with the tables of the client's folder that the text names.

    Raises:
        RequestError: If a block cannot be used, or there is no text and no file.
    """
    prompt = AcpPrompt()
    for block in blocks:
        prompt.text += _taken(block, prompt)
    if not prompt.text.strip():
        raise refused(INVALID_PARAMS, "The prompt is empty: it needs a text.")
    for named in Finder(None, folder, folder, tables_only=True).in_text(prompt.text):
        if not named.problem:
            name = named.source.name
            prompt.files.setdefault(name, AddedFile(name=name, path=named.path))
    return prompt


def _taken(block: ContentBlock, prompt: AcpPrompt) -> str:
    """Take a block, and return the text."""
    match block:
        case TextContentBlock():
            return block.text
        case ResourceContentBlock():
            return _linked(block.uri, prompt)
        case EmbeddedResourceContentBlock():
            return _embedded(block, prompt)
        case ImageContentBlock():
            name = _name(block.uri or "", f"picture{guess_extension(block.mime_type) or ''}")
            return _content(name, block.data, prompt)
        case _:
            detail = f"A prompt has texts and files here, and no {block.type}."
            raise refused(INVALID_PARAMS, detail)


def _linked(uri: str, prompt: AcpPrompt) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise refused(INVALID_PARAMS, f"{uri!r} is no address: {error}.") from error
    if parts.scheme != "file":
        return uri
    path = Path(unquote(parts.path))
    if parts.netloc not in _LOCAL or not path.is_absolute():
        raise refused(INVALID_PARAMS, f"{uri!r} is no file of this machine.")
    if path.is_dir():
        return str(path)
    if not path.is_file():
        raise refused(INVALID_PARAMS, f"The file {path} does not exist.")
    return _added(path.name, prompt, AddedFile(name=path.name, path=path))


def _embedded(block: EmbeddedResourceContentBlock, prompt: AcpPrompt) -> str:
    resource = block.resource
    name = _name(resource.uri, "attachment.txt")
    if isinstance(resource, TextResourceContents):
        return _added(name, prompt, AddedFile(name=name, content=resource.text))
    return _content(name, resource.blob, prompt)


def _name(uri: str, other: str) -> str:
    """Return the name of a file by its address, or another name."""
    return unquote(urlsplit(uri).path).rpartition("/")[2] or other


def _content(name: str, encoded: str, prompt: AcpPrompt) -> str:
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise refused(
            INVALID_PARAMS, f"The content of {name} is not valid base64: {error}."
        ) from error
    return _added(name, prompt, AddedFile(name=name, content=content))


def _added(name: str, prompt: AcpPrompt, file: AddedFile) -> str:
    """Add a file, under a new name where the prompt has a file of this name."""
    for chosen in numbered(name):
        own = AddedFile({**file, "name": chosen})
        if prompt.files.setdefault(chosen, own) == own:
            break
    return chosen
