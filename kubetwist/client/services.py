"""
Services as targets of calls.

@see: kubernetes/apiserver, C{pkg/util/proxy/proxy.go}: C{ResolveCluster}.
"""

from __future__ import annotations

from collections.abc import Callable

from ..api.errors import APIStatusError
from ..api.go.quote import quoted
from ..api.resource import (
    GroupResource,
    JSONObject,
)
from .errors import Unreachable
from .restconfig import RESTConfig

#: Finds a service by its namespace and name.
FindService = Callable[[str, str], "JSONObject | None"]

_SERVICES = GroupResource("", "services")


class NoSuchService(Unreachable):
    """A service cannot be called: it does not exist, has no such port, or no address."""


class Services:
    """Resolver of references to services, with the current state of the API."""

    def __init__(self, find: FindService) -> None:
        self._find = find

    def resolve(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """
        Return the address of a service: its cluster IP, or its external name.

        @raise NoSuchService: It has no address.
        """
        service = self._find(namespace, name)
        if service is None:
            raise NoSuchService(APIStatusError.not_found(_SERVICES, name).message.replace("services", "service", 1))
        spec = service.get("spec") or {}
        kind = spec.get("type") or "ClusterIP"
        address = spec.get("clusterIP") or ""
        if kind == "ExternalName":
            return spec.get("externalName") or "", port
        if kind not in ("ClusterIP", "NodePort", "LoadBalancer"):
            raise NoSuchService(f"unsupported service type {quoted(kind)}")
        if kind == "ClusterIP" and address == "None":
            raise NoSuchService('cannot route to service with ClusterIP "None"')
        if not any(one.get("port") == port for one in spec.get("ports") or ()):
            raise NoSuchService(f"no service port {port} found for service {quoted(name)}")
        return address, port

    def settings(self, namespace: str, name: str, port: int = 443, path: str = "", *, ca: bytes = b"") -> RESTConfig:
        """
        Return the settings for a service.

        @param ca: The authorities of its certificate.
        """
        host = f"{name}.{namespace}.svc"
        if path and not path.startswith("/"):
            path = f"/{path}"
        return RESTConfig(
            url=f"https://{host}:{port}{path}",
            resolve_address=lambda: self.resolve(namespace, name, port),
            deny_internal=True,
            ca=ca,
            server_name=host,
        )
