"""
The strategies of the built-in kinds: one module for each API group, and one for each kind of the core group.

A module C{strategy} contains C{STRATEGIES}: a strategy for each of its kinds. It is imported at the first use of a kind
of its group, or of its kind in the core group, so that unused ones take neither time nor memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Final

from ..api.featuregates import FeatureGates
from .generic.strategy import Strategy

#: The packages with the modules C{strategy} of a group, by group.
MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "": (
        "core.componentstatus",
        "core.configmap",
        "core.endpoints",
        "core.event",
        "core.limitrange",
        "core.namespace",
        "core.node",
        "core.persistentvolume",
        "core.persistentvolumeclaim",
        "core.pod",
        "core.podtemplate",
        "core.replicationcontroller",
        "core.resourcequota",
        "core.secret",
        "core.service",
        "core.serviceaccount",
    ),
    "admissionregistration.k8s.io": ("admissionregistration",),
    "apiextensions.k8s.io": ("apiextensions",),
    "apiregistration.k8s.io": ("apiregistration",),
    "apps": ("apps",),
    "authentication.k8s.io": ("authentication",),
    "authorization.k8s.io": ("authorization",),
    "autoscaling": ("autoscaling",),
    "batch": ("batch",),
    "certificates.k8s.io": ("certificates",),
    "coordination.k8s.io": ("coordination",),
    "discovery.k8s.io": ("discovery",),
    "events.k8s.io": ("events",),
    "flowcontrol.apiserver.k8s.io": ("flowcontrol",),
    "networking.k8s.io": ("networking",),
    "node.k8s.io": ("node",),
    "policy": ("policy",),
    "rbac.authorization.k8s.io": ("rbac",),
    "resource.k8s.io": ("resource",),
    "scheduling.k8s.io": ("scheduling",),
    "storage.k8s.io": ("storage",),
}

_strategies: dict[tuple[str, str], Strategy] = {}


class SpecAndStatusStrategy(Strategy):
    """The default strategy, for kinds with a spec that has a generation, and a status subresource."""

    has_generation = True
    has_status = True


_GENERIC: Final = SpecAndStatusStrategy()


def strategy_for(group: str, kind: str) -> Strategy:
    """Return the strategy of a built-in kind; always the same instance."""
    strategy = _strategies.get((group, kind))
    if strategy is None:
        names = MODULES.get(group, ())
        if not group:
            names = tuple(name for name in names if name == f"core.{kind.lower()}")
        for name in names:
            strategies: Mapping[str, Strategy] = import_module(f".{name}.strategy", __package__).STRATEGIES
            for each, one in strategies.items():
                _strategies.setdefault((group, each), one)
        strategy = _strategies.setdefault((group, kind), _GENERIC)
    return strategy


def strategy_finder(group: str, kind: str, features: FeatureGates) -> Callable[[], Strategy]:
    """
    Return a function that returns the strategy of a built-in kind for a server with these features.

    The strategy is imported and configured at the first call; later calls return the same instance.
    """
    return cache(lambda: strategy_for(group, kind).with_features(features))
