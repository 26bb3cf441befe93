"""One-time links that sign a person on this machine in to the page at C{/ui} without a token, as Jupyter's do."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from ipaddress import ip_address
from secrets import token_urlsafe
from typing import Any, Final

from ..api.resource import UserInfo

#: Seconds for which a link can be used.
LIFETIME: Final = 15 * 60.0
#: Characters of a secret that is looked at.
_LONGEST: Final = 128
#: Headers of proxies: the peer is on this machine then, but its client may not be.
_FORWARDED: Final = (b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via")


class SignInLinks:
    """
    The links that were issued and not used yet.

    A link works once, within L{LIFETIME}, and for clients on the loopback interface only, so that a log that is read
    later or elsewhere reveals nothing of use. Only digests of the secrets are kept.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """
        @param now: Returns seconds of a clock that does not go back.
        """
        self._now = now
        self._links: dict[bytes, tuple[float, UserInfo]] = {}

    def issue(self, user: UserInfo) -> str:
        """Return the secret of a new link, which signs in as C{user}."""
        secret = token_urlsafe(24)
        self._links[_digest(secret)] = (self._now() + LIFETIME, user)
        return secret

    def redeem(self, secret: str, request: Any) -> UserInfo | None:
        """Return the user of a link and forget it; L{None} if it is unknown, expired, or used from another machine."""
        if len(secret) > _LONGEST or not is_local(request):
            return None
        expires, user = self._links.pop(_digest(secret), (0.0, None))
        return user if self._now() < expires else None


def is_local(request: Any) -> bool:
    """Return whether the client of a request is on this machine, as far as its connection and headers show."""
    if any(name in request.fields for name in _FORWARDED):
        return False
    transport = request.connection.transport
    host = getattr(transport.getPeer() if transport is not None else None, "host", None)
    try:
        return host is not None and ip_address(host).is_loopback
    except ValueError:
        return False


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
