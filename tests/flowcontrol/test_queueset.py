"""Tests of L{kubetwist.flowcontrol.queueset}."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.flowcontrol.queueset import (
    QueueSet,
    QueueSetConfig,
    QueueSetRequest,
    deal_hand,
)


class DealTests(SynchronousTestCase):
    """L{deal_hand}."""

    @given(st.integers(0, (1 << 128) - 1), st.integers(1, 200), st.integers(1, 12))
    def test_hands(self, flow_hash: int, queues: int, size: int) -> None:
        """A hand contains distinct queues, and is always the same for a flow."""
        hand = list(deal_hand(flow_hash, queues, size))
        self.assertEqual(len(set(hand)), min(size, queues))
        self.assertTrue(all(0 <= one < queues for one in hand))
        self.assertEqual(hand, list(deal_hand(flow_hash, queues, size)))

    def test_even(self) -> None:
        """Hands are distributed evenly over the queues."""
        entropies = (int.from_bytes(blake2b(b"%d" % number).digest()[:16]) for number in range(20_000))
        dealt = Counter(one for flow_hash in entropies for one in deal_hand(flow_hash, 16, 4))
        self.assertEqual(len(dealt), 16)
        self.assertLess(max(dealt.values()) / min(dealt.values()), 1.2)


class QueueTests(SynchronousTestCase):
    """L{QueueSet}."""

    def setUp(self) -> None:
        """Create a queue set with two seats and four queues."""
        self.queues = QueueSet(QueueSetConfig(2, 4, 1, 10))
        self.now = 0.0

    def waiting(self, name: object, queue: int, seats: int = 1) -> QueueSetRequest:
        """Return a queued request."""
        ticket = QueueSetRequest(name, seats, self.now)
        self.assertTrue(self.queues.enqueue(ticket, iter([queue])))
        return ticket

    def order(self) -> list[object]:
        """Dispatch all requests with the same execution time; return their order."""
        found = []
        while (ticket := self.queues.next(self.now)) is not None:
            found.append(ticket.request)
            self.now += 0.01
            self.queues.end(ticket, self.now)
        return found

    def test_fairness(self) -> None:
        """A flow with many requests does not delay a flow with few requests."""
        for number in range(6):
            self.waiting(f"a{number}", 0)
        for number in range(2):
            self.waiting(f"b{number}", 1)
        self.assertEqual(self.order()[:4], ["a0", "b0", "a1", "b1"])

    def test_wide(self) -> None:
        """Wide requests count with their seats: the other flow is dispatched more often."""
        for number in range(8):
            self.waiting(f"w{number}", 0, seats=2)
            self.waiting(f"n{number}", 1)
        order = self.order()
        waiting_one_seat = sum(str(name).startswith("n") for name in order[:9])
        self.assertGreaterEqual(waiting_one_seat, 5)

    def test_no_credit(self) -> None:
        """A flow that was idle does not precede the others when it becomes active."""
        self.queues.adjust(QueueSetConfig(2, 4, 1, 20))
        for number in range(20):
            self.waiting(f"a{number}", 0)
        for _ in range(10):
            ticket = self.queues.next(self.now)
            assert ticket is not None
            self.now += 0.01
            self.queues.end(ticket, self.now)
        for number in range(4):
            self.waiting(f"b{number}", 1)
        order = [str(name)[0] for name in self.order()[:8]]
        self.assertLessEqual(abs(order.count("a") - order.count("b")), 1)

    def test_seats(self) -> None:
        """The number of seats is not exceeded, except by a single wider request."""
        first = self.waiting("a", 0, seats=2)
        self.waiting("b", 1)
        self.assertIs(self.queues.next(self.now), first)
        self.assertIsNone(self.queues.next(self.now))
        self.queues.end(first, 1.0)
        wide = self.waiting("c", 2, seats=5)
        second = self.queues.next(1.0)
        assert second is not None
        self.assertIsNone(self.queues.next(1.0))
        self.queues.end(second, 1.1)
        self.assertIs(self.queues.next(1.1), wide)

    def test_reserved_seats(self) -> None:
        """Requests of one seat overtake wide ones while reserved seats are free."""
        queues = self.queues = QueueSet(QueueSetConfig(4, 4, 1, 10, reserved_seats=1))
        first = self.waiting("first", 0, seats=3)
        self.waiting("second", 0, seats=3)
        self.assertIs(queues.next(0.0), first)
        self.assertTrue(queues.can_use_reserved_seat())
        self.assertIsNone(queues.next(0.0))
        waiting_one_seat = [self.waiting(number, 1) for number in range(2)]
        self.assertFalse(queues.can_use_reserved_seat())
        self.assertIs(queues.next(0.0), waiting_one_seat[0])
        self.assertEqual((queues.executing, queues.reserved, queues.waiting_one_seat), (4, 1, 1))
        self.assertIsNone(queues.next(0.0))
        queues.end(waiting_one_seat[0], 0.1)
        self.assertIs(queues.next(0.1), waiting_one_seat[1])
        queues.end(first, 0.2)
        second = queues.next(0.2)
        assert second is not None
        self.assertEqual(second.request, "second")
        for one in waiting_one_seat[1], second:
            queues.end(one, 0.3)
        self.assertEqual((queues.executing, queues.reserved, queues.waiting, queues.waiting_one_seat), (0, 0, 0, 0))

    def test_full(self) -> None:
        """A full queue refuses requests; a level without queues refuses all."""
        for number in range(10):
            self.waiting(number, 0)
        self.assertFalse(self.queues.enqueue(QueueSetRequest("x", 1, 0.0), iter([0])))
        self.assertTrue(self.queues.enqueue(QueueSetRequest("y", 1, 0.0), iter([0, 1])))
        self.assertFalse(QueueSet(QueueSetConfig(1)).enqueue(QueueSetRequest("z", 1, 0.0), iter([])))
        self.assertEqual(self.queues.rejected, 1)

    def test_leaving(self) -> None:
        """A request that leaves its queue is not dispatched; overdue requests are returned."""
        first, second = self.waiting("a", 0), self.waiting("b", 0)
        self.now = 5.0
        third = self.waiting("c", 0)
        self.assertEqual(self.queues.overdue(1.0), [first, second])
        self.assertTrue(self.queues.leave(first))
        self.assertFalse(self.queues.leave(first))
        self.assertEqual(self.queues.oldest(), 0.0)
        self.assertTrue(self.queues.leave(second))
        self.assertIs(self.queues.next(6.0), third)
        self.assertFalse(self.queues.leave(third))
        self.assertEqual((self.queues.waiting, self.queues.executing), (0, 1))

    def test_adjusting(self) -> None:
        """Requests are kept when the configuration changes."""
        for queue in range(4):
            self.waiting(queue, queue)
        self.queues.adjust(QueueSetConfig(1, 2, 1, 1))
        self.assertEqual(sorted(map(int, map(str, self.order()))), [0, 1, 2, 3])

    @settings(max_examples=60)
    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 2)), max_size=60))
    def test_counters(self, steps: list[tuple[int, int, int]]) -> None:
        """The counters of seats and waiting requests are consistent, and all requests are dispatched."""
        queues, running, now, entered = QueueSet(QueueSetConfig(4, 4, 1, 100, reserved_seats=1)), [], 0.0, 0
        for queue, seats, action in steps:
            now += 0.01
            if action < 2:
                entered += queues.enqueue(QueueSetRequest(entered, seats, now), iter([queue]))
            elif running:
                queues.end(running.pop(0), now)
            while (ticket := queues.next(now)) is not None:
                running.append(ticket)
            self.assertEqual(queues.executing, sum(ticket.seats for ticket in running))
            self.assertEqual(queues.reserved, sum(ticket.has_reserved_seat for ticket in running))
            self.assertTrue(queues.executing - queues.reserved <= 3 or len(running) - queues.reserved == 1)
            self.assertLessEqual(queues.reserved, 1)
        while running:
            queues.end(running.pop(), now)
            while (ticket := queues.next(now)) is not None:
                running.append(ticket)
        self.assertEqual((queues.waiting, queues.executing), (0, 0))
        self.assertEqual(queues.dispatched, entered)
