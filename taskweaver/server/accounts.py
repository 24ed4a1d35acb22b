"""Users, their tokens and quotas, and the audit log, in one database.

A token is an id that finds the account, and a secret of which only the hash is kept.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self

from taskweaver.server.admission import Admission, Quota, Role, User
from taskweaver.server.databases.address import SharedDatabaseConfig
from taskweaver.server.databases.sqlite import SQLITE_ACCOUNTS, SqliteDatabase
from taskweaver.server.databases.statements import (
    AlreadyThere,
    LoopCalls,
    ServerDatabase,
    insert_row,
)
from taskweaver.server.errors import ServerError
from taskweaver.utils.redact import register_secret

_PREFIX = "tw"
_NO_HASH = bytes(32)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token that is handed out once.

    Attributes:
        id: The part that finds the account; no secret.
        text: All of it, as a client sends it.
        hash: The part that is kept.
    """

    id: str
    text: str = field(repr=False)
    hash: bytes = field(repr=False)


def new_token() -> AccessToken:
    """Return a new token, which the log masks from now on."""
    token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    text = f"{_PREFIX}-{token_id}-{secret}"
    register_secret(text)
    # 256 random bits need no slow hash: there is nothing to guess.
    return AccessToken(token_id, text, sha256(secret.encode()).digest())


def id_of(text: str) -> str:
    """Return the id in a token that a client sent, or an empty text."""
    prefix, _, rest = text.partition("-")
    return rest.partition("-")[0] if prefix == _PREFIX else ""


def is_valid(text: str, stored_hash: bytes | None) -> bool:
    """Return whether a token that a client sent is the one of a stored hash, in constant time.

    None stands for an unknown id, and takes as long.
    """
    secret = text.partition("-")[2].partition("-")[2]
    digest = sha256(secret.encode("utf-8", "surrogatepass")).digest()
    return hmac.compare_digest(digest, stored_hash or _NO_HASH) and stored_hash is not None


LOCAL_USER = "local"
"""Name of the user of a server without accounts: the person who started it."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_KEPT = timedelta(days=365)
_USER_COLUMNS = "name, role, quota, created_at, token_id"


class UserSpending(NamedTuple):
    """Money and tokens that a user has spent."""

    cost: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An action of a user, or an attempt.

    Attributes:
        user: Name of the account; empty for an unknown one.
        address: Address of the client.
        action: Method and route.
        target: Path of the request.
        outcome: Status of the response, or the reason of a refusal.
        request_id: Id of the request.
        at: Time.
    """

    user: str
    address: str
    action: str
    target: str
    outcome: str
    request_id: str
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


_AUDIT_COLUMNS = tuple(item.name for item in fields(AuditEntry))


class Accounts:
    """The accounts of a server. Needs `close`.

    The methods may be called from any thread. Each raises ServerError if the database cannot be
    read or written.

    Attributes:
        calls: Calls of the methods from the event loop.
        admission: The shares of the users.
    """

    def __init__(self, database: ServerDatabase) -> None:
        """Use a database, which is closed with the accounts.

        Raises:
            ServerError: If it cannot be used.
        """
        self._database = database
        self.calls = LoopCalls(database)
        self.admission = Admission()
        oldest = (datetime.now(UTC) - _KEPT).isoformat()
        try:
            with database.changing() as run:
                run("DELETE FROM audit WHERE at < ?", oldest)
        except BaseException:
            database.close()
            raise

    @classmethod
    def at(cls, path: Path) -> Self:
        """Open the accounts in a file. A new file is for the owner alone.

        Raises:
            ServerError: If it cannot be used.
        """
        return cls(SqliteDatabase(path, "The accounts", SQLITE_ACCOUNTS))

    def close(self) -> None:
        """Close the database, after the work that runs. Safe to call again."""
        self.admission.threads.shutdown()
        self._database.close()

    def __enter__(self) -> Self:
        """Return the accounts themselves."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the database."""
        self.close()

    def add(self, name: str, role: Role = "user", quota: Quota | None = None) -> AccessToken:
        """Add a user, and return the token, which is not kept.

        Raises:
            ServerError: If the name is taken, or cannot be one.
        """
        if not _NAME.fullmatch(name):
            raise ServerError(
                f"{name!r} cannot be the name of a user.",
                "Names have at most 64 small letters, digits, dots, hyphens and underscores.",
            )
        if name == LOCAL_USER:
            raise ServerError(
                f"{name!r} is the name of the person who starts a server without users.",
                "Choose another name.",
            )
        token = new_token()
        limits = json.dumps(asdict(quota or Quota()))
        row = (name, role, limits, datetime.now(UTC).isoformat(), token.id, token.hash)
        try:
            with self._database.changing() as run:
                run("INSERT INTO users VALUES (?, ?, ?, ?, ?, ?)", *row)
        except AlreadyThere:
            raise ServerError(f"There is a user {name} already.") from None
        return token

    def renew_token(self, name: str) -> AccessToken:
        """Replace the token of a user. The one before is invalid from now on.

        Raises:
            ServerError: If there is no such user.
        """
        token = new_token()
        sql = "UPDATE users SET token_id = ?, token_hash = ? WHERE name = ?"
        self._change(name, sql, token.id, token.hash, name)
        return token

    def remove(self, name: str) -> None:
        """Remove a user. The token is invalid from now on, the user's folder stays.

        Raises:
            ServerError: If there is no such user.
        """
        self._change(name, "DELETE FROM users WHERE name = ?", name)

    def _change(self, name: str, sql: str, *values: object) -> None:
        with self._database.changing() as run:
            count = run(sql, *values).changed
        if not count:
            raise ServerError(f"There is no user {name}.")

    def users(self) -> list[User]:
        """Return the users by name."""
        sql = f"SELECT {_USER_COLUMNS} FROM users ORDER BY name"
        return [_user(*row) for row in self._database.rows(sql)]

    def user(self, name: str) -> User | None:
        """Return the user of a name, if known."""
        found = self._database.rows(f"SELECT {_USER_COLUMNS} FROM users WHERE name = ?", name)
        return _user(*found[0]) if found else None

    def find(self, token: str) -> User | None:
        """Return the user of a token, or None for a wrong one. Both take the same time."""
        sql = f"SELECT {_USER_COLUMNS}, token_hash FROM users WHERE token_id = ?"
        found = self._database.rows(sql, id_of(token))
        stored = found[0] if found else None
        if not is_valid(token, stored[-1] if stored else None) or stored is None:
            return None
        user = _user(*stored[:-1])
        return None if user.name == LOCAL_USER else user  # an earlier version took this name

    def spend(self, user: str, cost: float, tokens: int) -> None:
        """Add to the spending of a user. Nothing happens for one without an account."""
        sql = (
            'INSERT INTO spending ("user", cost, tokens)'
            " SELECT name, ?, ? FROM users WHERE name = ?"
            ' ON CONFLICT ("user") DO UPDATE SET cost = spending.cost + excluded.cost,'
            " tokens = spending.tokens + excluded.tokens"
        )
        with self._database.changing(user) as run:
            run(sql, cost, tokens, user)

    def spent(self, user: str) -> UserSpending:
        """Return the spending of a user so far."""
        rows = self._database.rows('SELECT cost, tokens FROM spending WHERE "user" = ?', user)
        return UserSpending(*rows[0]) if rows else UserSpending()

    def record(self, entry: AuditEntry) -> None:
        """Add an entry to the audit log."""
        columns = {name: getattr(entry, name) for name in _AUDIT_COLUMNS}
        columns["at"] = entry.at.isoformat()
        with self._database.changing() as run:
            insert_row(run, "audit", columns)

    def audit(self, count: int) -> list[AuditEntry]:
        """Return the last entries of the audit log, the oldest first."""
        columns = ", ".join(f'"{name}"' for name in _AUDIT_COLUMNS)
        sql = f"SELECT {columns} FROM audit ORDER BY id DESC LIMIT ?"
        rows = reversed(self._database.rows(sql, count))
        return [replace(AuditEntry(*row), at=datetime.fromisoformat(row[-1])) for row in rows]


def open_accounts(config: SharedDatabaseConfig, workspace: Path) -> Accounts:
    """Return the accounts of a project: in the configured database, else in the workspace.

    Args:
        config: The database.
        workspace: The project's workspace.

    Raises:
        ServerError: If they cannot be used.
    """
    if config.address is None:
        return Accounts.at(accounts_file(workspace))
    from taskweaver.server.databases.postgresql import PostgresDatabase

    return Accounts(PostgresDatabase(config.address))


def server_folder(workspace: Path) -> Path:
    """Return the folder of the server in a project's workspace, which code never sees."""
    return workspace / "server"


def accounts_file(workspace: Path) -> Path:
    """Return the file of the accounts of a project."""
    return server_folder(workspace) / "accounts.sqlite"


def _user(name: str, role: str, quota: str, created_at: str, token_id: str) -> User:
    checked: Role = "admin" if role == "admin" else "user"
    limits = Quota(**json.loads(quota))
    return User(name, checked, limits, datetime.fromisoformat(created_at), token_id)
