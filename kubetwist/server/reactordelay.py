"""
Measure how long the reactor keeps its calls waiting.

One thread serves all requests: a call that is due waits while the reactor is busy, and so does every request. A call
four times per second shows that, at no cost for requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ..metrics.registry import Histogram, MetricSnapshot

#: Seconds between two measurements.
INTERVAL: Final = 0.25
#: Upper bounds of the buckets, in seconds.
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class ReactorDelaySampler:
    """
    Observes the delays of a repeated call in a histogram.

    @ivar delays: The histogram.
    """

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self.delays = Histogram(BOUNDS)
        self._due = 0.0
        self._call: IDelayedCall | None = None

    def start(self) -> None:
        """Start measuring."""
        self._due = self._reactor.seconds() + INTERVAL
        self._call = self._reactor.callLater(INTERVAL, self._measure)

    def stop(self) -> None:
        """Stop measuring. Idempotent."""
        call, self._call = self._call, None
        if call is not None:
            call.cancel()

    def _measure(self) -> None:
        self.delays.observe(max(self._reactor.seconds() - self._due, 0.0))
        self.start()

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return the delays that were measured."""
        text = "Delay in seconds of calls that were due while the reactor was busy; measured four times per second."
        yield MetricSnapshot("kubetwist_reactor_delay_seconds", "histogram", text, (), [((), self.delays)])
