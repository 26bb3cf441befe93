"""The syntax and the limits of the heads of requests, which all versions of HTTP share. No I/O."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "ESCAPE",
    "MAX_FIELDS",
    "MAX_HEAD",
    "METHODS",
    "TARGET",
    "TOKEN",
    "Malformed",
    "expects_continue",
    "refusal_text",
    "valid_host",
]

#: Maximum bytes of the head, including the request line; larger ones are answered with 431.
MAX_HEAD: Final = 128 * 1024
#: Maximum number of header fields; more are answered with 431.
MAX_FIELDS: Final = 500

TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: The characters of a target.
TARGET: Final = re.compile(rb"[!-~\x80-\xff]+")
#: An incomplete escape in a path.
ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
#: The usual methods, which are not matched with L{TOKEN}.
METHODS: Final = frozenset((b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS"))
#: As C{ValidHostHeader} of golang.org/x/net/http/httpguts accepts it.
_HOST: Final = re.compile(rb"[!$%&'()*+,.:;=\[\]_~0-9A-Za-z-]*")

_SEPARATORS: Final = re.compile(rb"[ \t,]+")
#: Hosts that are well-formed; clients use few.
_HOSTS: Final[set[bytes]] = set()
_MAX_CACHED_HOSTS: Final = 2048

_REASONS: Final = {
    400: b"Bad Request",
    408: b"Request Timeout",
    414: b"URI Too Long",
    417: b"Expectation Failed",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    501: b"Not Implemented",
    505: b"HTTP Version Not Supported",
}


class Malformed(Exception):
    """
    The request is malformed or exceeds a limit, and is answered without its handler.

    @ivar code: The status code of the response.
    """

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(message)
        self.code = code


def valid_host(host: bytes) -> bool:
    """Return whether a host is well-formed, and remember it if it is."""
    if host in _HOSTS:
        return True
    if not _HOST.fullmatch(host):
        return False
    if len(_HOSTS) < _MAX_CACHED_HOSTS and len(host) < 256:
        _HOSTS.add(host)
    return True


def expects_continue(expectation: bytes) -> bool:
    """
    Return whether the client waits for 100 Continue before it sends the body.

    @param expectation: The value of C{Expect}, not empty.
    @raise Malformed: It expects something else.
    """
    if b"100-continue" not in _SEPARATORS.split(expectation.lower()):
        raise Malformed(417)
    return True


def refusal_text(code: int, message: str = "") -> tuple[bytes, bytes]:
    """Return status and reason, and the plain text of the response to a malformed request, as in the reference."""
    reason = b"%d %b" % (code, _REASONS[code])
    return reason, reason + (b": " + message.encode() if message else b"")
