"""Who owns which fields of custom resources: their versions, as L{kubetwist.schema.ownership} asks for them."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import orjson

from ...api.errors import APIStatusError
from ...api.resource import GroupVersion, GroupVersionKind, JSONObject
from ...schema.mergetypes import MergeType
from ...schema.structural import OBJECT_META
from ...schema.structuralrules import everywhere
from ..fieldmanager import BuiltInVersions, FieldManager
from ..resetfields import usual_fields
from ..scaleownership import SCALE_VERSION, replicas_path

if TYPE_CHECKING:
    from ...schema.definitions import Definitions
    from .definition import CustomDefinition, CustomVersion

#: How many conversions are remembered: those that a few writes at the same time need.
LEARNED: Final = 64
SCALE = GroupVersionKind("autoscaling", "v1", "Scale")


class Unconvertible(ValueError):
    """An object has fields that another version of its kind does not have."""


class ConversionNeeded(Unconvertible):
    """
    Somebody else has to convert an object before who owns what can be told; then the question can be asked again.

    @ivar obj: Its JSON, with its kind and apiVersion.
    @ivar target: The wanted apiVersion.
    """

    def __init__(self, obj: bytes, target: str) -> None:
        super().__init__(f"nobody has converted it to {target} yet")
        self.obj = obj
        self.target = target


class CustomFieldManager(FieldManager):
    """Forgets who owns what where an object does not fit a version in which somebody owns a part of it, as upstream."""

    def update(self, live: JSONObject | None, new: JSONObject, manager: str, now: str) -> None:
        """
        See L{FieldManager.update}.

        @raise ConversionNeeded: Nothing has been done.
        """
        meta = new["metadata"]
        sent = meta.get("managedFields")
        try:
            super().update(live, new, manager, now)
        except Unconvertible as error:
            meta.pop("managedFields", None)
            if live is not None and isinstance(error, ConversionNeeded):
                if sent is not None:
                    meta["managedFields"] = sent
                raise

    def apply(self, live: JSONObject | None, applied: Any, manager: str, now: str, force: bool) -> JSONObject:
        """
        See L{FieldManager.apply}.

        @raise ConversionNeeded: Nothing has been done.
        """
        try:
            return super().apply(live, applied, manager, now, force)
        except ConversionNeeded:
            raise
        except Unconvertible as error:
            raise APIStatusError.unknown(str(error)) from None


class CustomVersions:
    """The versions of a custom resource; see L{kubetwist.schema.ownership.Versions}."""

    def __init__(self, definition: CustomDefinition) -> None:
        self._definition = definition
        self._types: dict[str, MergeType] = {}
        #: What others made of objects, or why they could not, by the object's JSON and the apiVersion it was wanted in.
        self._learned: OrderedDict[tuple[bytes, str], JSONObject | str] = OrderedDict()

    def _version(self, api_version: str) -> CustomVersion | None:
        try:
            group, name = GroupVersion.parse(api_version)
            return self._definition.version(name) if group == self._definition.group else None
        except (KeyError, ValueError):
            return None

    def type_of(self, api_version: str) -> MergeType | None:
        """See L{kubetwist.schema.ownership.Versions.type_of}."""
        found = self._types.get(api_version)
        if found is None:
            version = self._version(api_version)
            if version is None:
                return None
            types = self._definition.definitions.merge_types
            found = types.structural(with_metadata(version.schema), self._definition.preserves)
            self._types[api_version] = found
        return found

    def convert(self, obj: JSONObject, source: str, target: str) -> JSONObject:
        """See L{kubetwist.schema.ownership.Versions.convert}."""
        kind = self.type_of(target)
        if self._definition.conversion is None:
            converted = {**obj, "apiVersion": target}
        else:
            item = orjson.dumps({**obj, "kind": self._definition.kind, "apiVersion": source})
            known = self._learned.get((item, target))
            if known is None:
                raise ConversionNeeded(item, target)
            if isinstance(known, str):
                raise Unconvertible(known)
            converted = known
        if kind is None or kind.check(converted, True):
            raise Unconvertible(f"{self._definition.name} has nothing like it in {target}")
        return converted

    async def learn(self, needed: ConversionNeeded) -> None:
        """Have somebody else convert what was needed, and remember for a while what came of it."""
        conversion, version = self._definition.conversion, self._version(needed.target)
        assert conversion is not None and version is not None
        found: JSONObject | str
        try:
            [found] = await conversion.convert([orjson.loads(needed.obj)], version.gvk)
        except APIStatusError as error:
            found = error.message
        self._learned[needed.obj, needed.target] = found
        if len(self._learned) > LEARNED:
            self._learned.popitem(last=False)


def with_metadata(schema: JSONObject) -> JSONObject:
    """A schema in which resources that are embedded have the fields that all resources have."""
    if not any(part.get("x-kubernetes-embedded-resource") for part in everywhere(schema)):
        return schema
    filled = dict(schema)
    properties = {name: with_metadata(part) for name, part in (schema.get("properties") or {}).items()}
    if schema.get("x-kubernetes-embedded-resource"):
        text = {"type": "string"}
        meta = {"$ref": f"#/definitions/{OBJECT_META}"}
        properties = {**properties, "apiVersion": text, "kind": text, "metadata": meta}
    if properties:
        filled["properties"] = properties
    for name in ("items", "additionalProperties"):
        if isinstance(filled.get(name), dict):
            filled[name] = with_metadata(filled[name])
    return filled


def field_manager(version: CustomVersion, versions: CustomVersions, subresource: str) -> FieldManager:
    """What keeps track of the fields of a custom resource, or of its status."""
    return CustomFieldManager(
        version.gvk,
        versions,
        version.type.zero,
        subresource=subresource,
        allowed=usual_fields(version.has_status, subresource),
        reconciles=True,
    )


def scale_manager(definitions: Definitions) -> FieldManager:
    """What keeps track of the fields of a C{Scale}."""
    return FieldManager(SCALE, BuiltInVersions(definitions, {SCALE_VERSION: SCALE}), dict, subresource="scale")


def scale_paths(definition: CustomDefinition) -> dict[str, tuple[str, ...]]:
    """Where the replicas are, for each version."""
    return {
        one.gvk.api_version: replicas_path(one.scale["specReplicasPath"]) if one.scale is not None else ()
        for one in definition.versions
    }
