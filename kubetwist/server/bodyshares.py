"""How much memory the bodies of requests may take, and how much of it one client may have."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

#: Bytes of large bodies that are held for all clients together.
MAX_BODIES: Final = 256 * 1024 * 1024
#: Bodies up to this size are not counted, and so always find room; the number of connections bounds them.
SMALL_BODY: Final = 64 * 1024
#: The part of all bytes that clients without credentials may have together.
ANONYMOUS_SHARE: Final = 1 / 8


class BodyShares:
    """
    Bytes of large bodies that are held, by client.

    A client may hold as much as stays free for others: half of everything when it is alone, a third when another one
    holds a third. So there is room for one client more, whatever the others do (dynamic thresholds, Choudhury and
    Hahne, 1998).

    @ivar most: For all clients together.
    @ivar used: By all clients together.
    """

    def __init__(self, most: int = MAX_BODIES) -> None:
        self.most = most
        self.used = 0
        self._held: dict[Hashable, int] = {}
        self._anonymous = 0

    def reserve(self, client: Hashable, size: int, *, anonymous: bool = False) -> bool:
        """
        Hold C{size} bytes more for a client.

        @return: Whether there is room.
        """
        held = self._held.get(client, 0) + size
        if held > self.most - self.used - size:
            return False
        if anonymous:
            if self._anonymous + size > self.most * ANONYMOUS_SHARE:
                return False
            self._anonymous += size
        self._held[client] = held
        self.used += size
        return True

    def release(self, client: Hashable, size: int, *, anonymous: bool = False) -> None:
        """Give back C{size} bytes that L{reserve} held."""
        left = self._held[client] - size
        if left:
            self._held[client] = left
        else:
            del self._held[client]
        self.used -= size
        if anonymous:
            self._anonymous -= size
