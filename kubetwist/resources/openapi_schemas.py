"""
The schemas of the types, as OpenAPI documents show them.

Their source, L{kubetwist.schema.definitions}, is made from a release's OpenAPI v2 document, which has lost the defaults
that the v3 documents show; where these follow from a field's type, they are put back here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from ..api.resource import GroupVersion, JSONObject

V2_REFERENCE: Final = "#/definitions/"
V3_REFERENCE: Final = "#/components/schemas/"


class IDefinitions(Protocol):
    """A release's types: L{kubetwist.schema.definitions.Definitions}."""

    def openapi_schemas(self, ref_prefix: str) -> Mapping[str, JSONObject]:
        """Every type by its name; references to others begin with C{ref_prefix}. The caller may change them."""


_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"

#: Types that take more than one of JSON's.
_UNIONS_V3: Final[Mapping[str, JSONObject]] = {
    _INT_OR_STRING: {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    _QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
}
#: v2 has no words for these.
_UNIONS_V2: Final[Mapping[str, JSONObject]] = {
    _INT_OR_STRING: {"format": "int-or-string", "type": "string"},
    _QUANTITY: {"type": "string"},
}

_ZERO: Final[Mapping[str, Any]] = {"string": "", "integer": 0, "boolean": False}
#: Fields that hold structures and not pointers to such, although they may be left out.
_ALWAYS_THERE: Final = frozenset(
    (
        "acceptedNames",
        "daemonEndpoints",
        "kubeletEndpoint",
        "lastState",
        "loadBalancer",
        "metadata",
        "nodeInfo",
        "preferredVersion",
        "spec",
        "state",
        "status",
        "strategy",
        "updateStrategy",
    )
)
#: Types of fields that are pointers even where they must be there.
_ALWAYS_POINTERS: Final = frozenset(("LabelSelector", "RawExtension"))

#: The defaults of fields that have others than follow from their types, by the last part of the type's name.
_DEFAULTS: Final[Mapping[tuple[str, str], Any]] = {
    **{
        (kind, "name"): ""
        for kind in (
            "ConfigMapEnvSource",
            "ConfigMapKeySelector",
            "ConfigMapProjection",
            "ConfigMapVolumeSource",
            "LocalObjectReference",
            "NodeRuntimeHandler",
            "SecretEnvSource",
            "SecretKeySelector",
            "SecretProjection",
        )
    },
    ("AzureDiskVolumeSource", "cachingMode"): "ReadWrite",
    ("AzureDiskVolumeSource", "fsType"): "ext4",
    ("AzureDiskVolumeSource", "kind"): "Shared",
    ("AzureDiskVolumeSource", "readOnly"): False,
    ("Container", "resources"): {},
    ("ContainerPort", "protocol"): "TCP",
    ("EphemeralContainer", "resources"): {},
    ("Event", "reportingComponent"): "",
    ("Event", "reportingInstance"): "",
    ("Event", "source"): {},
    ("FileKeySelector", "optional"): False,
    ("GRPCAction", "service"): "",
    ("ISCSIPersistentVolumeSource", "iscsiInterface"): "default",
    ("ISCSIVolumeSource", "iscsiInterface"): "default",
    ("PersistentVolumeClaimSpec", "resources"): {},
    ("PodTemplate", "template"): {},
    ("RBDPersistentVolumeSource", "keyring"): "/etc/ceph/keyring",
    ("RBDPersistentVolumeSource", "pool"): "rbd",
    ("RBDPersistentVolumeSource", "user"): "admin",
    ("RBDVolumeSource", "keyring"): "/etc/ceph/keyring",
    ("RBDVolumeSource", "pool"): "rbd",
    ("RBDVolumeSource", "user"): "admin",
    ("ReplicaSetSpec", "template"): {},
    ("ReplicationControllerSpec", "minReadySeconds"): 0,
    ("ReplicationControllerSpec", "replicas"): 1,
    ("RoleRef", "apiGroup"): "",
    ("ScaleIOPersistentVolumeSource", "fsType"): "xfs",
    ("ScaleIOPersistentVolumeSource", "storageMode"): "ThinProvisioned",
    ("ScaleIOVolumeSource", "fsType"): "xfs",
    ("ScaleIOVolumeSource", "storageMode"): "ThinProvisioned",
    ("ScaleSpec", "replicas"): 0,
    ("SelfSubjectReviewStatus", "userInfo"): {},
    ("ServicePort", "protocol"): "TCP",
    ("StatefulSetOrdinals", "start"): 0,
    ("StatefulSetSpec", "serviceName"): "",
    ("StatefulSetStatus", "availableReplicas"): 0,
    ("TokenRequestStatus", "token"): "",
    ("TokenReviewStatus", "user"): {},
}
#: Fields that have no default although one would follow.
_NO_DEFAULTS: Final = frozenset(
    (
        ("ContainerRestartRule", "action"),
        ("ContainerRestartRuleOnExitCodes", "operator"),
        ("CustomResourceSubresources", "status"),
        ("ImageVolumeStatus", "imageRef"),
        ("PodCertificateProjection", "keyType"),
        ("PodCertificateProjection", "signerName"),
        ("ScaleIOPersistentVolumeSource", "secretRef"),
        ("ScaleIOVolumeSource", "secretRef"),
        ("TokenReviewSpec", "token"),
    )
)

#: Kinds that belong to every group.
_IN_EVERY_GROUP: Final = frozenset(("DeleteOptions", "WatchEvent"))
#: Groups of the other servers of the chain, and such as are only spoken to webhooks.
_OF_OTHERS: Final = frozenset(
    ("admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io")
)


def v3_schemas(definitions: IDefinitions) -> dict[str, JSONObject]:
    """All types, for v3 documents."""
    schemas = dict(definitions.openapi_schemas(V3_REFERENCE))
    structures = {V3_REFERENCE + name for name, schema in schemas.items() if schema.get("type") == "object"}
    for name, schema in schemas.items():
        union = _UNIONS_V3.get(name)
        if union is not None:
            schemas[name] = _described(schema) | union
            continue
        required = schema.get("required", ())
        properties = schema.get("properties")
        if properties:
            kind = name.rpartition(".")[2]
            schema["properties"] = {
                field: _v3_field(kind, field, value, field in required, structures)
                for field, value in properties.items()
            }
    return schemas


def v2_schemas(definitions: IDefinitions) -> dict[str, JSONObject]:
    """All types, for the v2 document."""
    schemas = dict(definitions.openapi_schemas(V2_REFERENCE))
    for name, union in _UNIONS_V2.items():
        if name in schemas:
            schemas[name] = _described(schemas[name]) | union
    return schemas


def reachable(
    schemas: Mapping[str, JSONObject], roots: Iterable[str], group_version: GroupVersion | None
) -> JSONObject:
    """
    The types that C{roots} are made of, and themselves.

    @param group_version: Of the document; types that belong to every group name no more than this and the core group.
    """
    found: dict[str, JSONObject] = {}
    pending = [root for root in roots if root in schemas]
    while pending:
        name = pending.pop()
        if name in found:
            continue
        schema = found[name] = schemas[name]
        pending += [other for other in references(schema) if other not in found and other in schemas]
    for name, schema in found.items():
        kinds = schema.get("x-kubernetes-group-version-kind", ())
        if group_version is not None and len(kinds) > 1 and kinds[0]["kind"] in _IN_EVERY_GROUP:
            shown = [("", "v1"), tuple(group_version)]
            kept = [kind for kind in kinds if (kind["group"], kind["version"]) in shown]
            found[name] = schema | {"x-kubernetes-group-version-kind": kept}
    return dict(sorted(found.items()))


def known_to_middle(schemas: JSONObject) -> JSONObject:
    """The same types, where what belongs to every group names only groups that the server in the middle knows."""
    found = dict(schemas)
    for name in schemas:
        kinds = schemas[name].get("x-kubernetes-group-version-kind", ())
        if len(kinds) > 1 and kinds[0]["kind"] in _IN_EVERY_GROUP:
            kept = [kind for kind in kinds if kind["group"] not in _OF_OTHERS]
            found[name] = schemas[name] | {"x-kubernetes-group-version-kind": kept}
    return found


def references(schema: Any) -> list[str]:
    """The names that a schema refers to."""
    names: list[str] = []
    pending = [schema]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            target = one.get("$ref")
            if isinstance(target, str):
                names.append(target.rpartition("/")[2])
            pending += one.values()
        elif isinstance(one, list):
            pending += one
    return names


def _v3_field(kind: str, name: str, schema: JSONObject, required: bool, structures: set[str]) -> JSONObject:
    default = schema.get("default")
    target = schema.get("$ref")
    if default is None:
        default = _DEFAULTS.get((kind, name))
    if default is None and (kind, name) not in _NO_DEFAULTS:
        if target is None:
            default = _ZERO.get(schema.get("type", "")) if required else None
        elif target in structures and target.rpartition(".")[2] not in _ALWAYS_POINTERS:
            default = {} if required or name in _ALWAYS_THERE else None
    added = {} if default is None else {"default": default}
    if target is None:
        return schema | added
    # v3 takes no account of what stands beside a reference.
    beside = {key: value for key, value in schema.items() if key != "$ref"} | added
    return beside | {"allOf": [{"$ref": target}]} if beside else schema


def _described(schema: JSONObject) -> JSONObject:
    return {"description": schema["description"]} if "description" in schema else {}
