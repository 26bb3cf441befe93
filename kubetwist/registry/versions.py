"""
Objects on their way to those who want another version of them than the server keeps: webhooks and policies.

What a plugin in the server sees is in the version that is stored, or, for custom resources, in that of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ..admission.matching.equivalents import EquivalentResource
from ..api.frozen import mutable_copy
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.resource import GroupVersion, GroupVersionKind, GroupVersionResource, JSONObject
from .generic.codec import Codec, MissingField, by_name
from .generic.conversion import convert
from .strategies import strategy_for

if TYPE_CHECKING:
    from ..schema.definitions import Definitions
    from .customresources.served import ServedResource
    from .stores import Stores


class Versions:
    """All versions of everything that is served."""

    def __init__(self, stores: Stores, definitions: Definitions | None) -> None:
        """
        @param definitions: The types of the release; without them built-in objects are not decoded.
        """
        self._stores = stores
        self._definitions = definitions
        self._codecs: dict[tuple[GroupVersionKind, GroupVersionKind], Codec] = {}
        self._forms: dict[tuple[str, str, str, GroupVersionKind], tuple[EquivalentResource, ...]] = {}

    def forms(
        self, group: str, resource: str, subresource: str, kind: GroupVersionKind
    ) -> tuple[EquivalentResource, ...]:
        """
        Every form that a request for a resource can have: in all versions, and in other groups that share its objects.

        @param kind: What the request has; subresources with a kind of their own have it in all versions.
        """
        custom = self._custom(group, resource)
        if custom is not None:
            definition = custom.definition
            return tuple(
                EquivalentResource(
                    GroupVersionResource(group, one.name, resource),
                    one.gvk if kind.kind == definition.kind and kind.group == group else kind,
                )
                for one in definition.served
            )
        key = (group, resource, subresource, kind)
        forms = self._forms.get(key)
        if forms is None:
            forms = self._forms[key] = tuple(self._built_in_forms(group, resource, kind))
        return forms

    def definition(self, group: str, resource: str) -> object:
        """What the forms of a custom resource hold for, another object when they change; L{None} for built-in ones."""
        if (group, resource) in self._stores.infos:
            return None
        custom = self._custom(group, resource)
        return None if custom is None else custom.definition

    def _built_in_forms(self, group: str, resource: str, kind: GroupVersionKind) -> list[EquivalentResource]:
        mine = self._stores.infos.get((group, resource))
        if mine is None:
            return []
        own = kind.kind == mine.kind and kind.group == mine.group
        return [
            EquivalentResource(
                GroupVersionResource(info.group, version, info.resource), info.gvk(version) if own else kind
            )
            for info in self._stores.infos.values()
            if info is mine or (mine.stored and info.stored and info.key_prefix == mine.key_prefix)
            for version in info.versions
        ]

    def _custom(self, group: str, resource: str) -> ServedResource | None:
        stores = self._stores
        return None if (group, resource) in stores.infos else stores.custom.get(f"{resource}.{group}")

    async def shown(
        self, group: str, resource: str, obj: JSONObject, source: GroupVersionKind, target: GroupVersionKind
    ) -> JSONObject:
        """
        An object as clients of a version see it, with C{kind} and C{apiVersion} first. C{obj} stays as it is.

        @param source: What it is.
        @raise APIStatusError: A conversion webhook or plugin failed.
        """
        obj = {**obj, "kind": source.kind, "apiVersion": source.api_version}
        if source != target:
            # What old objects are made of is not what conversions and schemas know.
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

    async def taken(
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

        @param value: The mutated object in the form that the mutation received.
        @param source: The kind and version of that form.
        @param target: The kind and version that the server uses.
        @param strict: Whether unknown fields of a built-in kind are an error instead of being dropped.
        @return: The object in C{target}, with defaults.
        @raise ValueError: The result is not an object of that kind, or has unknown fields and C{strict} is set.
        @raise APIStatusError: It cannot be converted.
        """
        custom = self._custom(group, resource)
        if custom is not None and source.kind == custom.definition.kind:
            store = custom.store(custom.definition.version(source.version))
            said = value.get("apiVersion") or ""
            if value.get("kind") == source.kind and said != source.api_version:
                shown = GroupVersion.parse(said)
                raise ValueError(
                    f"failed to convert object: {shown.group}/{shown.version}, Kind={source.kind} is unstructured and "
                    f"is not suitable for converting to {quoted(target.api_version)}"
                )
            try:
                obj = store.codec.redecode(value, [])
            except MissingField as error:
                raise ValueError(error.within(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode())) from None
            store.codec.check_kind(obj)
            if source != target:
                obj = await self._converted(group, resource, obj, source, target)
                store = custom.store(custom.definition.version(target.version))
            store.strategy.default(obj)
            return obj
        definitions = self._definitions
        if definitions is None or not definitions.knows(source):
            if not isinstance(value, dict):
                raise ValueError("it is no object any more")
            return value
        codec = self._codecs.get((source, target))
        if codec is None:
            codec = self._codecs[source, target] = Codec(definitions, source, target)
        if isinstance(value, dict):
            value = _with_kind(by_name(value) if strict else value, source)
        problems: list[str] = []
        obj = codec.redecode(value, problems, strict=strict)
        if obj["metadata"].get("managedFields") == []:
            del obj["metadata"]["managedFields"]
        info = self._stores.infos.get((group, resource))
        owner = (
            (info.group, info.kind) if info is not None and info.kind == source.kind else (source.group, source.kind)
        )
        return strategy_for(*owner).defaulted(obj, codec.to_storage)


def _with_kind(value: JSONObject, default: GroupVersionKind) -> JSONObject:
    """Fill in kind and apiVersion where they are missing (apimachinery, C{serializer/json}, C{gvkWithDefaults})."""
    kind, api_version = value.get("kind") or default.kind, value.get("apiVersion") or default.api_version
    return {**value, "kind": kind, "apiVersion": api_version}
