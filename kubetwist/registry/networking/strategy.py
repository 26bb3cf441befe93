"""Strategies of Ingresses, IngressClasses, NetworkPolicies, IPAddresses and ServiceCIDRs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ..generic.strategy import Strategy
from ..generic.validation.fields import STRICT_ADDRESSES
from . import validation


class IngressStrategy(Strategy):
    """networking.k8s.io/v1 Ingress."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")
    has_generation = True
    has_status = True
    status_protects = ()

    def configure(self) -> None:
        """Decide how to validate addresses."""
        self._strict = self.features.enabled(STRICT_ADDRESSES)

    def default(self, obj: JSONObject) -> None:
        """Add C{spec} and C{status}, structs in Go that are always encoded, and the path type."""
        obj.setdefault("spec", {})
        obj.setdefault("status", {}).setdefault("loadBalancer", {})
        for rule in obj["spec"].get("rules") or ():
            http = rule.get("http")
            if http is not None:
                http.setdefault("paths", None)
                for path in http["paths"] or ():
                    path.setdefault("pathType", None)
                    path.setdefault("backend", {})

    def reset_status(self, obj: JSONObject) -> None:
        """Clear the status: no load balancer."""
        obj["status"] = {"loadBalancer": {}}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the spec."""
        return validation.validate_ingress(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the spec; some errors of the stored object are ignored."""
        return validation.validate_ingress_update(obj, old)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the addresses of the load balancer."""
        return validation.validate_ingress_status(obj, strict=self._strict)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return a warning about the deprecated class annotation."""
        return validation.ingress_warnings(obj) if old is None else ()


class IngressClassStrategy(Strategy):
    """networking.k8s.io/v1 IngressClass."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")
    has_generation = True

    def default(self, obj: JSONObject) -> None:
        """Add the default scope of parameters: cluster."""
        parameters = obj.setdefault("spec", {}).get("parameters")
        if parameters is not None and parameters.get("scope") is None:
            parameters["scope"] = "Cluster"

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate controller and parameters."""
        return validation.validate_ingress_class(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the controller is unchanged."""
        return validation.validate_ingress_class_update(obj, old)


class NetworkPolicyStrategy(Strategy):
    """networking.k8s.io/v1 NetworkPolicy."""

    has_generation = True

    def configure(self) -> None:
        """Decide how to validate CIDRs."""
        self._strict = self.features.enabled(STRICT_ADDRESSES)

    def default(self, obj: JSONObject) -> None:
        """Add the default policy types: Ingress, and Egress if the policy has egress rules."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("podSelector", {})
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    if port.get("protocol") is None:
                        port["protocol"] = "TCP"
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the spec."""
        return validation.validate_network_policy(obj, strict=self._strict)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about CIDRs that are not in canonical form."""
        return tuple(validation.network_policy_warnings(obj, strict=self._strict))


class IPAddressStrategy(Strategy):
    """networking.k8s.io/v1 IPAddress; its name is the address."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Validate an address in canonical form."""
        return validation.validate_ip_address_name(name)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the parent reference."""
        return validation.validate_ip_address(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the parent is unchanged."""
        return validation.validate_ip_address_update(obj, old)


class ServiceCIDRStrategy(Strategy):
    """networking.k8s.io/v1 ServiceCIDR."""

    has_status = True

    def configure(self) -> None:
        """Decide whether clients may set the status with the main resource, as before 1.36."""
        self._keeps_status = not self.features.enabled("ServiceCIDRStatusFieldWiping")

    def default(self, obj: JSONObject) -> None:
        """Add C{spec} and C{status}, structs in Go that are always encoded."""
        obj.setdefault("spec", {})
        obj.setdefault("status", {})

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Clear the status, unless clients may set it."""
        if not self._keeps_status:
            super().prepare_for_create(obj)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Restore the status, unless clients may set it."""
        if not self._keeps_status:
            super().prepare_for_update(obj, old)

    def reset_status(self, obj: JSONObject) -> None:
        """Clear the conditions."""
        obj["status"] = {}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate one CIDR, or one of each IP family."""
        return validation.validate_service_cidr(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the CIDRs are unchanged."""
        return validation.validate_service_cidr_update(obj, old)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Ingress": IngressStrategy(),
    "IngressClass": IngressClassStrategy(),
    "NetworkPolicy": NetworkPolicyStrategy(),
    "IPAddress": IPAddressStrategy(),
    "ServiceCIDR": ServiceCIDRStrategy(),
}
