"""Sign-in to Azure with Microsoft Entra ID (Azure AD), by the package ``azure-identity``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from taskweaver.llm.errors import ModelError
from taskweaver.utils.redact import register_secret
from taskweaver.utils.system.requirements import install_command

TokenProvider = Callable[[], str]
"""Returns a token that is valid now."""


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
        """Return a function that returns a valid token; signing in happens at its first call.

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
