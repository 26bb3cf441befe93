"""
Validation of Ingresses, NetworkPolicies, IPAddresses and ServiceCIDRs.

See kubernetes, C{pkg/apis/networking/validation/validation.go}.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ...api.addresses import format_ip, parse_cidr, parse_ip, validate_cidr, validate_ip
from ...api.errors import FieldError, forbidden, invalid, required, too_long
from ...api.names import (
    byte_length,
    regex_error,
    validate_path_segment_name,
    validate_port_name,
    validate_wildcard_dns1123_subdomain,
)
from ...api.objectmeta import UpdateErrors
from ...api.resource import JSONObject
from ..core.service.validation import balancer_ingress, range_warnings
from ..generic.validation.fields import (
    IMMUTABLE,
    ErrorList,
    check,
    cidr,
    dns_label,
    dns_subdomain,
    go_json,
    go_struct,
    immutable,
    invalid_shown,
    is_ipv6,
    label_selector,
    needed_segment,
    port_number,
    port_number_or_name,
    unsupported,
    unsupported_string,
)

_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_IN_PATH: Final = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS: Final = ("/..", "/.")
_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_IS_HTTP_PATH: Final = re.compile(_HTTP_PATH).fullmatch


# --- ingresses ---------------------------------------------------------------------------------------------------


def validate_ingress(obj: JSONObject) -> list[FieldError]:
    """Validate a new Ingress."""
    errors = _validate_ingress_spec(obj)
    annotation = (obj["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    name = obj["spec"].get("ingressClassName")
    if annotation is not None and name is not None and annotation != name:
        text = "must match `ingressClassName` when both are specified"
        errors.append(invalid(f"annotations.{_CLASS_ANNOTATION}", annotation, text))
    return errors


def validate_ingress_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate an Ingress; some errors that C{old} has already are ignored."""
    before = old["spec"]
    secrets = any(dns_subdomain(tls["secretName"]) for tls in before.get("tls") or () if tls.get("secretName"))
    errors: ErrorList = []
    for rule in before.get("rules") or ():
        if "*" in (rule.get("host") or ""):
            _validate_http(rule.get("http"), "", errors)
    return _validate_ingress_spec(obj, odd_secrets=secrets, odd_wildcards=bool(errors))


def _validate_ingress_spec(
    obj: JSONObject, *, odd_secrets: bool = False, odd_wildcards: bool = False
) -> list[FieldError]:
    errors: ErrorList = []
    spec = obj["spec"]
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    if not rules and backend is None:
        text = "either `defaultBackend` or `rules` must be specified"
        errors.append(invalid("spec", spec.get("rules"), text, "[]networking.IngressRule"))
    if backend is not None:
        _validate_backend(backend, "spec.defaultBackend", errors)
    for index, rule in enumerate(rules):
        _validate_rule(rule, f"spec.rules[{index}]", errors, odd_wildcards)
    for index, tls in enumerate(spec.get("tls") or ()):
        for place, host in enumerate(tls.get("hosts") or ()):
            problems = validate_wildcard_dns1123_subdomain if "*" in host else dns_subdomain
            check(host, f"spec.tls[{index}].hosts[{place}]", problems, errors)
        if tls.get("secretName") and not odd_secrets:
            check(tls["secretName"], f"spec.tls[{index}].secretName", dns_subdomain, errors)
    if spec.get("ingressClassName") is not None:
        check(spec["ingressClassName"], "spec.ingressClassName", dns_subdomain, errors)
    return errors


def _validate_rule(rule: JSONObject, path: str, errors: ErrorList, odd_wildcards: bool) -> None:
    host = rule.get("host") or ""
    if host:
        if parse_ip(host) is not None:
            errors.append(invalid(f"{path}.host", host, "must be a DNS name, not an IP address"))
        problems = validate_wildcard_dns1123_subdomain if "*" in host else dns_subdomain
        check(host, f"{path}.host", problems, errors)
    if "*" not in host or not odd_wildcards:
        _validate_http(rule.get("http"), f"{path}.http", errors)


def _validate_http(http: JSONObject | None, path: str, errors: ErrorList) -> None:
    if http is None:
        return
    paths = http.get("paths") or []
    if not paths:
        errors.append(required(f"{path}.paths"))
    for index, one in enumerate(paths):
        _validate_http_path(one, f"{path}.paths[{index}]", errors)


def _validate_http_path(one: JSONObject, path: str, errors: ErrorList) -> None:
    kind, http_path = one.get("pathType"), one.get("path") or ""
    if kind is None:
        errors.append(required(f"{path}.pathType", "pathType must be specified"))
        return
    if kind in ("Exact", "Prefix"):
        if not http_path.startswith("/"):
            errors.append(invalid(f"{path}.path", http_path, "must be an absolute path"))
        if http_path:
            for invalid_part in _BAD_IN_PATH:
                if invalid_part in http_path:
                    errors.append(invalid(f"{path}.path", http_path, f"must not contain '{invalid_part}'"))
            for invalid_part in _BAD_ENDS:
                if http_path.endswith(invalid_part):
                    errors.append(invalid(f"{path}.path", http_path, f"cannot end with '{invalid_part}'"))
    elif kind == "ImplementationSpecific":
        if http_path and not http_path.startswith("/"):
            errors.append(invalid(f"{path}.path", http_path, "must be an absolute path"))
    else:
        errors.append(unsupported(f"{path}.pathType", kind, _PATH_TYPES))
    _validate_backend(one.get("backend") or {}, f"{path}.backend", errors)


def _validate_backend(backend: JSONObject, path: str, errors: ErrorList) -> None:
    service, resource = backend.get("service"), backend.get("resource")
    if resource is not None and service is not None:
        errors.append(invalid(path, "", "cannot set both resource and service backends"))
    elif resource is not None:
        _validate_object_reference(resource, f"{path}.resource", errors)
    elif service is not None:
        name, port = service.get("name") or "", service.get("port") or {}
        if not name:
            errors.append(required(f"{path}.service.name"))
        else:
            check(name, f"{path}.service.name", dns_label, errors)
        if port.get("name") and port.get("number"):
            errors.append(invalid(path, "", "cannot set both port name & port number"))
        elif port.get("name"):
            check(port["name"], f"{path}.service.port.name", validate_port_name, errors)
        elif port.get("number"):
            port_number(port["number"], f"{path}.service.port.number", errors)
        else:
            errors.append(required(path, "port name or number is required"))
    else:
        errors.append(invalid(path, "", "resource or service backend is required"))


def _validate_object_reference(reference: JSONObject, path: str, errors: ErrorList) -> None:
    if reference.get("apiGroup") is not None:
        check(reference["apiGroup"], f"{path}.apiGroup", dns_subdomain, errors)
    for name in ("kind", "name"):
        if reference.get(name):
            check(reference[name], f"{path}.{name}", validate_path_segment_name, errors)
        else:
            errors.append(required(f"{path}.{name}").reworded(1, 34, f"{name} is required"))


def validate_ingress_status(obj: JSONObject, *, strict: bool = True) -> list[FieldError]:
    """
    Validate the addresses of the load balancer.

    @param strict: Whether ambiguous notations of addresses are errors.
    """
    errors: ErrorList = []
    for index, ingress in enumerate(((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()):
        balancer_ingress(ingress, f"status.loadBalancer.ingress[{index}]", errors, mode=False, strict=strict)
    return errors


def ingress_warnings(obj: JSONObject) -> Sequence[str]:
    """Return a warning about the deprecated annotation, unless the field that replaces it is set."""
    annotations = obj["metadata"].get("annotations") or {}
    if _CLASS_ANNOTATION in annotations and obj["spec"].get("ingressClassName") is None:
        return (f"annotation {go_json(_CLASS_ANNOTATION)} is deprecated, please use 'spec.ingressClassName' instead",)
    return ()


def validate_ingress_class(obj: JSONObject) -> list[FieldError]:
    """Validate an IngressClass: controller and parameters."""
    errors: ErrorList = []
    controller = obj["spec"].get("controller") or ""
    if not controller:
        errors.append(required("spec.controller"))
    else:
        if byte_length(controller) > 250:
            errors.append(too_long("spec.controller", 250))
        validate_domain_path(controller, "spec.controller", errors)
    _validate_class_parameters(obj["spec"].get("parameters"), errors)
    return errors


def validate_domain_path(value: str, path: str, errors: ErrorList) -> None:
    """Validate a domain with a path: C{acme.io/foo}."""
    domain, slash, rest = value.partition("/")
    if not slash or not domain or not rest:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        errors.append(invalid(path, value, text))
        return
    check(domain, path, dns_subdomain, errors)
    if not _IS_HTTP_PATH(rest):
        errors.append(invalid(path, rest, regex_error("Invalid path", _HTTP_PATH)))


def _validate_class_parameters(parameters: JSONObject | None, errors: ErrorList) -> None:
    if parameters is None:
        return
    path = "spec.parameters"
    _validate_object_reference(parameters, path, errors)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        errors.append(required(f"{path}.scope"))
    elif scope not in ("Cluster", "Namespace"):
        errors.append(unsupported_string(f"{path}.scope", scope, ("Cluster", "Namespace")))
    elif scope == "Namespace":
        if namespace is None:
            errors.append(required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'"))
        else:
            check(namespace, f"{path}.namespace", dns_label, errors)
    elif namespace is not None:
        errors.append(forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'"))


def validate_ingress_class_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that the controller is unchanged."""
    errors: ErrorList = []
    immutable(obj["spec"].get("controller") or "", old["spec"].get("controller") or "", "spec.controller", errors)
    return UpdateErrors(errors, validate_ingress_class(obj))


# --- network policies --------------------------------------------------------------------------------------------


def validate_network_policy(obj: JSONObject, *, strict: bool = True) -> list[FieldError]:
    """
    Validate a NetworkPolicy.

    @param strict: Whether ambiguous notations of CIDRs are errors.
    """
    errors: ErrorList = []
    spec = obj["spec"]
    label_selector(spec.get("podSelector") or {}, "spec.podSelector", errors)
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for place, port in enumerate(rule.get("ports") or ()):
                _validate_policy_port(port, f"{path}.ports[{place}]", errors)
            for place, peer in enumerate(rule.get(side) or ()):
                _validate_peer(peer, f"{path}.{side}[{place}]", errors, strict=strict)
    types = spec.get("policyTypes") or []
    if len(types) > 2:
        text = "may not specify more than two policyTypes"
        errors.append(invalid("spec.policyTypes", types, text, "[]networking.PolicyType"))
        return errors
    for index, kind in enumerate(types):
        if kind not in ("Ingress", "Egress"):
            errors.append(unsupported(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress")))
    return errors


def network_policy_warnings(obj: JSONObject, *, strict: bool = True) -> Iterator[str]:
    """Yield warnings about CIDRs that are not in canonical form; see L{range_warnings}."""
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(obj["spec"].get(direction) or ()):
            for place, peer in enumerate(rule.get(side) or ()):
                block, path = peer.get("ipBlock") or {}, f"spec.{direction}[{index}].{side}[{place}].ipBlock"
                yield from range_warnings(block.get("cidr") or "", f"{path}.cidr", strict=strict)
                for number, value in enumerate(block.get("except") or ()):
                    yield from range_warnings(value, f"{path}.except[{number}]", strict=strict)


def _validate_policy_port(port: JSONObject, path: str, errors: ErrorList) -> None:
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in ("TCP", "UDP", "SCTP"):
        errors.append(unsupported(f"{path}.protocol", protocol, ("TCP", "UDP", "SCTP")))
    if number is None:
        if end is not None:
            errors.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified"))
        return
    if isinstance(number, str) and end is not None:
        errors.append(invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric"))
    port_number_or_name(number, f"{path}.port", errors)
    if isinstance(number, str) or end is None:
        return
    if end < number:
        errors.append(invalid(f"{path}.endPort", number, "must be greater than or equal to `port`"))
    port_number(end, f"{path}.endPort", errors)


def _validate_peer(peer: JSONObject, path: str, errors: ErrorList, *, strict: bool) -> None:
    count = 0
    for name in ("podSelector", "namespaceSelector"):
        if peer.get(name) is not None:
            count += 1
            label_selector(peer[name], f"{path}.{name}", errors)
    block = peer.get("ipBlock")
    if block is not None:
        count += 1
        _validate_ip_block(block, f"{path}.ipBlock", errors, strict=strict)
    if not count:
        errors.append(required(path, "must specify a peer"))
    elif count > 1 and block is not None:
        errors.append(forbidden(path, "may not specify both ipBlock and another peer"))


def _validate_ip_block(block: JSONObject, path: str, errors: ErrorList, *, strict: bool) -> None:
    whole = block.get("cidr") or ""
    if not whole:
        errors.append(required(f"{path}.cidr"))
        return
    cidr(whole, f"{path}.cidr", errors, strict=strict)
    outer = parse_cidr(whole)
    if outer is None:
        return
    for index, value in enumerate(block.get("except") or ()):
        item_path = f"{path}.except[{index}]"
        cidr(value, item_path, errors, strict=strict)
        inner = parse_cidr(value)
        if inner is None:
            continue
        same_family = inner[1].version == outer[1].version
        within = same_family and inner[0] in outer[1] and inner[1].prefixlen > outer[1].prefixlen
        if not within:
            errors.append(invalid(item_path, value, "must be a strict subset of `cidr`"))


# --- addresses and ranges ----------------------------------------------------------------------------------------


def validate_ip_address_name(name: str) -> Sequence[str]:
    """Return the errors of an address as a name."""
    return validate_ip(name)


def validate_ip_address(obj: JSONObject) -> list[FieldError]:
    """Validate an IPAddress: its parent reference."""
    errors: ErrorList = []
    reference = (obj.get("spec") or {}).get("parentRef")
    path = "spec.parentRef"
    if reference is None:
        errors.append(required(path))
        return errors
    if reference.get("group"):
        check(reference["group"], f"{path}.group", dns_subdomain, errors)
    for name in ("resource", "name"):
        needed_segment(reference.get(name), f"{path}.{name}", errors)
    if reference.get("namespace"):
        for text in validate_path_segment_name(reference["namespace"]):
            errors.append(invalid(f"{path}.namespace", reference["namespace"], text))
    return errors


def validate_ip_address_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that the parent is unchanged."""
    errors: ErrorList = []
    new_parent, old_parent = (obj.get("spec") or {}).get("parentRef"), (old.get("spec") or {}).get("parentRef")
    if new_parent != old_parent:
        names = ("Group", "Resource", "Namespace", "Name")
        shown = (
            None if new_parent is None else {name: value or "" for name, value in go_struct(new_parent, names).items()}
        )
        go_type = "*networking.ParentReference"
        errors.append(invalid_shown("spec.parentRef", go_json(shown), IMMUTABLE, new_parent, go_type))
    return UpdateErrors(validate_ip_address(obj), errors)


def validate_service_cidr(obj: JSONObject) -> list[FieldError]:
    """Validate a ServiceCIDR: one CIDR, or one of each IP family."""
    errors: ErrorList = []
    ranges = (obj.get("spec") or {}).get("cidrs") or []
    if not ranges:
        errors.append(required("spec.cidrs", "at least one CIDR required"))
        return errors
    if len(ranges) > 2:
        # The reference shows the field that contains the CIDRs.
        shown, text = {"CIDRs": ranges}, "may only hold up to 2 values"
        errors.append(invalid_shown("spec.cidrs", go_json(shown), text, obj["spec"], "networking.ServiceCIDRSpec"))
        return errors
    for index, value in enumerate(ranges):
        for text in validate_cidr(value):
            errors.append(invalid(f"spec.cidrs[{index}]", value, text))
    families = [_family(value) for value in ranges]
    if len(ranges) == 2 and families[0] == families[1] and families[0]:
        text = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        errors.append(invalid("spec.cidrs", ranges, text))
    return errors


def _family(block: str) -> int:
    """Return the IP family of a CIDR, 4 or 6, or 0 if it is invalid; IPv4-mapped IPv6 is IPv4."""
    parsed = parse_cidr(block)
    if parsed is None:
        return 0
    return 6 if is_ipv6(format_ip(parsed[0])) else 4


def validate_service_cidr_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that the CIDRs are unchanged; a CIDR of the second IP family may be added."""
    errors: ErrorList = []
    given = (obj.get("spec") or {}).get("cidrs")
    new, was = given or [], (old.get("spec") or {}).get("cidrs") or []
    if len(was) == len(new):
        for index, (one, before) in enumerate(zip(new, was, strict=True)):
            immutable(one, before, f"spec.cidrs[{index}]", errors)
    elif len(was) == 1 and len(new) == 2:
        immutable(new[0], was[0], "spec.cidrs[0]", errors)
        errors.extend(validate_service_cidr(obj))
    else:
        errors.append(invalid("spec.cidrs", given, IMMUTABLE))
    return errors
