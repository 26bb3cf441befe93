"""Limit the memory of request bodies, in total and per client."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from ...api.users import UNAUTHENTICATED

if TYPE_CHECKING:
    from ...api.resource import UserInfo

#: Maximum size of a body in bytes, as in the reference.
MAX_BODY: Final = 3 * 1024 * 1024
#: Bytes of large bodies that are held for all clients together.
MAX_BODIES: Final = 256 * 1024 * 1024
#: Bodies up to this size are not counted and always accepted; the number of connections bounds them.
SMALL_BODY: Final = 64 * 1024
#: Share of the bytes for all clients without credentials together.
ANONYMOUS_SHARE: Final = 1 / 8
#: Seconds from the end of a head to the end of the body.
BODY_TIMEOUT: Final = 60.0
#: Bytes of a body that must arrive per second, counted from L{BODY_GRACE} seconds after its start.
BODY_RATE: Final = 16 * 1024
BODY_GRACE: Final = 20.0
#: Bytes of bodies that a connection with many requests may hold before the requests are served, without a reservation,
#: and the step of reservations for more.
MAX_UNSERVED: Final = 128 * 1024
UNSERVED_STEP: Final = 256 * 1024


def body_timeout(size: int) -> float:
    """Return the seconds from the start of a body in which more than C{size} bytes of it must arrive."""
    return min(BODY_GRACE + size / BODY_RATE, BODY_TIMEOUT)


def client_of(user: UserInfo | None, network: str) -> tuple[tuple[str, str], bool]:
    """
    Return the client that a body is counted under, and whether it is anonymous.

    @param network: Its network, see L{kubetwist.http.connection.connectionlimit.client_network}.
    """
    anonymous = user is None or UNAUTHENTICATED in user.groups
    return ("" if user is None or anonymous else user.name, network), anonymous


class BodyShares:
    """
    Bytes of large bodies that are held, by client.

    A client may hold as much as remains free: half of all bytes if it is the only one, a third if another client
    holds a third. Therefore a further client always has room (dynamic thresholds, Choudhury and Hahne, 1998).

    @ivar limit: Limit for all clients together.
    @ivar used: Bytes of all clients.
    """

    def __init__(self, limit: int = MAX_BODIES) -> None:
        self.limit = limit
        self.used = 0
        self._held: dict[Hashable, int] = {}
        self._anonymous = 0

    def reserve(self, client: Hashable, size: int, *, anonymous: bool = False) -> bool:
        """
        Reserve C{size} more bytes for a client.

        @return: Whether the reservation succeeded.
        """
        held = self._held.get(client, 0) + size
        if held > self.limit - self.used - size:
            return False
        if anonymous:
            if self._anonymous + size > self.limit * ANONYMOUS_SHARE:
                return False
            self._anonymous += size
        self._held[client] = held
        self.used += size
        return True

    def release(self, client: Hashable, size: int, *, anonymous: bool = False) -> None:
        """Release C{size} bytes that L{reserve} reserved."""
        remaining = self._held[client] - size
        if remaining:
            self._held[client] = remaining
        else:
            del self._held[client]
        self.used -= size
        if anonymous:
            self._anonymous -= size


class UnservedBytes:
    """
    Bytes of bodies that a connection holds for requests that are not served, so that their clients are unknown.

    They are counted for clients without credentials if they are more than a connection with one request would hold.
    """

    __slots__ = ("_bodies", "_client", "_reserved", "_size")

    def __init__(self, bodies: BodyShares, client: Hashable) -> None:
        """
        @param client: Stands for all requests of the connection.
        """
        self._bodies = bodies
        self._client = client
        self._size = 0
        self._reserved = 0

    def add(self, size: int) -> bool:
        """
        Count more bytes.

        @return: Whether there is room for them.
        """
        if self._size + size > MAX_UNSERVED + self._reserved:
            if not self._bodies.reserve(self._client, UNSERVED_STEP, anonymous=True):
                return False
            self._reserved += UNSERVED_STEP
        self._size += size
        return True

    def remove(self, size: int) -> None:
        """Stop counting bytes; the reservation ends with the last of them."""
        self._size -= size
        if not self._size and self._reserved:
            self._bodies.release(self._client, self._reserved, anonymous=True)
            self._reserved = 0
