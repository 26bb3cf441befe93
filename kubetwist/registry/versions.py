"""
Conversion of objects to the versions that webhooks and policies request.

Plugins inside the server get objects in the stored version; custom resources in the version of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ..admission.matching.equivalents import EquivalentResource
from ..api.frozen import mutable_copy
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.resource import GroupVersion, GroupVersionKind, GroupVersionResource, JSONObject
from .generic.codec import Codec, MissingField, sort_keys
from .generic.conversion import convert
from .strategies import strategy_for

if TYPE_CHECKING:
    from ..schema.definitions import Definitions
    from .customresources.served import ServedResource
    from .stores import Stores


class VersionConverter:
    """Converts objects of all served resources between their versions, for webhooks and policies."""

    def __init__(self, stores: Stores, definitions: Definitions | None) -> None:
        """
        @param definitions: The types of the release; without them built-in objects are not decoded.
        """
        self._stores = stores
        self._definitions = definitions
        self._codecs: dict[tuple[GroupVersionKind, GroupVersionKind], Codec] = {}
        self._equivalents: dict[tuple[str, str, str, GroupVersionKind], tuple[EquivalentResource, ...]] = {}

    def equivalents_for(
        self, group: str, resource: str, subresource: str, kind: GroupVersionKind
    ) -> tuple[EquivalentResource, ...]:
        """
        Return the resources that are equivalent to a resource, itself included.

        These are all its versions, and the resources of other groups that store the same objects.

        @param group: The group of the resource.
        @param resource: The name of the resource (plural).
        @param subresource: The name of the subresource; C{""} without one.
        @param kind: The kind of the request's object. If it is not the kind of the resource (as C{Scale}), all
            equivalents have it.
        """
        custom = self._custom(group, resource)
        if custom is not None:
            definition = custom.definition
            return tuple(
                EquivalentResource(
                    GroupVersionResource(group, version.name, resource),
                    version.gvk if kind.kind == definition.kind and kind.group == group else kind,
                )
                for version in definition.served
            )
        key = (group, resource, subresource, kind)
        equivalents = self._equivalents.get(key)
        if equivalents is None:
            equivalents = self._equivalents[key] = tuple(self._built_in_equivalents(group, resource, kind))
        return equivalents

    def equivalents_key(self, group: str, resource: str) -> object:
        """
        Return an object that changes when the equivalents of a resource change, for caches.

        @return: The definition of a custom resource; L{None} for a built-in one.
        """
        if (group, resource) in self._stores.infos:
            return None
        custom = self._custom(group, resource)
        return None if custom is None else custom.definition

    def _built_in_equivalents(self, group: str, resource: str, kind: GroupVersionKind) -> list[EquivalentResource]:
        requested = self._stores.infos.get((group, resource))
        if requested is None:
            return []
        is_resource_kind = kind.kind == requested.kind and kind.group == requested.group
        return [
            EquivalentResource(
                GroupVersionResource(info.group, version, info.resource),
                info.gvk(version) if is_resource_kind else kind,
            )
            for info in self._stores.infos.values()
            if info is requested or (requested.stored and info.stored and info.key_prefix == requested.key_prefix)
            for version in info.versions
        ]

    def _custom(self, group: str, resource: str) -> ServedResource | None:
        stores = self._stores
        return None if (group, resource) in stores.infos else stores.custom.get(f"{resource}.{group}")

    async def convert_to_gvk(
        self, group: str, resource: str, obj: JSONObject, source: GroupVersionKind, target: GroupVersionKind
    ) -> JSONObject:
        """
        Return an object in another version, with C{kind} and C{apiVersion} first.

        @param group: The group of its resource.
        @param resource: The name of its resource (plural).
        @param obj: The object; it is not changed.
        @param source: Its kind and version.
        @param target: The requested kind and version.
        @raise APIStatusError: A conversion webhook or plugin failed.
        """
        obj = {**obj, "kind": source.kind, "apiVersion": source.api_version}
        if source != target:
            # Conversions and schemas do not support the types of frozen objects.
            obj = await self._converted(group, resource, mutable_copy(obj), source, target)
        rest = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}
        return {"kind": target.kind, "apiVersion": target.api_version, **rest}

    async def _converted(
        self, group: str, resource: str, obj: JSONObject, source: GroupVersionKind, target: GroupVersionKind
    ) -> JSONObject:
        custom = self._custom(group, resource)
        if custom is None:
            return convert(obj, source, target)
        codec = custom.store(custom.definition.version(target.version)).codec
        conversion = getattr(codec, "conversion", None)
        if conversion is not None:
            [obj] = await conversion.convert([obj], target)
        return codec.pruned(obj)

    async def decode_mutated(
        self,
        group: str,
        resource: str,
        value: JSONValue,
        source: GroupVersionKind,
        target: GroupVersionKind,
        *,
        strict: bool = False,
    ) -> JSONObject:
        """
        Decode, convert and default an object after a mutation.

        The kind and version of the result are checked here, since a mutation can change them like any field. If the
        mutation removed the kind of a built-in kind, it is filled in, as Go's decoder does with the target type.

        @param group: The group of its resource.
        @param resource: The name of its resource (plural).
        @param value: The mutated object, in the version that the mutation received.
        @param source: That kind and version.
        @param target: The kind and version that the server uses.
        @param strict: Whether unknown fields of a built-in kind are an error instead of being dropped.
        @return: The object in C{target}, with defaults.
        @raise ValueError: The result is not an object of that kind, or has unknown fields and C{strict} is set.
        @raise APIStatusError: It cannot be converted.
        """
        custom = self._custom(group, resource)
        if custom is not None and source.kind == custom.definition.kind:
            store = custom.store(custom.definition.version(source.version))
            api_version = value.get("apiVersion") or ""
            if value.get("kind") == source.kind and api_version != source.api_version:
                changed = GroupVersion.parse(api_version)
                raise ValueError(
                    f"failed to convert object: {changed.group}/{changed.version}, Kind={source.kind} is unstructured "
                    f"and is not suitable for converting to {quoted(target.api_version)}"
                )
            try:
                obj = store.codec.decode_patched(value, [])
            except MissingField as error:
                raise ValueError(error.within(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())) from None
            store.codec.check_kind(obj)
            if source != target:
                obj = await self._converted(group, resource, obj, source, target)
                store = custom.store(custom.definition.version(target.version))
            store.strategy.default(obj)
            return obj
        definitions = self._definitions
        if definitions is None or not definitions.has_kind(source):
            if not isinstance(value, dict):
                raise ValueError("the mutated value is not an object")
            return value
        codec = self._codecs.get((source, target))
        if codec is None:
            codec = self._codecs[source, target] = Codec(definitions, source, target)
        if isinstance(value, dict):
            value = _with_kind(sort_keys(value) if strict else value, source)
        problems: list[str] = []
        obj = codec.decode_patched(value, problems, strict=strict)
        if obj["metadata"].get("managedFields") == []:
            del obj["metadata"]["managedFields"]
        info = self._stores.infos.get((group, resource))
        owner = (
            (info.group, info.kind) if info is not None and info.kind == source.kind else (source.group, source.kind)
        )
        if info is not None and info.stored and owner == (info.group, info.kind):
            # The strategy of the store has the defaults of the server's release and feature gates.
            return self._stores.get(group, resource).strategy.defaulted(obj, codec.to_storage)
        return strategy_for(*owner).defaulted(obj, codec.to_storage)


def _with_kind(value: JSONObject, default: GroupVersionKind) -> JSONObject:
    """Fill in kind and apiVersion where they are missing (apimachinery, C{serializer/json}, C{gvkWithDefaults})."""
    kind, api_version = value.get("kind") or default.kind, value.get("apiVersion") or default.api_version
    return {**value, "kind": kind, "apiVersion": api_version}
