"""What a pod asks for and may use in all: containers at a time, init containers one after the other, and overhead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ....api.quantity import Quantity
from ....api.resource import JSONObject

ResourceList = dict[str, Quantity]


def amounts(values: Mapping[str, object] | None) -> ResourceList:
    """Named quantities, parsed."""
    return {name: Quantity.parse(value) for name, value in (values or {}).items()}


def pod_resources(spec: JSONObject, which: Literal["requests", "limits"]) -> ResourceList:
    """
    The requests or the limits of a whole pod.

    Init containers that are restarted run beside all that come after them. What is said for the pod as a whole counts
    instead of what its containers say.

    @see: kubernetes, C{component-helpers/resource/helpers.go}.
    """
    total = aggregate_container_resources(spec, which)
    total.update(amounts((spec.get("resources") or {}).get(which)))
    for name, amount in amounts(spec.get("overhead")).items():
        # What has no limit does not get one by its overhead.
        if which == "requests" or name in total:
            total[name] = total[name] + amount if name in total else amount
    return total


def aggregate_container_resources(spec: JSONObject, which: Literal["requests", "limits"]) -> ResourceList:
    """The same as the containers of a pod have it, whatever is said for it as a whole."""
    total: ResourceList = {}
    for container in spec.get("containers") or ():
        _add(total, _of(container, which))
    beside: ResourceList = {}
    peak: ResourceList = {}
    for container in spec.get("initContainers") or ():
        wanted = _of(container, which)
        if container.get("restartPolicy") == "Always":
            _add(total, wanted)
            _add(beside, wanted)
            wanted = dict(beside)
        else:
            _add(wanted, beside)
        _raise_to(peak, wanted)
    _raise_to(total, peak)
    return total


def _of(container: JSONObject, which: str) -> ResourceList:
    return amounts((container.get("resources") or {}).get(which))


def _add(total: ResourceList, more: ResourceList) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: ResourceList, least: ResourceList) -> None:
    for name, amount in least.items():
        if name not in total or total[name] < amount:
            total[name] = amount
