"""
The last hour of a server: samples in a ring, and marks of what happened.

A sample each 10 seconds serves both the last 10 minutes (60 points) and the hour (360 points). Two resolutions would
need quantiles of quantiles.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any, Final

import orjson
from attrs import asdict, frozen

from .increments import Observations
from .ring import MISSING, SampleRing
from .samples import RequestKey, Sample
from .slots import Slots

#: Seconds between two samples.
INTERVAL: Final = 10
#: The number of samples: one hour.
CAPACITY: Final = 360
#: The number of marks that are kept, and the maximum length of their texts.
MAX_MARKS: Final = 100
_MAX_TEXT: Final = 200
#: The numbers of verbs with resources, and of priority levels, that have columns.
MAX_REQUEST_KEYS: Final = 20
MAX_LEVELS: Final = 12
#: Bytes of the JSON of a history.
MAX_DOCUMENT: Final = 4 * 1024 * 1024
_VERBS: Final = ("GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "APPLY", "DELETE", "CONNECT")
#: Requests that end when their clients want: their durations are no latencies.
_UNMEASURED: Final = frozenset(("WATCH", "CONNECT"))
_P50: Final = "0.5"
_P99: Final = "0.99"
_QUANTILES: Final = ((_P50, 0.5), (_P99, 0.99))
#: The columns of a verb with a resource, and of a priority level; the first ones are added in the rest.
_OF_REQUESTS: Final = ("requests", "request_errors", "request_p50", "request_p99")
_OF_LEVELS: Final = ("executing", "waiting")
#: The columns that are copied from a sample.
_COPIED: Final = ("long_running", "memory", "storage_size", "etcd_members", "etcd_healthy", "ready")


#: The name of a series and its labels, in the order in which they are written.
Series = tuple[str, tuple[tuple[str, str], ...]]


@frozen
class Bounds:
    """The bounds of the histograms whose observations are in samples: requests, the event loop, the storage."""

    requests: Sequence[float]
    delays: Sequence[float]
    storage: Sequence[float]


@frozen
class Mark:
    """
    An event that plots show.

    @ivar time: Seconds since 1970-01-01.
    @ivar kind: C{start}, C{leader}, C{reload}, C{ready}, C{unready} or C{worker}.
    @ivar text: What it is about: the Lease with its holder, or the file.
    """

    time: float
    kind: str
    text: str = ""


def _fixed_series() -> list[Series]:
    return [
        *(("verbs", (("verb", verb),)) for verb in _VERBS),
        *(("errors", (("code", code),)) for code in ("4xx", "429", "5xx")),
        *((name, (("quantile", q),)) for name in ("latency", "loop", "storage") for q, _ in _QUANTILES),
        *((name, ()) for name in ("cpu", "writes", "storage_requests", *_COPIED)),
    ]


class HistoryRecorder:
    """
    Records samples, and encodes what was recorded.

    @ivar ring: The samples.
    @ivar marks: The newest marks, the oldest first.
    """

    def __init__(self, bounds: Bounds, interval: float = INTERVAL, capacity: int = CAPACITY) -> None:
        """
        @param bounds: The bounds of the histograms.
        @param interval: Seconds between two samples.
        @param capacity: The number of samples.
        """
        self._bounds = bounds
        self.interval = interval
        self._fixed = {series: number for number, series in enumerate(_fixed_series())}
        after = len(self._fixed)
        width, level_width = len(_OF_REQUESTS), len(_OF_LEVELS)
        columns = after + (MAX_REQUEST_KEYS + 1) * width + (MAX_LEVELS + 1) * level_width
        self.ring = ring = SampleRing(columns, capacity)
        self._requests: Slots[RequestKey] = Slots(ring, after, MAX_REQUEST_KEYS, width, (0, 1))
        self._levels: Slots[str] = Slots(ring, self._requests.end, MAX_LEVELS, level_width, (0, 1))
        self.marks: deque[Mark] = deque(maxlen=MAX_MARKS)
        self._revision: float | None = None

    def mark(self, time: float, kind: str, text: str = "") -> None:
        """Add a mark."""
        self.marks.append(Mark(round(time, 3), kind, text[:_MAX_TEXT]))

    def record(self, time: float, seconds: float, sample: Sample) -> None:
        """
        Add a sample of all processes of the server.

        @param time: Seconds since 1970-01-01.
        @param seconds: The time since the sample before.
        """
        values: dict[int, float] = {}
        self._record_requests(sample, seconds, values)
        self._record_levels(sample, values)
        self._quantiles("loop", sample.delays, self._bounds.delays, values)
        self._quantiles("storage", sample.storage, self._bounds.storage, values)
        values[self._fixed["storage_requests", ()]] = sample.storage.count / seconds
        numbers = {**sample.sums, **sample.highest, **sample.lowest}
        for name in _COPIED:
            values[self._fixed[name, ()]] = numbers.get(name, MISSING)
        values[self._fixed["cpu", ()]] = sample.sums.get("cpu", MISSING) / seconds
        revision = numbers.get("revision")
        if revision is not None:
            if self._revision is not None:
                values[self._fixed["writes", ()]] = max(revision - self._revision, 0.0) / seconds
            self._revision = revision
        self.ring.append(round(time, 3), values)

    def _record_requests(self, sample: Sample, seconds: float, values: dict[int, float]) -> None:
        counts = {key: float(observations.count) for key, observations in sample.requests.items()}
        slots = self._requests
        slots.update(counts)
        for column in (*slots.assigned.values(), slots.rest):
            values[column] = values[column + 1] = 0.0
        measured, rest = Observations(), Observations()
        verbs = dict.fromkeys(_VERBS, 0.0)
        for key, observations in sample.requests.items():
            verb = key[0]
            verbs[verb] = verbs.get(verb, 0.0) + counts[key]
            column = slots.assigned.get(key, slots.rest)
            values[column] += counts[key] / seconds
            if verb in _UNMEASURED:
                continue
            if column == slots.rest:
                rest.add(observations)
            else:
                measured.add(observations)
                self._latency(column, observations, values)
        self._latency(slots.rest, rest, values)
        measured.add(rest)
        self._quantiles("latency", measured, self._bounds.requests, values)
        for verb in _VERBS:
            values[self._fixed["verbs", (("verb", verb),)]] = verbs[verb] / seconds
        by_code = {"4xx": 0.0, "429": 0.0, "5xx": 0.0}
        for key, errors in sample.errors.items():
            values[slots.assigned.get(key, slots.rest) + 1] += errors.total / seconds
            by_code["4xx"] += errors.refused
            by_code["429"] += errors.throttled
            by_code["5xx"] += errors.failed
        for code, number in by_code.items():
            values[self._fixed["errors", (("code", code),)]] = number / seconds

    def _latency(self, column: int, observations: Observations, values: dict[int, float]) -> None:
        for offset, (_, q) in enumerate(_QUANTILES):
            values[column + 2 + offset] = observations.quantile(q, self._bounds.requests)

    def _record_levels(self, sample: Sample, values: dict[int, float]) -> None:
        slots = self._levels
        slots.update({name: executing + waiting for name, (executing, waiting) in sample.levels.items()})
        for level, numbers in sample.levels.items():
            column = slots.assigned.get(level, slots.rest)
            for offset, number in enumerate(numbers):
                values[column + offset] = values.get(column + offset, 0.0) + number

    def _quantiles(
        self, name: str, observations: Observations, bounds: Sequence[float], values: dict[int, float]
    ) -> None:
        for label, q in _QUANTILES:
            values[self._fixed[name, (("quantile", label),)]] = observations.quantile(q, bounds)

    # --- encoding

    def _series(self) -> dict[Series, int]:
        """Return the columns in use."""
        series = dict(self._fixed)
        requests, levels = self._requests, self._levels
        for (verb, resource), column in (*requests.assigned.items(), (("", ""), requests.rest)):
            for offset, name in enumerate(_OF_REQUESTS):
                series[name, (("verb", verb), ("resource", resource))] = column + offset
        for level, column in (*levels.assigned.items(), ("", levels.rest)):
            for offset, name in enumerate(_OF_LEVELS):
                series[name, (("level", level),)] = column + offset
        return series

    def snapshot(self, since: float = 0.0) -> Callable[[], bytes]:
        """
        Copy the samples and marks after a time.

        Series without any value are left out. The series with empty labels is the sum of the series that have no
        columns.

        @return: A function that encodes the copy as JSON, and may run in any thread.
        """
        ring = self.ring
        newest = ring.newer_than(since)
        copies = [(name, labels, ring.values(column, newest)) for (name, labels), column in self._series().items()]
        document: dict[str, Any] = {
            "interval": self.interval,
            "capacity": ring.capacity,
            "times": list(ring.times(newest)),
            "marks": [asdict(one) for one in self.marks if one.time > since],
        }

        def encode() -> bytes:
            document["series"] = [
                {"name": name, "labels": dict(labels), "values": orjson.Fragment(_numbers(values))}
                for name, labels, values in copies
                if not all(map(isnan, values))
            ]
            return orjson.dumps(document)

        return encode

    def restore(self, document: bytes, oldest: float) -> None:
        """
        Add the samples and marks of a document, before the first sample.

        @param document: What the function of L{snapshot} has returned.
        @param oldest: Older samples are left out.
        @raise ValueError: It is not such a document; nothing was added.
        """
        times, series, marks = _parse(document)
        keys: dict[RequestKey, float] = {}
        levels: dict[str, float] = {}
        for name, labels, values in series:
            if name == _OF_REQUESTS[0] and labels.get("verb"):
                keys[labels["verb"], labels.get("resource", "")] = sum(filter(None, values)) * self.interval
            elif name == _OF_LEVELS[0] and labels.get("level"):
                levels[labels["level"]] = sum(filter(None, values))
        self._requests.update(keys)
        self._levels.update(levels)
        columns = self._series()
        known = [(columns.get((name, tuple(labels.items()))), values) for name, labels, values in series]
        for row, time in enumerate(times):
            if time >= oldest:
                sample: dict[int, float] = {}
                for column, values in known:
                    value = values[row]
                    if column is not None and value is not None:
                        sample[column] = value
                self.ring.append(time, sample)
        self.marks.extend(one for one in marks if one.time >= oldest)


def _numbers(values: Sequence[float]) -> bytes:
    """Return numbers as JSON, with four digits."""
    text = "%.4g," * len(values) % tuple(values)
    return f"[{text[:-1].replace('nan', 'null')}]".encode()


def _parse(document: bytes) -> tuple[list[float], list[tuple[str, dict[str, str], list[float | None]]], list[Mark]]:
    """Check the types and lengths of all parts of a document."""
    if len(document) > MAX_DOCUMENT:
        raise ValueError("the document is too large")
    try:
        decoded: Any = orjson.loads(document)
        times = [_number(time) for time in decoded["times"]]
        series = []
        for one in decoded["series"]:
            labels: Mapping[str, str] = one["labels"]
            values = [None if value is None else _number(value) for value in one["values"]]
            if len(values) != len(times) or not all(isinstance(text, str) for text in labels.values()):
                raise ValueError("a series does not have a value for each time")
            series.append((str(one["name"]), dict(labels), values))
        marks = [Mark(_number(one["time"]), str(one["kind"]), str(one["text"])[:_MAX_TEXT]) for one in decoded["marks"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a history: {error!r}") from error
    return times, series, marks


def _number(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise ValueError(f"not a number: {value!r}")
    return float(value)
