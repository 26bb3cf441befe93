"""Priority and fairness with requests that a test makes, and a clock that it turns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field

from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.flowcontrol.levels import FlowControl
from kubetwist.flowcontrol.turns import ALONE, Turns
from kubetwist.http.requestinfo import request_info_of

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
    ticket: Any = None
    assigned: Any = None
    waiting_handler: Any = None
    waited: float = 0.0
    queued_for: float = 0.0
    finished: bool = False
    held: bool = False
    terminated: int = 0
    _disconnected: bool = False
    code: int = 0
    ran: list[Any] = field(factory=list)

    @property
    def over(self) -> bool:
        """As that of real ones."""
        return self.finished or self.held or self._disconnected

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


class Impatient(Clock):
    """A clock that has not got for ever: who is called again and again at the same time fails."""

    soon = 0

    def callLater(self, when: float, callable: Any, *args: object, **kw: object) -> Any:
        """As L{Clock.callLater}."""
        if not when:
            self.soon += 1
            assert self.soon < 1000, "nobody rests"
        return super().callLater(when, callable, *args, **kw)


class LevelTests(SynchronousTestCase):
    """Seats, and those who wait for them."""

    def setUp(self) -> None:
        """All requests go to one level."""
        self.clock = Impatient()
        self.flow = FlowControl(self.clock, 20, 15.0, Turns(self.clock))
        self.flow.configure([level("one")], [schema("all", "one")])

    def enter(self, seats: int = 1, request: Request | None = None) -> Request:
        """A request of Jane's."""
        request = request or Request(self.flow)
        assigned = self.flow.classify(JANE, INFO)
        self.assertTrue(self.flow.enter(request, assigned, seats, request.ran.append))
        return request

    def fill(self) -> list[Request]:
        """Take all seats of the level."""
        seats = self.flow.levels["one"].queues.limits.seats
        self.assertGreater(seats, 1)
        return [self.enter() for _ in range(seats)]

    def test_deleted_level(self) -> None:
        """A priority level that is deleted while it is in use gets no more requests, and is missed by none."""
        request = self.enter()
        self.flow.configure([], [schema("all", "one")])
        self.assertTrue(self.flow.levels["one"].leaving)
        self.assertEqual(self.flow.classify(JANE, INFO).level.name, "catch-all")
        self.flow.ended(request)
        self.flow.adjust()
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
            self.assertFalse(self.flow.may_keep(user))
        self.assertFalse(self.flow.may_keep(UserInfo("joe", extra={"a": ("x" * 50_000,)})))
        self.assertFalse(self.flow.may_keep(UserInfo("joe", uid="x" * 50_000)))
        self.assertTrue(self.flow.may_keep(JANE))
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
        self.flow = FlowControl(self.clock, 200, 15.0, Turns(self.clock))
        self.flow.configure([level("one")], [schema("all", "one")])
        limits = self.flow.levels["one"].queues.limits
        self.assertGreater(limits.kept, 0)
        running = [self.enter(limits.seats - limits.kept)]
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
        self.flow.turns = Turns(self.clock, budget=1e-9)
        running = self.fill()
        done: list[object] = []
        light, wide = Request(self.flow), Request(self.flow)
        for request, seats in ((light, 1), (wide, 2)):
            self.assertTrue(self.flow.enter(request, self.flow.classify(JANE, INFO), seats, done.append))
        for number in range(9):
            self.flow.turns.do(partial(done.append, number))
        for one in running:
            self.flow.ended(one)
        self.clock.advance(0)
        self.assertLess(done.index(light), done.index(8))
        self.assertGreater(done.index(wide), done.index(8))

    def test_answered_while_it_waited(self) -> None:
        """A request whose answer is given already, and only waits to be told to the audit, is not run."""
        running = self.fill()
        late = self.enter()
        late.held = True
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


class TurnsTests(SynchronousTestCase):
    """Heavy work."""

    def test_failing_work(self) -> None:
        """Work that fails is logged, and keeps no other from being done."""
        clock = Impatient()
        turns = Turns(clock, budget=1e-9)
        done: list[str] = []

        def fail() -> None:
            raise ZeroDivisionError

        for work in (fail, fail, lambda: done.append("a"), lambda: done.append("b")):
            turns.do(work)
        for _ in range(8):
            clock.advance(0)
        self.assertEqual((done, turns.waiting), (["a", "b"], 0))
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 2)

    def test_last_of_all(self) -> None:
        """What the last piece of work has spent of its turn is not spent of those that follow."""
        clock = Impatient()
        turns = Turns(clock, budget=1e-9)
        for _ in range(2):
            turns.do(lambda: None)
        for _ in range(3):
            clock.advance(0)
        self.assertEqual((turns.waiting, turns.free), (0, True))
        self.assertEqual(clock.getDelayedCalls(), [])

    def test_work_in_work(self) -> None:
        """What a piece of work asks for is done after it, and not within: it would not be known what it has taken."""
        clock = Impatient()
        turns = Turns(clock, budget=1e-9)
        done: list[str] = []

        def outer() -> None:
            turns.do(lambda: done.append("inner"))
            done.append("outer")

        turns.do(outer)
        self.assertEqual(done, ["outer"])
        clock.advance(0)
        self.assertEqual(done, ["outer", "inner"])

    def test_due(self) -> None:
        """What is waited for comes in another turn, and is heavy work."""
        clock = Impatient()
        turns = Turns(clock, budget=1e-9)
        free = []
        for _ in range(2):
            turns.due().addCallback(lambda _: free.append(turns.free))
        self.assertEqual((free, turns.waiting), ([], 2))
        clock.advance(0)
        self.assertEqual((free, turns.waiting), ([False, False], 0))

    def test_crowded(self) -> None:
        """Beside light requests, and for a while after them, each turn has one piece of heavy work."""
        clock = Impatient()
        turns = Turns(clock, budget=100.0)
        done: list[int] = []
        for number in range(3):
            turns.do(partial(done.append, number))
        self.assertEqual((done, turns.crowded), ([0, 1, 2], False))
        turns.light()
        self.assertTrue(turns.crowded)
        for number in range(ALONE + 2):
            turns.do(partial(done.append, number))
        self.assertEqual(len(done), 3)
        with_work = 0
        while turns.crowded:
            before = len(done)
            calls = [call for call in clock.getDelayedCalls() if call.active()]
            self.assertEqual(len(calls), 1)
            clock.calls.clear()
            calls[0].func()
            with_work += len(done) > before
            self.assertLessEqual(len(done), before + (1 if turns.crowded else ALONE))
        self.assertEqual(with_work, ALONE + 1)
