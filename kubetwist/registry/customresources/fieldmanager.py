"""Field management of custom resources."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import orjson

from ...api.errors import APIStatusError
from ...api.resource import GroupVersionKind, JSONObject
from ...schema.merge.ownership import Filters
from ...schema.merge.types import (
    MergeType,
    TypedError,
)
from ...schema.structural import OBJECT_META
from ...schema.structuralrules import iterate_subschemas
from ..generic.fieldmanager.manager import BuiltInVersionConverter, FieldManager, parsed_version
from ..generic.fieldmanager.resetfields import default_reset_fields_filter
from ..generic.fieldmanager.scalehandler import SCALE_VERSION, replicas_path

if TYPE_CHECKING:
    from ...schema.definitions import Definitions
    from .crd import CustomDefinition, CustomVersion

#: Maximum number of cached conversions, enough for a few concurrent writes.
CACHED_CONVERSIONS: Final = 64
SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
_UNCONVERTIBLE_SCALE: Final = f"request to convert CR to an invalid group/version: {SCALE_VERSION}"


class ConversionNeeded(Exception):
    """
    An object must be converted by a webhook or plugin before its ownership is known; then the call can be repeated.

    @ivar obj: The object as JSON, with kind and apiVersion.
    @ivar target: The requested apiVersion.
    """

    def __init__(self, obj: bytes, target: str) -> None:
        super().__init__(f"not converted to {target} yet")
        self.obj = obj
        self.target = target


class CustomFieldManager(FieldManager):
    """The field manager of a custom resource, or of its status."""

    def __init__(
        self, version: CustomVersion, versions: CustomVersionConverter, subresource: str, filters: Filters
    ) -> None:
        """
        @param version: The version of the endpoint.
        @param versions: All versions of the resource.
        @param subresource: C{""} or C{"status"}.
        @param filters: Fields that clients of the endpoint may own, by version.
        """
        super().__init__(
            version.gvk,
            versions,
            version.type.zero,
            subresource=subresource,
            filters=filters,
            types_change=True,
        )
        self._fill = version.type.add_defaults

    def update(self, live: JSONObject | None, new: JSONObject, manager: str, now: str) -> None:
        """
        See L{FieldManager.update}.

        @raise ConversionNeeded: An object must be converted first; nothing is changed.
        """
        meta = new["metadata"]
        sent = meta.get("managedFields")
        try:
            super().update(live, new, manager, now)
        except ConversionNeeded:
            if sent is not None:
                meta["managedFields"] = sent
            raise

    def completed(self, merged: JSONObject, applied: JSONObject) -> JSONObject:
        """
        Add defaults to an object.

        Unlike in other writes nothing is pruned, so nulls remain for validation.
        """
        return self._fill(merged)


class CustomScaleManager(FieldManager):
    """
    The field manager of a custom resource's C{scale}, which refuses most applies as the reference does.

    In the reference, empty and changed scales are untyped, and the converter of custom resources handles them as custom
    resources; see apiextensions-apiserver, C{pkg/apiserver/conversion/converter.go}. Therefore an apply succeeds only
    if it changes nothing and the replicas have an owner.
    """

    def empty_object(self) -> JSONObject:
        """Raise the error for a C{Scale} without an owner."""
        raise TypedError(
            f"failed to convert live object (/; {SCALE_VERSION}, Kind=Scale) to proper version: {_UNCONVERTIBLE_SCALE}"
        )

    def completed(self, merged: JSONObject, applied: JSONObject) -> JSONObject:
        """Raise the error for a C{Scale} that the apply would change."""
        about = f"failed to convert new object ({self.format_name(applied)}) to proper version"
        raise APIStatusError.unknown(f"{about}: {_UNCONVERTIBLE_SCALE}")


class CustomVersionConverter:
    """Converts a custom resource for field ownership; see L{kubetwist.schema.merge.ownership.MergeConverter}."""

    def __init__(self, definition: CustomDefinition) -> None:
        self._definition = definition
        self._types: dict[str, MergeType] = {}
        #: Results or errors of conversions, by the JSON of the object and the requested apiVersion.
        self._learned: OrderedDict[tuple[bytes, str], JSONObject | str] = OrderedDict()

    def _version(self, api_version: str) -> CustomVersion:
        """
        Return a version of the definition.

        @raise TypedError: The version does not exist.
        """
        group, name = parsed_version(api_version)
        if group == self._definition.group:
            try:
                return self._definition.version(name)
            except KeyError:
                pass
        raise TypedError(f"request to convert CR to an invalid group/version: {api_version}")

    def type_of(self, api_version: str) -> MergeType:
        """See L{kubetwist.schema.merge.ownership.MergeConverter.type_of}."""
        merge_type = self._types.get(api_version)
        if merge_type is None:
            version = self._version(api_version)
            types = self._definition.definitions.merge_types
            merge_type = types.custom_resource_type(
                with_metadata(version.schema), self._definition.preserves_unknown_fields
            )
            self._types[api_version] = merge_type
        return merge_type

    def convert(self, obj: JSONObject, source: str, target: str, hub: str) -> JSONObject:
        """
        See L{kubetwist.schema.merge.ownership.MergeConverter.convert}.

        @raise ConversionNeeded: A webhook or plugin must convert the object first.
        """
        for version in (hub, target):
            if version != source:
                obj = self._converted(obj, source, version)
                source = version
        return obj

    def _converted(self, obj: JSONObject, source: str, target: str) -> JSONObject:
        self._version(target)
        if self._definition.conversion is None:
            return {**obj, "apiVersion": target}
        item = orjson.dumps({**obj, "kind": self._definition.kind, "apiVersion": source})
        known = self._learned.get((item, target))
        if known is None:
            raise ConversionNeeded(item, target)
        if isinstance(known, str):
            raise TypedError(known)
        return known

    async def run_conversion(self, needed: ConversionNeeded) -> None:
        """Run the pending conversion, and cache its results for a while."""
        conversion, version = self._definition.conversion, self._version(needed.target)
        assert conversion is not None
        result: JSONObject | str
        try:
            [result] = await conversion.convert([orjson.loads(needed.obj)], version.gvk)
        except APIStatusError as error:
            result = error.message
        self._learned[needed.obj, needed.target] = result
        if len(self._learned) > CACHED_CONVERSIONS:
            self._learned.popitem(last=False)


def with_metadata(schema: JSONObject) -> JSONObject:
    """Return the schema with the metadata fields of embedded resources added."""
    if not any(part.get("x-kubernetes-embedded-resource") for part in iterate_subschemas(schema)):
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


def reset_fields(version: CustomVersion, subresource: str) -> Filters:
    """
    Return the fields that clients of a custom resource may own, by API version; see
    L{kubetwist.interfaces.IResetFieldsProvider}.

    If the status is a subresource, writes to the main resource ignore it in the version of the request only; see
    apiextensions-apiserver, C{pkg/registry/customresource/strategy.go} and C{getStatusResetFields}.

    @param version: The version of requests.
    @param subresource: C{"status"}; C{""} for the main resource.
    """
    filtering = version.definition.versions if subresource else (version,)
    return {one.gvk.api_version: default_reset_fields_filter(True, subresource) for one in filtering if one.has_status}


def field_manager(
    version: CustomVersion, versions: CustomVersionConverter, fields: Filters, subresource: str
) -> FieldManager:
    """
    Return the field manager of a custom resource, or of its status.

    @param version: The version of requests.
    @param versions: Converts objects between versions.
    @param fields: The L{reset_fields}.
    @param subresource: C{"status"}; C{""} for the main resource.
    """
    return CustomFieldManager(version, versions, subresource, fields)


def scale_manager(definitions: Definitions) -> FieldManager:
    """Return the field manager of a custom resource's C{Scale}."""
    return CustomScaleManager(
        SCALE, BuiltInVersionConverter(definitions, {SCALE_VERSION: SCALE}), dict, subresource="scale"
    )


def scale_paths(definition: CustomDefinition) -> dict[str, tuple[str, ...]]:
    """Return the path of the replicas for each version."""
    return {
        one.gvk.api_version: replicas_path(one.scale["specReplicasPath"]) if one.scale is not None else ()
        for one in definition.versions
    }
