"""Address of a model, connections to it, and the sign-in to Azure with Microsoft Entra ID."""

from __future__ import annotations

import importlib
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from taskweaver.llm.errors import ModelError
from taskweaver.utils.redact import register_secret
from taskweaver.utils.system.installation import install_command
from taskweaver.utils.system.network import tls_context

TokenProvider = Callable[[], str]
"""Returns a token that is valid now."""

_NO_KEY = "none"
"""Sent where no key is needed: the client insists on one."""


@dataclass(frozen=True, slots=True)
class AzureSignIn:
    """Way to obtain a token.

    Attributes:
        mode: ``default_azure_credential``, ``device_login`` or ``aad_app``.
        tenant_id: The directory.
        client_id: The application; needed for ``aad_app``.
        client_secret: Its secret; needed for ``aad_app``.
        resource: Address of the service the token is for.
        scope: Scope at the service.
    """

    mode: str
    tenant_id: str
    client_id: str
    client_secret: str = field(repr=False)
    resource: str
    scope: str

    def token_provider(self) -> TokenProvider:
        """Return a function that returns a valid token.

        Signing in happens at the function's first call.

        Raises:
            ModelError: Of kind ``configuration``, if the package is missing, or a key.
        """
        try:
            identity: Any = importlib.import_module("azure.identity")
        except ImportError:
            detail = "llm.api_type azure_ad needs the package azure-identity."
            hint = f"Install it: {install_command('azure')}. Or use azure with llm.api_key."
            raise ModelError("configuration", detail, hint=hint) from None
        credential = self._credential(identity)
        scope = f"{self.resource.rstrip('/')}/{self.scope.lstrip('/')}"
        provide: TokenProvider = identity.get_bearer_token_provider(credential, scope)

        def token() -> str:
            value = provide()
            register_secret(value)
            return value

        return token

    def _credential(self, identity: Any) -> Any:
        match self.mode:
            case "aad_app":
                missing = [
                    f"llm.azure_ad.aad_{name}"
                    for name in ("client_id", "client_secret")
                    if not getattr(self, name)
                ]
                if missing:
                    detail = f"signing in as an application needs {' and '.join(missing)}."
                    raise ModelError("configuration", detail)
                register_secret(self.client_secret)
                return identity.ClientSecretCredential(
                    self.tenant_id, self.client_id, self.client_secret
                )
            case "device_login":
                known = {"client_id": self.client_id} if self.client_id else {}
                return identity.DeviceCodeCredential(
                    tenant_id=self.tenant_id, prompt_callback=_show_code, **known
                )
            case _:
                return identity.DefaultAzureCredential()


def _show_code(address: str, code: str, *_: object) -> None:
    sys.stderr.write(f"To sign in to Azure, open {address} and enter {code}.\n")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible endpoint and the model asked there.

    Attributes:
        api_base: Address up to ``/v1``; of Azure the resource's address.
        model: Name of the model; of Azure the deployment's name.
        api_key: Key; may be empty on loopback and where none is needed.
        api_version: API version of Azure; empty for every other endpoint.
        token_provider: Returns a token of Azure AD for each request; None sends the key.
    """

    api_base: str
    model: str
    api_key: str = field(default="", repr=False)
    api_version: str = ""
    token_provider: TokenProvider | None = field(default=None, repr=False, compare=False)

    @property
    def address(self) -> str:
        """The address without a login or a query."""
        parts = urlsplit(self.api_base)
        host = parts.netloc.rpartition("@")[2]
        return parts._replace(netloc=host, query="", fragment="").geturl()

    @property
    def is_loopback(self) -> bool:
        """Whether the address is of this machine."""
        return is_loopback(self.api_base)


def at_root(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint at the server's root: the address without ``/v1`` at the end."""
    base = endpoint.api_base.rstrip("/").removesuffix("/v1").rstrip("/")
    return replace(endpoint, api_base=base)


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine. Names are not looked up."""
    host = (split_url(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def split_url(url: str) -> SplitResult:
    """Split an address of an endpoint.

    Raises:
        ModelError: Of kind ``configuration``, if it is not an http(s) address.
    """
    with suppress(ValueError):
        parts = urlsplit(url.strip())
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    detail = f"{url!r} is not an address such as http://127.0.0.1:11434/v1."
    raise ModelError("configuration", detail, hint="Check llm.api_base.")


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as sent.

    Attributes:
        path: Path after the endpoint's address.
        body: Body, of which ``model`` names the model.
        headers: Headers beyond the client's own; an empty one removes the client's.
        method: Its method; a GET has no body.
    """

    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    method: Literal["GET", "POST"] = "POST"


class ModelConnection:
    """A client with at most one connection, used by one call at a time.

    So a call is cancelled by closing its socket, whatever the call is waiting for.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        import openai

        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_cut = False
        # A proxy never stands between us and this machine, and a key follows no redirect.
        http = openai.DefaultHttpxClient(
            trust_env=not endpoint.is_loopback,
            verify=tls_context(),
            follow_redirects=False,
            event_hooks={"request": [self._watch]},
        )
        common: dict[str, Any] = {"max_retries": 0, "http_client": http}
        if endpoint.token_provider is None:
            common["api_key"] = endpoint.api_key or _NO_KEY
        else:
            common["azure_ad_token_provider"] = endpoint.token_provider
        register_secret(endpoint.api_key)
        if endpoint.api_version:
            self.client: openai.OpenAI = openai.AzureOpenAI(
                azure_endpoint=endpoint.api_base, api_version=endpoint.api_version, **common
            )
        else:
            self.client = openai.OpenAI(base_url=endpoint.api_base, **common)

    @contextmanager
    def open(self, sent: Sent, *, connect_s: float, read_s: float) -> Iterator[Iterator[bytes]]:
        """Send a request, and yield the blocks of the streaming response.

        The client would spend most of its time on building an object for each piece of the reply.
        """
        import openai

        content: dict[str, Any] = {"body": sent.body} if sent.method == "POST" else {}
        call = self.client.post if sent.method == "POST" else self.client.get
        stream: openai.Stream[object] = call(
            sent.path,
            cast_to=object,
            options={
                "headers": {name: text or openai.Omit() for name, text in sent.headers.items()},
                "timeout": openai.Timeout(read_s, connect=connect_s),
            },
            stream=True,
            stream_cls=openai.Stream[object],
            **content,
        )
        with closing(stream.response) as response:
            yield response.iter_bytes()

    def cut(self) -> None:
        """Break the connection, now or as soon as there is one."""
        with self._lock:
            self._is_cut = True
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Release the connection."""
        self.client.close()

    def _watch(self, request: Any) -> None:
        request.extensions = {**request.extensions, "trace": self._trace}

    def _trace(self, name: str, info: dict[str, Any]) -> None:
        if name.endswith(("connect_tcp.complete", "start_tls.complete")):
            with self._lock:
                self._socket = info["return_value"].get_extra_info("socket")
                is_cut = self._is_cut
            if is_cut:
                self.cut()


class ConnectionPool:
    """Pool of idle connections to an endpoint. Interrupted connections never return to the pool."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._idle: list[ModelConnection] = []
        self._is_closed = False

    def take(self) -> ModelConnection:
        """Return an idle connection, or a new one."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return ModelConnection(self._endpoint)

    def put_back(self, connection: ModelConnection) -> None:
        """Keep a connection for the next call."""
        with self._lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the idle connections. Connections in use are closed when returned."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
