"""Validation of Services; see kubernetes, C{pkg/apis/core/validation} and C{pkg/registry/core/service}."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from ....api.addresses import Network, format_ip, parse_cidr, parse_ip, validate_cidr
from ....api.errors import FieldError, duplicate, forbidden, invalid, required, valued
from ....api.names import validate_qualified_name
from ....api.resource import JSONObject
from ...generic.validation.addresses import address_warnings, ambiguous_text
from ...generic.validation.fields import (
    IMMUTABLE,
    ErrorList,
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
    one_of,
    port_number,
    port_number_or_name,
    quote,
    unsupported,
    unsupported_string,
)

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
# Dry runs return the node ports after this one.
_DRY_PORT: Final = 32768
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC: Final = ("Cluster", "Local")
_DAY: Final = 86400
#: All traffic distributions.
DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
_TOPOLOGY_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_SOURCE_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"


def _addresses(spec: JSONObject) -> list[str]:
    return spec.get("clusterIPs") or []


def is_headless(spec: JSONObject) -> bool:
    """Return whether a service has no cluster IP."""
    many = _addresses(spec)
    return len(many) == 1 and many[0] == "None"


def validate_service(
    obj: JSONObject, old: JSONObject | None = None, *, strict: bool, distributions: Sequence[str]
) -> list[FieldError]:
    """
    Return the validation errors of a service; invalid addresses that C{old} also has are accepted.

    @param strict: Whether ambiguous notations of addresses are errors.
    @param distributions: The supported traffic distributions.
    """
    errors = validate_cluster_ips(obj["spec"], {} if old is None else old["spec"], strict=strict)
    # In the reference, errors of addresses occur in the allocation, before validation.
    return errors or _validate_rest(obj, {} if old is None else old, strict=strict, distributions=distributions)


def _validate_rest(obj: JSONObject, old: JSONObject, *, strict: bool, distributions: Sequence[str]) -> list[FieldError]:
    errors: ErrorList = []
    spec = obj["spec"]
    kind = spec.get("type") or ""
    ports = spec.get("ports") or []
    _topology(obj, errors)
    if not ports and not is_headless(spec) and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if kind in ("NodePort", "LoadBalancer") and is_headless(spec):
        errors.append(invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services"))
    elif kind == "ExternalName":
        _external_name(spec, errors)
    names: set[str] = set()
    for index, port in enumerate(ports):
        _port(port, len(ports) > 1, f"spec.ports[{index}]", names, errors)
    labels(spec.get("selector"), "spec.selector", errors)
    one_of(spec.get("sessionAffinity"), ("ClientIP", "None"), "spec.sessionAffinity", errors)
    _affinity(spec, errors)
    stored = frozenset((old.get("spec") or {}).get("externalIPs") or ())
    for index, address in enumerate(spec.get("externalIPs") or ()):
        before = len(errors)
        if address not in stored:
            ip(address, f"spec.externalIPs[{index}]", errors, strict=strict)
        if len(errors) == before:
            non_special_ip(address, f"spec.externalIPs[{index}]", errors)
    if kind not in _TYPES:
        errors.append(unsupported("spec.type", kind, _TYPES) if kind else required("spec.type"))
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                text = "may not be used when `type` is 'ClusterIP'"
                errors.append(forbidden(f"spec.ports[{index}].nodePort", text))
    _duplicate_node_ports(ports if old else _numbered(spec), errors)
    _duplicate_ports(ports, errors)
    _source_ranges(obj, old, kind, errors, strict=strict)
    if spec.get("allocateLoadBalancerNodePorts") is not None and kind != "LoadBalancer":
        text = "may only be used when `type` is 'LoadBalancer'"
        errors.append(forbidden("spec.allocateLoadBalancerNodePorts", text))
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        errors.append(required("allocateLoadBalancerNodePorts"))
    _balancer_class(spec, errors)
    _traffic(spec, kind, distributions, errors)
    return errors


def _topology(obj: JSONObject, errors: ErrorList) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    mode, hints = annotations.get(_TOPOLOGY_MODE), annotations.get(_TOPOLOGY_HINTS)
    if mode is not None and hints is not None and mode != hints:
        text = f"must match annotations[{_TOPOLOGY_HINTS}] when both are specified"
        errors.append(invalid(f"metadata.annotations[{_TOPOLOGY_MODE}]", mode, text))


def _balancer_class(spec: JSONObject, errors: ErrorList) -> None:
    balancer = spec.get("loadBalancerClass")
    if balancer is None:
        return
    if spec.get("type") == "LoadBalancer":
        check(balancer, "spec.loadBalancerClass", validate_qualified_name, errors)
    else:
        errors.append(forbidden("spec.loadBalancerClass", "may only be used when `type` is 'LoadBalancer'"))


def _external_name(spec: JSONObject, errors: ErrorList) -> None:
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name) or (name == "ipFamilyPolicy" and spec.get(name) is not None):
            errors.append(forbidden(f"spec.{name}", "may not be set for ExternalName services"))
    name = (spec.get("externalName") or "").removesuffix(".")
    if name:
        check(name, "spec.externalName", dns_subdomain, errors)
    else:
        errors.append(required("spec.externalName"))


def _port(port: JSONObject, named: bool, path: str, names: set[str], errors: ErrorList) -> None:
    name = port.get("name") or ""
    if not name:
        if named:
            errors.append(required(f"{path}.name"))
    else:
        check(name, f"{path}.name", dns_label, errors)
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
    port_number(port.get("port"), f"{path}.port", errors)
    one_of(port.get("protocol"), PROTOCOLS, f"{path}.protocol", errors)
    port_number_or_name(port.get("targetPort", 0), f"{path}.targetPort", errors)
    if port.get("appProtocol") is not None:
        check(port["appProtocol"], f"{path}.appProtocol", validate_qualified_name, errors)


def _affinity(spec: JSONObject, errors: ErrorList) -> None:
    path = "spec.sessionAffinityConfig"
    config = spec.get("sessionAffinityConfig")
    if spec.get("sessionAffinity") == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        if seconds is None:
            errors.append(required(path, "when session affinity type is ClientIP"))
        elif not 0 < seconds <= _DAY:
            text = f"must be greater than 0 and less than {_DAY}"
            errors.append(invalid(f"{path}.clientIP.timeoutSeconds", seconds, text))
    elif spec.get("sessionAffinity") == "None" and config is not None:
        errors.append(forbidden(path, "must not be set when session affinity is None"))


def validate_cluster_ips(spec: JSONObject, before: JSONObject, *, strict: bool) -> ErrorList:
    """
    Return the errors of the cluster IPs and IP families of a service.

    @param strict: Whether ambiguous notations of addresses are errors.
    """
    errors: ErrorList = []
    if spec.get("type") == "ExternalName":
        return errors
    path = "spec.clusterIPs"
    one, many = spec.get("clusterIP") or "", _addresses(spec)
    families = spec.get("ipFamilies") or []
    if one and not many:
        errors.append(required(path))
    elif one and many[0] != one:
        errors.append(invalid(path, many, "first value must match `clusterIP`"))
    elif many and not one:
        errors.append(invalid(path, many, "must be empty when `clusterIP` is not specified"))
    seen: set[str] = set()
    for index, family in enumerate(families):
        item_path = f"spec.ipFamilies[{index}]"
        if family not in _FAMILIES:
            errors.append(unsupported(item_path, family, _FAMILIES))
        if family in seen:
            errors.append(duplicate(item_path, family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(unsupported("spec.ipFamilyPolicy", policy, _POLICIES))
    problems: ErrorList = []
    stored = frozenset(_addresses(before))
    for index, address in enumerate(many):
        if index == 0 and address == "None":
            if len(many) > 1:
                problems.append(invalid(path, many, "'None' must be the first and only value"))
        elif address not in stored:
            ip(address, f"{path}[{index}]", problems, strict=strict)
    errors.extend(problems)
    if len(many) > 2:
        errors.append(invalid(path, many, "may only hold up to 2 values"))
    if not problems:
        _families(many, families, path, errors)
    return errors


def _families(many: list[str], families: list[str], path: str, errors: ErrorList) -> None:
    """Validate that valid addresses are dual-stack if there are two, and match the IP families."""
    of = ["IPv6" if is_ipv6(address) else "IPv4" for address in many]
    if len(many) > 1 and len(set(of)) < 2:
        errors.append(invalid(path, many, "may specify no more than one IP for each IP family"))
    if many == ["None"]:
        return
    for index, (address, family, expected) in enumerate(zip(many, of, families, strict=False)):
        if expected in _FAMILIES and expected != family:
            text = f"expected an {expected} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(f"{path}[{index}]", address, text))


def gets_node_ports(spec: JSONObject) -> bool:
    """Return whether a service has node ports without requesting them."""
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def _numbered(spec: JSONObject) -> list[JSONObject]:
    """
    Return the ports of a new service with node ports, which the reference allocates before validation.

    The values are those of dry runs in the reference, since an invalid service is not stored.
    """
    ports: list[JSONObject] = spec.get("ports") or []
    if not gets_node_ports(spec):
        return ports
    requested: dict[int, int] = {}
    for port in ports:
        if port.get("nodePort"):
            requested.setdefault(port.get("port") or 0, port["nodePort"])
    shared: dict[int, int] = {}
    taken: set[int] = set()
    numbered: list[JSONObject] = []
    for port in ports:
        number = port.get("port") or 0
        if number not in shared:
            shared[number] = requested.get(number) or max(taken, default=_DRY_PORT) + 1
        node_port = port.get("nodePort") or shared[number]
        taken.add(node_port)
        numbered.append({**port, "nodePort": node_port})
    return numbered


def _duplicate_node_ports(ports: list[JSONObject], errors: ErrorList) -> None:
    """Check that no node port occurs twice in a protocol; the allocation rejects most duplicates earlier."""
    seen: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("nodePort"))
        if key[1] and key in seen:
            errors.append(duplicate(f"spec.ports[{index}].nodePort", key[1]))
        seen.add(key)


def _duplicate_ports(ports: list[JSONObject], errors: ErrorList) -> None:
    seen: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            duplicate_port = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            item_path, shown = f"spec.ports[{index}]", go_json(duplicate_port)
            value = {"protocol": key[0], "port": key[1]}
            errors.append(
                valued("FieldValueDuplicate", "Duplicate value", item_path, value, "", "core.ServicePort", shown)
            )
        seen.add(key)


def _source_ranges(obj: JSONObject, old: JSONObject, kind: str, errors: ErrorList, *, strict: bool) -> None:
    ranges = obj["spec"].get("loadBalancerSourceRanges")
    # The field path of the reference begins with a capital letter.
    path = "spec.LoadBalancerSourceRanges"
    annotation = (obj["metadata"].get("annotations") or {}).get(_SOURCE_RANGES)
    if ranges:
        if kind != "LoadBalancer":
            errors.append(forbidden(path, "may only be used when `type` is 'LoadBalancer'"))
        stored = {value.strip() for value in (old.get("spec") or {}).get("loadBalancerSourceRanges") or ()}
        for index, value in enumerate(ranges):
            if value.strip() not in stored:
                cidr(value.strip(), f"{path}[{index}]", errors, strict=strict)
    elif annotation is not None:
        item_path = f"metadata.annotations[{_SOURCE_RANGES}]"
        if kind != "LoadBalancer":
            errors.append(forbidden(item_path, "may only be used when `type` is 'LoadBalancer'"))
        before = (old.get("metadata") or {}).get("annotations") or {}
        if annotation.strip() and annotation != before.get(_SOURCE_RANGES):
            for value in annotation.strip().split(","):
                cidr(value.strip(), item_path, errors, strict=strict)


def _outside(spec: JSONObject) -> bool:
    """Return whether the service is reachable from outside of the cluster."""
    kind = spec.get("type")
    return kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: JSONObject) -> bool:
    """Return whether a service needs a port for health checks of load balancers."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _traffic(spec: JSONObject, kind: str, distributions: Sequence[str], errors: ErrorList) -> None:
    outer, inner = spec.get("externalTrafficPolicy") or "", spec.get("internalTrafficPolicy")
    path = "spec.externalTrafficPolicy"
    if not _outside(spec):
        if outer:
            errors.append(invalid(path, outer, "may only be set for externally-accessible services"))
    elif not outer:
        errors.append(required(path))
    elif outer not in _TRAFFIC:
        errors.append(unsupported(path, outer, _TRAFFIC))
    health = spec.get("healthCheckNodePort") or 0
    if health and not needs_health_check(spec):
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid("spec.healthCheckNodePort", health, text))
    if inner is None and kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        errors.append(required("spec.internalTrafficPolicy"))
    elif inner is not None and inner not in _TRAFFIC:
        errors.append(unsupported("spec.internalTrafficPolicy", inner, _TRAFFIC))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in distributions:
        errors.append(unsupported_string("spec.trafficDistribution", distribution, distributions))


# --- updates -----------------------------------------------------------------------------------------------------


def validate_service_update(
    obj: JSONObject, old: JSONObject, *, strict: bool, distributions: Sequence[str]
) -> list[FieldError]:
    """
    Return the validation errors of an update of a service, whose addresses are immutable.

    @param strict: Whether ambiguous notations of addresses are errors.
    @param distributions: The supported traffic distributions.
    """
    errors: ErrorList = []
    spec, before = obj["spec"], old["spec"]
    kind, was = spec.get("type"), before.get("type")
    # In the reference, errors of addresses occur in the allocation, before validation.
    wrong = validate_cluster_ips(spec, before, strict=strict)
    if wrong:
        return wrong
    if kind != "ExternalName" and was != "ExternalName":
        _keep_addresses(spec, before, errors)
        _keep_families(spec, before, errors)
    balancer, held_class = spec.get("loadBalancerClass"), before.get("loadBalancerClass")
    if kind == "LoadBalancer" and was == "LoadBalancer" and balancer != held_class:
        formatted = "null" if balancer is None else go_json(balancer)
        text = "may not change once set"
        errors.append(invalid_shown("spec.loadBalancerClass", formatted, text, balancer, "*string"))
    _balancer_class(spec, errors)
    health, held_health = (service_spec.get("healthCheckNodePort") or 0 for service_spec in (spec, before))
    if health != held_health and needs_health_check(before) and needs_health_check(spec):
        errors.append(forbidden("spec.healthCheckNodePort", IMMUTABLE))
    errors.extend(_validate_rest(obj, old, strict=strict, distributions=distributions))
    return errors


def _keep_addresses(spec: JSONObject, before: JSONObject, errors: ErrorList) -> None:
    """Validate that the first address is unchanged; the second one may be added or removed."""
    path = "spec.clusterIPs"
    new, stored = _addresses(spec), _addresses(before)
    if is_headless(spec) and is_headless(before):
        return
    if len(new) == len(stored):
        for index, (now, then) in enumerate(zip(new, stored, strict=True)):
            if now != then:
                errors.append(invalid(f"{path}[{index}]", new, "may not change once set"))
    elif not new:
        errors.append(invalid(f"{path}[0]", None, "primary clusterIP can not be unset", "[]string"))
    else:
        if stored and new[0] != stored[0]:
            errors.append(invalid(f"{path}[0]", new, "may not change once set"))


def _keep_families(spec: JSONObject, before: JSONObject, errors: ErrorList) -> None:
    """Validate that the first IP family is unchanged; the second one may be added or removed."""
    path = "spec.ipFamilies[0]"
    new, stored = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    if is_headless(spec) or is_headless(before):
        return
    # The reference reports the addresses instead of the families, unless their number is unchanged.
    addresses = go_json(_addresses(spec) or None)
    if len(new) == len(stored):
        for now, then in zip(new, stored, strict=True):
            if now != then:
                errors.append(invalid(path, new, "may not change once set", "[]core.IPFamily"))
        return
    if len(stored) > len(new) and not _addresses(spec):
        text = "primary ipFamily can not be unset"
        errors.append(invalid_shown(path, go_json(new or None), text, new or None, "[]core.IPFamily"))
    if new and stored and new[0] != stored[0]:
        text = "may not change once set"
        errors.append(invalid_shown(path, addresses, text, _addresses(spec) or None, "[]string"))


def patch_allocated_values(obj: JSONObject, old: JSONObject) -> None:
    """
    Keep allocated values that the client omits, in C{obj}.

    See C{pkg/registry/core/service/storage/storage.go}, patchAllocatedValues.
    """
    spec, before = obj["spec"], old["spec"]

    def has_ip(one: JSONObject) -> bool:
        return one.get("type") != "ExternalName"

    if has_ip(before) and has_ip(spec):
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and before.get("clusterIPs"):
            spec["clusterIPs"] = list(before["clusterIPs"])
    if before.get("type") in ("NodePort", "LoadBalancer") and spec.get("type") in ("NodePort", "LoadBalancer"):
        _patch_node_ports(spec.get("ports") or (), before.get("ports") or ())
    held_port = before.get("healthCheckNodePort")
    if needs_health_check(before) and needs_health_check(spec) and held_port and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = held_port


def _patch_node_ports(ports: Sequence[JSONObject], before: Sequence[JSONObject]) -> None:
    """Give a port without a node port the one of the old port with the same name, unless another port uses it."""
    numbers = {port.get("nodePort") for port in ports}
    used = {port["nodePort"] for port in before if port.get("nodePort") and port["nodePort"] in numbers}
    stored = {port.get("name") or "": port.get("nodePort") or 0 for port in before}
    for port in ports:
        number = stored.get(port.get("name") or "", 0)
        if not port.get("nodePort") and number and number not in used:
            port["nodePort"] = number


def drop_type_dependent_fields(obj: JSONObject, old: JSONObject) -> None:
    """
    Drop fields from C{obj} that its new type does not have, unless the client changed it on purpose.

    See C{pkg/registry/core/service/strategy.go}, dropTypeDependentFields.
    """
    spec, before = obj["spec"], old["spec"]

    def leaves(*kinds: str) -> bool:
        return before.get("type") in kinds and spec.get("type") not in kinds

    if before.get("type") != "ExternalName" and spec.get("type") == "ExternalName":
        if spec.get("clusterIP") == before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        _drop_unchanged(spec, before, "ipFamilies")
        _drop_unchanged(spec, before, "ipFamilyPolicy")
        _drop_unchanged(spec, before, "internalTrafficPolicy")
    if leaves("NodePort", "LoadBalancer"):
        # Ports may be removed, but not added.
        now, stored = (
            {port.get("nodePort") or 0 for port in service_spec.get("ports") or ()} - {0}
            for service_spec in (spec, before)
        )
        if now <= stored:
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        _drop_unchanged(spec, before, "healthCheckNodePort")
    if leaves("LoadBalancer"):
        _drop_unchanged(spec, before, "allocateLoadBalancerNodePorts")
        _drop_unchanged(spec, before, "loadBalancerClass")
    if _outside(before) and not _outside(spec):
        _drop_unchanged(spec, before, "externalTrafficPolicy")


def _drop_unchanged(spec: JSONObject, before: JSONObject, name: str) -> None:
    if spec.get(name) == before.get(name):
        spec.pop(name, None)


def needs_no_load_balancer(spec: JSONObject) -> bool:
    """Return whether a service cannot have a load balancer."""
    return spec.get("type") != "LoadBalancer"


def validate_service_status(
    obj: JSONObject, old: JSONObject, *, strict: bool, any_type: bool = False
) -> list[FieldError]:
    """
    Return the validation errors of the status: the addresses of the load balancer.

    @param strict: Whether ambiguous notations of addresses are errors.
    @param any_type: Whether services of all types may have them.
    """
    errors: ErrorList = []
    ingresses = _ingresses(obj)
    if ingresses and not any_type and obj["spec"].get("type") != "LoadBalancer":
        errors.append(forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'"))
        return errors
    stored = frozenset(ingress.get("ip") or "" for ingress in _ingresses(old))
    for index, ingress in enumerate(ingresses):
        path = f"status.loadBalancer.ingress[{index}]"
        balancer_ingress(ingress, path, errors, mode=True, strict=strict, stored=stored)
    return errors


def _ingresses(obj: JSONObject) -> Sequence[JSONObject]:
    return ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()


def balancer_ingress(
    ingress: JSONObject,
    path: str,
    errors: ErrorList,
    *,
    mode: bool,
    strict: bool,
    stored: Collection[str] = frozenset(),
) -> None:
    """
    Validate one address of a load balancer.

    @param ingress: The entry in the status.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param mode: Whether C{ipMode} is allowed.
    @param strict: Whether ambiguous notations of addresses are errors.
    @param stored: The addresses of the stored object, which are accepted in any form.
    """
    address, host, how = ingress.get("ip") or "", ingress.get("hostname") or "", ingress.get("ipMode")
    if address and address not in stored:
        ip(address, f"{path}.ip", errors, strict=strict)
    if mode:
        if address and how is None:
            errors.append(required(f"{path}.ipMode", "must be specified when `ip` is set"))
        elif how is not None and not address:
            errors.append(forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set"))
        elif how is not None and how not in ("Proxy", "VIP"):
            errors.append(unsupported(f"{path}.ipMode", how, ("Proxy", "VIP")))
    if host:
        check(host, f"{path}.hostname", dns_subdomain, errors)
        if parse_ip(host) is not None:
            errors.append(invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address"))


def service_warnings(
    obj: JSONObject, *, strict: bool, distributions: Sequence[str], headless_addresses: bool
) -> Sequence[str]:
    """
    Return the warnings of C{pkg/api/service/warnings.go}.

    @param strict: See L{ambiguous_text}.
    @param distributions: The supported traffic distributions.
    @param headless_addresses: Whether external addresses of headless services have a warning.
    """
    spec = obj["spec"]
    kind, external = spec.get("type"), spec.get("externalIPs") or ()
    headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    texts: list[str] = []
    if _TOPOLOGY_HINTS in (obj["metadata"].get("annotations") or {}):
        texts.append(f"annotation {_TOPOLOGY_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead")
    for index, address in enumerate(() if spec.get("clusterIP") in (None, "", "None") else _addresses(spec)):
        texts += address_warnings(address, f"spec.clusterIPs[{index}]", strict=strict)
    if headless and spec.get("loadBalancerIP"):
        texts.append("spec.loadBalancerIP is ignored for headless services")
    if headless and external and headless_addresses:
        texts.append("spec.externalIPs is ignored for headless services")
    if headless and spec.get("sessionAffinity") not in (None, "None"):
        texts.append("spec.SessionAffinity is ignored for headless services")
    for index, address in enumerate(external):
        texts += address_warnings(address, f"spec.externalIPs[{index}]", strict=strict)
    if external and not headless and kind != "ExternalName":
        texts.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("loadBalancerIP"):
        texts += address_warnings(spec["loadBalancerIP"], "spec.loadBalancerIP", strict=strict)
    for index, value in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        texts += range_warnings(value, f"spec.loadBalancerSourceRanges[{index}]", strict=strict)
    if kind == "ExternalName" and external:
        texts.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        texts.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if distributions == DISTRIBUTIONS and spec.get("trafficDistribution") == "PreferClose":
        texts.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return texts


def range_warnings(text: str, path: str, *, strict: bool = True) -> list[str]:
    """Return warnings for a CIDR in a non-canonical form; see L{ambiguous_text}."""
    parsed = parse_cidr(text)
    if parsed is None:
        return []
    address, network = parsed
    texts = []
    if address != network.network_address:
        single = f"{format_ip(address)}/{address.max_prefixlen}"
        choice = f"(should be {quote(str(network))} or {quote(single)}?)"
        texts.append(f"{path}: CIDR value {quote(text)} is ambiguous in this context {choice}")
    if validate_cidr(str(network), canonical=False) or any("0s" in problem for problem in validate_cidr(text)):
        problem = ambiguous_text(strict)
        texts.append(f"{path}: non-standard CIDR value {quote(text)} {problem}: use {quote(_format_range(network))}")
    if not texts and address.version == 6 and str(network) != text:
        form = f"should be in RFC 5952 canonical format ({quote(str(network))})"
        texts.append(f"{path}: IPv6 CIDR value {quote(text)} {form}")
    return texts


def _format_range(network: Network) -> str:
    """Return the canonical form of a CIDR; an IPv4-mapped one is formatted as IPv4."""
    formatted = format_ip(network.network_address)
    return f"{formatted}/{network.prefixlen - 96}" if "." in formatted and network.version == 6 else str(network)
