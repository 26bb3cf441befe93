"""
The schemas of custom resources in OpenAPI documents.

See kubernetes/apiextensions-apiserver, C{pkg/controller/openapi/builder/builder.go}.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from ...api.resource import GroupVersionKind, JSONObject
from ...http.negotiation import JSON, STRATEGIC_MERGE_PATCH, YAML
from ...schema.openapi import V2_REFERENCE
from .operations import Operation, Path
from .parameters import RESOURCE_VERSION, name_of

if TYPE_CHECKING:
    from ...registry.customresources.crd import CustomVersion
    from ..servedresources import APIResource

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_API_VERSION: Final = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized "
    "schemas to the latest internal value, and may reject unrecognized values. More info: "
    f"{_CONVENTIONS}#resources"
)
_KIND: Final = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the "
    f"endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: {_CONVENTIONS}#types-kinds"
)
#: The parts that OpenAPI 2 cannot express, or that its readers do not support.
_NOT_IN_V2: Final = ("anyOf", "oneOf", "allOf", "not", "default", "nullable")

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"


class CustomSchemas:
    """
    The schemas of one version of a custom resource, built with a document.

    @ivar parts: Its fragments of documents, by form, with their inputs; see L{kubetwist.resources.openapi.fragments}.
    """

    def __init__(self, version: CustomVersion) -> None:
        self._version = version
        self.parts: dict[str, Any] = {}

    @property
    def names(self) -> tuple[str, str]:
        """Return the names of the schemas of the kind and of its lists."""
        definition = self._version.definition
        base = ".".join([*reversed(definition.group.split(".")), self._version.name])
        return f"{base}.{definition.kind}", f"{base}.{definition.list_kind}"

    def definitions(self, reference: str) -> dict[str, JSONObject]:
        """
        Return the schemas of the kind and of its lists, by name.

        @param reference: The prefix of the name in a C{$ref}, which differs between the two versions of OpenAPI.
        """
        version = self._version
        definition = version.definition
        name, list_name = self.names
        schema = version.schema
        if reference == V2_REFERENCE and (schema.get(_PRESERVE) or definition.preserves_unknown_fields):
            # If an object may have any fields, clients would treat the few documented fields as all of them.
            converted: JSONObject = {"type": "object"}
        else:
            converted = _convert_schema(schema, reference)
            converted["properties"] = {**(converted.get("properties") or {}), **_meta_fields(reference, "ObjectMeta")}
            converted["properties"]["metadata"] = _metadata(reference, "ObjectMeta", "Standard object's metadata.")
        converted["x-kubernetes-group-version-kind"] = [version.gvk._asdict()]
        listing: JSONObject = {
            "description": f"{definition.list_kind} is a list of {definition.kind}",
            "type": "object",
            "required": ["items"],
            "properties": {
                **_meta_fields(reference, "ListMeta"),
                "items": {
                    "description": f"List of {definition.plural}. More info: "
                    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
                    "type": "array",
                    "items": {"$ref": reference + name},
                },
                "metadata": _metadata(reference, "ListMeta", "Standard list metadata."),
            },
            "x-kubernetes-group-version-kind": [
                GroupVersionKind(definition.group, version.name, definition.list_kind)._asdict()
            ],
        }
        if version.selectable:
            fields = [{"fieldPath": field} for field in version.selectable]
            converted["x-kubernetes-selectable-fields"] = listing["x-kubernetes-selectable-fields"] = fields
        return {name: converted, list_name: listing}


def custom_definitions(resources: Iterable[APIResource], reference: str) -> dict[str, JSONObject]:
    """Return the schemas of all custom resources among C{resources}."""
    found: dict[str, JSONObject] = {}
    for resource in resources:
        if resource.custom is not None and not resource.subresource:
            found.update(resource.custom.definitions(reference))
    return found


def custom_paths(paths: Iterable[Path], kind: GroupVersionKind) -> list[Path]:
    """
    Return the paths of a custom resource, derived from the paths of a built-in resource.

    Clients select a type of patch by the documented media types.

    @param paths: The paths that a built-in resource would have.
    @param kind: The kind of the custom resource, which is also documented for its subresources.
    """
    return [
        Path(path.path, [_operation(operation, path, kind) for operation in path.operations])
        for path in paths
        if "/watch/" not in path.path
    ]


def _operation(operation: Operation, path: Path, kind: GroupVersionKind) -> Operation:
    if operation.action == "deletecollection":
        # The reference documents only the parameters of the selection, without the parameters of the deletion.
        selection = next((one.parameters for one in path.operations if one.action == "list"), operation.parameters)
        operation = evolve(operation, parameters=selection, body="")
    if operation.action == "get":
        operation = evolve(operation, parameters=(*operation.parameters, RESOURCE_VERSION))
    is_patch = operation.method == "patch"
    patch_types = tuple(one for one in operation.consumes if one != STRATEGIC_MERGE_PATCH)
    answers = operation.answers[:1] if is_patch else operation.answers
    return evolve(
        operation,
        kind=kind,
        parameters=tuple(name_of(kind.kind) if one.name == "name" else one for one in operation.parameters),
        consumes=patch_types if is_patch else (JSON, YAML),
        produces=(JSON, YAML),
        answers=answers,
        description=operation.description.replace("list or watch objects", "list objects"),
    )


def _meta_fields(reference: str, meta: str) -> JSONObject:
    return {
        "apiVersion": {"description": _API_VERSION, "type": "string"},
        "kind": {"description": _KIND, "type": "string"},
        "metadata": _metadata(reference, meta, ""),
    }


def _metadata(reference: str, meta: str, description: str) -> JSONObject:
    target = {"$ref": f"{reference}{_META}{meta}"}
    # The reference links another section for lists than for objects.
    section = "types-kinds" if meta == "ListMeta" else "metadata"
    described = {"description": f"{description} More info: {_CONVENTIONS}#{section}"} if description else {}
    return {**target, **described} if reference == V2_REFERENCE else {"allOf": [target], **described}


def _convert_schema(schema: JSONObject, reference: str) -> JSONObject:
    """Return a schema with the implied parts of structural schemas; for OpenAPI 2 without what it cannot express."""
    is_v2 = reference == V2_REFERENCE
    has_any_of = schema.get("anyOf") or any(part.get("anyOf") for part in schema.get("allOf") or ())
    if schema.get("x-kubernetes-int-or-string") and not has_any_of and not is_v2:
        schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if is_v2:
        _remove_unsupported(schema)
    properties: Any = schema.get("properties")
    if properties:
        schema["properties"] = {name: _convert_schema(part, reference) for name, part in properties.items()}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            schema[name] = _convert_schema(schema[name], reference)
    if schema.get("x-kubernetes-embedded-resource") and not (is_v2 and schema.get(_PRESERVE)):
        schema["properties"] = {**(schema.get("properties") or {}), **_embedded_fields(reference)}
        required = schema.get("required") or []
        schema["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]
    return schema


def _embedded_fields(reference: str) -> JSONObject:
    """Return the additional fields of an embedded object."""
    fields = _meta_fields(reference, "ObjectMeta")
    fields["apiVersion"]["description"] = (
        "apiVersion defines the versioned schema of this representation of an object. More info: "
        f"{_CONVENTIONS}#resources"
    )
    fields["kind"]["description"] = (
        "kind is a string value representing the type of this object. In CamelCase. More info: "
        f"{_CONVENTIONS}#types-kinds"
    )
    fields["metadata"] = _metadata(reference, "ObjectMeta", "Standard object's metadata.")
    return fields


def _remove_unsupported(schema: JSONObject) -> None:
    """
    Remove the parts that readers of OpenAPI 2 would misunderstand.

    They would reject nulls, and unknown fields beside known ones, so the type is left out instead; nor do they accept
    lists without a type of their items.
    """
    nullable, preserves = schema.get("nullable"), schema.get(_PRESERVE)
    if nullable or preserves:
        schema.pop("properties", None)
        schema.pop("items", None)
    kind = schema.get("type")
    if nullable or (kind == "object" and preserves) or (kind == "array" and "items" not in schema):
        schema.pop("type", None)
    for name in _NOT_IN_V2:
        schema.pop(name, None)
    additional = schema.get("additionalProperties")
    properties: Any = schema.get("properties") or {}
    required = [name for name in schema.pop("required", None) or () if not (properties.get(name) or {}).get("nullable")]
    if required and not (isinstance(additional, dict) and additional.get("nullable")):
        schema["required"] = required
