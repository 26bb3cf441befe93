"""
Convert objects in versions that are no longer served, which JSON patches may still name.

@see: kubernetes, C{pkg/apis/networking/v1beta1/conversion.go}, C{pkg/apis/discovery/v1beta1/conversion.go}, and the
    C{defaults.go} of C{apps/v1beta1} and C{extensions/v1beta1}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...api.decoding import json_type
from ...api.jsontypes import JSONValue
from ...api.resource import GroupVersionKind, JSONObject

__all__ = ["as_served", "check_scale", "copy_template_labels"]

_ZONE: Final = "topology.kubernetes.io/zone"
_HOST: Final = "kubernetes.io/hostname"

#: Kinds of earlier versions that copy the pod template's labels to a missing selector or missing labels.
_LABELLED: Final = frozenset(
    GroupVersionKind(group, "v1beta1", kind)
    for group, kinds in (("apps", "Deployment StatefulSet"), ("extensions", "Deployment DaemonSet ReplicaSet"))
    for kind in kinds.split()
)


def copy_template_labels(gvk: GroupVersionKind, obj: JSONObject) -> None:
    """Copy the labels of the pod template to the selector and labels of a workload, if its version defaults them so."""
    if gvk not in _LABELLED:
        return
    spec = obj.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if spec.get("selector") is None:
            spec["selector"] = {"matchLabels": dict(labels)}
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)


def as_served(gvk: GroupVersionKind, value: JSONValue, problems: list[str]) -> JSONValue:
    """
    Rename the fields of an earlier version to those of the served version.

    @param gvk: The kind in the earlier version.
    @param value: The object; not modified.
    @param problems: Receives a text for each field of the served version that the earlier one does not have.
    """
    change = _CHANGED.get(gvk.kind)
    if change is None or not isinstance(value, dict):
        return value
    value = _copied(value)
    problems += [f'unknown field "{path}"' for path in change(value)]
    return value


def check_scale(value: JSONObject) -> None:
    """
    Reject a scale whose selector is a string, as in the served version: in earlier versions it is a map.

    @raise ValueError: The selector is not a map.
    """
    selector = _dict(value, "status").get("selector")
    if selector is not None and not isinstance(selector, dict):
        target = "Go struct field ScaleStatus.status.selector of type map[string]string"
        raise ValueError(f"json: cannot unmarshal {json_type(selector)} into {target}")


def _copied(value: JSONValue) -> JSONValue:
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    return list(map(_copied, value)) if isinstance(value, list) else value


def _dict(value: JSONValue, name: str) -> JSONObject:
    member = value.get(name) if isinstance(value, dict) else None
    return member if isinstance(member, dict) else {}


def _items(value: JSONValue, name: str) -> list[JSONValue]:
    member = value.get(name)
    return member if isinstance(member, list) else []


def _ingress(value: JSONObject) -> Iterator[str]:
    spec = _dict(value, "spec")
    if spec.pop("defaultBackend", None) is not None:
        yield "spec.defaultBackend"
    if isinstance(spec.get("backend"), dict):
        spec["defaultBackend"] = backend = spec.pop("backend")
        yield from _backend(backend, "spec.backend")
    for number, rule in enumerate(_items(spec, "rules")):
        for index, path in enumerate(_items(_dict(rule, "http"), "paths")):
            yield from _backend(_dict(path, "backend"), f"spec.rules[{number}].http.paths[{index}].backend")
            if isinstance(path, dict) and path.get("pathType") is None:
                path["pathType"] = "ImplementationSpecific"


def _backend(backend: JSONObject, path: str) -> Iterator[str]:
    if backend.pop("service", None) is not None:
        yield f"{path}.service"
    name, port = backend.pop("serviceName", None), backend.pop("servicePort", None)
    if name or isinstance(port, str) or port:
        backend["service"] = {"name": name or "", "port": {"name" if isinstance(port, str) else "number": port or 0}}


def _endpoint_slice(value: JSONObject) -> Iterator[str]:
    for index, endpoint in enumerate(_items(value, "endpoints")):
        if not isinstance(endpoint, dict):
            continue
        for name in ("deprecatedTopology", "zone"):
            if endpoint.pop(name, None) is not None:
                yield f"endpoints[{index}].{name}"
        topology = endpoint.pop("topology", None)
        if isinstance(topology, dict):
            deprecated = endpoint["deprecatedTopology"] = dict(topology)
            if _ZONE in deprecated:
                endpoint["zone"] = deprecated.pop(_ZONE)
            if _HOST in deprecated and deprecated[_HOST] == endpoint.get("nodeName"):
                del deprecated[_HOST]


_CHANGED: Final = {"EndpointSlice": _endpoint_slice, "Ingress": _ingress}
