"""Decode the parts of JSON Web Tokens."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from typing import Final

import orjson

_PART: Final = re.compile(rb"[A-Za-z0-9_-]*")


def decode_part(part: bytes) -> bytes:
    """
    Decode base64url without padding (RFC 7515, section 2), strictly.

    Python's decoder ignores characters outside of the alphabet, and all text after padding.

    @raise ValueError: The text has another encoding.
    """
    if not _PART.fullmatch(part) or len(part) % 4 == 1:
        raise ValueError("not base64url without padding")
    return urlsafe_b64decode(part + b"=" * (-len(part) % 4))


def expiry_of(token: str) -> float | None:
    """
    Return the time at which a JSON Web Token expires, in seconds since the epoch; L{None} for other tokens.

    The token is not verified.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = orjson.loads(decode_part(parts[1].encode()))
    except ValueError:
        return None
    expires = claims.get("exp") if isinstance(claims, dict) else None
    return None if isinstance(expires, bool) or not isinstance(expires, int | float) else expires
