"""What of a request may stand in a log: nothing secret, nothing endless, nothing that begins another line."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_plus

LONGEST_URI: Final = 1024
LONGEST_AGENT: Final = 256
#: As in the reference.
LONGEST_ID: Final = 64
_GONE: Final = "REDACTED"
_PASSWORD: Final = re.compile(r"(?<=://)[^/@,\s\0]*@")

#: Names of parameters whose values are nobody's business. C{command} is what is run in a pod.
_SECRET: Final = re.compile(
    r"token|secret|passw|passphrase|credential|authori[sz]ation|api[-_]?key|access[-_]?key|private|signature|assertion"
    r"|^auth$|^code$|^sig$|^key$|^pwd?$|session|cookie|jwt|^command$|bearer",
    re.IGNORECASE,
)


def safe_uri(uri: bytes, *, opaque: bool = False) -> str:
    """
    A request's target without what is secret in its query.

    @param opaque: The query is somebody else's, behind a proxy: nothing is known of it.
    """
    path, mark, query = uri.partition(b"?")
    text = path.decode("utf-8", "replace")
    if mark:
        # The rest is cut off anyway; one that begins there is not told from another one.
        pairs = re.split("([&;])", query[: 4 * LONGEST_URI].decode("utf-8", "replace"))
        text += "?" + "".join(_safe_pair(pair, opaque) for pair in pairs)
    return cut(text, LONGEST_URI)


def _safe_pair(pair: str, opaque: bool) -> str:
    name, equals, _ = pair.partition("=")
    if not equals:
        # Something that stands alone may be a token just as well.
        return pair if pair in ("&", ";", "watch", "") or not opaque else _GONE
    if opaque or _SECRET.search(unquote_plus(name)):
        return f"{name}={_GONE}"
    return pair


def cut(text: str, longest: int) -> str:
    """At most so many characters of a text."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def without_passwords(text: str) -> str:
    """A text without the users and passwords in its URLs."""
    return _PASSWORD.sub("CLASSIFIED@", text)
