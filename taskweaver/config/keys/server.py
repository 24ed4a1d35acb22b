"""Keys under ``server.``."""

from __future__ import annotations

from taskweaver.config.keys.key import Key, key

SERVER_KEYS: tuple[Key, ...] = (
    key(
        "server.database",
        "",
        "PostgreSQL database that several `taskweaver serve` share for users, spending, audit log "
        "and the index of sessions, as `postgresql://user@host:5432/database` (extra "
        "`serve-postgres`); empty keeps them in SQLite files. See docs/server.md.",
    ),
    key(
        "server.database_password",
        "",
        "Password for `server.database`. Better set as `SERVER_DATABASE_PASSWORD`.",
    ),
)
