"""The health of a member of etcd, by any transport."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ._metrics import EtcdMetrics
from .address import Address

#: Seconds until an unhealthy member is retried: the first delay, and the maximum.
BACKOFF_FIRST: Final = 0.5
BACKOFF_MAX: Final = 10.0


class MemberHealth:
    """
    A member that is healthy as long as it responds. Other members are preferred to an unhealthy one.

    @ivar address: The host and port.
    @ivar unhealthy_since: When it failed to respond, or L{None} while it is healthy.
    @ivar closed: Whether it accepts no more calls.
    @ivar metrics: The metrics of the calls.
    """

    def __init__(
        self,
        address: Address,
        reactor: IReactorTime,
        check_health: Callable[[Any], object] | None = None,
        metrics: EtcdMetrics | None = None,
    ) -> None:
        """
        @param address: The host and port.
        @param reactor: The reactor.
        @param check_health: Called with the member some time after it became unhealthy, to send it a request.
        @param metrics: The metrics of the calls.
        """
        self.address = address
        self.reactor = reactor
        self.unhealthy_since: float | None = None
        self.closed = False
        self.metrics = metrics or EtcdMetrics()
        self._check_health = check_health
        self._health_check: IDelayedCall | None = None
        self._backoff = BACKOFF_FIRST

    def mark_unhealthy(self, reason: str) -> None:
        """Mark the member as unhealthy: calls that wait for it go to other members."""
        if self.closed:
            return
        self.unhealthy_since = self.reactor.seconds()
        if self._check_health is not None and (self._health_check is None or not self._health_check.active()):
            self._health_check = self.reactor.callLater(self._backoff, self._check_health, self)
            self._backoff = min(self._backoff * 2, BACKOFF_MAX)

    def mark_healthy(self) -> None:
        """Mark the member as healthy."""
        if self.unhealthy_since is not None:
            self.unhealthy_since = None
            self._backoff = BACKOFF_FIRST

    def close(self) -> None:
        """Accept no more calls; those under way get no response."""
        self.closed = True
        if self._health_check is not None and self._health_check.active():
            self._health_check.cancel()
