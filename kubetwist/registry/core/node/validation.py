"""Validation of Nodes; see kubernetes, C{pkg/apis/core/validation}."""

from __future__ import annotations

import re
from typing import Final

from ....api.addresses import parse_cidr
from ....api.errors import FieldError, duplicate, forbidden, internal, invalid, required, valued
from ....api.names import validate_config_map_key, validate_label_value, validate_qualified_name
from ....api.resource import JSONObject
from ...generic.validation.fields import (
    ErrorList,
    check,
    cidr,
    dns_label,
    dns_subdomain,
    go_json,
    invalid_shown,
    need,
    one_of,
    positive,
    quote,
)
from ..pod.validation.resources import resource_value
from ..pod.validation.spec import TAINT_EFFECTS

_FEATURE_LENGTH: Final = 253
_FEATURE: Final = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
    "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)
_feature = re.compile("[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*").fullmatch


def validate_node(obj: JSONObject, *, strict: bool = True) -> list[FieldError]:
    """
    Return the validation errors of a node.

    @param strict: Whether ambiguous notations of CIDRs are errors.
    """
    errors: ErrorList = []
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    _taints(spec, errors)
    _resources(status, errors)
    swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    # The field path of the reference begins with metadata, as for taints.
    positive(swap, "metadata.nodeSwapStatus.capacity", errors)
    _features(status.get("declaredFeatures") or [], errors)
    _cidrs(spec.get("podCIDRs") or [], errors, strict=strict)
    return errors


def _cidrs(cidrs: list[str], errors: ErrorList, *, strict: bool) -> None:
    """Validate the CIDRs of pods: one for each IP family."""
    for index, value in enumerate(cidrs):
        cidr(value, f"spec.podCIDRs[{index}]", errors, strict=strict)
    if len(cidrs) < 2:
        return
    parsed = [parse_cidr(value) for value in cidrs]
    if None in parsed:
        index = parsed.index(None)
        text = (
            "invalid PodCIDRs. failed to check with dual stack with error:"
            f"invalid CIDR[{index}]: <nil> (invalid CIDR address: {cidrs[index]})"
        )
        errors.append(internal("spec.podCIDRs", text))
    versions = {one[0].version for one in parsed if one is not None}
    if None in parsed or len(cidrs) > 2 or len(versions) < 2:
        errors.append(invalid("spec.podCIDRs", cidrs, "may specify no more than one CIDR for each IP family"))


def _resources(status: JSONObject, errors: ErrorList) -> None:
    for field in ("capacity", "allocatable"):
        for name, value in sorted((status.get(field) or {}).items()):
            resource_value(name, value, f"status.{field}.{name}", errors)


def _features(features: list[str], errors: ErrorList) -> None:
    """Validate the features that the kubelet declares: valid names, sorted and unique."""
    path = "status.declaredFeatures"
    for index, feature in enumerate(features):
        text = ""
        if len(feature.encode()) > _FEATURE_LENGTH:
            text = f"must be no more than {_FEATURE_LENGTH} characters"
        elif not _feature(feature):
            text = _FEATURE
        if text:
            errors.append(invalid(f"{path}[{index}]", feature, f"invalid feature name {quote(feature)}: {text}"))
        following = features[index + 1] if index + 1 < len(features) else None
        if following == feature:
            errors.append(duplicate(f"{path}[{index + 1}]", following))
        elif following is not None and feature.encode() > following.encode():
            errors.append(invalid(f"{path}[{index + 1}]", following, "list must be sorted alphabetically"))


def _taints(spec: JSONObject, errors: ErrorList) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(spec.get("taints") or ()):
        # The field path of the reference begins with metadata.
        path = f"metadata.taints[{index}]"
        key, value, effect = taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""
        check(key, f"{path}.key", validate_qualified_name, errors)
        texts = validate_label_value(value)
        if texts:
            errors.append(invalid(f"{path}.value", value, ";".join(texts)))
        one_of(effect, TAINT_EFFECTS, f"{path}.effect", errors)
        if (key, effect) in seen:
            formatted = go_json({"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")})
            text = "taints must be unique by key and effect pair"
            errors.append(valued("FieldValueDuplicate", "Duplicate value", path, taint, text, "core.Taint", formatted))
        seen.add((key, effect))


def validate_node_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Return the validation errors of an update: C{podCIDRs} and C{providerID} are immutable once set."""
    errors: ErrorList = []
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    status = obj.get("status") or {}
    _resources(status, errors)
    _features(status.get("declaredFeatures") or [], errors)
    _addresses(status, errors)
    stored, ranges = before.get("podCIDRs") or [], spec.get("podCIDRs") or []
    text = 'node updates may not change podCIDR except from "" to valid'
    if stored and len(ranges) != len(stored):
        errors.append(forbidden("spec.podCIDRs", text))
    elif stored:
        changed = (now != then for now, then in zip(ranges, stored, strict=True))
        errors.extend(forbidden("spec.podCIDRs", text) for _ in filter(None, changed))
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        text = 'node updates may not change providerID except from "" to valid'
        errors.append(forbidden("spec.providerID", text))
    if spec.get("configSource") is not None:
        _config_source(spec["configSource"], "spec.configSource", errors, observed=False)
    for name in ("assigned", "active", "lastKnownGood"):
        source = (status.get("config") or {}).get(name)
        if source is not None:
            _config_source(source, f"status.config.{name}", errors, observed=True)
    _taints(spec, errors)
    if (spec.get("externalID") or "") != (before.get("externalID") or ""):
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors


def _addresses(status: JSONObject, errors: ErrorList) -> None:
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(status.get("addresses") or ()):
        key = (address.get("type") or "", address.get("address") or "")
        if key in seen:
            formatted = go_json({"Type": key[0], "Address": key[1]})
            path = f"status.addresses[{index}]"
            go_type = "core.NodeAddress"
            errors.append(valued("FieldValueDuplicate", "Duplicate value", path, address, "", go_type, formatted))
        seen.add(key)


def _config_source(source: JSONObject, path: str, errors: ErrorList, *, observed: bool) -> None:
    """
    Validate the configuration source of a kubelet, a removed feature.

    @param observed: Whether the source is in the status, where the kubelet sets uid and resourceVersion.
    """
    reference = source.get("configMap")
    if reference is None:
        text, go_type = "exactly one reference subfield must be non-nil", "core.NodeConfigSource"
        errors.append(invalid_shown(path, '{"ConfigMap":null}', text, source, go_type))
        return
    item_path = f"{path}.configMap"
    for name in ("uid", "resourceVersion"):
        if observed and not reference.get(name):
            errors.append(required(f"{item_path}.{name}"))
        elif not observed and reference.get(name):
            errors.append(forbidden(f"{item_path}.{name}", f"{name} must not be set in spec"))
    need(reference.get("namespace"), f"{item_path}.namespace", dns_label, errors)
    need(reference.get("name"), f"{item_path}.name", dns_subdomain, errors)
    need(reference.get("kubeletConfigKey"), f"{item_path}.kubeletConfigKey", validate_config_map_key, errors)


def node_warnings(obj: JSONObject) -> list[str]:
    """Return warnings about fields without effect."""
    spec = obj.get("spec") or {}
    texts: list[str] = []
    if spec.get("configSource") is not None:
        texts.append("spec.configSource: the feature is removed")
    if spec.get("externalID"):
        texts.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    return texts
