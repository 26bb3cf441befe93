"""
Strategy of Services.

Addresses and node ports are given out by L{kubetwist.registry.core.service.allocator}, which needs to know all
services.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.names import validate_dns1035_label, validate_dns1123_label
from ....api.resource import JSONObject
from ...generic.gatedstrategy import GatedStrategy
from ...generic.gates import GatedField, field_at
from ...generic.strategy import Strategy
from ...generic.validation.fields import STRICT_ADDRESSES
from . import validation
from .validation import DISTRIBUTIONS


class ServiceStrategy(GatedStrategy):
    """Strategy of v1 Service."""

    has_status = True
    status_protects = ()
    delete_returns_object = True
    allow_create_on_update = True
    gated_fields = (GatedField(gate="ServiceTrafficDistribution", find=field_at("spec", "trafficDistribution")),)

    def configure(self) -> None:
        """Select the fields to drop, and decide how to validate addresses, the status and traffic distributions."""
        super().configure()
        features = self.features
        self._strict = features.enabled(STRICT_ADDRESSES)
        self._any_status = features.enabled("AllowServiceLBStatusOnNonLB")
        self._distributions = DISTRIBUTIONS if features.enabled("PreferSameTrafficDistribution") else DISTRIBUTIONS[:1]
        self._validate_name = (
            validate_dns1123_label if features.enabled("RelaxedServiceNameValidation") else validate_dns1035_label
        )
        self._warns_of_headless = features.since(1, 34)

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Return the errors of a name, which must be a DNS label; without a gate, of RFC 1035."""
        return self._validate_name(name, prefix)

    def default(self, obj: JSONObject) -> None:
        """Set the defaults of C{pkg/apis/core/v1/defaults.go}; C{clusterIP} has precedence over C{clusterIPs}."""
        spec = obj.setdefault("spec", {})
        if not spec.get("sessionAffinity"):
            spec["sessionAffinity"] = "None"
        if spec["sessionAffinity"] == "None":
            spec.pop("sessionAffinityConfig", None)
        elif spec["sessionAffinity"] == "ClientIP":
            config = spec.get("sessionAffinityConfig") or {}
            client = config.get("clientIP") or {}
            if client.get("timeoutSeconds") is None:
                client["timeoutSeconds"] = 10800
                spec["sessionAffinityConfig"] = {"clientIP": client}
        if not spec.get("type"):
            spec["type"] = "ClusterIP"
        for port in spec.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.setdefault("port", 0)
        kind = spec["type"]
        outside = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs"))
        if outside and not spec.get("externalTrafficPolicy"):
            spec["externalTrafficPolicy"] = "Cluster"
        if kind in ("ClusterIP", "NodePort", "LoadBalancer") and spec.get("internalTrafficPolicy") is None:
            spec["internalTrafficPolicy"] = "Cluster"
        if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
            spec["allocateLoadBalancerNodePorts"] = True
        status = obj.setdefault("status", {})
        balancer = status.setdefault("loadBalancer", {})
        for ingress in (balancer.get("ingress") or ()) if kind == "LoadBalancer" else ():
            if ingress.get("ip") and ingress.get("ipMode") is None:
                ingress["ipMode"] = "VIP"

    def default_on_read(self, obj: JSONObject) -> None:
        """
        Set the defaults of stored services.

        See C{pkg/registry/core/service/storage/storage.go}, defaultOnReadService.
        """
        super().default_on_read(obj)
        spec = obj["spec"]
        normalize_cluster_ips(spec, None)
        if spec["type"] == "ExternalName":
            spec.pop("internalTrafficPolicy", None)

    def reset_status(self, obj: JSONObject) -> None:
        """Set an empty load balancer status."""
        obj["status"] = {"loadBalancer": {}}

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Set C{clusterIPs} from C{clusterIP}, and drop the fields of disabled feature gates."""
        super().prepare_for_create(obj)
        normalize_cluster_ips(obj["spec"], None)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """
        Keep allocated values that a PUT leaves out; drop those that the new type does not have, and the fields of
        disabled feature gates that the stored object does not use.
        """
        super().prepare_for_update(obj, old)
        validation.patch_allocated_values(obj, old)
        normalize_cluster_ips(obj["spec"], old["spec"])
        validation.drop_type_dependent_fields(obj, old)
        if not self._any_status and validation.needs_no_load_balancer(obj["spec"]):
            obj["status"] = {**(obj.get("status") or {}), "loadBalancer": {}}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate a new service."""
        return validation.validate_service(obj, strict=self._strict, distributions=self._distributions)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate an update; addresses are immutable."""
        return validation.validate_service_update(obj, old, strict=self._strict, distributions=self._distributions)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the addresses of the load balancer."""
        return validation.validate_service_status(obj, old, strict=self._strict, any_type=self._any_status)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about fields without effect."""
        return validation.service_warnings(
            obj, strict=self._strict, distributions=self._distributions, headless_addresses=self._warns_of_headless
        )


def normalize_cluster_ips(spec: JSONObject, old: JSONObject | None) -> None:
    """
    Set C{clusterIP} and C{clusterIPs} from each other if the client sets only one of them.

    See C{pkg/registry/core/service/storage/storage.go}, normalizeClusterIPs.
    """
    one, many = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    if old is None:
        if one and not many:
            spec["clusterIPs"] = [one]
        return
    before_one, before_many = old.get("clusterIP") or "", old.get("clusterIPs") or []
    if one != before_one:
        if not one and before_one:
            if many == before_many:
                spec.pop("clusterIPs", None)
        elif (not before_one and one and not many) or (before_one and one and many == before_many):
            spec["clusterIPs"] = [one]


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Service": ServiceStrategy(),
}
