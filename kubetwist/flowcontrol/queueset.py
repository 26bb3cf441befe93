"""
The queues of one priority level: shuffle sharding, and fair queuing between them.

A flow is dealt a hand of a few queues, the same whenever it comes, and goes to the shortest: a flow that fills its
queues leaves others, who share hardly all of theirs with it, most of their own. Among queues, the next request is that
of the queue which has been given least (start-time fair queuing): seats times seconds, guessed before and corrected
after.

What takes many seats has to be waited for until they are free, all at a time. Some seats are therefore kept for those
who take one, and would otherwise wait for nothing but what is before them: a GET behind lists of others.

No I/O and no clock: who uses it says what time it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf
from typing import Any, Final

from attrs import define, field, frozen

#: Seconds that a request is taken to last as long as it is not known how long requests do.
_GUESS: Final = 0.003
#: Queues that are kept, and shown, though nobody waits in them; a level may have millions.
_KEPT: Final = 1024


@frozen
class Limits:
    """
    How a level queues.

    @ivar seats: That may be taken at a time.
    @ivar queues: How many there are; 0 rejects what would have to wait.
    @ivar hand: Among how many a flow chooses.
    @ivar length: How many requests may wait in each.
    @ivar kept: Of the seats, those that only requests of one seat may take, when there is no other.
    """

    seats: int
    queues: int = 0
    hand: int = 0
    length: int = 0
    kept: int = 0


@define(eq=False)
class Ticket:
    """
    A request that has a seat, or waits for one.

    @ivar what: Whatever its owner wants to find here again.
    @ivar seats: How many it takes.
    @ivar arrived: When.
    @ivar started: When it got its seats; L{None} while it waits.
    @ivar queue: Where it waits, or waited.
    @ivar kept: It has a seat that is kept.
    """

    what: Any
    seats: int
    arrived: float
    started: float | None = None
    queue: _Queue | None = None
    gone: bool = False
    kept: bool = False


@define(eq=False)
class _Queue:
    """
    One queue.

    @ivar start: The virtual time at which its next request begins.
    """

    number: int
    waiting: deque[Ticket] = field(factory=deque)
    seats: int = 0
    start: float = 0.0


@frozen
class QueueState:
    """
    A queue, as it is now.

    @ivar number: Its place among those of its level.
    @ivar running: Who has waited in it, and has seats.
    @ivar start: The virtual time at which its next request begins.
    @ivar seats: That those want who wait.
    @ivar work: Likewise, in seats times seconds.
    """

    number: int
    waiting: list[Ticket]
    running: list[Ticket]
    start: float
    seats: int
    work: float


class QueueSet:
    """
    The queues of one level.

    @ivar executing: Seats that are taken.
    @ivar running: Those that have them.
    @ivar kept: Those of them that are kept for requests of one seat.
    @ivar waiting: Requests that wait.
    @ivar narrow: Those of them that want one seat.
    @ivar blocked: Whether the next one waits for seats, and not only for its turn.
    @ivar virtual: The virtual time: how much work each busy queue has been given.
    @ivar rejected: How many requests found their queues full, or none; likewise C{late}, who waited too long, C{gone},
        who did not wait any more, and C{dispatched}, who had their turn.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.executing = 0
        self.running: set[Ticket] = set()
        self.kept = 0
        self.waiting = 0
        self.narrow = 0
        self.blocked = False
        self.virtual = 0.0
        self.rejected = 0
        self.dispatched = 0
        self.late = 0
        self.gone = 0
        #: Those that somebody has waited in lately.
        self._queues: dict[int, _Queue] = {}
        self._guess = _GUESS

    def adjust(self, limits: Limits) -> None:
        """Go by other limits; who waits in a queue that there will not be any more waits for its turn there."""
        self.limits = limits

    def fits(self, seats: int) -> bool:
        """Whether so many seats can be taken now; whoever is alone may take more than there are."""
        limits = self.limits
        return self.executing - self.kept + seats <= limits.seats - limits.kept or not self.running

    def passes(self) -> bool:
        """Whether a request of one seat may pass those who wait, to take a seat that is kept."""
        return not self.narrow and self.kept < self.limits.kept

    def begin(self, ticket: Ticket, now: float, kept: bool = False) -> None:
        """
        Give a request its seats.

        @param kept: Its seat is one of those that are kept.
        """
        ticket.started = now
        self.executing += ticket.seats
        if kept:
            ticket.kept = True
            self.kept += ticket.seats
        self.running.add(ticket)
        self.dispatched += 1

    def end(self, ticket: Ticket, now: float) -> None:
        """A request is over: its seats are free."""
        assert ticket.started is not None, "it never began"
        self.executing -= ticket.seats
        if ticket.kept:
            self.kept -= ticket.seats
        self.running.discard(ticket)
        took = now - ticket.started
        queue = ticket.queue
        if queue is not None:
            # It was taken to last so long; from here on it counts as long as it did.
            queue.start += ticket.seats * (took - self._guess)
        self._guess += (min(took, 60.0) - self._guess) / 64

    def enqueue(self, ticket: Ticket, hand: Iterator[int]) -> bool:
        """
        Have a request wait.

        @param hand: The queues that its flow may use.
        @return: Whether there was room.
        """
        best: _Queue | None = None
        for number in hand:
            queue = self._queues.get(number) or _Queue(number)
            if best is None or queue.seats < best.seats:
                best = queue
        if best is None or len(best.waiting) >= self.limits.length:
            self.rejected += 1
            return False
        if best.number not in self._queues:
            if len(self._queues) >= _KEPT:
                self._queues = {queue.number: queue for queue in self._queues.values() if queue.waiting}
            self._queues[best.number] = best
        if not best.waiting:
            # Who was away has not saved up anything.
            best.start = max(best.start, self.virtual)
        ticket.queue = best
        best.waiting.append(ticket)
        best.seats += ticket.seats
        self.waiting += 1
        self.narrow += ticket.seats == 1
        self.blocked = self.blocked or not self.fits(ticket.seats)
        return True

    def leave(self, ticket: Ticket) -> bool:
        """A request waits no longer; whether it did until now."""
        queue = ticket.queue
        if ticket.started is not None or ticket.gone or queue is None:
            return False
        ticket.gone = True
        queue.waiting.remove(ticket)
        queue.seats -= ticket.seats
        self.waiting -= 1
        self.narrow -= ticket.seats == 1
        return True

    def next(self, now: float, widest: float = inf) -> Ticket | None:
        """
        The request whose turn it is, with its seats; L{None} when nobody waits, or the next one does not fit.

        A wide one is waited for: those behind it do not overtake, or it would never have its turn; but for as many of
        those who want one seat as there are seats kept for them.

        @param widest: If it takes more seats than that, it has to wait for another time.
        """
        best = self._first(inf)
        self.blocked = best is not None and not self.fits(best.waiting[0].seats)
        kept = self.blocked and self.narrow > 0 and self.kept < self.limits.kept
        if kept:
            best = self._first(1)
        elif self.blocked:
            return None
        if best is None or best.waiting[0].seats > widest:
            return None
        ticket = best.waiting.popleft()
        best.seats -= ticket.seats
        self.waiting -= 1
        self.narrow -= ticket.seats == 1
        if not kept:
            self.virtual = max(self.virtual, best.start)
        best.start += ticket.seats * self._guess
        self.begin(ticket, now, kept)
        return ticket

    def _first(self, widest: float) -> _Queue | None:
        """Of the queues whose next request takes no more seats than that, the one whose turn it is."""
        best: _Queue | None = None
        for queue in self._queues.values():
            if queue.waiting and queue.waiting[0].seats <= widest and (best is None or queue.start < best.start):
                best = queue
        return best

    def overdue(self, before: float) -> list[Ticket]:
        """Those who have waited since before a time; each queue has the oldest in front."""
        found = []
        for queue in self._queues.values():
            for ticket in queue.waiting:
                if ticket.arrived > before:
                    break
                found.append(ticket)
        return found

    def oldest(self) -> float | None:
        """Since when somebody waits; L{None} when nobody does."""
        return min((queue.waiting[0].arrived for queue in self._queues.values() if queue.waiting), default=None)

    def snapshot(self) -> list[QueueState]:
        """Each queue, for who wants to look."""
        running: dict[_Queue, list[Ticket]] = {}
        for ticket in self.running:
            if ticket.queue is not None:
                running.setdefault(ticket.queue, []).append(ticket)
        known = self._queues
        shown = {number: _Queue(number) for number in range(min(self.limits.queues, _KEPT))} | known
        return [
            QueueState(
                *(queue.number, list(queue.waiting), running.get(queue, []), queue.start, queue.seats),
                queue.seats * self._guess,
            )
            for _, queue in sorted(shown.items())
        ]


def deal(entropy: int, queues: int, hand: int) -> Iterator[int]:
    """
    A hand of queues, all different, and the same for the same number.

    @param entropy: What tells flows apart; its bits must be well mixed.
    """
    drawn: list[int] = []
    for size in range(queues, max(queues - hand, 0), -1):
        entropy, card = divmod(entropy, size)
        # The cards that are left, counted without those that were drawn.
        for one in sorted(drawn):
            if card >= one:
                card += 1
        drawn.append(card)
        yield card
