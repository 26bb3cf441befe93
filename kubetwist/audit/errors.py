"""Events that did not get where they should: counted, and logged without flooding the log."""

from __future__ import annotations

from typing import Final

from attrs import define, field

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

#: Seconds between two lines about the same trouble.
LOG_INTERVAL: Final = 10.0


@define(eq=False)
class Counts:
    """
    What became of events.

    @ivar events: That were made.
    @ivar rejected: Requests that failed because their event could not be written.
    @ivar levels: Requests, by the place in L{LEVELS<kubetwist.audit.policy.LEVELS>} that the policy has for them.
    @ivar errors: Events that were lost, by what lost them: C{log}, C{webhook}, C{buffered}, C{truncate}.
    """

    events: int = 0
    rejected: int = 0
    levels: list[int] = field(factory=lambda: [0, 0, 0, 0])
    errors: dict[str, int] = field(factory=dict)


class PluginErrors:
    """Lost events of one plugin; called in the reactor's thread."""

    _log = Logger()

    def __init__(self, plugin: str, counts: Counts, reactor: IReactorTime) -> None:
        self._plugin = plugin
        self._counts = counts
        self._reactor = reactor
        self._last_logged = float("-inf")
        self._unreported = 0

    def record(self, number: int, reason: object) -> None:
        """So many events are lost."""
        errors = self._counts.errors
        errors[self._plugin] = errors.get(self._plugin, 0) + number
        self._unreported += number
        now = self._reactor.seconds()
        if now - self._last_logged >= LOG_INTERVAL:
            self._log.error(
                "Error in audit plugin '{plugin}' affecting {number} audit events: {why}",
                plugin=self._plugin,
                number=self._unreported,
                reason=str(reason),
            )
            self._last_logged, self._unreported = now, 0
