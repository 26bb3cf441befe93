"""
Allocation of seats to priority levels: nominal limits by shares, and periodic adjustment by demand.

@see: kubernetes/enhancements, KEP-1040; kubernetes/apiserver, C{pkg/util/flowcontrol/conc_alloc.go}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from typing import Final

from attrs import define, frozen

from ..api.resource import JSONObject

#: Exponential smoothing of demand per adjustment: half of it remains after five minutes.
_SMOOTHING: Final = 0.977
_STEPS: Final = 60


@frozen
class ConcurrencyLimits:
    """
    Concurrency limits of a priority level, in seats (Go: C{nominalCL}, C{minCL}, C{maxCL}).

    @ivar nominal: Seats by its shares.
    @ivar lower: Seats when all lendable ones are lent.
    @ivar upper: Seats when it borrows as many as it may.
    """

    nominal: int
    lower: int
    upper: int


def nominal_limits(levels: Mapping[str, JSONObject], seats: int) -> dict[str, ConcurrencyLimits]:
    """
    Return the concurrency limits of priority levels by their shares.

    @param levels: C{spec} by name of the level.
    @param seats: Concurrency limit of the server.
    """
    shares = {name: _shares(spec) for name, spec in levels.items()}
    total_shares = sum(shares.values())
    limits = {}
    for name, spec in levels.items():
        exempt = spec.get("type") == "Exempt"
        options = spec.get("exempt" if exempt else "limited") or {}
        nominal = ceil(seats * shares[name] / total_shares) if total_shares else 0
        lendable = round(nominal * (options.get("lendablePercent") or 0) / 100)
        borrowing = None if exempt else options.get("borrowingLimitPercent")
        upper = seats if borrowing is None else nominal + round(nominal * borrowing / 100)
        limits[name] = ConcurrencyLimits(nominal, nominal - lendable, max(upper, nominal))
    return limits


def _shares(spec: JSONObject) -> int:
    if spec.get("type") == "Exempt":
        return (spec.get("exempt") or {}).get("nominalConcurrencyShares") or 0
    shares = (spec.get("limited") or {}).get("nominalConcurrencyShares")
    return 30 if shares is None else int(shares)


@define
class SeatDemandIntegrator:
    """
    Integral of the seat demand of a level: seats of executing and of waiting requests.

    @ivar high: High watermark since the last L{reset}.
    @ivar deviation: Standard deviation in the last period.
    @ivar smoothed: Exponentially smoothed average plus standard deviation.
    """

    now: int = 0
    high: int = 0
    average: float = 0.0
    deviation: float = 0.0
    smoothed: float = 0.0
    _since: float = 0.0
    _period_start: float = 0.0
    _sum: float = 0.0
    _squares: float = 0.0

    def set(self, seats: int, time: float) -> None:
        """Set the current demand at a time, both in the units of the constructor's caller."""
        elapsed = time - self._since
        self._sum += self.now * elapsed
        self._squares += self.now * self.now * elapsed
        self._since = time
        self.now = seats
        if seats > self.high:
            self.high = seats

    def reset(self, time: float) -> int:
        """Start a new period, and return the high watermark of the last one."""
        self.set(self.now, time)
        high, elapsed = self.high, time - self._period_start
        if elapsed > 0:
            self.average = self._sum / elapsed
            self.deviation = sqrt(max(self._squares / elapsed - self.average * self.average, 0.0))
            envelope = self.average + self.deviation
            self.smoothed = max(envelope, _SMOOTHING * self.smoothed + (1 - _SMOOTHING) * envelope)
        self._period_start, self._sum, self._squares = time, 0.0, 0.0
        self.high = self.now
        return high


@frozen
class AllocationItem:
    """
    Input of the allocation for one level (Go: C{allocProblemItem}).

    @ivar lower: Minimum number of seats.
    @ivar upper: Maximum number of seats.
    @ivar target: Demanded number of seats.
    """

    lower: float
    upper: float
    target: float


def compute_concurrency_allocation(total: float, items: Sequence[AllocationItem]) -> tuple[list[float], float]:
    """
    Distribute C{total} seats: each level gets the same multiple of its target, within its bounds.

    @return: Seats of each level, and the multiple.
    """
    if not items:
        return [], 0.0
    min_total = sum(item.lower for item in items)
    max_total = sum(item.upper for item in items)
    if total <= min_total:
        return [item.lower for item in items], 0.0
    if total >= max_total:
        return [item.upper for item in items], 1.0
    low, high = 0.0, 1.0
    targets = [max(item.target, 1e-3) for item in items]
    while _sum(high, items, targets) < total:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _sum(middle, items, targets) < total:
            low = middle
        else:
            high = middle
    return [min(max(high * target, item.lower), item.upper) for item, target in zip(items, targets, strict=True)], high


def _sum(multiple: float, items: Sequence[AllocationItem], targets: Sequence[float]) -> float:
    return sum(min(max(multiple * t, item.lower), item.upper) for item, t in zip(items, targets, strict=True))
