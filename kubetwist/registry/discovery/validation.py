"""Validation of EndpointSlices; see kubernetes, C{pkg/apis/discovery/validation/validation.go}."""

from __future__ import annotations

from typing import Final

from ...api.addresses import validate_ip
from ...api.errors import FieldError, duplicate, invalid, required, too_many
from ...api.names import validate_fully_qualified_name, validate_label_value, validate_qualified_name
from ...api.resource import JSONObject
from ..generic.validation.addresses import address_warnings
from ..generic.validation.fields import (
    ErrorList,
    Problems,
    check,
    dns_label,
    dns_subdomain,
    immutable,
    is_ipv6,
    non_special_ip,
    unsupported,
)

_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_HINTS: Final = 8


def validate_slice(obj: JSONObject, old: JSONObject | None = None, *, strict: bool = True) -> list[FieldError]:
    """
    Validate an EndpointSlice; errors that C{old} has already are ignored.

    @param strict: Whether ambiguous notations of IPv4 addresses are errors.
    """
    errors: ErrorList = []
    kind = obj.get("addressType") or ""
    if not kind:
        errors.append(required("addressType"))
    elif kind not in _TYPES:
        errors.append(unsupported("addressType", kind, _TYPES))
    _validate_ports(obj.get("ports") or [], errors)
    endpoints = obj.get("endpoints") or []
    if old is not None and endpoints == (old.get("endpoints") or []):
        return errors
    if len(endpoints) > 1000:
        errors.append(too_many("endpoints", len(endpoints), 1000))
        return errors
    for index, endpoint in enumerate(endpoints):
        _validate_endpoint(endpoint, kind, f"endpoints[{index}]", errors, strict=strict)
    return errors


def _validate_endpoint(endpoint: JSONObject, kind: str, path: str, errors: ErrorList, *, strict: bool) -> None:
    addresses = endpoint.get("addresses") or []
    if not addresses:
        errors.append(required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(addresses) > 100:
        errors.append(too_many(f"{path}.addresses", len(addresses), 100))
    for index, address in enumerate(addresses):
        item_path = f"{path}.addresses[{index}]"
        if kind == "FQDN":
            _validate_domain(address, item_path, errors)
        elif kind in ("IPv4", "IPv6"):
            texts = validate_ip(address, strict or kind == "IPv6", canonical=kind == "IPv6")
            for text in texts:
                errors.append(invalid(item_path, address, text))
            if not texts:
                if is_ipv6(address) != (kind == "IPv6"):
                    # The reference's path has no index here.
                    errors.append(invalid(f"{path}.addresses", address, f"must be an {kind} address"))
                non_special_ip(address, item_path, errors)
    if endpoint.get("nodeName") is not None:
        check(endpoint["nodeName"], f"{path}.nodeName", dns_subdomain, errors)
    if endpoint.get("hostname") is not None:
        check(endpoint["hostname"], f"{path}.hostname", dns_label, errors)
    hints = endpoint.get("hints") or {}
    if _validate_hints(hints.get("forZones") or [], f"{path}.hints.forZones", validate_label_value, errors):
        _validate_hints(hints.get("forNodes") or [], f"{path}.hints.forNodes", dns_subdomain, errors)


def address_form_warnings(obj: JSONObject, *, strict: bool = True) -> list[str]:
    """Return warnings about addresses that are not in canonical form; see L{address_warnings}."""
    return [
        text
        for index, endpoint in enumerate(obj.get("endpoints") or ())
        for place, address in enumerate(endpoint.get("addresses") or ())
        for text in address_warnings(address, f"endpoints[{index}].addresses[{place}]", strict=strict)
    ]


def _validate_domain(name: str, path: str, errors: ErrorList) -> None:
    """Validate a domain of at least two labels, with or without a trailing dot."""
    whole = name.removesuffix(".")
    if not name:
        errors.append(required(path))
    else:
        texts = validate_fully_qualified_name(whole, 2) if whole else [",".join(dns_subdomain(""))]
        errors.extend(invalid(path, whole, text) for text in texts)
        if not texts:
            label = next((one for one in whole.split(".") if dns_label(one)), "")
            if label:
                errors.append(invalid(path, label, ",".join(dns_label(label))))


def _validate_hints(hints: list[JSONObject], path: str, problems: Problems, errors: ErrorList) -> bool:
    """Validate topology hints; return whether there are few enough of them to continue."""
    if len(hints) > _HINTS:
        errors.append(too_many(path, len(hints), _HINTS))
        return False
    seen: set[str] = set()
    for index, hint in enumerate(hints):
        name, item_path = hint.get("name") or "", f"{path}[{index}].name"
        if name in seen:
            errors.append(duplicate(item_path, name))
        seen.add(name)
        check(name, item_path, problems, errors)
    return True


def _validate_ports(ports: list[JSONObject], errors: ErrorList) -> None:
    if len(ports) > 20000:
        errors.append(too_many("ports", len(ports), 20000))
        return
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            check(name, f"{path}.name", dns_label, errors)
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
        protocol = port.get("protocol")
        if protocol is None:
            errors.append(required(f"{path}.protocol"))
        elif protocol not in _PROTOCOLS:
            errors.append(unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
        if port.get("appProtocol") is not None:
            check(port["appProtocol"], f"{path}.appProtocol", validate_qualified_name, errors)


def validate_slice_update(obj: JSONObject, old: JSONObject, *, strict: bool = True) -> list[FieldError]:
    """Validate that the address type is unchanged."""
    errors = validate_slice(obj, old, strict=strict)
    immutable(obj.get("addressType") or "", old.get("addressType") or "", "addressType", errors)
    return errors
