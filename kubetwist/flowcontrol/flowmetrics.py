"""The metrics of one flow schema and priority level."""

from __future__ import annotations

from typing import Final

from ..metrics.registry import Histogram

#: Bucket bounds of waiting times, in seconds.
WAIT_BUCKETS: Final = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
#: Bucket bounds of seats per request, of the requests in a queue, and of watches per write.
_SEAT_BUCKETS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0)
_QUEUE_BUCKETS: Final = (0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0)
_WATCH_BUCKETS: Final = (0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0)


class FlowMetrics:
    """
    Metrics of one flow schema and priority level.

    @ivar immediate_one_seat: Requests of one seat that did not wait; L{settle} adds them to the counters.
    @ivar dispatched: Requests that were executed.
    @ivar executing: Requests that execute; C{seats} are their seats.
    @ivar waiting: Requests that wait; C{waiting_seats} are their seats.
    @ivar rejected_queue_full: Requests that were rejected because of full or no queues.
    @ivar rejected_timeout: Requests that were rejected because they waited too long.
    @ivar wait_executed: Waiting times of executed requests, in seconds.
    @ivar wait_not_executed: Waiting times of requests that were not executed.
    @ivar execution_regular: Execution times of requests that are not watches, in seconds.
    @ivar execution_watch: Execution times of watches.
    @ivar widths: Seats of requests.
    @ivar queue_lengths: Requests in a queue after a request was added.
    @ivar watch_counts: Watches that receive the event of a write.
    """

    __slots__ = (
        *("dispatched", "executing", "execution_regular", "execution_watch", "immediate_one_seat", "queue_lengths"),
        *("rejected_queue_full", "rejected_timeout", "seats", "wait_executed", "wait_not_executed", "waiting"),
        *("waiting_seats", "watch_counts", "widths"),
    )

    def __init__(self) -> None:
        self.immediate_one_seat = self.dispatched = self.executing = self.seats = 0
        self.waiting = self.waiting_seats = self.rejected_queue_full = self.rejected_timeout = 0
        self.wait_executed, self.wait_not_executed = Histogram(WAIT_BUCKETS), Histogram(WAIT_BUCKETS)
        self.execution_regular, self.execution_watch = Histogram(WAIT_BUCKETS), Histogram(WAIT_BUCKETS)
        self.widths = Histogram(_SEAT_BUCKETS)
        self.queue_lengths = Histogram(_QUEUE_BUCKETS)
        self.watch_counts = Histogram(_WATCH_BUCKETS)

    def settle(self) -> None:
        """Add the requests that did not wait to the counter and the histograms."""
        immediate, self.immediate_one_seat = self.immediate_one_seat, 0
        self.dispatched += immediate
        self.wait_executed.observe_often(0.0, immediate)
        self.widths.observe_often(1.0, immediate)
