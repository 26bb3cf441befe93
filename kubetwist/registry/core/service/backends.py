"""
Which pod answers for a service that is reached through a proxy.

@see: kubernetes/kubernetes, C{pkg/registry/core/service/storage}: C{ResourceLocation}.
"""

from __future__ import annotations

from collections.abc import Callable
from random import randrange
from typing import TYPE_CHECKING

from ....api.errors import APIStatusError
from ....api.listoptions import parse_int64
from ....api.resource import JSONObject
from ..node.kubelets import check_not_simulated

if TYPE_CHECKING:
    from ...stores import Stores

#: Number of endpoints that one is chosen from.
Choose = Callable[[int], int]


def service_backend(
    stores: Stores, namespace: str, name: str, port: str, whole: str, choose: Choose = randrange
) -> tuple[str, int]:
    """
    The address and port of a ready pod of a service, another one each time.

    @param port: Its name or number; C{""} for the one without a name.
    @param whole: How the service and its port were named together.
    @raise APIStatusError: There is no such service (404), port or pod, or the pod runs nowhere (503).
    """
    port = _port_name(stores, namespace, name, port)
    endpoints = stores.get_decoded("", "endpoints", namespace, name)
    if endpoints is None:
        raise stores.get("", "services").not_found(name)
    subsets = endpoints.get("subsets") or ()
    if not subsets:
        raise _nobody(name)
    first = choose(len(subsets))
    for number in range(len(subsets)):
        subset = subsets[(first + number) % len(subsets)]
        addresses = subset.get("addresses") or ()
        if not addresses:
            continue
        for one in subset.get("ports") or ():
            if one.get("name", "") != port:
                continue
            start = choose(len(addresses))
            for step in range(len(addresses)):
                address = addresses[(start + step) % len(addresses)]
                pod = _pod_at(stores, namespace, address)
                if pod is not None:
                    check_not_simulated(stores, pod)
                    return str(address["ip"]), int(one["port"])
    raise _nobody(whole)


def _port_name(stores: Stores, namespace: str, name: str, port: str) -> str:
    """Return the name of the port with a number."""
    try:
        number = parse_int64(port)
    except ValueError:
        return port
    service = stores.get_decoded("", "services", namespace, name)
    if service is None:
        raise stores.get("", "services").not_found(name)
    for one in service["spec"].get("ports") or ():
        if one.get("port") == number:
            return str(one.get("name", ""))
    raise APIStatusError.service_unavailable(f'no service port {number} found for service "{name}"')


def _pod_at(stores: Stores, namespace: str, address: JSONObject) -> JSONObject | None:
    """The pod in the namespace that has an address, if one has: endpoints are not trusted."""
    reference = address.get("targetRef")
    if reference is None or reference.get("namespace", "") != namespace:
        return None
    pod = stores.get_decoded("", "pods", namespace, reference.get("name", ""))
    return pod if pod is not None and address["ip"] in pod_addresses(pod) else None


def pod_addresses(pod: JSONObject) -> list[str]:
    """The addresses of a pod, the main one first."""
    status = pod.get("status") or {}
    listed = [str(one.get("ip", "")) for one in status.get("podIPs") or ()]
    return listed or [str(status["podIP"])] if listed or status.get("podIP") else []


def _nobody(name: str) -> APIStatusError:
    return APIStatusError.service_unavailable(f'no endpoints available for service "{name}"')
