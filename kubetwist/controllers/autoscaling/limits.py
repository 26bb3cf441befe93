"""
What limits the change of replicas: recent recommendations, policies of the behavior, minimum and maximum. Without I/O.

@see: kubernetes, C{pkg/controller/podautoscaler/horizontal.go}, from C{normalizeDesiredReplicas} on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final

from attrs import define, field, frozen

from ...api.resource import JSONObject

#: Seconds for which the highest recommendation holds, unless the behavior states another window.
DOWNSCALE_STABILIZATION: Final = 300
#: Without a behavior, one step at most multiplies the replicas by this factor, but may always reach the minimum.
_SCALE_UP_FACTOR: Final = 2
_SCALE_UP_MINIMUM: Final = 4

_STABILIZED_UP: Final = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_STABILIZED_DOWN: Final = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_READY: Final = ("ReadyForNewScale", "recommended size matches current size")
_WITHIN_RANGE: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_UP_LIMIT: Final = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_DOWN_LIMIT: Final = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")


@frozen
class Limited:
    """
    A number of replicas within all limits.

    @ivar replicas: The number.
    @ivar able: The reason and message of the condition AbleToScale, which is true.
    @ivar limited: Whether the condition ScalingLimited is true.
    @ivar limit: The reason and message of the condition ScalingLimited.
    """

    replicas: int
    able: tuple[str, str]
    limited: bool
    limit: tuple[str, str]


@frozen
class _Entry:
    """A recommendation, or a change, and its time."""

    replicas: int
    at: float


@define(eq=False)
class ScalingHistory:
    """The recent recommendations for a target, and the recent changes of its replicas."""

    _recommendations: list[_Entry] = field(factory=list)
    _added: list[_Entry] = field(factory=list)
    _removed: list[_Entry] = field(factory=list)

    def begin(self, replicas: int, now: float) -> None:
        """Use the current replicas as the first recommendation, if there is none."""
        if not self._recommendations:
            self._recommendations.append(_Entry(replicas, now))

    def record_change(self, behavior: JSONObject | None, before: int, after: int, now: float) -> None:
        """
        Record that the target was scaled, for the policies of the behavior.

        @param behavior: The behavior of the autoscaler, with defaults; L{None} without it.
        @param before: The replicas before.
        @param after: The replicas after.
        @param now: The current time, POSIX.
        """
        if behavior is None:
            return
        changes, rules = (self._added, "scaleUp") if after > before else (self._removed, "scaleDown")
        periods = [one["periodSeconds"] for one in behavior[rules].get("policies") or ()]
        cutoff = now - max(periods, default=0)
        changes[:] = [one for one in changes if one.at >= cutoff]
        changes.append(_Entry(abs(after - before), now))

    def limit(
        self, behavior: JSONObject | None, current: int, desired: int, bounds: tuple[int, int], now: float
    ) -> Limited:
        """
        Apply all limits to a number of replicas, and record it as a recommendation.

        @param behavior: The behavior of the autoscaler, with defaults; L{None} without it.
        @param current: The current replicas.
        @param desired: The replicas that the metrics demand.
        @param bounds: The minimum and the maximum.
        @param now: The current time, POSIX.
        """
        if behavior is None:
            stable = self._stabilize(desired, now)
            able = _READY if stable == desired else _STABILIZED_DOWN
            replicas, limit = _limit_step(current, stable, bounds)
        else:
            stable = self._stabilize_by_windows(behavior, current, desired, now)
            able = _READY
            if stable != desired:
                able = _STABILIZED_UP if desired >= current else _STABILIZED_DOWN
            replicas, limit = self._limit_by_policies(behavior, current, stable, bounds, now)
        return Limited(replicas, able, replicas != stable, limit)

    # --- stabilization

    def _stabilize(self, desired: int, now: float) -> int:
        cutoff = now - DOWNSCALE_STABILIZATION
        recent = [one for one in self._recommendations if one.at >= cutoff]
        self._recommendations = [*recent, _Entry(desired, now)]
        return max(desired, *(one.replicas for one in recent)) if recent else desired

    def _stabilize_by_windows(self, behavior: JSONObject, current: int, desired: int, now: float) -> int:
        up_window = behavior["scaleUp"].get("stabilizationWindowSeconds") or 0
        down_window = behavior["scaleDown"].get("stabilizationWindowSeconds")
        if down_window is None:
            down_window = DOWNSCALE_STABILIZATION
        lowest = min([desired, *(one.replicas for one in self._recommendations if one.at > now - up_window)])
        highest = max([desired, *(one.replicas for one in self._recommendations if one.at > now - down_window)])
        oldest = now - max(up_window, down_window)
        self._recommendations = [*(one for one in self._recommendations if one.at >= oldest), _Entry(desired, now)]
        return min(max(current, lowest), highest)

    # --- policies

    def _limit_by_policies(
        self, behavior: JSONObject, current: int, desired: int, bounds: tuple[int, int], now: float
    ) -> tuple[int, tuple[str, str]]:
        minimum, maximum = bounds
        if desired > current:
            allowed = max(self._scale_up_limit(behavior["scaleUp"], current, now), current)
            highest, reason = (allowed, _UP_LIMIT) if maximum > allowed else (maximum, _TOO_MANY)
            return (highest, reason) if desired > highest else (desired, _WITHIN_RANGE)
        if desired < current:
            allowed = min(self._scale_down_limit(behavior["scaleDown"], current, now), current)
            lowest, reason = (allowed, _DOWN_LIMIT) if minimum < allowed else (minimum, _TOO_FEW)
            return (lowest, reason) if desired < lowest else (desired, _WITHIN_RANGE)
        return desired, _WITHIN_RANGE

    def _scale_up_limit(self, rules: JSONObject, current: int, now: float) -> int:
        select = rules.get("selectPolicy")
        if select == "Disabled":
            return current
        limits = []
        for policy in rules.get("policies") or ():
            before = self._replicas_before(policy["periodSeconds"], current, now)
            # Rounded up: a small share of few replicas would never allow a change.
            limits.append(
                before + policy["value"] if policy["type"] == "Pods" else ceil(before * (1 + policy["value"] / 100))
            )
        return _selected(limits, min if select == "Min" else max, current)

    def _scale_down_limit(self, rules: JSONObject, current: int, now: float) -> int:
        select = rules.get("selectPolicy")
        if select == "Disabled":
            return current
        limits = []
        for policy in rules.get("policies") or ():
            before = self._replicas_before(policy["periodSeconds"], current, now)
            limits.append(
                before - policy["value"] if policy["type"] == "Pods" else int(before * (1 - policy["value"] / 100))
            )
        # The smallest change keeps the most replicas.
        return _selected(limits, max if select == "Min" else min, current)

    def _replicas_before(self, period: int, current: int, now: float) -> int:
        """Return the replicas at the begin of a period that ends now."""
        cutoff = now - period
        added = sum(one.replicas for one in self._added if one.at > cutoff)
        removed = sum(one.replicas for one in self._removed if one.at > cutoff)
        return current - added + removed


def _selected(limits: Sequence[int], select: Callable[[Sequence[int]], int], current: int) -> int:
    return select(limits) if limits else current


def _limit_step(current: int, desired: int, bounds: tuple[int, int]) -> tuple[int, tuple[str, str]]:
    minimum, maximum = bounds
    allowed = max(_SCALE_UP_FACTOR * current, _SCALE_UP_MINIMUM)
    highest, reason = (allowed, _UP_LIMIT) if maximum > allowed else (maximum, _TOO_MANY)
    if desired < minimum:
        return minimum, _TOO_FEW
    if desired > highest:
        return highest, reason
    return desired, _WITHIN_RANGE
