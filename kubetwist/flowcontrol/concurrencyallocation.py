"""
How seats are shared among priority levels: nominally by their shares, and from time to time by who needs them.

@see: kubernetes/enhancements, KEP-1040; kubernetes/apiserver, C{pkg/util/flowcontrol/conc_alloc.go}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from typing import Final

from attrs import define, frozen

from ..api.resource import JSONObject

#: How much of the smoothed demand stays from one adjustment to the next: half of it after five minutes.
_SMOOTHING: Final = 0.977
_STEPS: Final = 60


@frozen
class LevelLimits:
    """
    The seats of a level.

    @ivar nominal: By its shares.
    @ivar lower: What is left when others have borrowed all that it lends.
    @ivar upper: What it has when it has borrowed all that it may.
    """

    nominal: int
    lower: int
    upper: int


def nominal_limits(levels: Mapping[str, JSONObject], seats: int) -> dict[str, LevelLimits]:
    """
    Share seats among levels.

    @param levels: Their C{spec}s, by name.
    """
    shares = {name: _shares(spec) for name, spec in levels.items()}
    together = sum(shares.values())
    found = {}
    for name, spec in levels.items():
        exempt = spec.get("type") == "Exempt"
        options = spec.get("exempt" if exempt else "limited") or {}
        nominal = ceil(seats * shares[name] / together) if together else 0
        lendable = round(nominal * (options.get("lendablePercent") or 0) / 100)
        borrowing = None if exempt else options.get("borrowingLimitPercent")
        upper = seats if borrowing is None else nominal + round(nominal * borrowing / 100)
        found[name] = LevelLimits(nominal, nominal - lendable, max(upper, nominal))
    return found


def _shares(spec: JSONObject) -> int:
    if spec.get("type") == "Exempt":
        return (spec.get("exempt") or {}).get("nominalConcurrencyShares") or 0
    shares = (spec.get("limited") or {}).get("nominalConcurrencyShares")
    return 30 if shares is None else int(shares)


@define
class Demand:
    """
    How many seats a level wants: those that are taken, and those that are waited for.

    @ivar high: The most since the last L{reset}.
    @ivar smoothed: What there was to reckon with, seldom and often, over the last minutes.
    """

    now: int = 0
    high: int = 0
    average: float = 0.0
    deviation: float = 0.0
    smoothed: float = 0.0
    _since: float = 0.0
    _begun: float = 0.0
    _sum: float = 0.0
    _squares: float = 0.0

    def set(self, seats: int, time: float) -> None:
        """So many are wanted from now on."""
        passed = time - self._since
        self._sum += self.now * passed
        self._squares += self.now * self.now * passed
        self._since = time
        self.now = seats
        if seats > self.high:
            self.high = seats

    def reset(self, time: float) -> int:
        """Begin anew; the most that was wanted meanwhile."""
        self.set(self.now, time)
        high, passed = self.high, time - self._begun
        if passed > 0:
            self.average = self._sum / passed
            self.deviation = sqrt(max(self._squares / passed - self.average * self.average, 0.0))
            envelope = self.average + self.deviation
            self.smoothed = max(envelope, _SMOOTHING * self.smoothed + (1 - _SMOOTHING) * envelope)
        self._begun, self._sum, self._squares = time, 0.0, 0.0
        self.high = self.now
        return high


@frozen
class Wish:
    """
    What a level is to have.

    @ivar lower: At least.
    @ivar upper: At most.
    @ivar target: What would be enough.
    """

    lower: float
    upper: float
    target: float


def fair_shares(total: float, wishes: Sequence[Wish]) -> tuple[list[float], float]:
    """
    Share C{total}: everybody gets the same multiple of his target, but for those whom limits keep from it.

    @return: What each gets, and the multiple.
    """
    if not wishes:
        return [], 0.0
    lowest = sum(wish.lower for wish in wishes)
    highest = sum(wish.upper for wish in wishes)
    if total <= lowest:
        return [wish.lower for wish in wishes], 0.0
    if total >= highest:
        return [wish.upper for wish in wishes], 1.0
    low, high = 0.0, 1.0
    targets = [max(wish.target, 1e-3) for wish in wishes]
    while _sum(high, wishes, targets) < total:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _sum(middle, wishes, targets) < total:
            low = middle
        else:
            high = middle
    return [min(max(high * target, wish.lower), wish.upper) for wish, target in zip(wishes, targets, strict=True)], high


def _sum(multiple: float, wishes: Sequence[Wish], targets: Sequence[float]) -> float:
    return sum(min(max(multiple * t, wish.lower), wish.upper) for wish, t in zip(wishes, targets, strict=True))
