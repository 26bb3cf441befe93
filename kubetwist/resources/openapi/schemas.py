"""Selects the types in an OpenAPI document, and adapts those that belong to every group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from ...api.jsontypes import JSONValue
from ...api.resource import GroupVersion, JSONObject


class IDefinitions(Protocol):
    """The types of a release: L{kubetwist.schema.definitions.Definitions}."""

    def openapi_schemas(self, ref_prefix: str) -> Mapping[str, JSONObject]:
        """Return every type by name; references begin with C{ref_prefix}. The caller may change the result."""


class WithoutEnums:
    """
    The types of a release without enumerations, for servers without the feature gate OpenAPIEnums.

    @see: k8s.io/apiserver, C{pkg/util/openapi/enablement.go}.
    """

    def __init__(self, definitions: IDefinitions) -> None:
        self._definitions = definitions

    def openapi_schemas(self, ref_prefix: str) -> Mapping[str, JSONObject]:
        """See L{IDefinitions.openapi_schemas}."""
        schemas = self._definitions.openapi_schemas(ref_prefix)
        for schema in schemas.values():
            _remove_enums(schema)
        return schemas


def _remove_enums(schema: JSONObject) -> None:
    """Remove the values of enumerations, and the lists of values in descriptions."""
    schema.pop("enum", None)
    description, values, _ = schema.get("description", "").partition(_ENUM_VALUES)
    if values:
        schema["description"] = description.strip()
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            _remove_enums(schema[name])
    for one in (*schema.get("properties", {}).values(), *schema.get("allOf", ())):
        _remove_enums(one)


_ENUM_VALUES: Final = "Possible enum values:"
#: Kinds that belong to every group.
_IN_EVERY_GROUP: Final = frozenset(("DeleteOptions", "WatchEvent"))
#: Groups of the other servers of the chain, and groups that only webhooks use.
_GROUPS_OF_OTHER_SERVERS: Final = frozenset(
    ("admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io")
)


def reachable(
    schemas: Mapping[str, JSONObject], roots: Iterable[str], group_version: GroupVersion | None
) -> JSONObject:
    """
    Return C{roots} and the types that they refer to.

    @param group_version: The document's; types that belong to every group list no more than this and the core group.
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
            listed = [("", "v1"), tuple(group_version)]
            listed_kinds = [kind for kind in kinds if (kind["group"], kind["version"]) in listed]
            found[name] = schema | {"x-kubernetes-group-version-kind": listed_kinds}
    return dict(sorted(found.items()))


def limit_to_kube_groups(schemas: JSONObject) -> JSONObject:
    """Return the same types, where types of every group name only groups that the API server in the middle knows."""
    found = dict(schemas)
    for name in schemas:
        kinds = schemas[name].get("x-kubernetes-group-version-kind", ())
        if len(kinds) > 1 and kinds[0]["kind"] in _IN_EVERY_GROUP:
            listed_kinds = [kind for kind in kinds if kind["group"] not in _GROUPS_OF_OTHER_SERVERS]
            found[name] = schemas[name] | {"x-kubernetes-group-version-kind": listed_kinds}
    return found


def references(schema: JSONValue) -> list[str]:
    """Return the names that a schema refers to."""
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
