"""Services and Endpoints; see kubernetes, C{pkg/apis/core/validation} and C{pkg/registry/core/service}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...api.addresses import parse_ip
from ...api.errors import Cause, duplicate, forbidden, invalid, required
from ...api.names import qualified_name_problems
from ...api.resource import JSONObject
from .fields import (
    Causes,
    check,
    cidr,
    dns_label,
    dns_subdomain,
    go_json,
    invalid_shown,
    ip,
    is_ipv6,
    labels,
    non_special_ip,
    old_ip,
    one_of,
    port_number,
    port_number_or_name,
    unsupported,
)

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC: Final = ("Cluster", "Local")
_DAY: Final = 86400
_SOURCE_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"


def _addresses(spec: JSONObject) -> list[str]:
    return spec.get("clusterIPs") or []


def is_headless(spec: JSONObject) -> bool:
    """A service without an address of its own."""
    many = _addresses(spec)
    return len(many) == 1 and many[0] == "None"


def validate_service(obj: JSONObject) -> list[Cause]:
    """A service as it may stand."""
    causes: Causes = []
    spec = obj["spec"]
    kind = spec.get("type") or ""
    ports = spec.get("ports") or []
    if not ports and not is_headless(spec) and kind != "ExternalName":
        causes.append(required("spec.ports"))
    if kind in ("NodePort", "LoadBalancer") and spec.get("clusterIP") == "None":
        causes.append(invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services"))
    elif kind == "ExternalName":
        _external_name(spec, causes)
    names: set[str] = set()
    for index, port in enumerate(ports):
        _port(port, len(ports) > 1, f"spec.ports[{index}]", names, causes)
    labels(spec.get("selector"), "spec.selector", causes)
    one_of(spec.get("sessionAffinity"), ("ClientIP", "None"), "spec.sessionAffinity", causes)
    _affinity(spec, causes)
    _cluster_ips(spec, causes)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        if parse_ip(address) is None:
            old_ip(address, f"spec.externalIPs[{index}]", causes)
        else:
            non_special_ip(address, f"spec.externalIPs[{index}]", causes)
    if kind not in _TYPES:
        causes.append(unsupported("spec.type", kind, _TYPES) if kind else required("spec.type"))
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                text = "may not be used when `type` is 'ClusterIP'"
                causes.append(forbidden(f"spec.ports[{index}].nodePort", text))
    _duplicate_ports(ports, causes)
    _source_ranges(obj, spec, kind, causes)
    if spec.get("allocateLoadBalancerNodePorts") is not None and kind != "LoadBalancer":
        text = "may only be used when `type` is 'LoadBalancer'"
        causes.append(forbidden("spec.allocateLoadBalancerNodePorts", text))
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        causes.append(required("spec.allocateLoadBalancerNodePorts"))
    balancer = spec.get("loadBalancerClass")
    if balancer is not None:
        check(balancer, "spec.loadBalancerClass", qualified_name_problems, causes)
        if kind != "LoadBalancer":
            causes.append(forbidden("spec.loadBalancerClass", "may only be used when `type` is 'LoadBalancer'"))
    _traffic(spec, kind, causes)
    return causes


def _external_name(spec: JSONObject, causes: Causes) -> None:
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            causes.append(forbidden(f"spec.{name}", "may not be set for ExternalName services"))
    name = (spec.get("externalName") or "").removesuffix(".")
    if name:
        check(name, "spec.externalName", dns_subdomain, causes)
    else:
        causes.append(required("spec.externalName"))


def _port(port: JSONObject, named: bool, path: str, names: set[str], causes: Causes) -> None:
    name = port.get("name") or ""
    if not name:
        if named:
            causes.append(required(f"{path}.name"))
    else:
        check(name, f"{path}.name", dns_label, causes)
        if name in names:
            causes.append(duplicate(f"{path}.name", name))
        names.add(name)
    port_number(port.get("port"), f"{path}.port", causes)
    one_of(port.get("protocol"), _PROTOCOLS, f"{path}.protocol", causes)
    port_number_or_name(port.get("targetPort", 0), f"{path}.targetPort", causes)
    if port.get("appProtocol") is not None:
        check(port["appProtocol"], f"{path}.appProtocol", qualified_name_problems, causes)


def _affinity(spec: JSONObject, causes: Causes) -> None:
    path = "spec.sessionAffinityConfig"
    config = spec.get("sessionAffinityConfig")
    if spec.get("sessionAffinity") == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        if seconds is None:
            causes.append(required(path, "when session affinity type is ClientIP"))
        elif not 0 < seconds <= _DAY:
            text = f"must be greater than 0 and less than {_DAY}"
            causes.append(invalid(f"{path}.clientIP.timeoutSeconds", seconds, text))
    elif spec.get("sessionAffinity") == "None" and config is not None:
        causes.append(forbidden(path, "must not be set when session affinity is None"))


def _cluster_ips(spec: JSONObject, causes: Causes) -> None:
    if spec.get("type") == "ExternalName":
        return
    path = "spec.clusterIPs"
    one, many = spec.get("clusterIP") or "", _addresses(spec)
    families = spec.get("ipFamilies") or []
    if many:
        if not one:
            causes.append(invalid(path, many, "must be empty when `clusterIP` is not specified"))
        elif many[0] != one:
            causes.append(invalid(path, many, "first value must match `clusterIP`"))
    elif one:
        causes.append(required(path))
    seen: set[str] = set()
    for index, family in enumerate(families):
        where = f"spec.ipFamilies[{index}]"
        if family not in _FAMILIES:
            causes.append(unsupported(where, family, _FAMILIES))
        if family in seen:
            causes.append(duplicate(where, family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None:
        one_of(policy, _POLICIES, "spec.ipFamilyPolicy", causes)
    if ("None" in many[:1] or (len(many) > 1 and "None" in many)) and len(many) > 1:
        causes.append(invalid(path, many, "'None' must be the first and only value"))
    for index, address in enumerate(many):
        if index == 0 and address == "None":
            continue
        before = len(causes)
        ip(address, f"{path}[{index}]", causes)
        if len(causes) == before and index < len(families):
            wanted = "IPv6" if is_ipv6(address) else "IPv4"
            if families[index] in _FAMILIES and families[index] != wanted:
                text = f"expected an {families[index]} value as indicated by `ipFamilies[{index}]`"
                causes.append(invalid(f"{path}[{index}]", address, text))
    good = [address for address in many if address != "None"]
    if len(many) > 2:
        causes.append(invalid(path, many, "may only hold up to 2 values"))
    elif len(good) == 2 and is_ipv6(good[0]) == is_ipv6(good[1]):
        causes.append(invalid(path, many, "may specify no more than one IP for each IP family"))


def _duplicate_ports(ports: list[JSONObject], causes: Causes) -> None:
    seen: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            causes.append(Cause("FieldValueDuplicate", f"Duplicate value: {go_json(shown)}", f"spec.ports[{index}]"))
        seen.add(key)


def _source_ranges(obj: JSONObject, spec: JSONObject, kind: str, causes: Causes) -> None:
    ranges = spec.get("loadBalancerSourceRanges")
    # The reference's path begins with a capital letter.
    path = "spec.LoadBalancerSourceRanges"
    annotation = (obj["metadata"].get("annotations") or {}).get(_SOURCE_RANGES)
    if ranges:
        if kind != "LoadBalancer":
            causes.append(forbidden(path, "may only be used when `type` is 'LoadBalancer'"))
        for index, value in enumerate(ranges):
            cidr(value.strip(), f"{path}[{index}]", causes)
    elif annotation is not None:
        where = f"metadata.annotations[{_SOURCE_RANGES}]"
        if kind != "LoadBalancer":
            causes.append(forbidden(where, "may only be used when `type` is 'LoadBalancer'"))
        if annotation.strip():
            for value in annotation.strip().split(","):
                cidr(value.strip(), where, causes)


def _outside(spec: JSONObject) -> bool:
    """Whether the service can be reached from outside of the cluster."""
    kind = spec.get("type")
    return kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: JSONObject) -> bool:
    """Whether balancers have to ask nodes for pods of the service."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _traffic(spec: JSONObject, kind: str, causes: Causes) -> None:
    outer, inner = spec.get("externalTrafficPolicy") or "", spec.get("internalTrafficPolicy")
    path = "spec.externalTrafficPolicy"
    if not _outside(spec):
        if outer:
            causes.append(invalid(path, outer, "may only be set for externally-accessible services"))
    elif not outer:
        causes.append(required(path))
    elif outer not in _TRAFFIC:
        causes.append(unsupported(path, outer, _TRAFFIC))
    health = spec.get("healthCheckNodePort") or 0
    if health and not needs_health_check(spec):
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        causes.append(invalid("spec.healthCheckNodePort", health, text))
    if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        if inner is None:
            causes.append(required("spec.internalTrafficPolicy"))
        elif inner not in _TRAFFIC:
            causes.append(unsupported("spec.internalTrafficPolicy", inner, _TRAFFIC))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in ("PreferClose", "PreferSameNode", "PreferSameZone"):
        choice = ("PreferClose", "PreferSameNode", "PreferSameZone")
        causes.append(unsupported("spec.trafficDistribution", distribution, choice))


# --- updates -----------------------------------------------------------------------------------------------------


def validate_service_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """The addresses of a service stay, as long as its type does."""
    causes: Causes = []
    spec, before = obj["spec"], old["spec"]
    kind, was = spec.get("type"), before.get("type")
    new, held = _addresses(spec), _addresses(before)
    agree = not new or new[0] == (spec.get("clusterIP") or "")
    if kind != "ExternalName" and was != "ExternalName" and held and agree:
        if not new:
            causes.append(invalid("spec.clusterIPs[0]", new, "primary clusterIP can not be unset"))
        elif new[0] != held[0]:
            causes.append(invalid("spec.clusterIPs[0]", new, "may not change once set"))
        elif len(held) == 2 and len(new) == 2 and new[1] != held[1]:
            causes.append(invalid("spec.clusterIPs[1]", new, "may not change once set"))
    balancer, held_class = spec.get("loadBalancerClass"), before.get("loadBalancerClass")
    if kind == "LoadBalancer" and was == "LoadBalancer" and balancer != held_class:
        shown = "null" if balancer is None else go_json(balancer)
        causes.append(invalid_shown("spec.loadBalancerClass", shown, "may not change once set"))
    causes.extend(validate_service(obj))
    return causes


def patch_allocated_values(obj: JSONObject, old: JSONObject) -> None:
    """
    Keep what was given out and the client leaves out, in C{obj}.

    See C{pkg/registry/core/service/storage/alloc.go}, patchAllocatedValues.
    """
    spec, before = obj["spec"], old["spec"]

    def has_ip(one: JSONObject) -> bool:
        return one.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")

    if has_ip(before) and has_ip(spec):
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and before.get("clusterIPs") and spec.get("clusterIP") == before.get("clusterIP"):
            spec["clusterIPs"] = list(before["clusterIPs"])
    if before.get("type") in ("NodePort", "LoadBalancer") and spec.get("type") in ("NodePort", "LoadBalancer"):
        held = {
            (port.get("protocol"), port.get("port")): port["nodePort"]
            for port in before.get("ports") or ()
            if port.get("nodePort")
        }
        used = {
            (port.get("protocol"), port.get("nodePort")) for port in spec.get("ports") or () if port.get("nodePort")
        }
        for port in spec.get("ports") or ():
            number = held.get((port.get("protocol"), port.get("port")))
            if not port.get("nodePort") and number and (port.get("protocol"), number) not in used:
                port["nodePort"] = number
    held_port = before.get("healthCheckNodePort")
    if needs_health_check(before) and needs_health_check(spec) and held_port and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = held_port


def drop_type_dependent_fields(obj: JSONObject, old: JSONObject) -> None:
    """
    Drop from C{obj} what its new type can not have, unless the client changed it on purpose.

    See C{pkg/registry/core/service/strategy.go}, dropTypeDependentFields.
    """
    spec, before = obj["spec"], old["spec"]

    def leaves(*kinds: str) -> bool:
        return before.get("type") in kinds and spec.get("type") not in kinds

    if leaves("ClusterIP", "NodePort", "LoadBalancer"):
        if spec.get("clusterIP") == before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        if spec.get("ipFamilies") == before.get("ipFamilies") and spec.get("ipFamilyPolicy") == before.get(
            "ipFamilyPolicy"
        ):
            spec.pop("ipFamilies", None)
            spec.pop("ipFamilyPolicy", None)
        _drop_unchanged(spec, before, "internalTrafficPolicy")
    if leaves("NodePort", "LoadBalancer"):
        now = [port.get("nodePort") for port in spec.get("ports") or ()]
        if set(filter(None, now)) == {port["nodePort"] for port in before.get("ports") or () if port.get("nodePort")}:
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        _drop_unchanged(spec, before, "healthCheckNodePort")
    if leaves("LoadBalancer"):
        _drop_unchanged(spec, before, "allocateLoadBalancerNodePorts")
        _drop_unchanged(spec, before, "loadBalancerClass")
    if leaves("ExternalName"):
        _drop_unchanged(spec, before, "externalName")
    if _outside(before) and not _outside(spec):
        _drop_unchanged(spec, before, "externalTrafficPolicy")


def _drop_unchanged(spec: JSONObject, before: JSONObject, name: str) -> None:
    if spec.get(name) == before.get(name):
        spec.pop(name, None)


def needs_no_load_balancer(spec: JSONObject) -> bool:
    """Whether no balancer can belong to the service any more."""
    return spec.get("type") != "LoadBalancer"


def validate_service_status(obj: JSONObject) -> list[Cause]:
    """The addresses of a balancer."""
    causes: Causes = []
    ingresses = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    if ingresses and obj["spec"].get("type") != "LoadBalancer":
        causes.append(forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'"))
        return causes
    for index, ingress in enumerate(ingresses):
        balancer_ingress(ingress, f"status.loadBalancer.ingress[{index}]", causes, mode=True)
    return causes


def balancer_ingress(ingress: JSONObject, path: str, causes: Causes, *, mode: bool) -> None:
    """One address of a balancer; C{mode} when it tells how it is bound to nodes."""
    address, host, how = ingress.get("ip") or "", ingress.get("hostname") or "", ingress.get("ipMode")
    if address:
        ip(address, f"{path}.ip", causes)
    if mode:
        if address and how is None:
            causes.append(required(f"{path}.ipMode", "must be specified when `ip` is set"))
        elif how is not None and not address:
            causes.append(forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
        elif how is not None and how not in ("Proxy", "VIP"):
            causes.append(unsupported(f"{path}.ipMode", how, ("Proxy", "VIP")))
    if host:
        check(host, f"{path}.hostname", dns_subdomain, causes)
        problems: Causes = []
        ip(host, "", problems)
        if not problems:
            causes.append(invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address"))


def service_warnings(obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
    """See C{pkg/api/service/warnings.go}."""
    spec = obj["spec"]
    texts: list[str] = []
    if is_headless(spec):
        if spec.get("loadBalancerIP"):
            texts.append("spec.loadBalancerIP is ignored for headless services")
        if spec.get("externalIPs"):
            texts.append("spec.externalIPs is ignored for headless services")
        if spec.get("sessionAffinity") not in (None, "None"):
            texts.append("spec.SessionAffinity is ignored for headless services")
    if spec.get("type") == "ExternalName" and spec.get("externalIPs"):
        texts.append("spec.externalIPs is ignored when spec.type is ExternalName")
    return texts


# --- endpoints ---------------------------------------------------------------------------------------------------


def validate_endpoints(obj: JSONObject) -> list[Cause]:
    """Addresses and the ports at them."""
    causes: Causes = []
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            causes.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for name in ("addresses", "notReadyAddresses"):
            for place, address in enumerate(subset.get(name) or ()):
                here = f"{path}.{name}[{place}]"
                ip(address.get("ip") or "", f"{here}.ip", causes)
                if address.get("hostname"):
                    check(address["hostname"], f"{here}.hostname", dns_label, causes)
                if address.get("nodeName") is not None:
                    check(address["nodeName"], f"{here}.nodeName", dns_subdomain, causes)
                non_special_ip(address.get("ip") or "", f"{here}.ip", causes)
        several = len(subset.get("ports") or ()) > 1
        for place, port in enumerate(subset.get("ports") or ()):
            here = f"{path}.ports[{place}]"
            if several and not port.get("name"):
                causes.append(required(f"{here}.name"))
            elif port.get("name"):
                check(port["name"], f"{here}.name", dns_label, causes)
            port_number(port.get("port"), f"{here}.port", causes)
            one_of(port.get("protocol"), _PROTOCOLS, f"{here}.protocol", causes)
            if port.get("appProtocol") is not None:
                check(port["appProtocol"], f"{here}.appProtocol", qualified_name_problems, causes)
    return causes
