"""The service C{kubernetes}, by which pods reach the API servers, and its endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ....api.errors import FieldError
from ....api.resource import JSONObject
from ...generic.bootstrap import ensure, new_condition
from ...generic.validation.fields import NO_LOOPBACK

if TYPE_CHECKING:
    from ...stores import Stores


_RANGES_STATUS_MANAGER: Final = "kubernetes-service-cidr-controller"


async def default_service_cidr(stores: Stores, cidrs: Sequence[str]) -> None:
    """
    Create the ServiceCIDR C{kubernetes}, unless it exists.

    @param cidrs: The ranges of cluster IPs.
    """
    text = "Kubernetes default Service CIDR is ready"
    obj: JSONObject = {
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": list(cidrs)},
        "status": {"conditions": [new_condition("Ready", "True", "", text)]},
    }
    await ensure(stores.get("networking.k8s.io", "servicecidrs"), obj, status_manager=_RANGES_STATUS_MANAGER)


async def kubernetes_service(
    stores: Stores,
    service_ip: str,
    address: str,
    port: int,
    public_port: int = 443,
    node_port: int = 0,
) -> None:
    """
    Create the service C{kubernetes} and its endpoints, unless they exist.

    @param stores: The stores.
    @param service_ip: The first address of the range of cluster IPs.
    @param address: The advertised address; C{""} if a reconciler writes the endpoints.
    @param port: The port on which the server listens.
    @param public_port: The port of the service.
    @param node_port: The node port of the service; 0 for none.
    """
    public: JSONObject = {"name": "https", "protocol": "TCP", "port": public_port, "targetPort": port}
    if node_port:
        public["nodePort"] = node_port
    service = {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [public],
            "clusterIP": service_ip,
            "type": "NodePort" if node_port else "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilyPolicy": "SingleStack",
        },
    }
    await ensure(stores.get("", "services"), service)
    if address:
        await ensure(
            stores.get("", "endpoints"), kubernetes_endpoints([address], port), ignores_error=is_about_loopback
        )
        slices = stores.find("discovery.k8s.io", "endpointslices")
        if slices is not None:
            await ensure(slices, kubernetes_slice([address], port), ignores_error=is_about_loopback)


def is_about_loopback(field_error: FieldError) -> bool:
    """Return whether the only errors are endpoints on a loopback address: a host may have no other address."""
    return NO_LOOPBACK in field_error.message


def kubernetes_endpoints(addresses: Sequence[str], port: int) -> JSONObject:
    """Return the Endpoints of the service."""
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    return {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{"addresses": [{"ip": address} for address in addresses], "ports": ports}],
    }


def kubernetes_slice(addresses: Sequence[str], port: int) -> JSONObject:
    """Return the EndpointSlice of the service; all addresses have the same IP family."""
    return {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv6" if ":" in addresses[0] else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        "ports": [{"name": "https", "protocol": "TCP", "port": port}],
    }
