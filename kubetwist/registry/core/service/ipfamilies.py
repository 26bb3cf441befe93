"""
Defaulting and validation of the IP families of services.

See kubernetes, C{pkg/registry/core/service/storage/alloc.go}, initIPFamilyFields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ....api.errors import APIStatusError, FieldError, invalid
from ....api.resource import GroupKind, JSONObject
from .validation import is_headless

_SERVICE: Final = GroupKind("", "Service")
_SINGLE: Final = "SingleStack"
_PREFERRED: Final = "PreferDualStack"
_REQUIRED: Final = "RequireDualStack"
_POLICY: Final = "spec.ipFamilyPolicy"


def default_ip_families(obj: JSONObject, before: JSONObject, configured: Sequence[str]) -> None:
    """
    Set the defaults of C{ipFamilyPolicy} and C{ipFamilies}.

    @param obj: The service; modified.
    @param before: The C{spec} of the stored service; empty for a new one.
    @param configured: The IP families of the server's ranges, the default one first.
    @raise APIStatusError: The fields contradict each other or the configured families (422).
    """
    spec = obj["spec"]
    if spec.get("type") == "ExternalName" or _stays_preferred(spec, before):
        return
    name = obj["metadata"].get("name", "")
    selectorless = is_headless(spec) and not spec.get("selector")
    if spec.get("ipFamilyPolicy") is None:
        spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or (_REQUIRED if selectorless else _SINGLE)
    _reduce(spec, before)
    errors = _reduced(spec, before) + _too_many(spec)
    families = list(spec.get("ipFamilies") or ())
    errors += _infer(spec, families, configured)
    _reject(name, errors)
    if not selectorless:
        _reject(name, _not_configured(spec, families, configured))
    families = families or [configured[0]]
    # Endpoints of a service without selector may have any family.
    if spec["ipFamilyPolicy"] != _SINGLE and len(families) == 1 and (selectorless or len(configured) > 1):
        families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    spec["ipFamilies"] = families


def _reject(name: str, errors: Sequence[FieldError]) -> None:
    if errors:
        raise APIStatusError.invalid(_SERVICE, name, errors)


def _addresses(spec: JSONObject) -> list[str]:
    return spec.get("clusterIPs") or []


def _stays_preferred(spec: JSONObject, before: JSONObject) -> bool:
    """Return whether an update of a service with C{PreferDualStack} leaves its families unchanged."""
    return (
        bool(before)
        and before.get("type") == spec.get("type")
        and spec.get("ipFamilyPolicy") == _PREFERRED
        and before.get("ipFamilyPolicy") in (None, _PREFERRED)
        and _same_addresses(spec, before)
        and _same(spec, before, "ipFamilies")
    )


def _same_addresses(spec: JSONObject, before: JSONObject) -> bool:
    return _same(spec, before, "clusterIPs") and spec.get("clusterIP") == before.get("clusterIP")


def _same(spec: JSONObject, before: JSONObject, field: str) -> bool:
    return (spec.get(field) or []) == (before.get(field) or [])


def _reduce(spec: JSONObject, before: JSONObject) -> None:
    """Remove the second address and family if the policy changes to C{SingleStack} and they are unchanged."""
    if spec["ipFamilyPolicy"] != _SINGLE or not before:
        return
    if _same_addresses(spec, before) and len(_addresses(spec)) > 1:
        spec["clusterIPs"] = spec["clusterIPs"][:1]
    if _same(spec, before, "ipFamilies") and len(spec.get("ipFamilies") or ()) > 1:
        spec["ipFamilies"] = spec["ipFamilies"][:1]


def _reduced(spec: JSONObject, before: JSONObject) -> list[FieldError]:
    """Return errors if the second address or family is removed without the policy C{SingleStack}."""
    policy = spec["ipFamilyPolicy"]
    if policy == _SINGLE:
        return []
    return [
        invalid(_POLICY, policy, f"must be 'SingleStack' to release the secondary {name}")
        for field, name in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family"))
        if spec.get(field) and len(spec[field]) < len(before.get(field) or ())
    ]


def _too_many(spec: JSONObject) -> list[FieldError]:
    policy = spec["ipFamilyPolicy"]
    if policy != _SINGLE:
        return []
    return [
        invalid(_POLICY, policy, f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {name} are specified")
        for field, name in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families"))
        if len(spec.get(field) or ()) == 2
    ]


def _infer(spec: JSONObject, families: list[str], configured: Sequence[str]) -> list[FieldError]:
    """Add the families of the addresses to the requested ones; return the errors."""
    errors: list[FieldError] = []
    addresses = _addresses(spec)
    for index, address in enumerate(addresses):
        if address == "None":
            break
        if index < len(families):
            continue
        family = "IPv6" if ":" in address else "IPv4"
        if family in configured:
            families.append(family)
        else:
            text = f"{family} is not configured on this cluster"
            errors.append(invalid(f"spec.clusterIPs[{index}]", addresses, text))
    return errors


def _not_configured(spec: JSONObject, families: Sequence[str], configured: Sequence[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    policy = spec["ipFamilyPolicy"]
    if policy == _REQUIRED and len(configured) < 2:
        errors.append(invalid(_POLICY, policy, "this cluster is not configured for dual-stack services"))
    errors.extend(
        invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(families)
        if family not in configured
    )
    return errors
