"""Namespaces and nodes; see kubernetes, C{pkg/apis/core/validation}."""

from __future__ import annotations

from typing import Final

from ...api.errors import Cause, forbidden, invalid
from ...api.names import label_value_problems, qualified_name_problems
from ...api.resource import JSONObject
from .fields import (
    Causes,
    check,
    cidr,
    go_json,
    is_ipv6,
    one_of,
    quantity,
    quantity_not_negative,
)
from .podspec import TAINT_EFFECTS
from .resources import is_integer

_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")


def validate_namespace(obj: JSONObject) -> list[Cause]:
    """Finalizers with proper names."""
    causes: Causes = []
    for index, name in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
        path = f"spec.finalizers[{index}]"
        texts = qualified_name_problems(name)
        for text in texts:
            causes.append(invalid(path, name, text))
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid(path, name, text))
    return causes


def validate_namespace_status(obj: JSONObject) -> list[Cause]:
    """A namespace is terminating when it is being deleted, and only then."""
    causes: Causes = []
    phase = (obj.get("status") or {}).get("phase") or ""
    deleted = obj["metadata"].get("deletionTimestamp") is not None
    if not deleted and phase != "Active":
        text = "may only be 'Active' if `deletionTimestamp` is empty"
        causes.append(invalid("status.Phase", phase, text))
    elif deleted and phase != "Terminating":
        text = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        causes.append(invalid("status.Phase", phase, text))
    return causes


# --- nodes -------------------------------------------------------------------------------------------------------


def validate_node(obj: JSONObject) -> list[Cause]:
    """A new node."""
    causes: Causes = []
    spec = obj.get("spec") or {}
    _taints(spec, causes)
    cidrs = spec.get("podCIDRs") or []
    for index, value in enumerate(cidrs):
        cidr(value, f"spec.podCIDRs[{index}]", causes)
    unreadable = next(((index, one) for index, one in enumerate(cidrs) if not _is_cidr(one)), None)
    if len(cidrs) > 1 and unreadable is not None:
        text = (
            "invalid PodCIDRs. failed to check with dual stack with error:"
            f"invalid CIDR[{unreadable[0]}]: <nil> (invalid CIDR address: {unreadable[1]})"
        )
        causes.append(Cause("InternalError", f"Internal error: {text}", "spec.podCIDRs"))
    if len(cidrs) > 1 and (
        len(cidrs) > 2 or is_ipv6(cidrs[0].partition("/")[0]) == is_ipv6(cidrs[1].partition("/")[0])
    ):
        causes.append(invalid("spec.podCIDRs", cidrs, "may specify no more than one CIDR for each IP family"))
    return causes


def _is_cidr(text: str) -> bool:
    problems: Causes = []
    cidr(text, "", problems)
    return not problems


def _taints(spec: JSONObject, causes: Causes) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(spec.get("taints") or ()):
        # The reference looks for taints below the metadata.
        path = f"metadata.taints[{index}]"
        key, value, effect = taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""
        check(key, f"{path}.key", qualified_name_problems, causes)
        texts = label_value_problems(value)
        if texts:
            causes.append(invalid(f"{path}.value", value, ";".join(texts)))
        one_of(effect, TAINT_EFFECTS, f"{path}.effect", causes)
        if (key, effect) in seen:
            shown = go_json({"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")})
            text = f"Duplicate value: {shown}: taints must be unique by key and effect pair"
            causes.append(Cause("FieldValueDuplicate", text, path))
        seen.add((key, effect))


def validate_node_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """Addresses of pods and the provider's name stay once they are there."""
    causes: Causes = []
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    status = obj.get("status") or {}
    _taints(spec, causes)
    for part in ("capacity", "allocatable"):
        for name, value in sorted((status.get(part) or {}).items()):
            path = f"status.{part}.{name}"
            quantity_not_negative(value, path, causes)
            if is_integer(name) and quantity(value).scaled(-3) % 1000:
                causes.append(invalid(path, str(value), "must be an integer"))
    if before.get("podCIDRs"):
        ranges = spec.get("podCIDRs") or []
        text = 'node updates may not change podCIDR except from "" to valid'
        if len(ranges) != len(before["podCIDRs"]):
            causes.append(forbidden("spec.podCIDRs", text))
        else:
            pairs = zip(ranges, before["podCIDRs"], strict=True)
            causes.extend(forbidden("spec.podCIDRs", text) for now, then in pairs if now != then)
    elif spec.get("podCIDRs"):
        for index, value in enumerate(spec["podCIDRs"]):
            cidr(value, f"spec.podCIDRs[{index}]", causes)
    if spec.get("taints"):
        # The reference looks at them twice.
        _taints(spec, causes)
    if (spec.get("externalID") or "") != (before.get("externalID") or ""):
        causes.append(forbidden("spec.externalID", "may not be updated"))
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        text = 'node updates may not change providerID except from "" to valid'
        causes.append(forbidden("spec.providerID", text))
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(status.get("addresses") or ()):
        key = (address.get("type") or "", address.get("address") or "")
        if key in seen:
            shown = go_json({"Type": key[0], "Address": key[1]})
            path = f"status.addresses[{index}]"
            causes.append(Cause("FieldValueDuplicate", f"Duplicate value: {shown}", path))
        seen.add(key)
    return causes
