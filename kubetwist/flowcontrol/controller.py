"""
API priority and fairness: classifies requests, queues them per priority level, and dispatches them to free seats.

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
    AllocationItem,
    ConcurrencyLimits,
    SeatDemandIntegrator,
    compute_concurrency_allocation,
    nominal_limits,
)
from .flowmetrics import FlowMetrics
from .queueset import (
    QueueSet,
    QueueSetConfig,
    QueueSetRequest,
    deal_hand,
)
from .scheduler import CooperativeScheduler
from .schemas import (
    FlowSchema,
    RequestInfoLike,
    sort_by_precedence,
)

if TYPE_CHECKING:
    from ..http.request import (
        Handler,
        KubeRequest,
    )

EXEMPT: Final = "exempt"
CATCH_ALL: Final = "catch-all"
#: Seconds between adjustments of the seats that priority levels borrow from each other.
BORROWING_ADJUSTMENT_PERIOD: Final = 10.0
#: Maximum share of the seats of a level for one request.
_MAX_REQUEST_SHARE: Final = 0.15
#: Share of the seats that is reserved for requests of one seat, so that a GET does not wait for lists.
_RESERVED_SHARE: Final = 0.125
#: Seconds per iteration of the reactor in which queued requests of one seat are dispatched.
_DISPATCH_SECONDS: Final = 0.002
#: Number of cached classifications.
_MAX_CACHED: Final = 4096
#: Maximum length of the client's part of a cached key.
_MAX_KEY_LENGTH: Final = 1024
#: Maximum number of groups of a user whose classification is cached.
_MAX_GROUPS: Final = 64
_READ_ONLY: Final = frozenset(("get", "list", "watch"))
#: Minimum and maximum of Retry-After, in seconds.
_RETRY_AFTER: Final = (1, 32)

#: The mandatory objects; they apply even if they were deleted.
_MANDATORY: Final[dict[str, JSONObject]] = {
    EXEMPT: {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    CATCH_ALL: {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}},
    },
}
_MANDATORY_SCHEMAS: Final = (
    FlowSchema.from_object(
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
class PriorityLevelState:
    """
    The state of one priority level (Go: C{priorityLevelState}).

    @ivar exempt: Its requests never wait.
    @ivar max_seats_per_request: Maximum number of seats per request.
    @ivar seats: Current concurrency limit, set by the last adjustment.
    @ivar quiescing: The object was deleted; the level is removed after its last request.
    """

    name: str
    uid: str
    exempt: bool
    spec: JSONObject = field(repr=False)
    queues: QueueSet = field(factory=lambda: QueueSet(QueueSetConfig(0)), repr=False)
    limits: ConcurrencyLimits = field(factory=lambda: ConcurrencyLimits(0, 0, 0))
    demand: SeatDemandIntegrator = field(factory=SeatDemandIntegrator, repr=False)
    seats: int = 0
    max_seats_per_request: int = 1
    quiescing: bool = False
    retry_after: int = _RETRY_AFTER[0]
    rejections: int = 0
    rejections_since: float = 0.0

    def queuing_config(self, seats: int) -> QueueSetConfig:
        """Return the configuration of the queues for a concurrency limit."""
        response = (self.spec.get("limited") or {}).get("limitResponse") or {}
        if response.get("type") != "Queue":
            return QueueSetConfig(seats)
        queuing = response.get("queuing") or {}
        return QueueSetConfig(
            *(seats, queuing.get("queues") or 64, queuing.get("handSize") or 8, queuing.get("queueLengthLimit") or 50),
            int(seats * _RESERVED_SHARE),
        )

    def count_rejection(self, now: float) -> int:
        """
        Count a rejected request.

        @return: Seconds for C{Retry-After}; they grow with the number of rejections.
        """
        if now - self.rejections_since >= self.retry_after:
            if self.rejections > 3 * self.retry_after:
                self.retry_after = min(self.retry_after * 2, _RETRY_AFTER[1])
            elif self.rejections <= self.retry_after:
                self.retry_after = max(self.retry_after - 1, _RETRY_AFTER[0])
            self.rejections, self.rejections_since = 0, now
        self.rejections += 1
        return self.retry_after


@frozen(eq=False)
class Classification:
    """
    Flow schema, priority level and flow of a request.

    @ivar metrics: Metrics of the schema and level.
    @ivar queued: Watermark of queued requests.
    @ivar execution_seconds: Histogram of execution times.
    @ivar flow_hash: Hash of schema and flow, from which the hand of queues is dealt.
    @ivar flow: The flow distinguisher, for dumps.
    @ivar fields: Header fields of the response that name schema and level.
    """

    schema: FlowSchema
    level: PriorityLevelState
    flow: str
    flow_hash: int
    fields: FieldLines
    metrics: FlowMetrics
    queued: HighWatermark
    execution_seconds: Histogram


class FlowControl:
    """
    The priority levels of one server.

    @ivar levels: States of the priority levels, by name.
    @ivar schemas: Flow schemas by precedence.
    @ivar scheduler: Runs expensive handlers in slices.
    @ivar flow_metrics: Metrics by flow schema and priority level.
    @ivar queued: Watermarks of queued requests: C{"readOnly"} and C{"mutating"}.
    @ivar seat_fair_frac: Seats per demanded seat in the last adjustment, the metric C{seat_fair_frac}.
    @ivar config_version: Token that changes with the configuration, for caches of classifications.
    """

    _log = Logger()

    def __init__(self, reactor: IReactorTime, seats: int, wait: float, scheduler: CooperativeScheduler) -> None:
        """
        @param reactor: The clock, and the scheduler of dispatches.
        @param seats: Concurrency limit of the server.
        @param wait: Maximum waiting time, in seconds.
        @param scheduler: Runs expensive handlers.
        """
        self._reactor = reactor
        self._now: Callable[[], float] = reactor.seconds
        self._seats = seats
        self._wait = wait
        self.scheduler = scheduler
        self._cache: dict[tuple[Any, ...], Classification] = {}
        self.config_version = object()
        self._dispatch_scheduled = False
        self._expiry: Any = None
        self._adjustment: Any = None
        self.levels: dict[str, PriorityLevelState] = {}
        self.schemas: list[FlowSchema] = []
        self.seat_fair_frac = 0.0
        self.flow_metrics: dict[tuple[str, str], FlowMetrics] = {}
        self.queued = {kind: HighWatermark(self._now) for kind in ("readOnly", "mutating")}
        self.configure((), ())

    # Configuration.

    def configure(self, levels: Iterable[JSONObject], schemas: Iterable[JSONObject]) -> None:
        """Apply PriorityLevelConfigurations and FlowSchemas; add the mandatory objects."""
        desired: dict[str, JSONObject] = {obj["metadata"]["name"]: obj for obj in levels if _is_valid_level(obj)}
        for name, spec in _MANDATORY.items():
            desired.setdefault(name, {"metadata": {"name": name}, "spec": spec})
        states: dict[str, PriorityLevelState] = {}
        for name, obj in desired.items():
            spec = obj["spec"]
            level = self.levels.get(name) or PriorityLevelState(name, "", spec.get("type") == "Exempt", spec)
            level.uid, level.spec, level.quiescing = obj["metadata"].get("uid", ""), spec, False
            states[name] = level
        for name, level in self.levels.items():
            if name not in states and (level.queues.running or level.queues.waiting):
                level.quiescing = True
                states[name] = level
        nominal = nominal_limits({name: level.spec for name, level in states.items()}, self._seats)
        for name, level in states.items():
            level.limits = limits = nominal[name]
            if name not in self.levels:
                level.seats = limits.nominal - (limits.nominal - limits.lower) // 2
            level.seats = min(max(level.seats, limits.lower), limits.upper)
            queueing = level.queuing_config(level.seats)
            level.queues.adjust(queueing)
            if queueing.hand_size:
                level.max_seats_per_request = max(
                    1, min(ceil(limits.nominal * _MAX_REQUEST_SHARE), limits.nominal // queueing.hand_size)
                )
        self.levels = states
        # Schemas of a quiescing level are dropped, so that the level can be removed.
        schemas_in_use = [schema for schema in sort_by_precedence(schemas) if schema.level in desired]
        names = {schema.name for schema in schemas_in_use}
        schemas_in_use += [schema for schema in _MANDATORY_SCHEMAS if schema.name not in names]
        self.schemas = sorted(schemas_in_use, key=lambda one: (one.precedence, one.name))
        self._cache.clear()
        self.config_version = object()
        pairs = {(schema.name, schema.level) for schema in self.schemas}
        for pair in [one for one in self.flow_metrics if one not in pairs]:
            del self.flow_metrics[pair]
        self._schedule_dispatch()

    def classify(self, user: UserInfo, info: RequestInfoLike) -> Classification:
        """Return the classification of a request, from the cache if possible."""
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
        result = self._cache.get(key)
        if result is None:
            result = self._classify(user, info)
            if sum(map(len, user.groups)) + sum(len(part) for part in key if isinstance(part, str)) <= _MAX_KEY_LENGTH:
                if len(self._cache) >= _MAX_CACHED:
                    self._cache.clear()
                self._cache[key] = result
        return result

    @staticmethod
    def may_cache(user: UserInfo) -> bool:
        """Return whether classifications of a user may be cached; clients can make the key arbitrarily long."""
        if user.extra or len(user.groups) > _MAX_GROUPS:
            return False
        return len(user.name) + len(user.uid) + sum(map(len, user.groups)) <= _MAX_KEY_LENGTH

    def _classify(self, user: UserInfo, info: RequestInfoLike) -> Classification:
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
        queued = self.queued["readOnly" if info.verb in _READ_ONLY else "mutating"]
        execution_seconds = metrics.execution_watch if info.verb == "watch" else metrics.execution_regular
        return Classification(
            schema, level, flow, int.from_bytes(digest, "big"), fields, metrics, queued, execution_seconds
        )

    # Requests.

    def start_request(self, request: KubeRequest, classification: Classification, seats: int, handler: Handler) -> bool:
        """
        Run C{handler} for the request at once, or queue the request until seats are free (Go: C{StartRequest}).

        @param request: The request.
        @param classification: Its classification.
        @param seats: Number of seats that it needs.
        @param handler: Answers it.
        @return: False when the request was not admitted; the caller must answer 429.
        """
        level = classification.level
        if level.exempt:
            if seats == 1:
                classification.metrics.immediate_one_seat += 1
                handler(request)
            else:
                metrics = classification.metrics
                metrics.dispatched += 1
                metrics.widths.observe(seats)
                metrics.wait_executed.observe(0.0)
                self.scheduler.run_or_defer(partial(self._answer, request, handler))
            return True
        queues = level.queues
        now = self._now()
        ticket = QueueSetRequest(request, seats, now)
        request.apf_request, request.apf_classification = ticket, classification
        # Requests that wait for the scheduler, not for seats, do not delay requests of one seat.
        if (seats == 1 and not queues.blocked) or (not queues.waiting and self.scheduler.free):
            fits_now = queues.fits(seats)
        else:
            fits_now = False
        reserved = seats == 1 and not fits_now and queues.can_use_reserved_seat()
        metrics = classification.metrics
        if fits_now or reserved:
            queues.begin(ticket, now, reserved)
            self._begun(metrics, ticket, 0.0)
            level.demand.set(queues.executing + queues.waiting, now)
            if seats == 1:
                handler(request)
            else:
                self.scheduler.run_or_defer(partial(self._answer, request, handler))
            return True
        limits = queues.limits
        if not limits.num_queues:
            if queues.fits(seats):
                # Seats are free but this iteration has no time, and there is no queue to wait in.
                queues.begin(ticket, now)
                self._begun(metrics, ticket, 0.0)
                level.demand.set(queues.executing, now)
                self.scheduler.run_or_defer(partial(self._answer, request, handler))
                return True
            request.apf_request = None
            queues.rejected += 1
            metrics.rejected_queue_full += 1
            return False
        if not queues.enqueue(ticket, deal_hand(classification.flow_hash, limits.num_queues, limits.hand_size)):
            request.apf_request = None
            metrics.rejected_queue_full += 1
            return False
        metrics.waiting += 1
        metrics.waiting_seats += seats
        metrics.queue_lengths.observe(queues.length_of(ticket))
        classification.queued.up(now)
        request.apf_handler = handler
        level.demand.set(queues.executing + queues.waiting, now)
        self._schedule_dispatch()
        if self._expiry is None:
            self._expiry = self._reactor.callLater(self._wait, self._expire)
        return True

    def ended(self, request: KubeRequest) -> None:
        """Release the seats of a request that was answered or whose client has disconnected."""
        ticket = request.apf_request
        if ticket is None:
            return
        request.apf_request = None
        level = request.apf_classification.level
        queues, now = level.queues, self._now()
        metrics = request.apf_classification.metrics
        if ticket.start_time is None:
            queues.cancelled += queues.leave(ticket)
            metrics.waiting -= 1
            metrics.waiting_seats -= ticket.seats
            self._record_not_executed(request.apf_classification, ticket, now)
        else:
            queues.end(ticket, now)
            request.apf_classification.execution_seconds.observe(now - ticket.start_time)
            metrics.executing -= 1
            metrics.seats -= ticket.seats
        level.demand.set(queues.executing + queues.waiting, now)
        if queues.waiting:
            self._schedule_dispatch()

    @staticmethod
    def _begun(metrics: FlowMetrics, ticket: QueueSetRequest, waited: float) -> None:
        metrics.executing += 1
        metrics.seats += ticket.seats
        if ticket.seats == 1 and not waited:
            metrics.immediate_one_seat += 1
        else:
            metrics.dispatched += 1
            metrics.widths.observe(ticket.seats)
            metrics.wait_executed.observe(waited)

    @staticmethod
    def _record_not_executed(classification: Classification, ticket: QueueSetRequest, now: float) -> None:
        """Record a request that leaves its queue without having been executed."""
        classification.queued.down(now)
        classification.metrics.wait_not_executed.observe(now - ticket.arrival_time)

    @staticmethod
    def _answer(request: KubeRequest, handler: Handler) -> None:
        if not request.is_done:
            try:
                handler(request)
            except Exception:
                request.processingFailed(Failure())

    def _schedule_dispatch(self) -> None:
        if not self._dispatch_scheduled and any(level.queues.waiting for level in self.levels.values()):
            self._dispatch_scheduled = True
            self._reactor.callLater(0, self._dispatch)

    def _dispatch(self) -> None:
        """
        Dispatch queued requests for the time slice of this iteration of the reactor.

        Requests of one seat run at once; wider ones are handed to the scheduler.
        """
        self._dispatch_scheduled = False
        again = False
        until = self._now() + _DISPATCH_SECONDS
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
                metrics = ticket.request.apf_classification.metrics
                metrics.waiting -= 1
                metrics.waiting_seats -= ticket.seats
                ticket.request.apf_classification.queued.down(now)
                self._begun(metrics, ticket, now - ticket.arrival_time)
                ticket.request.apf_queue_seconds = now - ticket.arrival_time
                ticket.request.non_sli_seconds += ticket.request.apf_queue_seconds
                if ticket.seats == 1:
                    self.scheduler.note_cheap_request()
                    self._answer(ticket.request, ticket.request.apf_handler)
                else:
                    self.scheduler.run_or_defer(partial(self._answer, ticket.request, ticket.request.apf_handler))
        if again:
            self._schedule_dispatch()

    def _expire(self) -> None:
        """Reject requests that have waited longer than the maximum."""
        self._expiry = None
        before = self._now() - self._wait
        oldest: float | None = None
        for level in self.levels.values():
            for ticket in level.queues.overdue(before):
                level.queues.leave(ticket)
                level.queues.timed_out += 1
                metrics = ticket.request.apf_classification.metrics
                metrics.rejected_timeout += 1
                metrics.waiting -= 1
                metrics.waiting_seats -= ticket.seats
                self._record_not_executed(ticket.request.apf_classification, ticket, self._now())
                ticket.request.apf_request = None
                self.reject(ticket.request, level)
            since = level.queues.oldest()
            if since is not None and (oldest is None or since < oldest):
                oldest = since
        # Requests that arrived during the rejections may have set it.
        if oldest is not None and self._expiry is None:
            self._expiry = self._reactor.callLater(max(oldest + self._wait - self._now(), 0.01), self._expire)

    def reject(self, request: KubeRequest, level: PriorityLevelState) -> None:
        """Answer 429 with C{Retry-After}."""
        request.termination_code = 429
        request.setHeader(b"retry-after", b"%d" % level.count_rejection(self._now()))
        request.respond_text(429, "Too many requests, please try again later.\n")

    # Borrowing.

    def start(self) -> None:
        """Start the periodic adjustment of borrowed seats."""
        self._adjustment = self._reactor.callLater(BORROWING_ADJUSTMENT_PERIOD, self._adjust)

    def stop(self) -> None:
        """Cancel all timers."""
        for call in (self._adjustment, self._expiry):
            if call is not None and call.active():
                call.cancel()
        self._adjustment = self._expiry = None

    def _adjust(self) -> None:
        self._adjustment = self._reactor.callLater(BORROWING_ADJUSTMENT_PERIOD, self._adjust)
        self.update_borrowing()

    def update_borrowing(self) -> None:
        """Redistribute the seats by the demand since the last adjustment (Go: C{updateBorrowing})."""
        now = self._now()
        remaining = sum(level.limits.nominal for level in self.levels.values())
        limited: list[tuple[PriorityLevelState, AllocationItem]] = []
        for level in self.levels.values():
            high = level.demand.reset(now)
            limits = level.limits
            if level.exempt:
                level.seats = max(limits.lower, high)
                remaining -= level.seats
            else:
                lower = max(limits.lower, min(limits.nominal, high))
                limited.append((level, AllocationItem(lower, limits.upper, max(lower, level.demand.smoothed))))
        lowest = sum(level.limits.lower for level, _ in limited)
        desired_seats = sum(item.lower for _, item in limited)
        if remaining <= lowest:
            self.seat_fair_frac = 0.0
            shares = [float(level.limits.lower) for level, _ in limited]
        elif remaining <= desired_seats:
            self.seat_fair_frac = 0.0
            fraction = (remaining - lowest) / (desired_seats - lowest)
            shares = [level.limits.lower + (item.lower - level.limits.lower) * fraction for level, item in limited]
        else:
            shares, self.seat_fair_frac = compute_concurrency_allocation(remaining, [item for _, item in limited])
        for (level, _), share in zip(limited, shares, strict=True):
            level.seats = round(share)
            level.queues.adjust(level.queuing_config(level.seats))
        self._schedule_dispatch()
        for level in [one for one in self.levels.values() if one.quiescing]:
            if not (level.queues.running or level.queues.waiting):
                del self.levels[level.name]


def _is_valid_level(obj: JSONObject) -> bool:
    """Return whether a level is valid; older releases have stored invalid ones."""
    spec = obj.get("spec") or {}
    exempt = spec.get("type") == "Exempt"
    return exempt == (obj["metadata"]["name"] == EXEMPT) and (exempt or bool(spec.get("limited")))


def dangling_condition(schema: JSONObject, levels: Mapping[str, PriorityLevelState]) -> JSONObject:
    """Return the condition Dangling of a flow schema, without its transition time."""
    name = ((schema.get("spec") or {}).get("priorityLevelConfiguration") or {}).get("name", "")
    exists = name in levels and not levels[name].quiescing
    text = f'This FlowSchema references the PriorityLevelConfiguration object named "{name}" '
    return {
        "type": "Dangling",
        "status": "False" if exists else "True",
        "reason": "Found" if exists else "NotFound",
        "message": text + ("and it exists" if exists else "but there is no such object"),
    }
