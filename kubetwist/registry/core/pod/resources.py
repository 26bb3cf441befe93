"""Total requests and limits of a pod: its containers, init containers and overhead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ....api.quantity import Quantity
from ....api.resource import JSONObject

ResourceList = dict[str, Quantity]


def amounts(values: Mapping[str, object] | None) -> ResourceList:
    """Parse a map of quantities."""
    return {name: Quantity.parse(value) for name, value in (values or {}).items()}


def pod_resources(spec: JSONObject, which: Literal["requests", "limits"]) -> ResourceList:
    """
    Return the requests or the limits of a pod.

    Restartable init containers run concurrently with all later containers. Pod-level resources replace those of
    containers.

    @see: kubernetes, C{component-helpers/resource/helpers.go}.
    """
    total = aggregate_container_resources(spec, which)
    total.update(amounts((spec.get("resources") or {}).get(which)))
    for name, amount in amounts(spec.get("overhead")).items():
        # The overhead is not added to a resource without a limit.
        if which == "requests" or name in total:
            total[name] = total[name] + amount if name in total else amount
    return total


def aggregate_container_resources(spec: JSONObject, which: Literal["requests", "limits"]) -> ResourceList:
    """Return the total of the containers of a pod, without pod-level resources."""
    total: ResourceList = {}
    for container in spec.get("containers") or ():
        _add(total, _of(container, which))
    beside: ResourceList = {}
    peak: ResourceList = {}
    for container in spec.get("initContainers") or ():
        current = _of(container, which)
        if container.get("restartPolicy") == "Always":
            _add(total, current)
            _add(beside, current)
            current = dict(beside)
        else:
            _add(current, beside)
        _raise_to(peak, current)
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
