"""
The fields of built-in resources that field selectors may name, besides name and namespace.

Getters return the text of a field of a stored object. They are called once for each write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from ...api.go.quote import quoted
from ...api.resource import JSONObject

if TYPE_CHECKING:
    from .resourceinfo import ResourceInfo

#: Returns the text of a field, with which selectors compare.
Getter = Callable[[JSONObject], str]
#: A requirement of a field selector: the field, the text, and whether they must be equal or differ.
Term = tuple[str, str, bool]

#: The error of most kinds for an unsupported field.
_REFUSAL: Final = "field label not supported: {label}"


@frozen
class _Fields:
    """
    The selectable fields of one resource.

    @ivar getters: The getters by the name of the field in the stored version.
    @ivar namespace: Whether C{metadata.namespace} is selectable.
    @ivar aliases: Other names of fields; the value of a name without a getter is C{""}.
    @ivar refusal: Format of the error for an unsupported field, with C{label}, C{quoted} and C{kind}.
    """

    getters: Mapping[str, Getter]
    namespace: bool = False
    aliases: Mapping[str, str] = {}
    refusal: str = _REFUSAL


def selectable_fields(group: str, resource: str) -> tuple[tuple[str, Getter], ...]:
    """Return the fields whose values the store keeps for each object of a resource."""
    fields = _FIELDS.get((group, resource))
    return () if fields is None else tuple(fields.getters.items())


def check_field_selector(info: ResourceInfo, version: str, terms: Iterable[Term]) -> tuple[Term, ...]:
    """
    Return the requirements of a field selector with the field names of the stored version.

    @param version: The version of the request, which determines the names in C{terms}.
    @raise ValueError: A field is not selectable; the message is for the client.
    """
    if info.custom_fields is not None:
        return tuple((_custom(info, version, label), value, equal) for label, value, equal in terms)
    fields = _FIELDS.get((info.group, info.resource))
    return tuple((_checked(info, version, fields, label), value, equal) for label, value, equal in terms)


def _custom(info: ResourceInfo, version: str, label: str) -> str:
    assert info.custom_fields is not None
    if label == "metadata.name" or (label == "metadata.namespace" and info.namespaced):
        return label
    if label in info.custom_fields.get(version, ()):
        return label
    raise ValueError(_REFUSAL.format(label=label))


def _checked(info: ResourceInfo, version: str, fields: _Fields | None, label: str) -> str:
    if label == "metadata.name":
        return label
    if fields is None:
        if label == "metadata.namespace":
            return label
        raise ValueError(f'{quoted(label)} is not a known field selector: only "metadata.name", "metadata.namespace"')
    if label == "metadata.namespace" and fields.namespace:
        return label
    if label in fields.aliases:
        return fields.aliases[label]
    if label in fields.getters and (info.group, info.resource) not in _RENAMED:
        return label
    kind = f"{info.group}/{version}, Kind={info.kind}"
    raise ValueError(fields.refusal.format(label=label, quoted=quoted(label), kind=kind))


# --- getters


def _text(*path: str) -> Getter:
    """Return a getter of the text at C{path}, which is C{""} if the field is missing."""

    def get(obj: JSONObject) -> str:
        value: Any = obj
        for name in path:
            value = value.get(name)
            if not value:
                return ""
        return value if isinstance(value, str) else str(value)

    return get


def _flag(*path: str) -> Getter:
    text = _text(*path)
    return lambda obj: "true" if text(obj) else "false"


def _number(*path: str) -> Getter:
    text = _text(*path)
    return lambda obj: text(obj) or "0"


def _pod_ip(obj: JSONObject) -> str:
    status = obj.get("status") or {}
    addresses = status.get("podIPs")
    return (addresses[0].get("ip") or "" if addresses else status.get("podIP")) or ""


def _event_source(obj: JSONObject) -> str:
    return (obj.get("source") or {}).get("component") or obj.get("reportingComponent") or ""


def _texts(*fields: str) -> dict[str, Getter]:
    return {field: _text(*field.split(".")) for field in fields}


_EVENT_FIELDS: Final[Mapping[str, Getter]] = {
    **_texts(
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
    ),
    "source": _event_source,
    "type": _text("type"),
}

#: Resources whose fields are selectable only by the names in C{aliases}.
_RENAMED: Final = frozenset([("events.k8s.io", "events")])

_FIELDS: Final[Mapping[tuple[str, str], _Fields]] = {
    ("", "pods"): _Fields(
        {
            **_texts("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
            "spec.hostNetwork": _flag("spec", "hostNetwork"),
            "status.phase": _text("status", "phase"),
            "status.podIP": _pod_ip,
            "status.nominatedNodeName": _text("status", "nominatedNodeName"),
        },
        namespace=True,
        aliases={"spec.host": "spec.nodeName", "status.podIPs": "status.podIPs"},
    ),
    ("", "nodes"): _Fields({"spec.unschedulable": _flag("spec", "unschedulable")}),
    ("", "replicationcontrollers"): _Fields({"status.replicas": _number("status", "replicas")}, namespace=True),
    ("", "events"): _Fields(_EVENT_FIELDS, namespace=True),
    ("events.k8s.io", "events"): _Fields(
        _EVENT_FIELDS,
        namespace=True,
        aliases={
            "reason": "reason",
            "regarding.kind": "involvedObject.kind",
            "regarding.namespace": "involvedObject.namespace",
            "regarding.name": "involvedObject.name",
            "regarding.uid": "involvedObject.uid",
            "regarding.apiVersion": "involvedObject.apiVersion",
            "regarding.resourceVersion": "involvedObject.resourceVersion",
            "regarding.fieldPath": "involvedObject.fieldPath",
            "reportingController": "reportingComponent",
            "type": "type",
        },
    ),
    ("", "namespaces"): _Fields(_texts("status.phase")),
    ("", "secrets"): _Fields(_texts("type"), namespace=True),
    ("", "services"): _Fields(_texts("spec.clusterIP", "spec.type"), namespace=True),
    ("batch", "jobs"): _Fields(
        {"status.successful": _number("status", "succeeded")},
        namespace=True,
        refusal="field label {quoted} not supported for Job",
    ),
    ("certificates.k8s.io", "certificatesigningrequests"): _Fields(_texts("spec.signerName")),
    ("certificates.k8s.io", "clustertrustbundles"): _Fields(_texts("spec.signerName")),
    ("certificates.k8s.io", "podcertificaterequests"): _Fields(
        _texts("spec.signerName", "spec.podName", "spec.serviceAccountName", "spec.nodeName")
    ),
    ("resource.k8s.io", "resourceslices"): _Fields(
        _texts("spec.nodeName", "spec.driver"), refusal="field label not supported for {kind}: {label}"
    ),
}
