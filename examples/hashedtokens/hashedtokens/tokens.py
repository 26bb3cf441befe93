"""
Tokens and the file with their hashes.

A token is C{hashed_ID_SECRET}. The file has its id, the SHA-256 of the secret, and its user. The secret has 256 random
bits, so a slow hash function would not make it safer.
"""

from __future__ import annotations

import re
import secrets
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final

from attrs import frozen

from kubetwist.api.resource import UserInfo

PREFIX: Final = "hashed_"
#: Maximum number of tokens in a file.
MAX_TOKENS: Final = 100_000

_TOKEN: Final = re.compile(r"hashed_([0-9a-f]{16})_([0-9a-f]{64})", re.ASCII)
_FIELDS: Final = {"hash", "user", "uid", "groups", "expires"}


@frozen
class TokenEntry:
    """
    A token of the file.

    @ivar hash: The SHA-256 of the secret.
    @ivar expires: The time of expiry, in seconds since the epoch; L{None} for never.
    """

    hash: bytes
    user: UserInfo
    expires: float | None


def split_token(token: bytes) -> tuple[str, bytes] | None:
    """Return the id and the secret of a token; L{None} for a token of another authenticator."""
    match = _TOKEN.fullmatch(token.decode("latin-1"))
    return None if match is None else (match[1], match[2].encode())


def secret_matches(entry: TokenEntry, secret: bytes) -> bool:
    """Return whether a secret belongs to an entry. The duration does not depend on the secret."""
    return compare_digest(sha256(secret).digest(), entry.hash)


def read_tokens(content: bytes) -> dict[str, TokenEntry]:
    """
    Return the tokens of a file by their ids.

    @param content: TOML with one table for each id.
    @raise ValueError: The content is invalid; the text has the id and the reason, and no hash.
    """
    document = tomllib.loads(content.decode())
    if len(document) > MAX_TOKENS:
        raise ValueError(f"the file has more than {MAX_TOKENS} tokens")
    entries = {}
    for token_id, table in document.items():
        try:
            entries[token_id] = _read_entry(token_id, table)
        except ValueError as error:
            raise ValueError(f"token {token_id}: {error}") from None
    return entries


def _read_entry(token_id: str, table: Any) -> TokenEntry:
    if not re.fullmatch("[0-9a-f]{16}", token_id, re.ASCII):
        raise ValueError("an id has 16 hexadecimal digits")
    if not isinstance(table, Mapping):
        raise ValueError("it is not a table")
    unknown = sorted(table.keys() - _FIELDS)
    if unknown:
        raise ValueError(f"unknown field: {', '.join(unknown)}")
    digest = _text(table, "hash")
    if not re.fullmatch("[0-9a-f]{64}", digest, re.ASCII):
        raise ValueError("hash has 64 hexadecimal digits")
    user = _text(table, "user")
    if not _is_name(user):
        raise ValueError("user must be a name without the prefix system:")
    groups = table.get("groups", [])
    if not isinstance(groups, list) or not all(map(_is_name, groups)):
        raise ValueError("groups must be a list of names without the prefix system:")
    expires = table.get("expires")
    if expires is not None and (not isinstance(expires, datetime) or expires.tzinfo is None):
        raise ValueError("expires must be a time with a time zone, such as 2027-01-31T00:00:00Z")
    return TokenEntry(
        bytes.fromhex(digest),
        UserInfo(user, _text(table, "uid"), tuple(groups)),
        None if expires is None else expires.timestamp(),
    )


def _is_name(value: Any) -> bool:
    """Return whether a value is a name that no component of a cluster has."""
    return isinstance(value, str) and bool(value) and not value.startswith("system:")


def _text(table: Mapping[str, Any], name: str) -> str:
    value = table.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text")
    return value


def create_token(user: str, groups: list[str], expires: float | None) -> tuple[str, str]:
    """
    Create a token.

    @param expires: The time of expiry, in seconds since the epoch; L{None} for never.
    @return: The token, and its table for the file.
    """
    token_id, secret = secrets.token_hex(8), secrets.token_hex(32)
    lines = [
        f'["{token_id}"]',
        f'hash = "{sha256(secret.encode()).hexdigest()}"',
        f"user = {_quoted(user)}",
        f"groups = [{', '.join(map(_quoted, groups))}]",
    ]
    if expires is not None:
        lines.append(f"expires = {datetime.fromtimestamp(int(expires), UTC).isoformat().replace('+00:00', 'Z')}")
    table = "\n".join(lines) + "\n"
    read_tokens(table.encode())
    return f"{PREFIX}{token_id}_{secret}", table


def _quoted(text: str) -> str:
    """
    Return a TOML string.

    @raise ValueError: The text has a character that names do not need.
    """
    if not text.isprintable() or '"' in text or "\\" in text:
        raise ValueError(f"{text!r} is not a name")
    return f'"{text}"'
