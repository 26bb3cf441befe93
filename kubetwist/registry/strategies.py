"""
The strategies of the built-in kinds, one module per API group; one per kind in the core group.

A module C{strategy} holds C{STRATEGIES}: a strategy for each of its kinds. Modules are imported when a kind of their
group is first asked for, so that a server which never meets a group never pays for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from .generic.strategy import Strategy

#: The packages below this one whose modules C{strategy} have the kinds of a group.
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

_found: dict[tuple[str, str], Strategy] = {}


class SpecAndStatusStrategy(Strategy):
    """What a kind gets that no module knows: a spec with a generation, and a status of its own."""

    has_generation = True
    has_status = True


_GENERIC: Final = SpecAndStatusStrategy()


def strategy_for(group: str, kind: str) -> Strategy:
    """The strategy of a built-in kind; the same instance every time."""
    strategy = _found.get((group, kind))
    if strategy is None:
        for name in MODULES.get(group, ()):
            strategies: Mapping[str, Strategy] = import_module(f".{name}.strategy", __package__).STRATEGIES
            for known, one in strategies.items():
                _found.setdefault((group, known), one)
        strategy = _found.setdefault((group, kind), _GENERIC)
    return strategy
