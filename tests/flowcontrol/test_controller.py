"""Tests of L{kubetwist.flowcontrol.controller}."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field

from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.flowcontrol.controller import FlowControl
from kubetwist.flowcontrol.scheduler import CooperativeScheduler
from kubetwist.http.requestinfo import request_info_of
from tests.flowcontrol.requests import BusyLoopClock

JANE = UserInfo("jane", groups=("system:authenticated",))


INFO = request_info_of(b"GET", b"/api/v1/pods")


ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}


def level(name: str, shares: int = 1, queues: int = 1) -> JSONObject:
    """Return a priority level with queues."""
    queuing = {"queues": queues, "handSize": 1, "queueLengthLimit": 5}
    limited = {"nominalConcurrencyShares": shares, "lendablePercent": 0, "borrowingLimitPercent": 0}
    limited["limitResponse"] = {"type": "Queue", "queuing": queuing}  # type: ignore[assignment]
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}


def schema(name: str, level: str) -> JSONObject:
    """Return a flow schema that assigns all requests to a level."""
    rules = [{"subjects": [{"kind": "Group", "group": {"name": "*"}}], "resourceRules": [ALL]}]
    spec = {"matchingPrecedence": 10, "priorityLevelConfiguration": {"name": level}, "rules": rules}
    return {"metadata": {"name": name}, "spec": spec}


@define(eq=False)
class Request:
    """A request with the attributes that flow control uses."""

    flow: FlowControl
    next: Callable[[], object] | None = None
    apf_request: Any = None
    apf_classification: Any = None
    apf_handler: Any = None
    non_sli_seconds: float = 0.0
    apf_queue_seconds: float = 0.0
    finished: bool = False
    response_held: bool = False
    termination_code: int = 0
    _disconnected: bool = False
    code: int = 0
    ran: list[Any] = field(factory=list)

    @property
    def is_done(self) -> bool:
        """Return whether the request is answered or disconnected."""
        return self.finished or self.response_held or self._disconnected

    def setHeader(self, name: bytes, value: bytes) -> None:
        """Ignore headers."""

    def respond_text(self, code: int, text: str) -> None:
        """Answer the request; then call C{next}, as for a pipelined request."""
        self.code, self.finished = code, True
        self.flow.ended(self)
        if self.next is not None:
            self.next()

    def processingFailed(self, reason: Failure) -> None:
        """Raise the failure."""
        reason.raiseException()


class LevelTests(SynchronousTestCase):
    """Seats and queues of a priority level."""

    def setUp(self) -> None:
        """Create a level for all requests."""
        self.clock = BusyLoopClock()
        self.flow = FlowControl(self.clock, 20, 15.0, CooperativeScheduler(self.clock))
        self.flow.configure([level("one")], [schema("all", "one")])

    def enter(self, seats: int = 1, request: Request | None = None) -> Request:
        """Start a request."""
        request = request or Request(self.flow)
        assigned = self.flow.classify(JANE, INFO)
        self.assertTrue(self.flow.start_request(request, assigned, seats, request.ran.append))
        return request

    def fill(self) -> list[Request]:
        """Occupy all seats of the level."""
        seats = self.flow.levels["one"].queues.limits.concurrency_limit
        self.assertGreater(seats, 1)
        return [self.enter() for _ in range(seats)]

    def test_deleted_level(self) -> None:
        """A deleted level gets no new requests, and is removed after its last request."""
        request = self.enter()
        self.flow.configure([], [schema("all", "one")])
        self.assertTrue(self.flow.levels["one"].quiescing)
        self.assertEqual(self.flow.classify(JANE, INFO).level.name, "catch-all")
        self.flow.ended(request)
        self.flow.update_borrowing()
        self.assertNotIn("one", self.flow.levels)
        self.assertEqual(self.flow.classify(UserInfo("joe"), INFO).level.name, "catch-all")

    def test_long_texts(self) -> None:
        """Requests with long names are classified but not cached."""
        long = b"x" * 50_000
        for target in (b"/api/v1/namespaces/" + long + b"/pods", b"/apis/a/b/" + long):
            self.assertEqual(self.flow.classify(JANE, request_info_of(b"GET", target)).level.name, "one")
        self.flow.classify(JANE, request_info_of(b"GET", b"/" + long))
        for user in (UserInfo("x" * 50_000), UserInfo("joe", groups=("x" * 50_000,))):
            self.flow.classify(user, INFO)
            self.assertFalse(self.flow.may_cache(user))
        self.assertFalse(self.flow.may_cache(UserInfo("joe", extra={"a": ("x" * 50_000,)})))
        self.assertFalse(self.flow.may_cache(UserInfo("joe", uid="x" * 50_000)))
        self.assertTrue(self.flow.may_cache(JANE))
        self.assertEqual(len(self.flow._cache), 0)
        self.assertIs(self.flow.classify(JANE, INFO), self.flow.classify(JANE, INFO))

    def test_no_busy_loop(self) -> None:
        """While a wide request waits for seats, no call is scheduled."""
        running = self.fill()
        wide = self.enter(len(running))
        self.clock.advance(0)
        self.flow.ended(running.pop())
        for _ in range(3):
            self.clock.advance(0)
        self.assertEqual([call for call in self.clock.getDelayedCalls() if call.getTime() <= self.clock.seconds()], [])
        for one in running:
            self.flow.ended(one)
        self.clock.advance(0)
        self.assertEqual(wide.ran, [wide])

    def test_reserved_seats(self) -> None:
        """A request of one seat is executed at once while wide requests wait."""
        self.flow = FlowControl(self.clock, 200, 15.0, CooperativeScheduler(self.clock))
        self.flow.configure([level("one")], [schema("all", "one")])
        limits = self.flow.levels["one"].queues.limits
        self.assertGreater(limits.reserved_seats, 0)
        running = [self.enter(limits.concurrency_limit - limits.reserved_seats)]
        wide = self.enter(2)
        self.clock.advance(0)
        waiting_one_seat = self.enter()
        self.assertEqual((waiting_one_seat.ran, wide.ran), ([waiting_one_seat], []))
        for one in (*running, waiting_one_seat):
            self.flow.ended(one)
        self.clock.advance(0)
        self.assertEqual(wide.ran, [wide])

    def test_narrow_beside_expensive_work(self) -> None:
        """A queued request of one seat does not wait for expensive work."""
        self.flow.scheduler = CooperativeScheduler(self.clock, budget=1e-9)
        running = self.fill()
        done: list[object] = []
        light, wide = Request(self.flow), Request(self.flow)
        for request, seats in ((light, 1), (wide, 2)):
            self.assertTrue(self.flow.start_request(request, self.flow.classify(JANE, INFO), seats, done.append))
        for number in range(9):
            self.flow.scheduler.run_or_defer(partial(done.append, number))
        for one in running:
            self.flow.ended(one)
        self.clock.advance(0)
        self.assertLess(done.index(light), done.index(8))
        self.assertGreater(done.index(wide), done.index(8))

    def test_queue_metrics(self) -> None:
        """Waiting requests are counted with their seats; the length of the queue is observed with each."""
        running = self.fill()
        metrics = self.flow.classify(JANE, INFO).metrics
        waiting = [self.enter(), self.enter(2)]
        self.assertEqual((metrics.waiting, metrics.waiting_seats), (2, 3))
        self.assertEqual((metrics.queue_lengths.count, metrics.queue_lengths.sum), (2, 1 + 2))
        self.flow.ended(waiting[1])
        self.assertEqual((metrics.waiting, metrics.waiting_seats), (1, 1))
        self.clock.advance(15)
        self.assertEqual((waiting[0].code, metrics.rejected_timeout), (429, 1))
        self.assertEqual((metrics.waiting, metrics.waiting_seats), (0, 0))
        for request in running:
            self.flow.ended(request)

    def test_answered_while_it_waited(self) -> None:
        """A request that is answered while it waits, and held for the audit, is not executed."""
        running = self.fill()
        timed_out = self.enter()
        timed_out.response_held = True
        for one in running:
            self.flow.ended(one)
        self.clock.advance(0)
        self.assertEqual(timed_out.ran, [])
        timed_out.finished = True
        self.flow.ended(timed_out)
        self.assertEqual(self.flow.levels["one"].queues.executing, 0)

    def test_one_timer(self) -> None:
        """Pipelined requests after timed out ones leave one expiry timer."""
        self.fill()

        def follow() -> None:
            self.enter(request=Request(self.flow, follow))

        for _ in range(3):
            follow()
        for _ in range(4):
            self.clock.advance(15.1)
            alarms = [one for one in self.clock.getDelayedCalls() if one.getTime() > self.clock.seconds()]
            self.assertEqual(len(alarms), 1)
        self.flow.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_many_queues(self) -> None:
        """Empty queues use no memory: a level may have millions of them."""
        self.flow.configure([level("one", queues=10_000_000)], [schema("all", "one")])
        running = self.fill()
        waiting = [self.enter(), self.enter()]
        for one in running:
            self.flow.ended(one)
        self.clock.advance(0)
        self.assertEqual([one.ran for one in waiting], [[one] for one in waiting])
