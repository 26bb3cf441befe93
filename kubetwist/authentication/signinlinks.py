"""One-time links that sign in to the page at C{/ui} on this machine without a token, as Jupyter's links do."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from ipaddress import ip_address
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final

from ..api.resource import UserInfo

if TYPE_CHECKING:
    from ..http.request import KubeRequest

#: The path at which operators request a link.
SIGN_IN_LINKS: Final = "/ui/sign-in-links"
#: Lifetime of a link, in seconds.
LIFETIME: Final = 15 * 60.0
#: Maximum number of unused links.
MAX_LINKS: Final = 100
#: Maximum length of a secret, in characters.
_MAX_SECRET_LENGTH: Final = 128
#: Headers of proxies: a request with one may come from a client on another machine.
_FORWARDED: Final = (b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via")


class SignInLinks:
    """
    The issued links that are unused.

    A link works once, within L{LIFETIME}, for clients on the loopback interface: a log that is read later or on another
    machine contains no usable secret. Only digests of the secrets are stored.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """@param now: Returns the seconds of a monotonic clock."""
        self._now = now
        self._links: dict[bytes, tuple[float, UserInfo]] = {}

    def issue(self, user: UserInfo) -> str:
        """Return the secret of a new link that signs in as C{user}; the oldest of too many links becomes invalid."""
        now = self._now()
        self._links = {digest: link for digest, link in self._links.items() if now < link[0]}
        while len(self._links) >= MAX_LINKS:
            del self._links[next(iter(self._links))]
        secret = token_urlsafe(24)
        self._links[_digest(secret)] = (self._now() + LIFETIME, user)
        return secret

    def redeem(self, secret: str, request: KubeRequest) -> UserInfo | None:
        """
        Return the user of a link and forget the link; L{None} if it is unknown, expired, or used from another machine.
        """
        return self.take(secret) if is_local(request) else None

    def take(self, secret: str) -> UserInfo | None:
        """Return the user of a link and forget the link; L{None} if it is unknown or expired."""
        if len(secret) > _MAX_SECRET_LENGTH:
            return None
        expires, user = self._links.pop(_digest(secret), (0.0, None))
        return user if self._now() < expires else None


def is_local(request: KubeRequest) -> bool:
    """Return whether the client of a request is on this machine, according to its address and headers."""
    if any(name in request.fields for name in _FORWARDED):
        return False
    host = getattr(request.client, "host", None)
    try:
        return host is not None and ip_address(host).is_loopback
    except ValueError:
        return False


def sign_in_url(bind_address: str, port: int, secret: str) -> str:
    """Return the URL of a sign-in link, for a browser on this machine."""
    address = ip_address(bind_address)
    if address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "[::1]"
    else:
        host = f"[{address}]" if address.version == 6 else str(address)
    return f"https://{host}:{port}/ui/#sign-in={secret}"


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
