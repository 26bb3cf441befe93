"""
Priority and fairness as a whole: who a request is to the server, whether there is a seat for it, and who is next.

@see: kubernetes/apiserver, C{pkg/util/flowcontrol/apf_controller.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import blake2b
from math import ceil, inf
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field, frozen

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..api.resource import (
    JSONObject,
    UserInfo,
)
from ..http.fields import FieldLines
from ..metrics.registry import (
    HighWatermark,
    Histogram,
)
from .concurrencyallocation import (
    Demand,
    LevelLimits,
    Wish,
    fair_shares,
    nominal_limits,
)
from .queueset import (
    Limits,
    QueueSet,
    Ticket,
    deal,
)
from .scheduler import CooperativeScheduler
from .schemas import (
    FlowSchema,
    Sought,
    in_order,
)

if TYPE_CHECKING:
    from ..http.request import (
        Handler,
        KubeRequest,
    )

EXEMPT: Final = "exempt"
CATCH_ALL: Final = "catch-all"
#: Seconds between adjustments of what levels borrow from each other.
ADJUSTMENT: Final = 10.0
#: Of the seats of a level, how many one request may take at most.
_WIDEST: Final = 0.15
#: How many are kept for requests that take one: lists that have all others are no reason for a GET to wait.
_KEPT: Final = 0.125
#: Bounds of the seconds that requests wait.
WAITS: Final = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
#: Bounds of the seats that requests take.
_WIDTHS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0)
#: Seconds of one turn of the reactor for those who waited and are light.
_LIGHT: Final = 0.002
#: Assignments that are remembered.
_REMEMBERED: Final = 4096
#: How many characters a client may have chosen of what is remembered.
_LONGEST: Final = 1024
#: And groups of one of whom it is remembered in which flow he was last.
_MOST_GROUPS: Final = 64
_READING: Final = frozenset(("get", "list", "watch"))
#: Seconds that a client is told to stay away: at least, and at most.
_RETRY: Final = (1, 32)

#: What there is when somebody has deleted it.
_MANDATORY: Final[dict[str, JSONObject]] = {
    EXEMPT: {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    CATCH_ALL: {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}},
    },
}
_MANDATORY_SCHEMAS: Final = (
    FlowSchema.of(
        {
            "metadata": {"name": EXEMPT},
            "spec": {
                "matchingPrecedence": 1,
                "priorityLevelConfiguration": {"name": EXEMPT},
                "rules": [
                    {
                        "subjects": [{"kind": "Group", "group": {"name": "system:masters"}}],
                        "resourceRules": [
                            {
                                "verbs": ["*"],
                                "apiGroups": ["*"],
                                "resources": ["*"],
                                "namespaces": ["*"],
                                "clusterScope": True,
                            }
                        ],
                        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                    }
                ],
            },
        }
    ),
    FlowSchema("catch-all", "", 10000, CATCH_ALL, "ByUser", ()),
)


@define(eq=False)
class Level:
    """
    One priority level.

    @ivar exempt: Its requests never wait.
    @ivar widest: Seats that one request may take at most.
    @ivar seats: That may be taken at a time, as of the last adjustment.
    @ivar leaving: The object is gone; it is there as long as somebody waits.
    """

    name: str
    uid: str
    exempt: bool
    spec: JSONObject = field(repr=False)
    queues: QueueSet = field(factory=lambda: QueueSet(Limits(0)), repr=False)
    limits: LevelLimits = field(factory=lambda: LevelLimits(0, 0, 0))
    demand: Demand = field(factory=Demand, repr=False)
    seats: int = 0
    widest: int = 1
    leaving: bool = False
    retry_after: int = _RETRY[0]
    dropped: int = 0
    dropped_since: float = 0.0

    def queueing(self, seats: int) -> Limits:
        """How it queues, with so many seats."""
        response = (self.spec.get("limited") or {}).get("limitResponse") or {}
        if response.get("type") != "Queue":
            return Limits(seats)
        queuing = response.get("queuing") or {}
        return Limits(
            *(seats, queuing.get("queues") or 64, queuing.get("handSize") or 8, queuing.get("queueLengthLimit") or 50),
            int(seats * _KEPT),
        )

    def drop(self, now: float) -> int:
        """
        A request is rejected.

        @return: Seconds after which its client may come again: more of them, the more are rejected.
        """
        if now - self.dropped_since >= self.retry_after:
            if self.dropped > 3 * self.retry_after:
                self.retry_after = min(self.retry_after * 2, _RETRY[1])
            elif self.dropped <= self.retry_after:
                self.retry_after = max(self.retry_after - 1, _RETRY[0])
            self.dropped, self.dropped_since = 0, now
        self.dropped += 1
        return self.retry_after


class FlowMetrics:
    """
    What is counted of the requests of one flow schema in one level.

    @ivar easy: Those that had one seat, and at once; they count elsewhere after L{settle}.
    """

    __slots__ = (
        *("dispatched", "easy", "executed", "executing", "full", "gave_up", "late", "seats", "waited", "waiting"),
        *("watched", "widths"),
    )

    def __init__(self) -> None:
        self.easy = self.dispatched = self.executing = self.seats = self.waiting = self.full = self.late = 0
        self.waited = Histogram(WAITS)
        #: Seconds that those waited who got no seat.
        self.gave_up = Histogram(WAITS)
        #: Seconds for which requests had their seats, and of watches apart from them; how many seats they took.
        self.executed, self.watched = Histogram(WAITS), Histogram(WAITS)
        self.widths = Histogram(_WIDTHS)

    def settle(self) -> None:
        """Count everything where it belongs."""
        easy, self.easy = self.easy, 0
        self.dispatched += easy
        self.waited.observe_often(0.0, easy)
        self.widths.observe_often(1.0, easy)


@frozen(eq=False)
class Assignment:
    """
    What a request is to the server.

    @ivar metrics: Where it is counted, and C{queued} where it is while it waits.
    @ivar lasted: Where it is told for how long it had its seats.
    @ivar entropy: Tells its flow from others.
    @ivar flow: What tells it, for who wants to look.
    @ivar fields: Header fields of the response that name schema and level.
    """

    schema: FlowSchema
    level: Level
    flow: str
    entropy: int
    fields: FieldLines
    metrics: FlowMetrics
    queued: HighWatermark
    lasted: Histogram


class FlowControl:
    """
    The priority levels of one server.

    @ivar levels: By name.
    @ivar schemas: In the order in which they are asked.
    @ivar scheduler: Where heavy work is done.
    @ivar flow_metrics: What is counted, by flow schema and level.
    @ivar queued: How many wait, by whether they change something.
    @ivar fraction: Of their demand, what levels got in the last adjustment.
    @ivar plan: Another object whenever something else is configured.
    """

    _log = Logger()

    def __init__(self, reactor: IReactorTime, seats: int, wait: float, scheduler: CooperativeScheduler) -> None:
        """
        @param seats: That all levels share.
        @param wait: Seconds that a request may wait.
        """
        self._reactor = reactor
        self._now: Callable[[], float] = reactor.seconds
        self._seats = seats
        self._wait = wait
        self.scheduler = scheduler
        self._remembered: dict[tuple[Any, ...], Assignment] = {}
        self.plan = object()
        self._planned = False
        self._expiry: Any = None
        self._adjustment: Any = None
        self.levels: dict[str, Level] = {}
        self.schemas: list[FlowSchema] = []
        self.fraction = 0.0
        self.flow_metrics: dict[tuple[str, str], FlowMetrics] = {}
        self.queued = {kind: HighWatermark(self._now) for kind in ("readOnly", "mutating")}
        self.configure((), ())

    # What is configured.

    def configure(self, levels: Iterable[JSONObject], schemas: Iterable[JSONObject]) -> None:
        """Go by these objects of the API from now on; what must be there is, also when it was deleted."""
        wanted: dict[str, JSONObject] = {obj["metadata"]["name"]: obj for obj in levels if _whole(obj)}
        for name, spec in _MANDATORY.items():
            wanted.setdefault(name, {"metadata": {"name": name}, "spec": spec})
        found: dict[str, Level] = {}
        for name, obj in wanted.items():
            spec = obj["spec"]
            level = self.levels.get(name) or Level(name, "", spec.get("type") == "Exempt", spec)
            level.uid, level.spec, level.leaving = obj["metadata"].get("uid", ""), spec, False
            found[name] = level
        for name, level in self.levels.items():
            if name not in found and (level.queues.running or level.queues.waiting):
                level.leaving = True
                found[name] = level
        nominal = nominal_limits({name: level.spec for name, level in found.items()}, self._seats)
        for name, level in found.items():
            level.limits = limits = nominal[name]
            if name not in self.levels:
                level.seats = limits.nominal - (limits.nominal - limits.lower) // 2
            level.seats = min(max(level.seats, limits.lower), limits.upper)
            queueing = level.queueing(level.seats)
            level.queues.adjust(queueing)
            if queueing.hand:
                level.widest = max(1, min(ceil(limits.nominal * _WIDEST), limits.nominal // queueing.hand))
        self.levels = found
        # Those of a level that is leaving lead nowhere: it would not be missed when it is gone.
        known = [schema for schema in in_order(schemas) if schema.level in wanted]
        names = {schema.name for schema in known}
        known += [schema for schema in _MANDATORY_SCHEMAS if schema.name not in names]
        self.schemas = sorted(known, key=lambda one: (one.precedence, one.name))
        self._remembered.clear()
        self.plan = object()
        pairs = {(schema.name, schema.level) for schema in self.schemas}
        for pair in [one for one in self.flow_metrics if one not in pairs]:
            del self.flow_metrics[pair]
        self._plan()

    def classify(self, user: UserInfo, info: Sought) -> Assignment:
        """What a request is."""
        key = (
            user.name,
            user.groups,
            info.verb,
            info.group,
            info.resource,
            info.subresource,
            info.namespace,
            "" if info.is_resource_request else info.path,
        )
        found = self._remembered.get(key)
        if found is None:
            found = self._classify(user, info)
            if sum(map(len, user.groups)) + sum(len(part) for part in key if isinstance(part, str)) <= _LONGEST:
                if len(self._remembered) >= _REMEMBERED:
                    self._remembered.clear()
                self._remembered[key] = found
        return found

    @staticmethod
    def may_keep(user: UserInfo) -> bool:
        """Whether little is kept with a user: what tells of some is as long as a client likes."""
        if user.extra or len(user.groups) > _MOST_GROUPS:
            return False
        return len(user.name) + len(user.uid) + sum(map(len, user.groups)) <= _LONGEST

    def _classify(self, user: UserInfo, info: Sought) -> Assignment:
        schema = next((one for one in self.schemas if one.matches(user, info)), None)
        if schema is None:
            schema = next(one for one in self.schemas if one.name == CATCH_ALL)
        level = self.levels[schema.level]
        flow = schema.flow(user, info)
        digest = blake2b(f"{schema.name},{flow}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
        fields = FieldLines(
            [
                (b"X-Kubernetes-PF-FlowSchema-UID", schema.uid.encode()),
                (b"X-Kubernetes-PF-PriorityLevel-UID", level.uid.encode()),
            ]
        )
        metrics = self.flow_metrics.setdefault((schema.name, level.name), FlowMetrics())
        queued = self.queued["readOnly" if info.verb in _READING else "mutating"]
        lasted = metrics.watched if info.verb == "watch" else metrics.executed
        return Assignment(schema, level, flow, int.from_bytes(digest, "big"), fields, metrics, queued, lasted)

    # Requests.

    def enter(self, request: KubeRequest, assigned: Assignment, seats: int, handler: Handler) -> bool:
        """
        Have C{handler} answer a request: now, or when there is a seat.

        @param seats: How many it takes.
        @return: Whether there is hope; it is to be told to come again otherwise.
        """
        level = assigned.level
        if level.exempt:
            if seats == 1:
                assigned.metrics.easy += 1
                handler(request)
            else:
                metrics = assigned.metrics
                metrics.dispatched += 1
                metrics.widths.observe(seats)
                metrics.waited.observe(0.0)
                self.scheduler.run_or_defer(partial(self._answer, request, handler))
            return True
        queues = level.queues
        now = self._now()
        ticket = Ticket(request, seats, now)
        request.ticket, request.assigned = ticket, assigned
        # Who waits only because there was too much heavy work in this turn has nothing against something light.
        if (seats == 1 and not queues.blocked) or (not queues.waiting and self.scheduler.free):
            at_once = queues.fits(seats)
        else:
            at_once = False
        kept = seats == 1 and not at_once and queues.passes()
        metrics = assigned.metrics
        if at_once or kept:
            queues.begin(ticket, now, kept)
            self._begun(metrics, ticket, 0.0)
            level.demand.set(queues.executing + queues.waiting, now)
            if seats == 1:
                handler(request)
            else:
                self.scheduler.run_or_defer(partial(self._answer, request, handler))
            return True
        limits = queues.limits
        if not limits.queues:
            if queues.fits(seats):
                # It only came at a bad moment: there are seats, and no queue to wait in.
                queues.begin(ticket, now)
                self._begun(metrics, ticket, 0.0)
                level.demand.set(queues.executing, now)
                self.scheduler.run_or_defer(partial(self._answer, request, handler))
                return True
            request.ticket = None
            queues.rejected += 1
            metrics.full += 1
            return False
        if not queues.enqueue(ticket, deal(assigned.entropy, limits.queues, limits.hand)):
            request.ticket = None
            metrics.full += 1
            return False
        metrics.waiting += 1
        assigned.queued.up(now)
        request.waiting_handler = handler
        level.demand.set(queues.executing + queues.waiting, now)
        self._plan()
        if self._expiry is None:
            self._expiry = self._reactor.callLater(self._wait, self._expire)
        return True

    def ended(self, request: KubeRequest) -> None:
        """A request is over, or its client has gone."""
        ticket = request.ticket
        if ticket is None:
            return
        request.ticket = None
        level = request.assigned.level
        queues, now = level.queues, self._now()
        metrics = request.assigned.metrics
        if ticket.started is None:
            queues.gone += queues.leave(ticket)
            metrics.waiting -= 1
            self._left(request.assigned, ticket, now)
        else:
            queues.end(ticket, now)
            request.assigned.lasted.observe(now - ticket.started)
            metrics.executing -= 1
            metrics.seats -= ticket.seats
        level.demand.set(queues.executing + queues.waiting, now)
        if queues.waiting:
            self._plan()

    @staticmethod
    def _begun(metrics: FlowMetrics, ticket: Ticket, waited: float) -> None:
        metrics.executing += 1
        metrics.seats += ticket.seats
        if ticket.seats == 1 and not waited:
            metrics.easy += 1
        else:
            metrics.dispatched += 1
            metrics.widths.observe(ticket.seats)
            metrics.waited.observe(waited)

    @staticmethod
    def _left(assigned: Assignment, ticket: Ticket, now: float) -> None:
        """A request waits no more, and got no seat."""
        assigned.queued.down(now)
        assigned.metrics.gave_up.observe(now - ticket.arrived)

    @staticmethod
    def _answer(request: KubeRequest, handler: Handler) -> None:
        if not request.over:
            try:
                handler(request)
            except Exception:
                request.processingFailed(Failure())

    def _plan(self) -> None:
        if not self._planned and any(level.queues.waiting for level in self.levels.values()):
            self._planned = True
            self._reactor.callLater(0, self._dispatch)

    def _dispatch(self) -> None:
        """
        Give seats to those whose turn it is, as long as there is time in this turn of the reactor.

        What is light does not wait until everything heavy is done that has seats already.
        """
        self._planned = False
        again = False
        until = self._now() + _LIGHT
        for level in self.levels.values():
            queues = level.queues
            while queues.waiting:
                now, free = self._now(), self.scheduler.free
                if now > until:
                    again = True
                    break
                ticket = queues.next(now, inf if free else 1)
                if ticket is None:
                    again = again or not (free or queues.blocked)
                    break
                metrics = ticket.what.assigned.metrics
                metrics.waiting -= 1
                ticket.what.assigned.queued.down(now)
                self._begun(metrics, ticket, now - ticket.arrived)
                ticket.what.queued_for = now - ticket.arrived
                ticket.what.waited += ticket.what.queued_for
                if ticket.seats == 1:
                    self.scheduler.note_cheap_request()
                    self._answer(ticket.what, ticket.what.waiting_handler)
                else:
                    self.scheduler.run_or_defer(partial(self._answer, ticket.what, ticket.what.waiting_handler))
        if again:
            self._plan()

    def _expire(self) -> None:
        """Reject those who have waited too long."""
        self._expiry = None
        before = self._now() - self._wait
        oldest: float | None = None
        for level in self.levels.values():
            for ticket in level.queues.overdue(before):
                level.queues.leave(ticket)
                level.queues.late += 1
                ticket.what.assigned.metrics.late += 1
                ticket.what.assigned.metrics.waiting -= 1
                self._left(ticket.what.assigned, ticket, self._now())
                ticket.what.ticket = None
                self.reject(ticket.what, level)
            since = level.queues.oldest()
            if since is not None and (oldest is None or since < oldest):
                oldest = since
        # Requests that came while others were rejected may have set it already.
        if oldest is not None and self._expiry is None:
            self._expiry = self._reactor.callLater(max(oldest + self._wait - self._now(), 0.01), self._expire)

    def reject(self, request: KubeRequest, level: Level) -> None:
        """Tell a client to come again."""
        request.terminated = 429
        request.setHeader(b"retry-after", b"%d" % level.drop(self._now()))
        request.respond_text(429, "Too many requests, please try again later.\n")

    # Borrowing.

    def start(self) -> None:
        """Adjust from time to time what levels borrow from each other."""
        self._adjustment = self._reactor.callLater(ADJUSTMENT, self._adjust)

    def stop(self) -> None:
        """Adjust no more."""
        for call in (self._adjustment, self._expiry):
            if call is not None and call.active():
                call.cancel()
        self._adjustment = self._expiry = None

    def _adjust(self) -> None:
        self._adjustment = self._reactor.callLater(ADJUSTMENT, self._adjust)
        self.adjust()

    def adjust(self) -> None:
        """Share the seats anew, by what was wanted since the last time."""
        now = self._now()
        left = sum(level.limits.nominal for level in self.levels.values())
        limited: list[tuple[Level, Wish]] = []
        for level in self.levels.values():
            high = level.demand.reset(now)
            limits = level.limits
            if level.exempt:
                level.seats = max(limits.lower, high)
                left -= level.seats
            else:
                lower = max(limits.lower, min(limits.nominal, high))
                limited.append((level, Wish(lower, limits.upper, max(lower, level.demand.smoothed))))
        lowest = sum(level.limits.lower for level, _ in limited)
        wanted = sum(wish.lower for _, wish in limited)
        if left <= lowest:
            self.fraction = 0.0
            shares = [float(level.limits.lower) for level, _ in limited]
        elif left <= wanted:
            self.fraction = 0.0
            part = (left - lowest) / (wanted - lowest)
            shares = [level.limits.lower + (wish.lower - level.limits.lower) * part for level, wish in limited]
        else:
            shares, self.fraction = fair_shares(left, [wish for _, wish in limited])
        for (level, _), share in zip(limited, shares, strict=True):
            level.seats = round(share)
            level.queues.adjust(level.queueing(level.seats))
        self._plan()
        for level in [one for one in self.levels.values() if one.leaving]:
            if not (level.queues.running or level.queues.waiting):
                del self.levels[level.name]


def _whole(obj: JSONObject) -> bool:
    """Whether a level makes sense; the API refuses others, but an older release may have stored one."""
    spec = obj.get("spec") or {}
    exempt = spec.get("type") == "Exempt"
    return exempt == (obj["metadata"]["name"] == EXEMPT) and (exempt or bool(spec.get("limited")))


def dangling(schema: JSONObject, levels: Mapping[str, Level]) -> JSONObject:
    """The condition of a flow schema that says whether its priority level is there; without a time."""
    name = ((schema.get("spec") or {}).get("priorityLevelConfiguration") or {}).get("name", "")
    there = name in levels and not levels[name].leaving
    text = f'This FlowSchema references the PriorityLevelConfiguration object named "{name}" '
    return {
        "type": "Dangling",
        "status": "False" if there else "True",
        "reason": "Found" if there else "NotFound",
        "message": text + ("and it exists" if there else "but there is no such object"),
    }
