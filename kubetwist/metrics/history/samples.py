"""What one process, or all processes of a server, have counted between two samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import define, field

from .increments import Observations

#: A verb as in the label C{verb}, and a resource: C{"deployments.apps/scale"}, or a path.
RequestKey: TypeAlias = tuple[str, str]


@define
class Errors:
    """
    The number of failed requests, by kind.

    @ivar refused: Status 400 to 499, without 429.
    @ivar throttled: Status 429.
    @ivar failed: Status 500 and more.
    """

    refused: float = 0.0
    throttled: float = 0.0
    failed: float = 0.0

    @property
    def total(self) -> float:
        """Return the number of all."""
        return self.refused + self.throttled + self.failed

    def count(self, code: int, number: float) -> None:
        """Add failed requests with a status code."""
        if code == 429:
            self.throttled += number
        elif code >= 500:
            self.failed += number
        else:
            self.refused += number

    def add(self, other: Errors) -> None:
        """Add other errors."""
        self.refused += other.refused
        self.throttled += other.throttled
        self.failed += other.failed


@define
class Sample:
    """
    Numbers of one process, or of several after L{add}.

    @ivar requests: The durations of ended requests.
    @ivar errors: The failed ones of them.
    @ivar levels: By priority level: executing and waiting requests.
    @ivar delays: Delays of the event loop.
    @ivar storage: Durations of storage requests.
    @ivar sums: Numbers that are added: C{long_running}, C{memory} in bytes, C{cpu} in seconds.
    @ivar highest: Numbers of which the largest counts: C{storage_size} in bytes, C{revision}, C{etcd_members},
        C{etcd_healthy}.
    @ivar lowest: Numbers of which the smallest counts: C{ready}.
    """

    requests: dict[RequestKey, Observations] = field(factory=dict)
    errors: dict[RequestKey, Errors] = field(factory=dict)
    levels: dict[str, tuple[float, float]] = field(factory=dict)
    delays: Observations = field(factory=Observations)
    storage: Observations = field(factory=Observations)
    sums: dict[str, float] = field(factory=dict)
    highest: dict[str, float] = field(factory=dict)
    lowest: dict[str, float] = field(factory=dict)

    def add(self, other: Sample) -> None:
        """Add the sample of another process."""
        for key, observations in other.requests.items():
            self.requests.setdefault(key, Observations()).add(observations)
        for key, errors in other.errors.items():
            self.errors.setdefault(key, Errors()).add(errors)
        for level, (executing, waiting) in other.levels.items():
            before = self.levels.get(level, (0.0, 0.0))
            self.levels[level] = before[0] + executing, before[1] + waiting
        self.delays.add(other.delays)
        self.storage.add(other.storage)
        _merge(self.sums, other.sums, lambda one, more: one + more)
        _merge(self.highest, other.highest, max)
        _merge(self.lowest, other.lowest, min)

    def encode(self) -> list[Any]:
        """Return the sample as JSON values, for another process."""
        return [
            [[*key, one.total, one.counts] for key, one in self.requests.items()],
            [[*key, one.refused, one.throttled, one.failed] for key, one in self.errors.items()],
            [[level, *numbers] for level, numbers in self.levels.items()],
            [self.delays.total, self.delays.counts],
            [self.storage.total, self.storage.counts],
            self.sums,
            self.highest,
            self.lowest,
        ]

    @classmethod
    def decode(cls, values: list[Any]) -> Sample:
        """Return the sample that L{encode} has encoded."""
        requests, errors, levels, delays, storage, sums, highest, lowest = values
        return cls(
            {(verb, resource): Observations(total, counts) for verb, resource, total, counts in requests},
            {(verb, resource): Errors(*numbers) for verb, resource, *numbers in errors},
            {level: (executing, waiting) for level, executing, waiting in levels},
            Observations(*delays),
            Observations(*storage),
            sums,
            highest,
            lowest,
        )


def _merge(into: dict[str, float], values: dict[str, float], combine: Callable[[float, float], float]) -> None:
    for name, value in values.items():
        into[name] = combine(into[name], value) if name in into else value
