"""Priority and fairness with requests that a test makes, and a clock that it scheduler."""

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
from tests.flowcontrol.requests import Impatient

JANE = UserInfo("jane", groups=("system:authenticated",))


INFO = request_info_of(b"GET", b"/api/v1/pods")


ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}


def level(name: str, shares: int = 1, queues: int = 1) -> JSONObject:
    """A priority level that queues."""
    queuing = {"queues": queues, "handSize": 1, "queueLengthLimit": 5}
    limited = {"nominalConcurrencyShares": shares, "lendablePercent": 0, "borrowingLimitPercent": 0}
    limited["limitResponse"] = {"type": "Queue", "queuing": queuing}  # type: ignore[assignment]
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}


def schema(name: str, level: str) -> JSONObject:
    """A flow schema that gives all requests to a level."""
    rules = [{"subjects": [{"kind": "Group", "group": {"name": "*"}}], "resourceRules": [ALL]}]
    spec = {"matchingPrecedence": 10, "priorityLevelConfiguration": {"name": level}, "rules": rules}
    return {"metadata": {"name": name}, "spec": spec}


@define(eq=False)
class Request:
    """One request, as far as it matters here."""

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
        """As that of real ones."""
        return self.finished or self.response_held or self._disconnected

    def setHeader(self, name: bytes, value: bytes) -> None:
        """Headers do not matter."""

    def respond_text(self, code: int, text: str) -> None:
        """The answer; a request may follow on the same connection."""
        self.code, self.finished = code, True
        self.flow.ended(self)
        if self.next is not None:
            self.next()

    def processingFailed(self, reason: Failure) -> None:
        """Tests see what went wrong."""
        reason.raiseException()


class LevelTests(SynchronousTestCase):
    """Seats, and those who wait for them."""

    def setUp(self) -> None:
        """All requests go to one level."""
        self.clock = Impatient()
        self.flow = FlowControl(self.clock, 20, 15.0, CooperativeScheduler(self.clock))
        self.flow.configure([level("one")], [schema("all", "one")])

    def enter(self, seats: int = 1, request: Request | None = None) -> Request:
        """A request of Jane's."""
        request = request or Request(self.flow)
        assigned = self.flow.classify(JANE, INFO)
        self.assertTrue(self.flow.start_request(request, assigned, seats, request.ran.append))
        return request

    def fill(self) -> list[Request]:
        """Take all seats of the level."""
        seats = self.flow.levels["one"].queues.limits.concurrency_limit
        self.assertGreater(seats, 1)
        return [self.enter() for _ in range(seats)]

    def test_deleted_level(self) -> None:
        """A priority level that is deleted while it is in use gets no more requests, and is missed by none."""
        request = self.enter()
        self.flow.configure([], [schema("all", "one")])
        self.assertTrue(self.flow.levels["one"].quiescing)
        self.assertEqual(self.flow.classify(JANE, INFO).level.name, "catch-all")
        self.flow.ended(request)
        self.flow.update_borrowing()
        self.assertNotIn("one", self.flow.levels)
        self.assertEqual(self.flow.classify(UserInfo("joe"), INFO).level.name, "catch-all")

    def test_long_texts(self) -> None:
        """What clients make up at any length is told apart all the same, but not remembered."""
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
        self.assertEqual(len(self.flow._remembered), 0)
        self.assertIs(self.flow.classify(JANE, INFO), self.flow.classify(JANE, INFO))

    def test_waiting_costs_nothing(self) -> None:
        """While a wide request waits for more seats than are free, the server rests."""
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

    def test_wide_ones_alone(self) -> None:
        """Where wide requests wait for seats, one that takes one seat is answered at once all the same."""
        self.flow = FlowControl(self.clock, 200, 15.0, CooperativeScheduler(self.clock))
        self.flow.configure([level("one")], [schema("all", "one")])
        limits = self.flow.levels["one"].queues.limits
        self.assertGreater(limits.reserved_seats, 0)
        running = [self.enter(limits.concurrency_limit - limits.reserved_seats)]
        wide = self.enter(2)
        self.clock.advance(0)
        narrow = self.enter()
        self.assertEqual((narrow.ran, wide.ran), ([narrow], []))
        for one in (*running, narrow):
            self.flow.ended(one)
        self.clock.advance(0)
        self.assertEqual(wide.ran, [wide])

    def test_light_ones_beside_heavy_work(self) -> None:
        """Who waited for a seat, and is light, does not wait for heavy work of those who have theirs."""
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

    def test_answered_while_it_waited(self) -> None:
        """A request whose answer is given already, and only waits to be told to the audit, is not run."""
        running = self.fill()
        late = self.enter()
        late.response_held = True
        for one in running:
            self.flow.ended(one)
        self.clock.advance(0)
        self.assertEqual(late.ran, [])
        late.finished = True
        self.flow.ended(late)
        self.assertEqual(self.flow.levels["one"].queues.executing, 0)

    def test_one_clock(self) -> None:
        """However many requests follow on the connections of those that waited too long, one alarm is set."""
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
        """Queues cost nothing before somebody waits in them: a level may have millions."""
        self.flow.configure([level("one", queues=10_000_000)], [schema("all", "one")])
        running = self.fill()
        waiting = [self.enter(), self.enter()]
        for one in running:
            self.flow.ended(one)
        self.clock.advance(0)
        self.assertEqual([one.ran for one in waiting], [[one] for one in waiting])
