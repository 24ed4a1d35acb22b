"""Users, tokens, quotas, spending and the audit log on disk."""

from __future__ import annotations

import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from taskweaver.server import accounts as own
from taskweaver.server.accounts import Accounts, AuditEntry, Quota, UserSpending
from taskweaver.server.databases.address import PostgresAddress
from taskweaver.server.databases.postgresql import PostgresDatabase
from taskweaver.server.errors import ServerError


def accounts_at(place: Path | PostgresAddress) -> Accounts:
    if isinstance(place, Path):
        return Accounts.at(own.accounts_file(place))
    return Accounts(PostgresDatabase(place))


def test_a_file_of_accounts_is_the_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "server" / "accounts.sqlite"
    with Accounts.at(file) as accounts:
        token = accounts.add("ann")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    stored = b"".join(path.read_bytes() for path in file.parent.iterdir())
    assert token.text.split("-", 2)[2].encode() not in stored


def test_users_survive(place: Path | PostgresAddress) -> None:
    quota = Quota(cost=1.5, tokens=1000, kernels=2, memory_mb=512, disk_mb=100)
    with accounts_at(place) as accounts:
        token = accounts.add("ann", "admin", quota)
        accounts.add("bob")
        accounts.spend("ann", 0.5, 10)
        accounts.spend("ann", 0.25, 1)
        accounts.spend("stranger", 1.0, 1)
        with pytest.raises(ServerError, match="already"):
            accounts.add("ann")
        for act in (accounts.remove, accounts.renew_token):
            with pytest.raises(ServerError, match="no user eve"):
                act("eve")
        for number in range(5):
            accounts.record(AuditEntry("ann", "127.0.0.1", "GET /", "/", str(number), "id"))
    with accounts_at(place) as accounts:
        assert [user.name for user in accounts.users()] == ["ann", "bob"]
        found = accounts.find(token.text)
        assert found is not None
        assert (found.name, found.role, found.quota) == ("ann", "admin", quota)
        assert accounts.spent("ann") == UserSpending(0.75, 11)
        assert accounts.spent("bob") == UserSpending()
        assert [entry.outcome for entry in accounts.audit(3)] == ["2", "3", "4"]
        accounts.remove("ann")
        assert accounts.find(token.text) is None
        accounts.add("ann")
        assert accounts.spent("ann") == UserSpending(), "a new user has spent nothing"


def test_names_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Accounts.at(tmp_path / "a.sqlite") as accounts:
        for name in ("", "..", "a/b", "Ann", "é", "x" * 65, "a\n"):
            with pytest.raises(ServerError, match="cannot be"):
                accounts.add(name)
        with pytest.raises(ServerError, match="without users"):
            accounts.add("local")
        with monkeypatch.context() as patched:
            patched.setattr(own, "LOCAL_USER", "-")
            token = accounts.add("local").text
            assert accounts.find(token) is not None
        assert accounts.find(token) is None, "it is not taken for who started the server"


def test_files_that_are_no_accounts(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("no database" * 100)
    (tmp_path / "link.sqlite-wal").symlink_to(tmp_path / "text.sqlite")
    newer = sqlite3.connect(tmp_path / "newer.sqlite")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    for name in ("text", "link", "newer"):
        with pytest.raises(ServerError):
            Accounts.at(tmp_path / f"{name}.sqlite")


def test_spending_of_several_programs_adds_up(place: Path | PostgresAddress) -> None:
    with accounts_at(place) as one, accounts_at(place) as other:
        one.add("ann")
        with ThreadPoolExecutor(4) as pool:
            for accounts in [one, other] * 30:
                pool.submit(accounts.spend, "ann", 0.5, 3)
        assert one.spent("ann") == other.spent("ann") == UserSpending(30.0, 180)


@settings(max_examples=examples(30))
@given(st.text())
def test_no_text_is_a_token_by_chance(text: str) -> None:
    token = own.new_token()
    for sent in (text, token.text + text, token.text[:-1] + text):
        assert own.is_valid(sent, token.hash) is (sent == token.text)
        assert not own.is_valid(sent, None)
    assert own.id_of(token.text) == token.id
