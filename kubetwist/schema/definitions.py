"""
The OpenAPI definitions of one Kubernetes release, from the files that L{kubetwist.schema.releasefiles} reads.

The files add C{null} to the types of optional fields and C{enum} to kind and apiVersion; both are removed.
"""

from __future__ import annotations

from collections.abc import KeysView
from functools import cached_property

import orjson

from ..api.featuregates import parse_release
from ..api.resource import GroupVersionKind, JSONObject
from .bytefields import ByteFields
from .merge.builder import OBJECT_META, MergeTypeBuilder
from .merge.types import MergeType
from .nodes import StructNode
from .objecttype import ObjectType
from .openapi import openapi_schema
from .protobuf.codec import ProtobufTypes
from .releasefiles import available_versions, read
from .typebuilder import TypeBuilder


class UnknownRelease(ValueError):
    """There are no definitions for a release; the message lists the available releases."""


class Definitions:
    """
    The types of one release.

    Until they are used, definitions are stored as JSON.

    @ivar minor: The release, such as C{"1.36"}.
    @ivar protobuf: Encoders and decoders for protobuf.
    @ivar byte_fields: The fields whose JSON is base64.
    @ivar merge_types: Types for field ownership.
    """

    def __init__(self, minor: str, encoded: dict[str, bytes], kinds: dict[GroupVersionKind, str]) -> None:
        self.minor = minor
        self._encoded = encoded
        self._kinds = kinds
        self._types: dict[GroupVersionKind, ObjectType] = {}
        self._descriptions: dict[str, dict[str, str]] = {}
        self._builder = TypeBuilder(self._schema, parse_release(minor))
        self._custom_builder = TypeBuilder(self._schema)
        self.protobuf = ProtobufTypes(self._schema)
        self.byte_fields = ByteFields(self._schema)
        self.merge_types = MergeTypeBuilder(self._schema)

    @classmethod
    def load(cls, minor: str) -> Definitions:
        """
        Read the definitions of a release.

        @raise UnknownRelease: There are no definitions for the release.
        """
        if minor not in available_versions():
            raise UnknownRelease(f"no types of Kubernetes {minor}; available: {', '.join(available_versions())}")
        release = read(minor)
        kinds = {GroupVersionKind(group, version, kind): name for group, version, kind, name in release.kinds}
        return cls(minor, release.definitions, kinds)

    def gvks(self) -> KeysView[GroupVersionKind]:
        """Return all kinds, including C{DeleteOptions} and C{WatchEvent} of every group."""
        return self._kinds.keys()

    def has_kind(self, gvk: GroupVersionKind) -> bool:
        """Return whether the release has a kind."""
        return gvk in self._kinds

    def definition_of(self, gvk: GroupVersionKind) -> str:
        """
        Return the name of a kind's definition: C{io.k8s.api.core.v1.Pod}.

        @raise KeyError: The release has no such kind.
        """
        return self._kinds[gvk]

    def type_for(self, gvk: GroupVersionKind) -> ObjectType:
        """
        Return the type of a kind.

        @raise KeyError: The release has no such kind.
        """
        existing = self._types.get(gvk)
        if existing is None:
            existing = self._types[gvk] = ObjectType(gvk, self._builder.struct(self._kinds[gvk]))
        return existing

    def merge_type_for(self, gvk: GroupVersionKind) -> MergeType:
        """
        Return the merge type of a kind.

        @raise KeyError: The release has no such kind.
        """
        return self.merge_types.type_for_definition(self._kinds[gvk])

    def struct(self, definition: str) -> StructNode:
        """
        Return the type of a definition that is not a kind: C{io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta}.

        @raise KeyError: The release has no such definition.
        """
        return self._builder.struct(definition)

    @property
    def custom_metadata(self) -> StructNode:
        """
        Return the type of C{metadata} in custom resources: in all releases, a creation time that is not set is omitted.

        Source: apiextensions-apiserver, C{pkg/apiserver/schema/objectmeta/algorithm.go}.
        """
        return self._custom_builder.struct(OBJECT_META)

    @cached_property
    def zero_metadata(self) -> JSONObject:
        """Return the metadata of built-in kinds that is encoded even if it is not set."""
        zero: JSONObject = self._builder.struct(OBJECT_META).zero()
        return zero

    def description(self, definition: str, field: str) -> str:
        """
        Return the description of a field; C{""} if it has none or the type is unknown.
        """
        existing = self._descriptions.get(definition)
        if existing is None:
            encoded = self._encoded.get(definition)
            properties = {} if encoded is None else orjson.loads(encoded).get("properties", {})
            existing = {name: property_schema.get("description", "") for name, property_schema in properties.items()}
            self._descriptions[definition] = existing
        return existing.get(field, "")

    def openapi_schemas(self, ref_prefix: str) -> dict[str, JSONObject]:
        """
        Return the published form of all definitions. The caller may modify them.

        They are decoded one by one so that other threads can run.

        @param ref_prefix: The prefix of the name in a C{$ref}: C{"#/definitions/"} for OpenAPI 2,
            C{"#/components/schemas/"} for OpenAPI 3.
        """
        release = parse_release(self.minor)
        return {
            name: openapi_schema(name, orjson.loads(text), ref_prefix, release) for name, text in self._encoded.items()
        }

    def openapi_schema(self, name: str) -> JSONObject:
        """Return one definition of L{openapi_schemas}, for OpenAPI 2."""
        return openapi_schema(name, self._schema(name), "#/definitions/", parse_release(self.minor))

    def _schema(self, name: str) -> JSONObject:
        schema: JSONObject = orjson.loads(self._encoded[name])
        schema.pop("description", None)
        for property_schema in schema.get("properties", {}).values():
            property_schema.pop("description", None)
        return schema
