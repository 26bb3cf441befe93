"""Dropped audit events: counted, and logged at a limited rate (C{audit.HandlePluginError})."""

from __future__ import annotations

from typing import Final

from attrs import define, field

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

#: Minimum number of seconds between two log lines of one plugin.
LOG_INTERVAL: Final = 10.0


@define(eq=False)
class Counts:
    """
    Numbers of events and requests, for metrics.

    @ivar events: Number of events.
    @ivar rejected: Number of requests that were rejected because their event could not be written.
    @ivar levels: Number of requests by audit level, an index of L{LEVELS<kubetwist.audit.policy.LEVELS>}.
    @ivar errors: Number of dropped events by plugin: C{log}, C{webhook}, C{buffered}, C{truncate}.
    """

    events: int = 0
    rejected: int = 0
    levels: list[int] = field(factory=lambda: [0, 0, 0, 0])
    errors: dict[str, int] = field(factory=dict)


class PluginErrors:
    """Counts and logs the events that one plugin drops. Called in the reactor's thread."""

    _log = Logger()

    def __init__(self, plugin: str, counts: Counts, reactor: IReactorTime) -> None:
        self._plugin = plugin
        self._counts = counts
        self._reactor = reactor
        self._last_logged = float("-inf")
        self._unreported = 0

    def record(self, number: int, reason: object) -> None:
        """Count C{number} dropped events, and log them unless a line was logged within L{LOG_INTERVAL}."""
        errors = self._counts.errors
        errors[self._plugin] = errors.get(self._plugin, 0) + number
        self._unreported += number
        now = self._reactor.seconds()
        if now - self._last_logged >= LOG_INTERVAL:
            self._log.error(
                "Error in audit plugin '{plugin}' affecting {number} audit events: {reason}",
                plugin=self._plugin,
                number=self._unreported,
                reason=str(reason),
            )
            self._last_logged, self._unreported = now, 0
