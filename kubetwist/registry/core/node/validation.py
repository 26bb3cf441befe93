"""Validation of Nodes; see kubernetes, C{pkg/apis/core/validation}."""

from __future__ import annotations

import re
from typing import Final

from ....api.addresses import parse_cidr
from ....api.errors import Cause, duplicate, forbidden, internal, invalid, required
from ....api.names import config_map_key_problems, label_value_problems, qualified_name_problems
from ....api.resource import JSONObject
from ...generic.validation.fields import (
    Causes,
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


def validate_node(obj: JSONObject) -> list[Cause]:
    """A node by itself."""
    causes: Causes = []
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    _taints(spec, causes)
    _resources(status, causes)
    swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    # The reference looks for swap below the metadata, as it does for taints.
    positive(swap, "metadata.nodeSwapStatus.capacity", causes)
    _features(status.get("declaredFeatures") or [], causes)
    _cidrs(spec.get("podCIDRs") or [], causes)
    return causes


def _cidrs(cidrs: list[str], causes: Causes) -> None:
    """Ranges of the addresses of pods, one for each family."""
    for index, value in enumerate(cidrs):
        cidr(value, f"spec.podCIDRs[{index}]", causes)
    if len(cidrs) < 2:
        return
    parsed = [parse_cidr(value) for value in cidrs]
    if None in parsed:
        index = parsed.index(None)
        text = (
            "invalid PodCIDRs. failed to check with dual stack with error:"
            f"invalid CIDR[{index}]: <nil> (invalid CIDR address: {cidrs[index]})"
        )
        causes.append(internal("spec.podCIDRs", text))
    versions = {one[0].version for one in parsed if one is not None}
    if None in parsed or len(cidrs) > 2 or len(versions) < 2:
        causes.append(invalid("spec.podCIDRs", cidrs, "may specify no more than one CIDR for each IP family"))


def _resources(status: JSONObject, causes: Causes) -> None:
    for part in ("capacity", "allocatable"):
        for name, value in sorted((status.get(part) or {}).items()):
            resource_value(name, value, f"status.{part}.{name}", causes)


def _features(features: list[str], causes: Causes) -> None:
    """Features that the kubelet declares: proper names, in order, each once."""
    path = "status.declaredFeatures"
    for index, feature in enumerate(features):
        text = ""
        if len(feature.encode()) > _FEATURE_LENGTH:
            text = f"must be no more than {_FEATURE_LENGTH} characters"
        elif not _feature(feature):
            text = _FEATURE
        if text:
            causes.append(invalid(f"{path}[{index}]", feature, f"invalid feature name {quote(feature)}: {text}"))
        following = features[index + 1] if index + 1 < len(features) else None
        if following == feature:
            causes.append(duplicate(f"{path}[{index + 1}]", following))
        elif following is not None and feature.encode() > following.encode():
            causes.append(invalid(f"{path}[{index + 1}]", following, "list must be sorted alphabetically"))


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
    """A successor: addresses of pods and the provider's name stay once they are there."""
    causes: Causes = []
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    status = obj.get("status") or {}
    _resources(status, causes)
    _features(status.get("declaredFeatures") or [], causes)
    _addresses(status, causes)
    held, ranges = before.get("podCIDRs") or [], spec.get("podCIDRs") or []
    text = 'node updates may not change podCIDR except from "" to valid'
    if held and len(ranges) != len(held):
        causes.append(forbidden("spec.podCIDRs", text))
    elif held:
        changed = (now != then for now, then in zip(ranges, held, strict=True))
        causes.extend(forbidden("spec.podCIDRs", text) for _ in filter(None, changed))
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        text = 'node updates may not change providerID except from "" to valid'
        causes.append(forbidden("spec.providerID", text))
    if spec.get("configSource") is not None:
        _config_source(spec["configSource"], "spec.configSource", causes, told=False)
    for name in ("assigned", "active", "lastKnownGood"):
        source = (status.get("config") or {}).get(name)
        if source is not None:
            _config_source(source, f"status.config.{name}", causes, told=True)
    _taints(spec, causes)
    if (spec.get("externalID") or "") != (before.get("externalID") or ""):
        causes.append(forbidden("spec.externalID", "may not be updated"))
    return causes


def _addresses(status: JSONObject, causes: Causes) -> None:
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(status.get("addresses") or ()):
        key = (address.get("type") or "", address.get("address") or "")
        if key in seen:
            shown = go_json({"Type": key[0], "Address": key[1]})
            path = f"status.addresses[{index}]"
            causes.append(Cause("FieldValueDuplicate", f"Duplicate value: {shown}", path))
        seen.add(key)


def _config_source(source: JSONObject, path: str, causes: Causes, *, told: bool) -> None:
    """
    Where a kubelet has its configuration from, of which nothing is used any more.

    @param told: Whether the kubelet tells it, which knows of the very object.
    """
    reference = source.get("configMap")
    if reference is None:
        causes.append(invalid_shown(path, '{"ConfigMap":null}', "exactly one reference subfield must be non-nil"))
        return
    here = f"{path}.configMap"
    for name in ("uid", "resourceVersion"):
        if told and not reference.get(name):
            causes.append(required(f"{here}.{name}"))
        elif not told and reference.get(name):
            causes.append(forbidden(f"{here}.{name}", f"{name} must not be set in spec"))
    need(reference.get("namespace"), f"{here}.namespace", dns_label, causes)
    need(reference.get("name"), f"{here}.name", dns_subdomain, causes)
    need(reference.get("kubeletConfigKey"), f"{here}.kubeletConfigKey", config_map_key_problems, causes)


def node_warnings(obj: JSONObject) -> list[str]:
    """What has no effect any more."""
    spec = obj.get("spec") or {}
    texts: list[str] = []
    if spec.get("configSource") is not None:
        texts.append("spec.configSource: the feature is removed")
    if spec.get("externalID"):
        texts.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    return texts
