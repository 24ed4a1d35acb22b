"""The address of the PostgreSQL database that several servers share, from a configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from taskweaver.config.module_config import ModuleConfig
from taskweaver.server.errors import ServerError
from taskweaver.utils.system.installation import install_command

_SCHEMES = ("postgresql://", "postgres://")
_SECRETS = {"password", "sslpassword", "oauth_client_secret"}
_FORM = "It looks like postgresql://user@host:5432/database."


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """An address of a PostgreSQL database, with the password.

    Attributes:
        url: The address, without a password.
        password: The password; empty leaves it to PostgreSQL's own client, which takes it from
            ``PGPASSWORD`` or ``~/.pgpass``, or needs none.
    """

    url: str
    password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Check the form.

        Raises:
            ServerError: If it is no address, or holds a secret, or if psycopg is not installed.
        """
        if not (find_spec("psycopg") and find_spec("psycopg_pool")):
            detail = "A database that several servers share needs psycopg:"
            raise ServerError(detail, install_command("serve-postgres"))
        found = _SECRETS & self.parts().keys()
        if found:
            raise ServerError(
                f"The address of the database (server.database, or SERVER_DATABASE) holds"
                f" {' and '.join(sorted(found))}; secrets do not belong in it.",
                "Set the password as SERVER_DATABASE_PASSWORD in the environment, and other secrets"
                " in pg_service.conf, whose services the address can name (?service=NAME).",
            )

    def parts(self) -> dict[str, Any]:
        """Return the parts of the address by their names in PostgreSQL's client.

        Raises:
            ServerError: If it is no address.
        """
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict

        try:
            if self.url.startswith(_SCHEMES):
                return dict(conninfo_to_dict(self.url))
        except Error:  # without it: its text repeats parts of the address
            pass
        raise ServerError("server.database is no address of a PostgreSQL database.", _FORM)

    @property
    def name(self) -> str:
        """Name of the database at the beginning of messages."""
        parts = self.parts()
        database = parts.get("dbname") or parts.get("user") or "of this user"
        return f"The database {database} at {parts.get('host') or 'this machine'}"


class SharedDatabaseConfig(ModuleConfig):
    """Keys under ``server.``.

    Attributes:
        address: The database that several servers share; None for files of one server.
    """

    def _configure(self) -> None:
        self._set_name("server")
        url, password = self._get_str("database"), self._get_str("database_password")
        self.address = PostgresAddress(url, password) if url else None
