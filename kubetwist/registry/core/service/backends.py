"""
Choice of the pod that answers a request to C{services/proxy}.

@see: kubernetes/kubernetes, C{pkg/registry/core/service/storage}: C{ResourceLocation}.
"""

from __future__ import annotations

from collections.abc import Callable
from random import randrange
from typing import TYPE_CHECKING

from ....api.errors import APIStatusError
from ....api.listoptions import parse_int64
from ....api.resource import JSONObject
from ..node.kubelets import is_on_simulated_node

if TYPE_CHECKING:
    from ...stores import Stores

#: Returns the index of an endpoint, from the number of endpoints.
Choose = Callable[[int], int]


def service_backend(
    stores: Stores, namespace: str, name: str, port: str, request_text: str, choose: Choose = randrange
) -> tuple[str, int, bool]:
    """
    Return the address and port of a ready pod of a service, chosen at random, and whether its node is simulated.

    @param stores: The stores.
    @param namespace: The namespace of the service.
    @param name: The name of the service.
    @param port: The name or number of the port; C{""} for the port without a name.
    @param request_text: The text of the request with name and port, for errors.
    @param choose: Returns the index of an endpoint.
    @raise APIStatusError: The service does not exist (404), or it has no such port or no ready pod (503).
    """
    port = _port_name(stores, namespace, name, port)
    endpoints = stores.get_decoded("", "endpoints", namespace, name)
    if endpoints is None:
        raise stores.get("", "services").not_found(name)
    subsets = endpoints.get("subsets") or ()
    if not subsets:
        raise _no_endpoints_error(name)
    first = choose(len(subsets))
    for number in range(len(subsets)):
        subset = subsets[(first + number) % len(subsets)]
        addresses = subset.get("addresses") or ()
        if not addresses:
            continue
        for endpoint_port in subset.get("ports") or ():
            if endpoint_port.get("name", "") != port:
                continue
            start = choose(len(addresses))
            for step in range(len(addresses)):
                address = addresses[(start + step) % len(addresses)]
                pod = _pod_at(stores, namespace, address)
                if pod is not None:
                    simulated = is_on_simulated_node(stores, pod)
                    return str(address["ip"]), int(endpoint_port["port"]), simulated
    raise _no_endpoints_error(request_text)


def _port_name(stores: Stores, namespace: str, name: str, port: str) -> str:
    """Return the name of the port with a number."""
    try:
        number = parse_int64(port)
    except ValueError:
        return port
    service = stores.get_decoded("", "services", namespace, name)
    if service is None:
        raise stores.get("", "services").not_found(name)
    for service_port in service["spec"].get("ports") or ():
        if service_port.get("port") == number:
            return str(service_port.get("name", ""))
    raise APIStatusError.service_unavailable(f'no service port {number} found for service "{name}"')


def _pod_at(stores: Stores, namespace: str, address: JSONObject) -> JSONObject | None:
    """Return the pod with an address if it is in the namespace; endpoints with other addresses are not trusted."""
    reference = address.get("targetRef")
    if reference is None or reference.get("namespace", "") != namespace:
        return None
    pod = stores.get_decoded("", "pods", namespace, reference.get("name", ""))
    return pod if pod is not None and address["ip"] in pod_addresses(pod) else None


def pod_addresses(pod: JSONObject) -> list[str]:
    """Return the addresses of a pod, the primary one first."""
    status = pod.get("status") or {}
    listed = [str(pod_ip.get("ip", "")) for pod_ip in status.get("podIPs") or ()]
    return listed or [str(status["podIP"])] if listed or status.get("podIP") else []


def _no_endpoints_error(name: str) -> APIStatusError:
    return APIStatusError.service_unavailable(f'no endpoints available for service "{name}"')
