"""A CustomResourceDefinition as the server works with it: its names, and its versions compiled at first use."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from ...api.jsonpath import MISSING, JSONPath
from ...api.jsontypes import JSONValue
from ...api.resource import GroupVersionKind, JSONObject
from ...schema.structural import OBJECT_META, CustomType
from ...schema.validation.rulepaths import has_rules
from ...schema.validation.validator import ValueSchema
from ..generic.resourceinfo import ResourceInfo
from ..generic.versionorder import version_preference
from .printers import Printer

if TYPE_CHECKING:
    from ...schema.definitions import Definitions
    from ...schema.nodes import StructNode
    from ...schema.validation.celrules import RuleTree
    from .conversion import CRConverter

#: Opts in to conversion by the plugin of that name.
PLUGIN_ANNOTATION = "kubetwist.dev/conversion-plugin"
#: Bytes of JSON that schemas may have which are compiled in the reactor's thread, at some microseconds per ten.
LARGE = 8 * 1024
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def conditions(crd: JSONObject) -> list[JSONObject]:
    """The conditions in a definition's status."""
    return (crd.get("status") or {}).get("conditions") or []


def find_crd_condition(crd: JSONObject, kind: str) -> JSONObject | None:
    """The condition of a type, if there is one."""
    return next((one for one in conditions(crd) if one.get("type") == kind), None)


def is_crd_condition_true(crd: JSONObject, kind: str) -> bool:
    """Whether a condition is there and true."""
    found = find_crd_condition(crd, kind)
    return found is not None and found.get("status") == "True"


def converting_plugin(crd: JSONObject) -> str:
    """The name of the plugin that converts; C{""} when none is asked for."""
    return str((crd["metadata"].get("annotations") or {}).get(PLUGIN_ANNOTATION) or "")


def converts_elsewhere(crd: JSONObject) -> bool:
    """Return whether a webhook or plugin converts the objects of a definition."""
    return (crd["spec"].get("conversion") or {}).get("strategy") == "Webhook" or bool(converting_plugin(crd))


class CustomVersion:
    """
    One version of a custom resource.

    @ivar size: Of its schema, in bytes of JSON.
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
        # There may be thousands of them, of hundreds of parts each, and most are never requested.
        encoded = orjson.dumps(schema)
        self.size = len(encoded)
        self._schema = zlib.compress(encoded, 1)

    @property
    def schema(self) -> JSONObject:
        """Its C{openAPIV3Schema}, decoded at each call."""
        decoded: JSONObject = orjson.loads(zlib.decompress(self._schema))
        return decoded

    @cached_property
    def type(self) -> CustomType:
        """What brings objects into its shape."""
        return self.make_type(self.definition.definitions.struct(OBJECT_META))

    def make_type(self, object_meta: StructNode) -> CustomType:
        """Make L{type}."""
        schema = self.schema
        if self.definition.preserves:
            schema = {**schema, "x-kubernetes-preserve-unknown-fields": True}
        return CustomType(schema, object_meta)

    @cached_property
    def values(self) -> ValueSchema:
        """What its objects must satisfy."""
        return ValueSchema(self.schema)

    @cached_property
    def unique_lists(self) -> bool:
        """Whether lists in it promise that their items differ."""
        return self.type.schema.uniqueness_anywhere()

    @cached_property
    def embeds(self) -> bool:
        """Whether resources are embedded in it."""
        return self.type.schema.embedded_anywhere()

    @cached_property
    def rules(self) -> RuleTree | None:
        """Its rules in CEL, compiled; L{None} when there are none."""
        schema = self.schema
        if not has_rules(schema):
            return None
        from ...schema.validation.celrules import RuleTree

        return RuleTree.of(schema, root=True)

    @cached_property
    def printer(self) -> Printer:
        """Its columns."""
        return Printer(self._spec.get("additionalPrinterColumns") or ())

    @property
    def has_status(self) -> bool:
        """Whether its status is a subresource."""
        return (self._spec.get("subresources") or {}).get("status") is not None

    @property
    def scale(self) -> JSONObject | None:
        """The paths of its scale subresource, if it has one."""
        scale: JSONObject | None = (self._spec.get("subresources") or {}).get("scale")
        return scale

    @cached_property
    def selectable(self) -> Mapping[str, JSONPath]:
        """What its objects can be selected by, besides name and namespace."""
        fields = self._spec.get("selectableFields") or ()
        return {field["jsonPath"].removeprefix("."): JSONPath(field["jsonPath"]) for field in fields}

    @cached_property
    def warning(self) -> str:
        """Return the deprecation warning; C{""} if the version is not deprecated."""
        if not self.deprecated:
            return ""
        said: str | None = self._spec.get("deprecationWarning")
        if said is not None:
            return said
        group, kind = self.definition.group, self.definition.kind
        text = f"{group}/{self.name} {kind} is deprecated"
        mine = version_preference(self.name)
        better = [
            one.name
            for one in self.definition.versions
            if one.served and not one.deprecated and version_preference(one.name) < mine
        ]
        return f"{text}; use {group}/{min(better, key=version_preference)} {kind}" if better else text


class CustomDefinition:
    """
    A definition whose names are accepted.

    @ivar versions: In the order of the definition.
    @ivar preserves: Objects keep what the schema does not have: C{spec.preserveUnknownFields}, which old ones may have.
    @ivar conversion: Who converts between the versions; L{None} where changing the apiVersion is all there is to it.
    """

    def __init__(
        self, crd: JSONObject, definitions: Definitions, conversion_of: Callable[[JSONObject], CRConverter | None]
    ) -> None:
        """
        @param conversion_of: Finds what a definition says of conversion.
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
        self.preserves = bool(spec.get("preserveUnknownFields"))
        self.versions: Sequence[CustomVersion] = tuple(CustomVersion(self, one) for one in spec["versions"])
        self.conversion = conversion_of(crd)
        self._digest = _digest(self.uid, spec, names, converting_plugin(crd))
        self.storage_version: str = next(one["name"] for one in spec["versions"] if one.get("storage"))

    @property
    def large(self) -> bool:
        """Whether compiling its schemas would hold up the reactor."""
        return sum(one.size for one in self.versions) > LARGE

    def compile(self, object_meta: StructNode) -> list[tuple[CustomVersion, CustomType, ValueSchema]]:
        """
        Compile the schemas of all versions, for L{use}; in a thread, so it touches nothing that others may use now.

        @param object_meta: The type of C{metadata}.
        """
        found = []
        for version in self.versions:
            values = ValueSchema(version.schema)
            values.compiled()
            found.append((version, version.make_type(object_meta), values))
        return found

    def use(self, compiled: list[tuple[CustomVersion, CustomType, ValueSchema]]) -> None:
        """Set the result of L{compile}, unless it was set since."""
        for version, kind, values in compiled:
            version.__dict__.setdefault("type", kind)
            version.__dict__.setdefault("values", values)

    def same_as(self, other: CustomDefinition) -> bool:
        """Whether it defines the same; the status, but for the accepted names, does not matter."""
        return self._digest == other._digest

    @property
    def served(self) -> list[CustomVersion]:
        """The versions that are served, best first."""
        found = [one for one in self.versions if one.served]
        return sorted(found, key=lambda one: version_preference(one.name))

    def version(self, name: str) -> CustomVersion:
        """
        A version by its name.

        @raise KeyError: It has none of that name.
        """
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        return found

    def find(self, name: str) -> CustomVersion | None:
        """Return a version by its name; L{None} if there is none."""
        return next((one for one in self.versions if one.name == name), None)

    @cached_property
    def info(self) -> ResourceInfo:
        """The resource as built-in ones are described."""
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
        """The fields that objects can be selected by, in any version, with what reads them."""
        paths: dict[str, JSONPath] = {}
        for one in self.versions:
            paths.update(one.selectable)
        return tuple((name, _text_at(path)) for name, path in paths.items())


def _digest(*parts: JSONValue) -> bytes:
    return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).digest()


def _text_at(path: JSONPath) -> Callable[[JSONObject], str]:
    def read(obj: JSONObject) -> str:
        found = path.first(obj)
        value: Any = None if found is MISSING else found
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return read
