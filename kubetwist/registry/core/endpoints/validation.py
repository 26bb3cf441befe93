"""Validation of Endpoints; see kubernetes, C{pkg/apis/core/validation}."""

from __future__ import annotations

from ....api.errors import FieldError, required
from ....api.names import validate_qualified_name
from ....api.resource import JSONObject
from ...generic.validation.fields import (
    ErrorList,
    check,
    dns_label,
    dns_subdomain,
    ip,
    non_special_ip,
    one_of,
    port_number,
)
from ..service.validation import PROTOCOLS


def validate_endpoints_update(obj: JSONObject, old: JSONObject, *, strict: bool = True) -> list[FieldError]:
    """Return the validation errors of an update; unchanged subsets are not validated."""
    return [] if obj.get("subsets") == old.get("subsets") else validate_endpoints(obj, strict=strict)


def validate_endpoints(obj: JSONObject, *, strict: bool = True) -> list[FieldError]:
    """
    Return the validation errors of addresses and ports.

    @param strict: Whether ambiguous notations of addresses are errors.
    """
    errors: ErrorList = []
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for name in ("addresses", "notReadyAddresses"):
            for item, address in enumerate(subset.get(name) or ()):
                item_path = f"{path}.{name}[{item}]"
                ip(address.get("ip") or "", f"{item_path}.ip", errors, strict=strict)
                if address.get("hostname"):
                    check(address["hostname"], f"{item_path}.hostname", dns_label, errors)
                if address.get("nodeName") is not None:
                    check(address["nodeName"], f"{item_path}.nodeName", dns_subdomain, errors)
                non_special_ip(address.get("ip") or "", f"{item_path}.ip", errors)
        several = len(subset.get("ports") or ()) > 1
        for item, port in enumerate(subset.get("ports") or ()):
            item_path = f"{path}.ports[{item}]"
            if several and not port.get("name"):
                errors.append(required(f"{item_path}.name"))
            elif port.get("name"):
                check(port["name"], f"{item_path}.name", dns_label, errors)
            port_number(port.get("port"), f"{item_path}.port", errors)
            one_of(port.get("protocol"), PROTOCOLS, f"{item_path}.protocol", errors)
            if port.get("appProtocol") is not None:
                check(port["appProtocol"], f"{item_path}.appProtocol", validate_qualified_name, errors)
    return errors
