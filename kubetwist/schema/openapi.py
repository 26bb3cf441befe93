"""
Published form of the OpenAPI definitions.

OpenAPI 3 has C{default} for fields that Go always encodes or that declare a default, and C{allOf} around references
with siblings; OpenAPI 2 has neither. Both have C{enum}. The values come from L{kubetwist.schema.gofields},
L{kubetwist.schema.enums} and the table of declared defaults here.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from ..api.featuregates import DEFAULT_RELEASE, FeatureGates, Release
from ..api.resource import JSONObject
from .enums import described_values, enum_values
from .gofields import (
    LEAVES,
    NO_OMITEMPTY,
    go_field,
    json_kind,
    referenced_definition,
)

V2_REFERENCE: Final = "#/definitions/"
V3_REFERENCE: Final = "#/components/schemas/"

#: Types with several JSON types, in OpenAPI 2 and in OpenAPI 3.
_UNIONS: Final[dict[str, tuple[JSONObject, JSONObject]]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": (
        {"type": "string"},
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": (
        {"type": "string", "format": "int-or-string"},
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
}

_ZEROS: Final[JSONObject] = {"string": "", "integer": 0, "number": 0, "boolean": False}

_NAME: Final[JSONObject] = {"name": ""}
_RBD: Final[JSONObject] = {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"}
_ISCSI: Final[JSONObject] = {"iscsiInterface": "default"}
_SCALE_IO: Final[JSONObject] = {"fsType": "xfs", "storageMode": "ThinProvisioned"}

#: Defaults that types of k8s.io/api declare with C{+default}, by C{Type} or C{group.version.Type}, then by field. A
#: type may have a condition on the release.
_DECLARED: Final[dict[str, JSONObject]] = {
    "AzureDiskVolumeSource": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False},
    "ConfigMapEnvSource": _NAME,
    "ConfigMapKeySelector": _NAME,
    "ConfigMapProjection": _NAME,
    "ConfigMapVolumeSource": _NAME,
    "ContainerPort": {"protocol": "TCP"},
    "DeviceToleration": {"operator": "Equal"},
    "FileKeySelector": {"optional": False},
    "GRPCAction": {"service": ""},
    "ISCSIPersistentVolumeSource": _ISCSI,
    "ISCSIVolumeSource": _ISCSI,
    "LocalObjectReference": _NAME,
    "PodGroupSpec": {"disruptionMode": "Pod"},
    "RBDPersistentVolumeSource": _RBD,
    "RBDVolumeSource": _RBD,
    "ReplicationControllerSpec if >=1.33": {"minReadySeconds": 0, "replicas": 1},
    "ResourcePoolStatusRequestSpec": {"limit": 100},
    "ScaleIOPersistentVolumeSource": _SCALE_IO,
    "ScaleIOVolumeSource": _SCALE_IO,
    "ScaleSpec if >=1.34": {"replicas": 0},
    "SecretEnvSource": _NAME,
    "SecretKeySelector": _NAME,
    "SecretProjection": _NAME,
    "ServicePort": {"protocol": "TCP"},
    "certificates.v1alpha1.PodCertificateRequestSpec": {"maxExpirationSeconds": 86400},
    "certificates.v1beta1.PodCertificateRequestSpec": {"maxExpirationSeconds": 86400},
    "resource.v1alpha3.DeviceRequest if <1.32": {"adminAccess": False},
}
_NONE_DECLARED: Final[JSONObject] = {}


def openapi_schema(
    definition: str, schema: JSONObject, ref_prefix: str, release: Release = DEFAULT_RELEASE
) -> JSONObject:
    """
    Return the published form of a definition.

    @param definition: The name of the definition.
    @param schema: The definition in the package; modified.
    @param ref_prefix: The prefix of the name in a C{$ref}; L{V2_REFERENCE} selects OpenAPI 2.
    @param release: The release of the definition.
    """
    defaults = ref_prefix != V2_REFERENCE
    if definition in _UNIONS:
        return {"description": _scalar_descriptions()[definition], **_UNIONS[definition][defaults]}
    required = frozenset(schema.get("required", ()))
    published = _plain(schema)
    properties = schema.get("properties")
    if properties is None:
        return published
    declared = _declared(definition, release) if defaults else _NONE_DECLARED
    published["properties"] = {
        name: _field(definition, name, subschema, name in required, ref_prefix, defaults, release)
        | _default(declared, name)
        for name, subschema in properties.items()
    }
    return published


def _declared(definition: str, release: Release) -> JSONObject:
    """Return the declared defaults of a type's fields."""
    *_, group, version, name = definition.split(".")
    table = _declared_in(release)
    return table.get(f"{group}.{version}.{name}", table.get(name, _NONE_DECLARED))


@cache
def _declared_in(release: Release) -> dict[str, JSONObject]:
    """Return the declared defaults of a release."""
    features = FeatureGates(release)
    types = ((*key.partition(" if "), defaults) for key, defaults in _DECLARED.items())
    return {name: defaults for name, _, condition, defaults in types if features.meets(condition)}


def _default(declared: JSONObject, name: str) -> JSONObject:
    return {"default": declared[name]} if name in declared else {}


def _field(
    definition: str, name: str, schema: JSONObject, required: bool, ref_prefix: str, defaults: bool, release: Release
) -> JSONObject:
    go = go_field(definition, name, schema, required)
    # Elements of lists and maps had defaults until 1.35.
    elements = release < (1, 36)
    subschema = _published_schema(schema, ref_prefix, go.presence == NO_OMITEMPTY, defaults, elements)
    values = enum_values(definition, go.go_type, release)
    if values is None:
        return subschema
    holder = subschema.get("items") or subschema.get("additionalProperties")
    if holder is None:
        holder = subschema
        subschema["description"] = described_values(definition, name, subschema.get("description", ""), values)
    holder["enum"] = list(values)
    return subschema


def _plain(schema: JSONObject) -> JSONObject:
    """Return a schema without the additions of the package."""
    plain = {**schema}
    if isinstance(plain.get("type"), list):
        plain["type"] = plain["type"][0]
    plain.pop("enum", None)
    return plain


def _published_schema(schema: JSONObject, ref_prefix: str, valued: bool, defaults: bool, elements: bool) -> JSONObject:
    """
    Return the published form of a schema within a definition.

    @param schema: The schema.
    @param ref_prefix: As in L{openapi_schema}.
    @param valued: Whether Go encodes the value even if it is zero.
    @param defaults: Whether this version of OpenAPI has C{default}.
    @param elements: Whether elements of lists and maps are valued.
    """
    subschema = _plain(schema)
    kind = json_kind(schema)
    if kind == "$ref":
        target = referenced_definition(schema)
        subschema["$ref"] = ref_prefix + target
        if not defaults:
            return subschema
        if valued and target.rpartition(".")[2] not in LEAVES:
            subschema["default"] = {}
        if len(subschema) > 1:
            subschema["allOf"] = [{"$ref": subschema.pop("$ref")}]
    elif kind == "array":
        subschema["items"] = _published_schema(schema["items"], ref_prefix, elements, defaults, elements)
    elif kind == "object" and "additionalProperties" in schema:
        subschema["additionalProperties"] = _published_schema(
            schema["additionalProperties"], ref_prefix, elements, defaults, elements
        )
    elif valued and defaults and kind in _ZEROS and schema.get("format") != "byte":
        subschema["default"] = _ZEROS[kind]
    return subschema


@cache
def _scalar_descriptions() -> dict[str, str]:
    """Return the descriptions that the package lacks, by type."""
    text = Path(__file__).with_name("scalars.txt").read_text(encoding="ascii")
    _, *parts = re.split(r"^\[(.+)\]\n", text, flags=re.M)
    return {name: description.rstrip("\n") for name, description in zip(parts[::2], parts[1::2], strict=True)}
