"""Decoding of custom resources by their schema, and conversion between versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import orjson

from ...api.decoding import Decoded
from ...api.errors import APIStatusError, invalid
from ...api.jsontypes import JSONValue
from ...api.record import (
    Draft,
    Record,
    without_kind,
)
from ...api.resource import GroupKind, GroupVersion, GroupVersionKind, JSONObject
from ...schema.mismatch import DecodeError
from ..generic.codec import Codec, MissingField, type_meta

if TYPE_CHECKING:
    from ...schema.structural import CustomType
    from .crd import CustomVersion


class OldVersionRecord(Record):
    """
    A record of an object that is stored in an earlier storage version.

    Any update rewrites it in the current storage version.

    @ivar version: The version in which it is stored.
    """

    __slots__ = ("version",)
    stale_format = True

    def __init__(self, key: str, revision: int, draft: Draft, version: str) -> None:
        plain = Record.from_draft(key, revision, draft)
        super().__init__(key, revision, plain.item, draft.labels, draft.fields)
        self.version = version

    def deleted_at(self, revision: int) -> Record:
        """See L{Record.deleted_at}."""
        return OldVersionRecord(self.key, revision, Draft(self.body(), self.labels, self.fields), self.version)


class RenamedRecord(Record):
    """
    An L{OldVersionRecord} whose conversion only changes the apiVersion: C{item} is in the current storage version.

    @ivar original: The object with all fields and defaults of the version in which it is stored.
    """

    __slots__ = ("original",)
    stale_format = True

    def __init__(self, key: str, revision: int, draft: Draft, original: Draft) -> None:
        plain = Record.from_draft(key, revision, draft)
        super().__init__(key, revision, plain.item, draft.labels, draft.fields)
        self.original = Record.from_draft(key, revision, original)

    def deleted_at(self, revision: int) -> Record:
        """See L{Record.deleted_at}."""
        original = Draft(self.original.body(), self.labels, self.fields)
        return RenamedRecord(self.key, revision, Draft(self.body(), self.labels, self.fields), original)


def stored_version(record: Record) -> str:
    """Return the version of a record; C{""} for the current storage version."""
    return record.version if isinstance(record, OldVersionRecord) else ""


class CustomCodec(Codec):
    """
    Decodes and converts custom resources as L{Codec} does built-in kinds, with these differences.

    Objects passed to and from a store are in the version of the request, since the store converts to the stored
    version: L{to_storage} does nothing, and L{from_storage} leaves converted objects unchanged.

    @ivar conversion: The converter; L{None} if conversion changes the apiVersion only.
    @ivar checks_kind: Whether the result of a patch must have this kind and version. The reference validates that on
        the main resource; patches of the status take only the status (C{validator.go} and C{status_strategy.go} of
        apiextensions' C{pkg/registry/customresource}).
    """

    protobuf: ClassVar[bool] = False
    keeps_floats: ClassVar[bool] = True

    def __init__(self, version: CustomVersion, checks_kind: bool = True) -> None:
        definition = version.definition
        storage = GroupVersionKind(definition.group, definition.storage_version, definition.kind)
        super().__init__(definition.definitions, version.gvk, storage)
        self._version = version
        self.checks_kind = checks_kind
        self.conversion = definition.conversion
        if self.conversion is not None:
            # Records may be in an earlier storage version.
            self.converts = True

    @property
    def type(self) -> CustomType:  # type: ignore[override]
        """Return the type of this version."""
        return self._version.type

    @property
    def zero_metadata(self) -> JSONObject:
        """See L{Codec.zero_metadata}."""
        return {}

    def wrap_byte_fields(self, value: JSONObject, wrap: Callable[[bytes], object]) -> JSONObject:
        """Return the object: custom resources have no Go type."""
        return value

    def decode(self, value: JSONValue, problems: list[str], raw: bytes = b"", *, json: bool = True) -> JSONObject:
        """
        Return the object in a decoded body.

        @param value: The decoded body.
        @param problems: Receives a text per unknown field.
        @param raw: The body, for messages.
        @param json: Ignored.
        @raise APIStatusError: The body has another kind (422) or version (400), or is not an object (400).
        """
        if value is None:
            value = {}
        try:
            kind, api_version = type_meta(value)
        except ValueError as error:
            raise self.unrecognized(str(error), raw) from None
        if not kind:
            raise self.unrecognized(f"Object 'Kind' is missing in '{raw.decode('utf-8', 'replace')}'", raw)
        if api_version != self.gvk.api_version:
            actual_version = api_version.removeprefix("/")
            raise APIStatusError.bad_request(
                f"the API version in the data ({actual_version}) does not match the expected API version "
                f"({self.gvk.api_version})"
            )
        try:
            obj = self.type.decode(value, problems)
        except DecodeError as error:
            raise self.decoding_error(str(error)) from None
        if "metadata" not in obj:
            obj["metadata"] = {}
        if kind != self.gvk.kind:
            field_error = invalid("kind", kind, f"must be {self.gvk.kind}")
            raise APIStatusError.invalid(
                GroupKind(self.gvk.group, kind), obj["metadata"].get("name", ""), [field_error]
            )
        return obj

    def strict_decoding_errors(self, document: Decoded, problems: list[str], raw: bytes = b"") -> list[str]:
        """Return messages for duplicate fields, then for unknown ones."""
        return [*document.duplicates, *problems]

    def decode_patched(
        self, value: JSONValue, problems: list[str], *, converted: bool = False, strict: bool = False
    ) -> JSONObject:
        """
        Return the object in the result of a patch; unknown fields are always pruned.

        @param value: The result of the patch.
        @param problems: Receives a text per unknown field.
        @param converted: Whether it is the result of an apply, which the field manager has completed.
        @param strict: Ignored, see above.
        @return: The object, with the kind and version that it names; see L{check_kind}.
        @raise ValueError: The result is not an object of this kind.
        @raise APIStatusError: It has no apiVersion (500).
        """
        if converted:
            return {**value, "metadata": self.type.metadata(value.get("metadata") or {})}
        kind, api_version = type_meta(value)
        if not kind:
            raise MissingField("Kind")
        group_version = GroupVersion.parse(api_version)
        meta = value.get("metadata")
        name = meta.get("name") if isinstance(meta, dict) else None
        if not group_version.version and name:
            raise APIStatusError.internal(MissingField("apiVersion").within("object has no apiVersion field"))
        kind_type: CustomType | None = self.type
        if kind == self.gvk.kind and group_version.group == self.gvk.group:
            kind_type = self._type_of(group_version.version)
        if kind_type is None:
            # Objects of another kind have no schema here, so all their fields are unknown.
            problems += [f'unknown field "{name}"' for name in value if name not in ("kind", "apiVersion", "metadata")]
            kind_type, problems = self.type, []
        try:
            obj = kind_type.decode(value, problems)
        except DecodeError as error:
            raise ValueError(str(error)) from None
        if "metadata" not in obj:
            obj["metadata"] = {}
        obj["kind"], obj["apiVersion"] = kind, str(group_version)
        return obj

    def check_kind(self, obj: JSONObject) -> None:
        """
        Reject a result of L{decode_patched} of another kind or version, unless only its status is used.

        @raise APIStatusError: The object has another kind or version (422).
        """
        kind, api_version = obj["kind"], obj["apiVersion"]
        errors = []
        if kind != self.gvk.kind:
            errors.append(invalid("kind", kind, f"must be {self.gvk.kind}"))
        if api_version != self.gvk.api_version:
            errors.append(invalid("apiVersion", api_version, f"must be {self.gvk.api_version}"))
        if errors and self.checks_kind:
            name = obj["metadata"].get("name", "")
            raise APIStatusError.invalid(GroupKind(GroupVersion.parse(api_version).group, kind), name, errors)

    def _type_of(self, version: str) -> CustomType | None:
        """Return the type of a version of the kind; L{None} if the definition has no such version."""
        return next((one.type for one in self._version.definition.versions if one.name == version), None)

    def to_storage(self, obj: JSONObject) -> JSONObject:
        """Return the object unchanged."""
        return obj

    def from_storage(self, obj: JSONObject) -> JSONObject:
        """Return the object in this version, with kind and apiVersion, and without unknown fields."""
        obj = self.with_kind(obj)
        return self.pruned(obj) if self.converts else obj

    def metadata(self, obj: JSONObject) -> JSONObject:
        """See L{Codec.metadata}; custom resources have no internal type."""
        meta: JSONObject = obj.get("metadata") or {}
        return meta

    def with_kind(self, obj: JSONObject) -> JSONObject:
        """Return an object of this version with its kind and apiVersion."""
        return {**obj, "kind": self.gvk.kind, "apiVersion": self.gvk.api_version}

    def has(self, record: Record) -> bool:
        """Return whether a record is available in this version without a conversion."""
        if (stored_version(record) or self.storage.version) == self.gvk.version:
            return True
        return record.views is not None and self.gvk in record.views

    def item(self, record: Record) -> bytes:
        """See L{Codec.item}; a record that a webhook or plugin converts must be converted already."""
        if self.conversion is None:
            if not self.converts:
                return record.item
            views = record.views
            if views is None:
                views = record.views = {}
            item: bytes | None = views.get(self.gvk)
            if item is None:
                original = record.original if isinstance(record, RenamedRecord) else record
                item = views[self.gvk] = without_kind(self.from_storage(orjson.loads(original.item)))
            return item
        if (stored_version(record) or self.storage.version) == self.gvk.version:
            return record.item
        assert record.views is not None, "who shows a record converts it before"
        converted: bytes = record.views[self.gvk]
        return converted

    async def convert_records(self, records: Sequence[Record], version: str) -> None:
        """
        Convert records to this version and cache the results with the records.

        @param version: The version of the records.
        @raise APIStatusError: The conversion failed.
        """
        assert self.conversion is not None
        if all(one.name != version for one in self._version.definition.versions):
            source_version = f"{self.gvk.group}/{version}"
            raise APIStatusError.unknown(f"request to convert CR from an invalid group/version: {source_version}")
        head = {"kind": self.gvk.kind, "apiVersion": f"{self.gvk.group}/{version}"}
        objects = [{**head, **orjson.loads(record.item)} for record in records]
        for record, obj in zip(records, await self.conversion.convert(objects, self.gvk), strict=True):
            if record.views is None:
                record.views = {}
            record.views[self.gvk] = without_kind(self.pruned(obj))

    def pruned(self, obj: JSONObject) -> JSONObject:
        """Remove fields that this version does not have from a converted object; no defaults are added."""
        try:
            return self.type.prune(obj)
        except DecodeError:
            return obj

    def reread(self, obj: JSONObject) -> JSONObject:
        """Return an object as it is read after it was stored in this version, with its defaults."""
        try:
            return self.type.decode(obj, [])
        except DecodeError:
            return obj


class CustomScaleCodec(Codec):
    """Codec of C{Scale} for custom resources, for which the reference has a separate scheme."""

    internal: ClassVar[bool] = False

    @property
    def scheme(self) -> str:
        """See L{Codec.scheme}."""
        return "k8s.io/client-go/scale/util.go:146"

    def has_kind(self, gvk: GroupVersionKind) -> bool:
        """See L{Codec.has_kind}."""
        return gvk == self.gvk
