"""
The quality of service class of a pod, from the resources of its containers.

See kubernetes, C{pkg/apis/core/helper/qos/qos.go}.
"""

from __future__ import annotations

from typing import Final

from ....api.podspecs import declared_containers
from ....api.quantity import Quantity
from ....api.resource import JSONObject

_COUNTED: Final = ("cpu", "memory")


def qos_class(spec: JSONObject, pod_level: bool = True) -> str:
    """
    Return the class: C{Guaranteed}, C{Burstable} or C{BestEffort}.

    @param spec: The spec of the pod.
    @param pod_level: Whether the resources of the pod count, by the feature gate C{PodLevelResources}.
    """
    pod_resources = spec.get("resources") if pod_level else None
    if pod_resources is not None:
        requirements = [pod_resources]
    else:
        requirements = [container.get("resources") or {} for container, _, _ in declared_containers(spec)]
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    for resources in requirements:
        _count(resources.get("requests"), requests)
        if _count(resources.get("limits"), limits) != set(_COUNTED):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _count(quantities: JSONObject | None, total: dict[str, Quantity]) -> set[str]:
    """Add quantities to C{total}, and return the names of those that are not zero."""
    names = set()
    for name in _COUNTED:
        text = (quantities or {}).get(name)
        if text is None:
            continue
        quantity = Quantity.parse(text)
        if quantity.sign() == 1:
            names.add(name)
            total[name] = total[name] + quantity if name in total else quantity
    return names
