"""Redaction of request data for logs: secrets are replaced, long values truncated."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_plus

MAX_URI_LENGTH: Final = 1024
MAX_USER_AGENT_LENGTH: Final = 256
#: Limit of kube-apiserver.
MAX_AUDIT_ID_LENGTH: Final = 64
_REDACTED: Final = "REDACTED"
_PASSWORD: Final = re.compile(r"(?<=://)[^/@,\s\0]*@")

#: Names of query parameters with confidential values. C{command} is executed in a pod.
_SECRET: Final = re.compile(
    r"token|secret|passw|passphrase|credential|authori[sz]ation|api[-_]?key|access[-_]?key|private|signature|assertion"
    r"|^auth$|^code$|^sig$|^key$|^pwd?$|session|cookie|jwt|^command$|bearer",
    re.IGNORECASE,
)


def redact_uri(uri: bytes, *, opaque: bool = False) -> str:
    """
    Return the path and query of a request with secrets redacted.

    @param uri: Path and query.
    @param opaque: Whether the query belongs to a proxied server, so that all values are redacted.
    """
    path, mark, query = uri.partition(b"?")
    text = path.decode("utf-8", "replace")
    if mark:
        # The rest is truncated anyway.
        pairs = re.split("([&;])", query[: 4 * MAX_URI_LENGTH].decode("utf-8", "replace"))
        text += "?" + "".join(_safe_pair(pair, opaque) for pair in pairs)
    return truncate(text, MAX_URI_LENGTH)


def _safe_pair(pair: str, opaque: bool) -> str:
    name, equals, _ = pair.partition("=")
    if not equals:
        # A parameter without a value may be a token.
        return pair if pair in ("&", ";", "watch", "") or not opaque else _REDACTED
    if opaque or _SECRET.search(unquote_plus(name)):
        return f"{name}={_REDACTED}"
    return pair


def truncate(text: str, longest: int) -> str:
    """Truncate a text to a number of characters."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def without_passwords(text: str) -> str:
    """Return a text with the user info of its URLs redacted."""
    return _PASSWORD.sub("CLASSIFIED@", text)
