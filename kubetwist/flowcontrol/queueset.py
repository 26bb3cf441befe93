"""
The queues of one priority level: shuffle sharding, and fair queuing between the queues.

Each flow is dealt a fixed hand of a few queues, and its requests join the shortest of them. A flow that fills its
queues leaves most queues of other flows free. The next request comes from the queue with the least virtual time
(start-time fair queuing). Virtual time is work in seats times seconds, estimated at dispatch and corrected at the end.

A request of many seats waits until all of them are free, and blocks the requests behind it. Some seats are therefore
reserved for requests of one seat, so that a GET does not wait behind lists.

No I/O and no clock: the caller passes the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf
from typing import Any, Final

from attrs import define, field, frozen

#: Initial estimate of the execution time, in seconds.
_INITIAL_ESTIMATE: Final = 0.003
#: Maximum number of empty queues in memory and in dumps; a level may have millions.
_MAX_EMPTY_QUEUES: Final = 1024


@frozen
class QueueSetConfig:
    """
    Limits of a queue set (Go: C{fq.QueuingConfig} and C{fq.DispatchingConfig}).

    @ivar concurrency_limit: Number of seats.
    @ivar num_queues: Number of queues; 0 rejects requests that would have to wait.
    @ivar hand_size: Number of queues per flow.
    @ivar queue_length_limit: Maximum number of waiting requests per queue.
    @ivar reserved_seats: Seats that only requests of one seat may take.
    """

    concurrency_limit: int
    num_queues: int = 0
    hand_size: int = 0
    queue_length_limit: int = 0
    reserved_seats: int = 0


@define(eq=False)
class QueueSetRequest:
    """
    A request that executes or waits.

    @ivar request: The HTTP request.
    @ivar seats: Number of seats that it needs.
    @ivar arrival_time: Time of its arrival, in seconds.
    @ivar start_time: Time of its dispatch; L{None} while it waits.
    @ivar queue: Its queue; L{None} if it did not wait.
    @ivar left_queue: It was removed from its queue without execution.
    @ivar has_reserved_seat: It executes on a reserved seat.
    """

    request: Any
    seats: int
    arrival_time: float
    start_time: float | None = None
    queue: _Queue | None = None
    left_queue: bool = False
    has_reserved_seat: bool = False


@define(eq=False)
class _Queue:
    """
    One queue.

    @ivar start: Virtual start time of its next request.
    """

    number: int
    waiting: deque[QueueSetRequest] = field(factory=deque)
    seats: int = 0
    start: float = 0.0


@frozen
class QueueState:
    """
    Snapshot of a queue.

    @ivar number: Index of the queue.
    @ivar running: Executing requests that have waited in it.
    @ivar start: Virtual start time of its next request.
    @ivar seats: Seats of the waiting requests.
    @ivar work: Estimated work of the waiting requests, in seats times seconds.
    """

    number: int
    waiting: list[QueueSetRequest]
    running: list[QueueSetRequest]
    start: float
    seats: int
    work: float


class QueueSet:
    """
    The queues of one level.

    @ivar executing: Number of occupied seats.
    @ivar running: Executing requests.
    @ivar reserved: Number of occupied reserved seats.
    @ivar waiting: Number of waiting requests.
    @ivar waiting_one_seat: Number of waiting requests of one seat.
    @ivar blocked: Whether the next request waits for free seats.
    @ivar virtual: Virtual time: work that each busy queue has received.
    @ivar rejected: Requests that were rejected because of full or no queues.
    @ivar dispatched: Requests that were dispatched.
    @ivar timed_out: Requests that exceeded the maximum waiting time.
    @ivar cancelled: Requests that were cancelled while they waited.
    """

    def __init__(self, limits: QueueSetConfig) -> None:
        self.limits = limits
        self.executing = 0
        self.running: set[QueueSetRequest] = set()
        self.reserved = 0
        self.waiting = 0
        self.waiting_one_seat = 0
        self.blocked = False
        self.virtual = 0.0
        self.rejected = 0
        self.dispatched = 0
        self.timed_out = 0
        self.cancelled = 0
        #: Recently used queues, by number.
        self._queues: dict[int, _Queue] = {}
        self._estimated_seconds = _INITIAL_ESTIMATE

    def adjust(self, limits: QueueSetConfig) -> None:
        """Change the limits; requests in removed queues stay there until they are dispatched."""
        self.limits = limits

    def fits(self, seats: int) -> bool:
        """Return whether C{seats} are free; a request may exceed the limit if it is the only one."""
        limits = self.limits
        return (
            self.executing - self.reserved + seats <= limits.concurrency_limit - limits.reserved_seats
            or not self.running
        )

    def can_use_reserved_seat(self) -> bool:
        """Return whether a request of one seat may overtake waiting ones and take a reserved seat."""
        return not self.waiting_one_seat and self.reserved < self.limits.reserved_seats

    def begin(self, ticket: QueueSetRequest, now: float, reserved: bool = False) -> None:
        """
        Assign seats to a request.

        @param ticket: The request.
        @param now: Current time in seconds.
        @param reserved: Whether it takes a reserved seat.
        """
        ticket.start_time = now
        self.executing += ticket.seats
        if reserved:
            ticket.has_reserved_seat = True
            self.reserved += ticket.seats
        self.running.add(ticket)
        self.dispatched += 1

    def end(self, ticket: QueueSetRequest, now: float) -> None:
        """Release the seats of a request, and correct the virtual time of its queue."""
        assert ticket.start_time is not None, "it never began"
        self.executing -= ticket.seats
        if ticket.has_reserved_seat:
            self.reserved -= ticket.seats
        self.running.discard(ticket)
        execution_seconds = now - ticket.start_time
        queue = ticket.queue
        if queue is not None:
            # Replace the estimate by the measured time.
            queue.start += ticket.seats * (execution_seconds - self._estimated_seconds)
        self._estimated_seconds += (min(execution_seconds, 60.0) - self._estimated_seconds) / 64

    def enqueue(self, ticket: QueueSetRequest, hand: Iterator[int]) -> bool:
        """
        Add a request to the shortest queue of its flow.

        @param ticket: The request.
        @param hand: Numbers of the queues of its flow.
        @return: False if the queue is full.
        """
        best: _Queue | None = None
        for number in hand:
            queue = self._queues.get(number) or _Queue(number)
            if best is None or queue.seats < best.seats:
                best = queue
        if best is None or len(best.waiting) >= self.limits.queue_length_limit:
            self.rejected += 1
            return False
        if best.number not in self._queues:
            if len(self._queues) >= _MAX_EMPTY_QUEUES:
                self._queues = {queue.number: queue for queue in self._queues.values() if queue.waiting}
            self._queues[best.number] = best
        if not best.waiting:
            # An idle queue accumulates no credit.
            best.start = max(best.start, self.virtual)
        ticket.queue = best
        best.waiting.append(ticket)
        best.seats += ticket.seats
        self.waiting += 1
        self.waiting_one_seat += ticket.seats == 1
        self.blocked = self.blocked or not self.fits(ticket.seats)
        return True

    @staticmethod
    def length_of(ticket: QueueSetRequest) -> int:
        """Return the number of waiting requests in the queue of a request."""
        return 0 if ticket.queue is None else len(ticket.queue.waiting)

    def leave(self, ticket: QueueSetRequest) -> bool:
        """Remove a waiting request from its queue; return whether it was waiting."""
        queue = ticket.queue
        if ticket.start_time is not None or ticket.left_queue or queue is None:
            return False
        ticket.left_queue = True
        queue.waiting.remove(ticket)
        queue.seats -= ticket.seats
        self.waiting -= 1
        self.waiting_one_seat -= ticket.seats == 1
        return True

    def next(self, now: float, max_seats: float = inf) -> QueueSetRequest | None:
        """
        Dispatch the next request.

        A request of many seats blocks those behind it, otherwise it would never be dispatched. Requests of one seat may
        overtake it as long as reserved seats are free.

        @param now: Current time in seconds.
        @param max_seats: Maximum number of seats; a wider request stays in its queue.
        @return: The request; L{None} if none waits or the next one does not fit.
        """
        best = self._first(inf)
        self.blocked = best is not None and not self.fits(best.waiting[0].seats)
        reserved = self.blocked and self.waiting_one_seat > 0 and self.reserved < self.limits.reserved_seats
        if reserved:
            best = self._first(1)
        elif self.blocked:
            return None
        if best is None or best.waiting[0].seats > max_seats:
            return None
        ticket = best.waiting.popleft()
        best.seats -= ticket.seats
        self.waiting -= 1
        self.waiting_one_seat -= ticket.seats == 1
        if not reserved:
            self.virtual = max(self.virtual, best.start)
        best.start += ticket.seats * self._estimated_seconds
        self.begin(ticket, now, reserved)
        return ticket

    def _first(self, max_seats: float) -> _Queue | None:
        """Return the queue with the least virtual start time whose next request needs at most C{max_seats}."""
        best: _Queue | None = None
        for queue in self._queues.values():
            if queue.waiting and queue.waiting[0].seats <= max_seats and (best is None or queue.start < best.start):
                best = queue
        return best

    def overdue(self, cutoff: float) -> list[QueueSetRequest]:
        """Return the requests that arrived before a time; each queue has the oldest first."""
        overdue = []
        for queue in self._queues.values():
            for ticket in queue.waiting:
                if ticket.arrival_time > cutoff:
                    break
                overdue.append(ticket)
        return overdue

    def oldest(self) -> float | None:
        """Return the arrival time of the oldest waiting request; L{None} without any."""
        return min((queue.waiting[0].arrival_time for queue in self._queues.values() if queue.waiting), default=None)

    def snapshot(self) -> list[QueueState]:
        """Return the state of each queue, for dumps."""
        running: dict[_Queue, list[QueueSetRequest]] = {}
        for ticket in self.running:
            if ticket.queue is not None:
                running.setdefault(ticket.queue, []).append(ticket)
        known = self._queues
        queues = {number: _Queue(number) for number in range(min(self.limits.num_queues, _MAX_EMPTY_QUEUES))} | known
        return [
            QueueState(
                *(queue.number, list(queue.waiting), running.get(queue, []), queue.start, queue.seats),
                queue.seats * self._estimated_seconds,
            )
            for _, queue in sorted(queues.items())
        ]


def deal_hand(flow_hash: int, queues: int, hand: int) -> Iterator[int]:
    """
    Return the hand of distinct queues of a flow (Go: C{shufflesharding.Dealer.Deal}).

    @param flow_hash: Hash of the flow, with well mixed bits.
    @param queues: Number of queues.
    @param hand: Number of queues in the hand.
    """
    drawn: list[int] = []
    for size in range(queues, max(queues - hand, 0), -1):
        flow_hash, drawn_index = divmod(flow_hash, size)
        # Index among the remaining queues.
        for one in sorted(drawn):
            if drawn_index >= one:
                drawn_index += 1
        drawn.append(drawn_index)
        yield drawn_index
