"""Schemas of the server's databases: for each version, the statements that lead to it."""

from __future__ import annotations

SQLITE_ACCOUNTS = (
    """
    CREATE TABLE users (
      name TEXT PRIMARY KEY, role TEXT NOT NULL, quota TEXT NOT NULL, created_at TEXT NOT NULL,
      token_id TEXT NOT NULL UNIQUE, token_hash BLOB NOT NULL
    ) STRICT;
    CREATE TABLE spending (
      user TEXT PRIMARY KEY REFERENCES users ON DELETE CASCADE, cost REAL NOT NULL,
      tokens INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE audit (
      id INTEGER PRIMARY KEY, at TEXT NOT NULL, user TEXT NOT NULL, address TEXT NOT NULL,
      action TEXT NOT NULL, target TEXT NOT NULL, outcome TEXT NOT NULL, request_id TEXT NOT NULL
    ) STRICT
    """,
)
"""Users, spending and the audit log."""

SQLITE_INDEX = (
    # Files of the first version have no number of their version.
    """
    CREATE TABLE IF NOT EXISTS sessions (
      session TEXT PRIMARY KEY, title TEXT NOT NULL, created_at TEXT NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS messages (
      id TEXT PRIMARY KEY, session TEXT NOT NULL, branch TEXT NOT NULL, kind TEXT NOT NULL,
      text TEXT NOT NULL, state TEXT NOT NULL, round_id TEXT NOT NULL, answer TEXT NOT NULL,
      tokens INTEGER NOT NULL, cost REAL, created_at TEXT NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS messages_of_sessions ON messages (session);
    CREATE TABLE IF NOT EXISTS changes (
      number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, data TEXT NOT NULL
    ) STRICT
    """,
    """
    ALTER TABLE sessions ADD COLUMN user TEXT NOT NULL DEFAULT '';
    ALTER TABLE messages ADD COLUMN user TEXT NOT NULL DEFAULT '';
    ALTER TABLE messages ADD COLUMN server TEXT NOT NULL DEFAULT '';
    ALTER TABLE changes ADD COLUMN user TEXT NOT NULL DEFAULT ''
    """,
)
"""The index of one user, whose name is empty in it."""

POSTGRESQL = (
    """
    CREATE TABLE users (
      name TEXT COLLATE "C" PRIMARY KEY, role TEXT NOT NULL, quota TEXT NOT NULL,
      created_at TEXT NOT NULL, token_id TEXT NOT NULL UNIQUE, token_hash BYTEA NOT NULL
    );
    CREATE TABLE spending (
      "user" TEXT COLLATE "C" PRIMARY KEY REFERENCES users ON DELETE CASCADE,
      cost DOUBLE PRECISION NOT NULL, tokens BIGINT NOT NULL
    );
    CREATE TABLE audit (
      id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at TEXT COLLATE "C" NOT NULL,
      "user" TEXT NOT NULL, address TEXT NOT NULL, action TEXT NOT NULL, target TEXT NOT NULL,
      outcome TEXT NOT NULL, request_id TEXT NOT NULL
    );
    CREATE INDEX audit_by_time ON audit (at);
    CREATE TABLE sessions (
      "user" TEXT NOT NULL, session TEXT NOT NULL, title TEXT NOT NULL,
      created_at TEXT COLLATE "C" NOT NULL, PRIMARY KEY ("user", session)
    );
    CREATE TABLE messages (
      rowid BIGINT GENERATED ALWAYS AS IDENTITY, "user" TEXT NOT NULL, id TEXT NOT NULL,
      session TEXT NOT NULL, branch TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
      state TEXT NOT NULL, round_id TEXT NOT NULL, answer TEXT NOT NULL, tokens BIGINT NOT NULL,
      cost DOUBLE PRECISION, created_at TEXT COLLATE "C" NOT NULL, server TEXT NOT NULL,
      PRIMARY KEY ("user", id)
    );
    CREATE INDEX messages_of_sessions ON messages ("user", session);
    CREATE INDEX open_messages ON messages ("user") WHERE state IN ('queued', 'running');
    CREATE TABLE changes (
      "user" TEXT NOT NULL, number BIGINT NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL,
      PRIMARY KEY ("user", number)
    )
    """,
)
"""All of it, and the indexes of all users in one set of tables."""
