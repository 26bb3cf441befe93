"""Strategies of servers with feature gates, for tests of both positions of a gate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubetwist.api.featuregates import FeatureGates, Release, dependencies
from kubetwist.registry.generic.strategy import Strategy
from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import copy


def features(release: Release, **gates: bool) -> FeatureGates:
    """
    Return the gates of a server of a release.

    The gates that an enabled gate needs are enabled too, and those that need a disabled gate are disabled.
    """
    settings = dict(gates)
    names = list(gates)
    for name in names:
        needed = [other for other, _ in dependencies().get(name, ())]
        needing = [other for other, needs in dependencies().items() if name in dict(needs)]
        for other in needed if settings[name] else needing:
            if other not in settings and _is_settable(other, release):
                settings[other] = settings[name]
                names.append(other)
    return FeatureGates(release, settings)


def gated(group: str, kind: str, release: Release = (1, 36), **gates: bool) -> Strategy:
    """Return the strategy of a kind on a server of a release with some gates set; see L{features}."""
    return strategy_for(group, kind).with_features(features(release, **gates))


def positions(group: str, kind: str, gate: str, releases: Iterable[Release]) -> tuple[Strategy, Strategy]:
    """
    Return strategies with a gate enabled, and disabled, of the last release in which it can be set.

    All other alpha and beta gates are enabled, except for those that need the disabled one.
    """
    release = max(one for one in releases if _is_settable(gate, one))
    needing = {gate}
    while more := {name for name, needs in dependencies().items() if not needing.isdisjoint(dict(needs))} - needing:
        needing |= more
    everything = {"AllAlpha": True, "AllBeta": True}
    off = {name: False for name in needing if _is_settable(name, release)}
    return gated(group, kind, release, **everything), gated(group, kind, release, **everything, **off)


def _is_settable(gate: str, release: Release) -> bool:
    state = FeatureGates(release).state(gate)
    return state is not None and not state.locked


def created(strategy: Strategy, **parts: Any) -> dict[str, Any]:
    """Return a new object, with defaults and prepared, as a strategy stores it."""
    obj: dict[str, Any] = copy({"metadata": {"name": "x", "namespace": "ns", "uid": "u"}, **parts})
    strategy.default(obj)
    strategy.prepare_for_create(obj)
    return obj


def updated(strategy: Strategy, old: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """Return an object prepared to replace C{old}."""
    obj: dict[str, Any] = copy({"metadata": old["metadata"], **parts})
    strategy.default(obj)
    strategy.prepare_for_update(obj, copy(old))
    return obj


def with_status(strategy: Strategy, old: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    """Return C{old} prepared for an update of its status."""
    obj = copy({**old, "status": status})
    strategy.prepare_for_status_update(obj, copy(old))
    result: dict[str, Any] = obj
    return result


def create_errors(strategy: Strategy, **parts: Any) -> list[str]:
    """Return the validation errors of a new object."""
    return [str(error) for error in strategy.validate(created(strategy, **parts))]


def update_errors(strategy: Strategy, old: dict[str, Any], **parts: Any) -> list[str]:
    """Return the validation errors of an update of C{old}, which is a stored object."""
    return [str(error) for error in strategy.validate_update(updated(strategy, old, **parts), copy(old))]
