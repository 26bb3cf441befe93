"""Records v1 Events about objects, with the rate limit and aggregation of client-go."""

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

#: Maximum number of cached events whose repetitions are counted.
CACHE_SIZE: Final = 4096
#: Rate limit per object: burst size, and seconds per further event.
BURST: Final = 25
REFILL_INTERVAL: Final = 300.0
#: Events that differ only in their messages are aggregated above this number within this interval in seconds.
MAX_SIMILAR_EVENTS: Final = 10
AGGREGATE_INTERVAL: Final = 600.0
#: Maximum length of a message.
MAX_MESSAGE_LENGTH: Final = 1024

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

#: The group, kind, namespace, name and uid of an object.
_Object = tuple[str, str, str, str, str]
#: An object, a type and a reason.
_Series = tuple[_Object, str, str]
#: An object, a type, a reason and a message.
_Event = tuple[_Object, str, str, str]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@define(eq=False)
class _EventLog:
    """A written event and its count."""

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
    Records events of one component.

    A failed write is logged and not retried, since nothing depends on events.
    """

    _log = Logger()

    def __init__(self, client: Client, component: str, clock: IReactorTime) -> None:
        """
        @param client: Writes the events.
        @param component: The source component: C{"deployment-controller"}.
        @param clock: The clock for timestamps and retries.
        """
        self._clock = clock
        self._component = component
        self._client = client
        self._logged: OrderedDict[_Event, _EventLog] = OrderedDict()
        self._buckets: OrderedDict[_Object, _TokenBucket] = OrderedDict()
        self._aggregates: OrderedDict[_Series, _AggregateRecord] = OrderedDict()
        self._waiting: dict[int, tuple[_Event, JSONObject]] = {}
        self._number = self._stamp = 0
        # Writes are serialized, so that a repeated event updates the first one.
        self._queue: WorkQueue[int] = WorkQueue(clock, self._write)
        self._queue.start()

    def event(
        self, kind: GroupVersionKind, obj: JSONObject, type: str, reason: str, message: str, *, field_path: str = ""
    ) -> None:
        """
        Record an event about an object.

        @param kind: The kind of the object, since C{obj} may lack it.
        @param obj: The object, with its metadata.
        @param type: L{NORMAL} or L{WARNING}.
        @param reason: The reason in CamelCase: C{ScalingReplicaSet}.
        @param message: The message; it is truncated if it is too long.
        @param field_path: The part of the object: C{"spec.containers{web}"}; C{""} for the whole object.
        """
        meta = obj["metadata"]
        involved_object = {
            "kind": kind.kind,
            "namespace": meta.get("namespace", ""),
            "name": meta["name"],
            "uid": meta.get("uid", ""),
            "apiVersion": kind.api_version,
            "resourceVersion": meta.get("resourceVersion", ""),
            "fieldPath": field_path,
        }
        involved = (
            kind.group,
            kind.kind,
            involved_object["namespace"],
            involved_object["name"],
            involved_object["uid"],
        )
        now = self._clock.seconds()
        if not self._allow(involved, now):
            return
        message = message if len(message) <= MAX_MESSAGE_LENGTH else message[: MAX_MESSAGE_LENGTH - 3] + "..."
        # The limit is for the whole object; events about its parts are counted separately.
        involved = (*involved[:4], f"{involved[4]}/{field_path}")
        message = self._aggregate((involved, type, reason), message, now)
        timestamp = format_time(now)
        # The name ends with the time in nanoseconds; it must be unique.
        self._stamp = max(self._stamp + 1, int(now * 1e9))
        event: JSONObject = {
            "metadata": {
                "name": f"{involved_object['name']}.{self._stamp:x}",
                "namespace": involved_object["namespace"] or "default",
            },
            "involvedObject": {name: value for name, value in involved_object.items() if value},
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": timestamp,
            "lastTimestamp": timestamp,
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

    def _aggregate(self, key: _Series, message: str, now: float) -> str:
        record = self._aggregates.pop(key, None)
        if record is None or now - record.at > AGGREGATE_INTERVAL:
            record = _AggregateRecord(set(), now)
        record.at = now
        self._aggregates[key] = record
        _trim(self._aggregates)
        if message not in record.messages and len(record.messages) >= MAX_SIMILAR_EVENTS:
            return f"(combined from similar events): {message}"
        record.messages.add(message)
        return message

    async def _write(self, number: int) -> None:
        key, event = self._waiting.pop(number)
        try:
            await self._record(key, event)
        except (APIStatusError, StorageError) as error:
            # Expected in a terminating namespace, or when the storage is unavailable.
            self._log.debug("cannot record event: {error}", error=error)
        except Exception:
            self._log.failure("cannot record event")

    async def _record(self, key: _Event, event: JSONObject) -> None:
        if key[3].startswith("(combined"):
            key = (*key[:3], "")
        log = self._logged.pop(key, None)
        if log is not None:
            log.count += 1

            def increment(stored: JSONObject) -> None:
                stored["count"] = log.count
                stored["lastTimestamp"] = event["lastTimestamp"]
                stored["message"] = event["message"]

            try:
                await self._client.update("", "events", log.namespace, log.name, increment)
            except APIStatusError as error:
                if error.code != 404:
                    raise
            else:
                self._logged[key] = log
                return
        record = await self._client.create("", "events", event)
        self._logged[key] = _EventLog(record.namespace, record.name)
        _trim(self._logged)

    async def stop(self) -> None:
        """Record no further events."""
        await self._queue.stop()


def _trim(cache: OrderedDict[_Key, _Value]) -> None:
    while len(cache) > CACHE_SIZE:
        cache.popitem(last=False)
