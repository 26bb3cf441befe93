"""What controllers tell of objects, for people to read: v1 Events, few of them however often something happens."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, TypeVar

from attrs import define

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ...api.errors import APIStatusError
from ...api.resource import (
    GroupVersionKind,
    JSONObject,
)
from ...api.times import format_time
from ...storage.errors import StorageError
from .queue import WorkQueue

if TYPE_CHECKING:
    from .client import Client

#: How many different events are remembered, to count them.
CACHE_SIZE: Final = 4096
#: Of one object, so many at once; after that one in so many seconds.
BURST: Final = 25
REFILL_INTERVAL: Final = 300.0
#: So many that differ in their messages only, within so many seconds, become one.
MAX_SIMILAR_EVENTS: Final = 10
AGGREGATE_INTERVAL: Final = 600.0
#: The longest message.
MAX_MESSAGE_LENGTH: Final = 1024

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

#: The group, kind, namespace, name and uid of an object.
_Object = tuple[str, str, str, str, str]
#: An object, a type and a reason.
_Series = tuple[_Object, str, str]
#: The same with a message.
_Event = tuple[_Object, str, str, str]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@define(eq=False)
class _EventLog:
    """An event that is there: under which name, how often it happened."""

    namespace: str
    name: str
    count: int = 1


@define(eq=False)
class _TokenBucket:
    tokens: float
    at: float


@define(eq=False)
class _AggregateRecord:
    messages: set[str]
    at: float


class EventRecorder:
    """
    Records events in the name of one component.

    An event that is lost is no error: it is for people to read, and nothing waits for it.
    """

    _log = Logger()

    def __init__(self, client: Client, component: str, clock: IReactorTime) -> None:
        """
        @param client: Writes the events.
        @param component: Who reports the events: C{"deployment-controller"}.
        @param clock: Tells when they happen, and when writes are tried again.
        """
        self._clock = clock
        self._component = component
        self._client = client
        self._logged: OrderedDict[_Event, _EventLog] = OrderedDict()
        self._buckets: OrderedDict[_Object, _TokenBucket] = OrderedDict()
        self._aggregates: OrderedDict[_Series, _AggregateRecord] = OrderedDict()
        self._waiting: dict[int, tuple[_Event, JSONObject]] = {}
        self._number = self._stamp = 0
        # One after the other: the second of the same kind is to find the first.
        self._queue: WorkQueue[int] = WorkQueue(clock, self._write)
        self._queue.start()

    def event(self, kind: GroupVersionKind, obj: JSONObject, type: str, reason: str, message: str) -> None:
        """
        Tell of something.

        @param kind: Of the object, which itself may lack it.
        @param type: L{NORMAL} or L{WARNING}.
        @param reason: A word: C{ScalingReplicaSet}.
        """
        meta = obj["metadata"]
        about = {
            "kind": kind.kind,
            "namespace": meta.get("namespace", ""),
            "name": meta["name"],
            "uid": meta.get("uid", ""),
            "apiVersion": kind.api_version,
            "resourceVersion": meta.get("resourceVersion", ""),
        }
        involved = (kind.group, kind.kind, about["namespace"], about["name"], about["uid"])
        now = self._clock.seconds()
        if not self._allow(involved, now):
            return
        message = message if len(message) <= MAX_MESSAGE_LENGTH else message[: MAX_MESSAGE_LENGTH - 3] + "..."
        message = self._aggregate((involved, type, reason), message, now)
        time = format_time(now)
        # Names tell the time in nanoseconds; no two are the same.
        self._stamp = max(self._stamp + 1, int(now * 1e9))
        event: JSONObject = {
            "metadata": {
                "name": f"{about['name']}.{self._stamp:x}",
                "namespace": about["namespace"] or "default",
            },
            "involvedObject": {name: value for name, value in about.items() if value},
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
            "type": type,
            "reportingComponent": self._component,
        }
        self._number += 1
        self._waiting[self._number] = (involved, type, reason, message), event
        self._queue.add(self._number)

    def _allow(self, involved: _Object, now: float) -> bool:
        bucket = self._buckets.pop(involved, None) or _TokenBucket(BURST, now)
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.at) / REFILL_INTERVAL)
        bucket.at = now
        self._buckets[involved] = bucket
        _trim(self._buckets)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _aggregate(self, what: _Series, message: str, now: float) -> str:
        record = self._aggregates.pop(what, None)
        if record is None or now - record.at > AGGREGATE_INTERVAL:
            record = _AggregateRecord(set(), now)
        record.at = now
        self._aggregates[what] = record
        _trim(self._aggregates)
        if message not in record.messages and len(record.messages) >= MAX_SIMILAR_EVENTS:
            return f"(combined from similar events): {message}"
        record.messages.add(message)
        return message

    async def _write(self, number: int) -> None:
        what, event = self._waiting.pop(number)
        try:
            await self._record(what, event)
        except (APIStatusError, StorageError) as error:
            # A namespace that goes takes no events, nor does a storage that is away.
            self._log.debug("an event is lost: {error}", error=error)
        except Exception:
            self._log.failure("an event is lost")

    async def _record(self, what: _Event, event: JSONObject) -> None:
        if what[3].startswith("(combined"):
            what = (*what[:3], "")
        logged = self._logged.pop(what, None)
        if logged is not None:
            logged.count += 1

            def increment(stored: JSONObject) -> None:
                stored["count"] = logged.count
                stored["lastTimestamp"] = event["lastTimestamp"]
                stored["message"] = event["message"]

            try:
                await self._client.update("", "events", logged.namespace, logged.name, increment)
            except APIStatusError as error:
                if error.code != 404:
                    raise
            else:
                self._logged[what] = logged
                return
        made = await self._client.create("", "events", event)
        self._logged[what] = _EventLog(made.namespace, made.name)
        _trim(self._logged)

    async def stop(self) -> None:
        """Record nothing more."""
        await self._queue.stop()


def _trim(cache: OrderedDict[_Key, _Value]) -> None:
    while len(cache) > CACHE_SIZE:
        cache.popitem(last=False)
