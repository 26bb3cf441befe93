"""EndpointSlices; see kubernetes, C{pkg/apis/discovery/validation/validation.go}."""

from __future__ import annotations

from typing import Final

from ...api.addresses import ip_problems
from ...api.errors import Cause, duplicate, invalid, required, too_many
from ...api.names import fully_qualified_name_problems, label_value_problems, qualified_name_problems
from ...api.resource import JSONObject
from ..generic.validation.addresses import address_warnings
from ..generic.validation.fields import (
    Causes,
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


def validate_slice(obj: JSONObject, old: JSONObject | None = None) -> list[Cause]:
    """A slice as it may stand; what an older server let through in C{old} may stay."""
    causes: Causes = []
    kind = obj.get("addressType") or ""
    if not kind:
        causes.append(required("addressType"))
    elif kind not in _TYPES:
        causes.append(unsupported("addressType", kind, _TYPES))
    _ports(obj.get("ports") or [], causes)
    endpoints = obj.get("endpoints") or []
    if old is not None and endpoints == (old.get("endpoints") or []):
        return causes
    if len(endpoints) > 1000:
        causes.append(too_many("endpoints", len(endpoints), 1000))
        return causes
    for index, endpoint in enumerate(endpoints):
        _endpoint(endpoint, kind, f"endpoints[{index}]", causes)
    return causes


def _endpoint(endpoint: JSONObject, kind: str, path: str, causes: Causes) -> None:
    addresses = endpoint.get("addresses") or []
    if not addresses:
        causes.append(required(f"{path}.addresses", "must contain at least 1 address"))
    elif len(addresses) > 100:
        causes.append(too_many(f"{path}.addresses", len(addresses), 100))
    for index, address in enumerate(addresses):
        here = f"{path}.addresses[{index}]"
        if kind == "FQDN":
            _domain(address, here, causes)
        elif kind in ("IPv4", "IPv6"):
            texts = ip_problems(address, canonical=kind == "IPv6")
            for text in texts:
                causes.append(invalid(here, address, text))
            if not texts:
                if is_ipv6(address) != (kind == "IPv6"):
                    # The reference leaves the index out here.
                    causes.append(invalid(f"{path}.addresses", address, f"must be an {kind} address"))
                non_special_ip(address, here, causes)
    if endpoint.get("nodeName") is not None:
        check(endpoint["nodeName"], f"{path}.nodeName", dns_subdomain, causes)
    if endpoint.get("hostname") is not None:
        check(endpoint["hostname"], f"{path}.hostname", dns_label, causes)
    hints = endpoint.get("hints") or {}
    if _hints(hints.get("forZones") or [], f"{path}.hints.forZones", label_value_problems, causes):
        _hints(hints.get("forNodes") or [], f"{path}.hints.forNodes", dns_subdomain, causes)


def address_form_warnings(obj: JSONObject) -> list[str]:
    """Addresses that are not written as they should be."""
    return [
        text
        for index, endpoint in enumerate(obj.get("endpoints") or ())
        for place, address in enumerate(endpoint.get("addresses") or ())
        for text in address_warnings(address, f"endpoints[{index}].addresses[{place}]")
    ]


def _domain(name: str, path: str, causes: Causes) -> None:
    """A domain of two parts or more, with the dot of the root or without."""
    whole = name.removesuffix(".")
    if not name:
        causes.append(required(path))
    else:
        texts = fully_qualified_name_problems(whole, 2) if whole else [",".join(dns_subdomain(""))]
        causes.extend(invalid(path, whole, text) for text in texts)
        if not texts:
            label = next((one for one in whole.split(".") if dns_label(one)), "")
            if label:
                causes.append(invalid(path, label, ",".join(dns_label(label))))


def _hints(hints: list[JSONObject], path: str, problems: Problems, causes: Causes) -> bool:
    """Where an endpoint should be used; whether there are few enough of them to look on."""
    if len(hints) > _HINTS:
        causes.append(too_many(path, len(hints), _HINTS))
        return False
    seen: set[str] = set()
    for index, hint in enumerate(hints):
        name, here = hint.get("name") or "", f"{path}[{index}].name"
        if name in seen:
            causes.append(duplicate(here, name))
        seen.add(name)
        check(name, here, problems, causes)
    return True


def _ports(ports: list[JSONObject], causes: Causes) -> None:
    if len(ports) > 20000:
        causes.append(too_many("ports", len(ports), 20000))
        return
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            check(name, f"{path}.name", dns_label, causes)
        if name in names:
            causes.append(duplicate(f"{path}.name", name))
        names.add(name)
        protocol = port.get("protocol")
        if protocol is None:
            causes.append(required(f"{path}.protocol"))
        elif protocol not in _PROTOCOLS:
            causes.append(unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
        if port.get("appProtocol") is not None:
            check(port["appProtocol"], f"{path}.appProtocol", qualified_name_problems, causes)


def validate_slice_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """The type of address stays."""
    causes = validate_slice(obj, old)
    immutable(obj.get("addressType") or "", old.get("addressType") or "", "addressType", causes)
    return causes
