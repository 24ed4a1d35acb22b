"""Tokens: an id that finds the account, and a secret of which only the hash is kept."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from hashlib import sha256

from taskweaver.utils.redact import register_secret

_PREFIX = "tw"
_NO_HASH = bytes(32)


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token as it is handed out once.

    Attributes:
        id: The part that finds the account; no secret.
        text: All of it, as a client sends it.
        hash: The part that is kept.
    """

    id: str
    text: str = field(repr=False)
    hash: bytes = field(repr=False)


def new_token() -> AccessToken:
    """Return a new token; the log masks it from now on."""
    token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    text = f"{_PREFIX}-{token_id}-{secret}"
    register_secret(text)
    # 256 random bits need no slow hash: there is nothing to guess.
    return AccessToken(token_id, text, sha256(secret.encode()).digest())


def id_of(text: str) -> str:
    """Return the id in a token that a client sent; empty if it has none."""
    prefix, _, rest = text.partition("-")
    return rest.partition("-")[0] if prefix == _PREFIX else ""


def is_valid(text: str, stored_hash: bytes | None) -> bool:
    """Return whether a token that a client sent is the one of a stored hash, in constant time.

    None stands for an unknown id, and takes as long.
    """
    secret = text.partition("-")[2].partition("-")[2]
    digest = sha256(secret.encode("utf-8", "surrogatepass")).digest()
    return hmac.compare_digest(digest, stored_hash or _NO_HASH) and stored_hash is not None
