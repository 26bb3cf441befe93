"""A CustomResourceDefinition as the server uses it: its names, and its versions, compiled at first use."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from ...api.featuregates import parse_release
from ...api.jsonpath import MISSING, JSONPath
from ...api.jsontypes import JSONValue
from ...api.resource import GroupVersionKind, JSONObject
from ...schema.structural import CustomType
from ..generic.resourceinfo import ResourceInfo
from ..generic.versionorder import version_preference
from .printers import Printer

if TYPE_CHECKING:
    from ...schema.definitions import Definitions
    from ...schema.nodes import StructNode
    from ...schema.validation.celrules import CELValidator
    from ...schema.validation.validator import SchemaValidator
    from .conversion import CRConverter

#: Annotation with the name of a conversion plugin.
PLUGIN_ANNOTATION = "kubetwist.dev/conversion-plugin"
#: Maximum size, in bytes of JSON, of schemas that are compiled in the reactor's thread.
LARGE = 8 * 1024
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def conditions(crd: JSONObject) -> list[JSONObject]:
    """Return the conditions in the status of a CRD."""
    return (crd.get("status") or {}).get("conditions") or []


def find_crd_condition(crd: JSONObject, kind: str) -> JSONObject | None:
    """Return the condition of a type; L{None} if there is none."""
    return next((one for one in conditions(crd) if one.get("type") == kind), None)


def is_crd_condition_true(crd: JSONObject, kind: str) -> bool:
    """Return whether a condition exists and is true."""
    condition = find_crd_condition(crd, kind)
    return condition is not None and condition.get("status") == "True"


def converting_plugin(crd: JSONObject) -> str:
    """Return the name of the conversion plugin; C{""} for none."""
    return str((crd["metadata"].get("annotations") or {}).get(PLUGIN_ANNOTATION) or "")


def converts_elsewhere(crd: JSONObject) -> bool:
    """Return whether a webhook or plugin converts the objects of a CRD."""
    return (crd["spec"].get("conversion") or {}).get("strategy") == "Webhook" or bool(converting_plugin(crd))


class CustomVersion:
    """
    One version of a custom resource.

    @ivar size: The size of its schema, in bytes of JSON.
    @ivar warning: The warning for clients if the version is deprecated.
    """

    def __init__(self, definition: CustomDefinition, spec: JSONObject) -> None:
        self.definition = definition
        self.name: str = spec["name"]
        self.served = bool(spec.get("served"))
        self.deprecated = bool(spec.get("deprecated"))
        self.gvk = GroupVersionKind(definition.group, self.name, definition.kind)
        self._spec = {name: value for name, value in spec.items() if name != "schema"}
        schema = (spec.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
        # Compiled lazily: a server may have thousands of versions, most of which are never requested.
        encoded = orjson.dumps(schema)
        self.size = len(encoded)
        self._schema = zlib.compress(encoded, 1)

    @property
    def schema(self) -> JSONObject:
        """Return the C{openAPIV3Schema}, decoded at each call."""
        decoded: JSONObject = orjson.loads(zlib.decompress(self._schema))
        return decoded

    @cached_property
    def type(self) -> CustomType:
        """Return the type that decodes objects of this version."""
        return self.make_type(self.definition.definitions.custom_metadata)

    def make_type(self, object_meta: StructNode) -> CustomType:
        """Compile L{type}."""
        schema = self.schema
        if self.definition.preserves_unknown_fields:
            schema = {**schema, "x-kubernetes-preserve-unknown-fields": True}
        return CustomType(schema, object_meta)

    @cached_property
    def values(self) -> SchemaValidator:
        """Return the validation of values by the schema."""
        return self.make_validator()

    def make_validator(self) -> SchemaValidator:
        """Compile L{values}."""
        # Imported with the first definition that is used; a server without definitions validates no schemas.
        from ...schema.validation.validator import SchemaValidator

        return SchemaValidator(self.schema, parse_release(self.definition.definitions.minor))

    @cached_property
    def has_unique_lists(self) -> bool:
        """Return whether the schema has lists with unique items (sets or maps)."""
        return self.type.schema.has_unique_lists()

    @cached_property
    def has_embedded_resources(self) -> bool:
        """Return whether the schema has embedded resources."""
        return self.type.schema.has_embedded_resources()

    @cached_property
    def rules(self) -> CELValidator | None:
        """Return the compiled CEL rules; L{None} if there are none."""
        from ...schema.validation.rulepaths import has_rules

        schema = self.schema
        if not has_rules(schema):
            return None
        from ...schema.validation.celrules import CELValidator

        return CELValidator.of(schema, root=True)

    @cached_property
    def printer(self) -> Printer:
        """Return the printer of its columns."""
        return Printer(self._spec.get("additionalPrinterColumns") or ())

    @property
    def has_status(self) -> bool:
        """Return whether the status is a subresource."""
        return (self._spec.get("subresources") or {}).get("status") is not None

    @property
    def scale(self) -> JSONObject | None:
        """Return the paths of the scale subresource; L{None} without it."""
        scale: JSONObject | None = (self._spec.get("subresources") or {}).get("scale")
        return scale

    @cached_property
    def selectable(self) -> Mapping[str, JSONPath]:
        """Return the selectable fields besides name and namespace, with their paths."""
        fields = self._spec.get("selectableFields") or ()
        return {field["jsonPath"].removeprefix("."): JSONPath(field["jsonPath"]) for field in fields}

    @cached_property
    def warning(self) -> str:
        """Return the deprecation warning; C{""} if the version is not deprecated."""
        if not self.deprecated:
            return ""
        warning: str | None = self._spec.get("deprecationWarning")
        if warning is not None:
            return warning
        group, kind = self.definition.group, self.definition.kind
        text = f"{group}/{self.name} {kind} is deprecated"
        preference = version_preference(self.name)
        better = [
            one.name
            for one in self.definition.versions
            if one.served and not one.deprecated and version_preference(one.name) < preference
        ]
        return f"{text}; use {group}/{min(better, key=version_preference)} {kind}" if better else text


class CustomDefinition:
    """
    A CRD whose names are accepted.

    @ivar versions: The versions in the order of the CRD.
    @ivar preserves_unknown_fields: C{spec.preserveUnknownFields}, which old CRDs may have.
    @ivar conversion: The converter; L{None} if conversion only changes the apiVersion.
    """

    def __init__(
        self, crd: JSONObject, definitions: Definitions, conversion_of: Callable[[JSONObject], CRConverter | None]
    ) -> None:
        """
        @param conversion_of: Creates the converter of a CRD.
        """
        spec, names = crd["spec"], crd["status"]["acceptedNames"]
        self.definitions = definitions
        self.name: str = crd["metadata"]["name"]
        self.uid: str = crd["metadata"]["uid"]
        self.group: str = spec["group"]
        self.plural: str = names["plural"]
        self.singular: str = names["singular"]
        self.kind: str = names["kind"]
        self.list_kind: str = names["listKind"]
        self.short_names: tuple[str, ...] = tuple(names.get("shortNames") or ())
        self.categories: tuple[str, ...] = tuple(names.get("categories") or ())
        self.namespaced: bool = spec["scope"] == "Namespaced"
        self.preserves_unknown_fields = bool(spec.get("preserveUnknownFields"))
        self.versions: Sequence[CustomVersion] = tuple(CustomVersion(self, one) for one in spec["versions"])
        self.conversion = conversion_of(crd)
        self._digest = _digest(self.uid, spec, names, converting_plugin(crd))
        self.storage_version: str = next(one["name"] for one in spec["versions"] if one.get("storage"))

    @property
    def is_large(self) -> bool:
        """Return whether compiling the schemas would block the reactor."""
        return sum(one.size for one in self.versions) > LARGE

    def compile(self, object_meta: StructNode) -> list[tuple[CustomVersion, CustomType, SchemaValidator]]:
        """
        Compile the schemas of all versions for L{use}; runs in a thread, so it only reads immutable attributes.

        @param object_meta: The type of C{metadata}.
        """
        result = []
        for version in self.versions:
            values = version.make_validator()
            values.compiled()
            result.append((version, version.make_type(object_meta), values))
        return result

    def use(self, compiled: list[tuple[CustomVersion, CustomType, SchemaValidator]]) -> None:
        """Set the result of L{compile}, unless the types were compiled before."""
        for version, kind, values in compiled:
            version.__dict__.setdefault("type", kind)
            version.__dict__.setdefault("values", values)

    def same_as(self, other: CustomDefinition) -> bool:
        """Return whether both define the same, including the accepted names; the rest of the status is ignored."""
        return self._digest == other._digest

    @property
    def served(self) -> list[CustomVersion]:
        """Return the served versions by priority."""
        versions = [one for one in self.versions if one.served]
        return sorted(versions, key=lambda one: version_preference(one.name))

    def version(self, name: str) -> CustomVersion:
        """
        Return a version by its name.

        @raise KeyError: The version does not exist.
        """
        version = self.find(name)
        if version is None:
            raise KeyError(name)
        return version

    def find(self, name: str) -> CustomVersion | None:
        """Return a version by its name; L{None} if there is none."""
        return next((one for one in self.versions if one.name == name), None)

    @cached_property
    def info(self) -> ResourceInfo:
        """Return the description of the resource."""
        served = tuple(one.name for one in self.served)
        return ResourceInfo(
            group=self.group,
            resource=self.plural,
            kind=self.kind,
            singular=self.singular,
            versions=served,
            known_versions=tuple(one.name for one in self.versions),
            storage_version=self.storage_version,
            namespaced=self.namespaced,
            short_names=self.short_names,
            categories=self.categories,
            key_prefix=f"{self.group}/{self.plural}",
            storage_group=self.group,
            subresources=(),
            stored=True,
            hash_version=self.storage_version,
            custom_fields={one.name: frozenset(one.selectable) for one in self.versions},
        )

    def selectable(self) -> tuple[tuple[str, Callable[[JSONObject], str]], ...]:
        """Return the selectable fields of all versions, with functions that read them."""
        paths: dict[str, JSONPath] = {}
        for one in self.versions:
            paths.update(one.selectable)
        return tuple((name, _text_at(path)) for name, path in paths.items())


def _digest(*parts: JSONValue) -> bytes:
    return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).digest()


def _text_at(path: JSONPath) -> Callable[[JSONObject], str]:
    def read(obj: JSONObject) -> str:
        result = path.first(obj)
        value: Any = None if result is MISSING else result
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return read
