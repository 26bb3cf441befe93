"""Codecs: decoding, conversion and encoding of the objects of one kind in one version."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

import orjson

from ...api.decoding import BodyError, Decoded, json_type
from ...api.errors import APIStatusError, FieldError, shown
from ...api.jsontypes import JSONValue
from ...api.record import (
    Record,
    without_kind,
)
from ...api.resource import GroupKind, GroupVersion, GroupVersionKind, JSONObject
from ...api.writtennumbers import with_written_numbers, without_written_numbers
from ...schema.leaves import StrictErrors
from ...schema.objecttype import DecodeError, ObjectType
from ...schema.protobuf.codec import (
    WireError,
    read_envelope,
)
from .conversion import convert, convertible
from .internaltypes import ConversionError, internal_type, read_annotations, without_internal
from .removedversions import as_served, check_scale, copy_template_labels
from .schemes import INTERNAL, RESHAPED, SCHEME, STILL_KNOWN, internal_group, scheme_of

if TYPE_CHECKING:
    from ...schema.definitions import Definitions

_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


#: Further kinds and apiVersions that are accepted in bodies of a kind.
EQUIVALENT_KINDS: Final[dict[GroupVersionKind, tuple[str, str]]] = {
    GroupVersionKind("policy", "v1", "Eviction"): ("Eviction", "policy/v1beta1"),
}


class MissingField(ValueError):
    """
    The error for an object without a kind or apiVersion.

    @ivar field: C{"Kind"} or C{"apiVersion"}.
    """

    def __init__(self, field: str) -> None:
        super().__init__(f"Object '{field}' is missing")
        self.field = field

    def within(self, text: str) -> str:
        """Return the reference's message, which quotes the object."""
        return f"Object '{self.field}' is missing in '{text}'"


class Codec:
    """
    Decodes objects of one kind in one version, and converts them from and to the stored version.

    @ivar gvk: The kind in this version.
    @ivar storage: The kind in the stored version.
    @ivar converts: Whether the two differ.
    @cvar protobuf: Whether its objects have a protobuf form.
    @cvar keeps_floats: Whether C{1.0} remains a float until the object is encoded, since no Go type makes it an
        integer.
    @cvar internal: Whether the reference has an internal version of this kind.
    @ivar plain_metadata: Whether L{metadata} returns the stored metadata.
    """

    protobuf: ClassVar[bool] = True
    internal: ClassVar[bool] = True
    keeps_floats: ClassVar[bool] = False

    def __init__(self, definitions: Definitions, gvk: GroupVersionKind, storage: GroupVersionKind) -> None:
        self.gvk = gvk
        self._kind, self._api_version = gvk.kind, gvk.api_version
        self.storage = storage
        self.converts = gvk != storage
        self._internal_type = internal_type(gvk)
        self.plain_metadata = not self._internal_type.annotations
        self._definitions = definitions
        self._type: ObjectType | None = None

    @property
    def scheme(self) -> str:
        """Return the reference's name of its scheme for this kind."""
        return scheme_of(self.gvk.group)

    @property
    def type(self) -> ObjectType:
        """Return the type of this version, compiled at first use."""
        if self._type is None:
            self._type = self._definitions.type_for(self.gvk)
        return self._type

    def has_kind(self, gvk: GroupVersionKind) -> bool:
        """Return whether L{scheme} contains a kind."""
        return self._definitions.has_kind(gvk) or gvk.kind == "List"

    @property
    def zero_metadata(self) -> JSONObject:
        """Return the metadata that is encoded even if it is not set."""
        return self._definitions.zero_metadata

    def zero(self) -> JSONObject:
        """Return the zero value of this version."""
        zero = self.type.zero()
        if self._internal_type.convert_zero is not None:
            self._internal_type.convert_zero(zero)
        return zero

    def message(self, value: JSONObject, definition: str = "") -> bytes:
        """
        Return the protobuf message of an object of this version.

        @param definition: The name of the type of C{value}, such as that of list metadata; C{""} for this kind.
        @raise WireError: The object is nested too deeply, or does not fit the type.
        """
        return self._definitions.protobuf.encode(definition or self.type.definition, value)

    def wrap_byte_fields(self, value: JSONObject, wrap: Callable[[bytes], object]) -> JSONObject:
        """
        Replace the base64 values of fields that are bytes in Go, which CBOR has as byte strings.

        @param value: An object of this version, which is changed and returned.
        @param wrap: Returns the new value for the content of a field.
        """
        return self._definitions.byte_fields.replace(self.type.definition, value, wrap)

    def decode(self, value: JSONValue, problems: list[str], raw: bytes = b"", *, json: bool = True) -> JSONObject:
        """
        Decode a parsed body into an object of this kind.

        @param value: The parsed body.
        @param problems: Receives a text for each unknown field.
        @param raw: The body in bytes, for messages that quote its beginning, and for quantities that are numbers.
        @param json: Whether the body is JSON.
        @return: The object in this version, with C{kind}, C{apiVersion} and C{metadata}.
        @raise APIStatusError: The body is of another kind, or does not fit the type (400).
        """
        if value is None:
            value = {}
        try:
            kind, api_version = type_meta(value)
        except ValueError as error:
            raise self.unrecognized(str(error), raw) from None
        kind, api_version = kind or self._kind, api_version or self._api_version
        if (kind != self._kind or api_version != self._api_version) and (
            (kind, api_version) != EQUIVALENT_KINDS.get(self.gvk)
        ):
            sent = GroupVersion.parse(api_version)
            if sent.version or sent.group != self.gvk.group or kind != self.gvk.kind:
                self._reject_kind(GroupVersionKind(sent.group, sent.version, kind))
            # The body contains only the group: the version is that of the request.
            api_version = self._api_version
        unknown = StrictErrors()
        try:
            obj = self.type.decode(value, unknown)
        except DecodeError as error:
            raise self.decoding_error(error.as_written(raw)) from None
        problems += unknown
        if unknown.inexact and json:
            written = with_written_numbers(raw)
            if written is not None:
                obj = without_written_numbers(self.type.decode(written, []))
        obj["kind"] = self._kind
        obj["apiVersion"] = api_version
        ensure_metadata(obj, value)
        if self._internal_type.read is not None:
            try:
                read_annotations(self.gvk, obj)
            except ConversionError as error:
                raise self.decoding_error(str(error)) from None
        return obj

    def strict_decoding_errors(self, document: Decoded, problems: list[str], raw: bytes = b"") -> list[str]:
        """
        Return messages for unknown and duplicate fields, in the reference's order.

        @param problems: The problems that L{decode} found in the document.
        @param raw: The body in bytes, for error messages.
        @raise APIStatusError: A duplicate value, which a later one replaced, does not fit its field (400).
        """
        try:
            if document.with_duplicates is not None:
                return self.type.find_strict_errors(document.with_duplicates)
        except DecodeError as error:
            raise self.decoding_error(error.as_written(raw)) from None
        if document.by_map and len(problems) > 1:
            problems = self.type.find_strict_errors(sort_keys(document.value))
        return [*document.duplicates, *problems]

    def read_protobuf(self, data: bytes) -> Decoded:
        """
        Read a protobuf body for L{decode}.

        @raise BodyError: The body is not an envelope of Kubernetes.
        @raise APIStatusError: The content is not a message of this kind (400).
        """
        envelope = read_envelope(data)
        api_version = _parsable(envelope.api_version) or self.gvk.api_version
        kind = envelope.kind or self.gvk.kind
        value: JSONObject = {}
        # A wrong kind is rejected before the content is decoded.
        if kind == self.gvk.kind and api_version == self.gvk.api_version:
            try:
                value = self._definitions.protobuf.decode(self._definitions.definition_of(self.gvk), envelope.raw)
            except WireError as error:
                raise self.decoding_error(str(error)) from None
        return Decoded({**value, "kind": kind, "apiVersion": api_version})

    def read_delete_options(self, data: bytes) -> JSONObject:
        """
        Decode a protobuf body with C{DeleteOptions}.

        @raise BodyError: The body cannot be decoded.
        """
        envelope = read_envelope(data)
        value: JSONObject = {}
        if envelope.kind in ("", "DeleteOptions"):
            try:
                value = self._definitions.protobuf.decode(_DELETE_OPTIONS, envelope.raw)
            except WireError as error:
                raise BodyError(str(error), json=False) from None
        return {**value, "kind": envelope.kind, "apiVersion": _parsable(envelope.api_version)}

    def decode_patched(
        self, value: JSONValue, problems: list[str], *, converted: bool = False, strict: bool = False
    ) -> JSONObject:
        """
        Decode the result of a patch into an object of this kind.

        JSON may omit the kind, and may name another version of it. JSON without a version is decoded into the
        reference's internal type, whose fields have other names, so that none of them is read. The reference decodes a
        map into the expected kind, regardless of the kind in it.

        @param value: The result of the patch.
        @param problems: Receives a text for each unknown field.
        @param converted: Whether the reference has a map instead of JSON, which changes the error messages.
        @param strict: Whether unknown fields are an error.
        @return: The object in this version.
        @raise ConversionError: The object does not convert to the internal type.
        @raise ValueError: The result is not an object of this kind; the message is the reference's.
        """
        served = written = self.gvk
        # Most patches leave the kind as it is.
        if not converted and not self._has_expected_kind(value):
            written = self._kind_of(value)
            served = self._served(written)
            if served.version == INTERNAL and served.kind == self.gvk.kind and served.group == self.gvk.group:
                problems += [f'unknown field "{name}"' for name in value if name not in ("kind", "apiVersion")]
                return {"kind": self.gvk.kind, "apiVersion": self.gvk.api_version, "metadata": {}}
        if served != self.gvk and not (self.has_kind(served) and convertible(served, self.storage)):
            self._check_decodable(served, value, strict)
            raise ValueError(self._mismatch(served))
        try:
            object_type = self.type if served == self.gvk else self._definitions.type_for(served)
            if served != written:
                value = as_served(written, value, problems)
            obj = object_type.decode(value, problems, from_unstructured=converted)
        except DecodeError as error:
            raise ValueError(error.converted if converted else str(error)) from None
        if strict:
            _check_known(problems)
        ensure_metadata(obj, value)
        if served != self.gvk:
            read_annotations(served, obj)
            return convert(convert(obj, served, self.storage), self.storage, self.gvk)
        if self._internal_type.read is not None:
            read_annotations(self.gvk, obj)
        copy_template_labels(written, obj)
        obj["kind"], obj["apiVersion"] = self.gvk.kind, self.gvk.api_version
        return obj

    def check_kind(self, obj: JSONObject) -> None:
        """
        Reject a result of L{decode_patched} of another kind, which occurs for custom resources only.

        @raise APIStatusError: The object is of another kind (422).
        """

    def _has_expected_kind(self, value: JSONValue) -> bool:
        """Return whether a value names exactly this kind."""
        return (
            value.__class__ is dict
            and value.get("kind") == self.gvk.kind
            and value.get("apiVersion") == self.gvk.api_version
        )

    def _kind_of(self, value: JSONValue) -> GroupVersionKind:
        """
        Return the kind in a JSON object, with missing parts from the request: C{gvkWithDefaults} of apimachinery's
        C{json.go}.

        @raise ValueError: The apiVersion is malformed.
        """
        kind, api_version = type_meta(value)
        version = GroupVersion.parse(api_version)
        if not version.version:
            if version.group:
                raise MissingField("apiVersion")
            version = GroupVersion(self.gvk.group, INTERNAL if self.internal else self.gvk.version)
        return GroupVersionKind(version.group, version.version, kind or self.gvk.kind)

    def _served(self, gvk: GroupVersionKind) -> GroupVersionKind:
        """Return the served kind with the fields of an unserved one; C{gvk} if there is none."""
        if gvk not in STILL_KNOWN or gvk.kind != self.gvk.kind or gvk.kind in RESHAPED:
            return gvk
        if gvk.kind == "Event":
            return GroupVersionKind(gvk.group, "v1", gvk.kind)
        same = internal_group(gvk.group, gvk.kind) == internal_group(self.gvk.group, self.gvk.kind)
        return self.gvk if same else gvk

    def _check_decodable(self, gvk: GroupVersionKind, value: JSONValue, strict: bool) -> None:
        """
        Check a value against the type of the kind that it names, whose errors precede the error for another kind.

        @raise ValueError: The value does not fit the type.
        """
        if gvk.kind == "Scale" and gvk in STILL_KNOWN:
            check_scale(value)
        if self.has_kind(gvk) and self._definitions.has_kind(gvk):
            problems: list[str] = []
            try:
                self._definitions.type_for(gvk).decode(value, problems)
            except DecodeError as error:
                raise ValueError(str(error)) from None
            if strict:
                _check_known(problems)

    def to_storage(self, obj: JSONObject) -> JSONObject:
        """Convert an object of this version to the stored version."""
        return convert(obj, self.gvk, self.storage) if self.converts else obj

    def from_storage(self, obj: JSONObject) -> JSONObject:
        """Convert a stored object to this version, with C{kind} and C{apiVersion} first."""
        obj = {"kind": self.storage.kind, "apiVersion": self.storage.api_version, **obj}
        return convert(obj, self.storage, self.gvk) if self.converts else obj

    def item(self, record: Record) -> bytes:
        """Return the JSON of a record in this version, without kind and apiVersion; cached in the record."""
        if not self.converts:
            return record.item
        views = record.views
        if views is None:
            views = record.views = {}
        item: bytes | None = views.get(self.gvk)
        if item is None:
            item = views[self.gvk] = without_kind(self.from_storage(orjson.loads(record.item)))
        return item

    def metadata(self, obj: JSONObject) -> JSONObject:
        """
        Return the metadata for responses that the reference makes from the internal type: rows of Tables and
        C{PartialObjectMetadata}.

        @param obj: The object in the stored version.
        """
        meta: JSONObject = obj.get("metadata") or {}
        return without_internal(self._internal_type.annotations, meta)

    def has_item(self, record: Record) -> bool:
        """Return whether L{item} returns existing bytes, without a conversion."""
        return not self.converts or (record.views is not None and self.gvk in record.views)

    def describe(self, type_name: str, field: str) -> str:
        """
        Return the description of a field in the definitions; C{""} if there is none.

        @param type_name: The name of the type without the leading C{io.k8s.}: C{"api.core.v1.PodStatus"}.
        @param field: The name of the field.
        """
        return self._definitions.description(f"io.k8s.{type_name}", field)

    def decoding_error(self, reason: str) -> APIStatusError:
        """Return the error for a body that cannot be decoded as this kind."""
        return APIStatusError.bad_request(
            f'{self.gvk.kind} in version "{self.gvk.version}" cannot be handled as a {self.gvk.kind}: {reason}'
        )

    def unrecognized(self, reason: str, raw: bytes) -> APIStatusError:
        """Return the error for a body without kind or apiVersion."""
        return APIStatusError.bad_request(
            f"the object provided is unrecognized (must be of type {self.gvk.kind}): {reason} ({quote_body(raw)})"
        )

    def _registered(self, gvk: GroupVersionKind) -> bool:
        """Return whether the reference's scheme for this kind contains C{gvk}, even if it is not served."""
        if self.scheme != SCHEME and gvk.group != self.gvk.group:
            return False
        internal = gvk.version == INTERNAL and (gvk.group, gvk.kind) == (self.gvk.group, self.gvk.kind)
        return internal or gvk in STILL_KNOWN or self.has_kind(gvk)

    def _reject_kind(self, gvk: GroupVersionKind) -> NoReturn:
        """
        Reject a body of another kind, or of another version of this kind.

        @raise APIStatusError: Always (400).
        """
        internal = internal_group(gvk.group, gvk.kind), gvk.kind
        if self._registered(gvk) and internal == (internal_group(self.gvk.group, self.gvk.kind), self.gvk.kind):
            raise APIStatusError.bad_request(
                f"the API version in the data ({gvk.group_version}) does not match the expected API version "
                f"({self.gvk.api_version})"
            )
        raise APIStatusError.bad_request(
            f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {self.gvk.kind}: {self._mismatch(gvk)}'
        )

    def _mismatch(self, gvk: GroupVersionKind) -> str:
        if not self._registered(gvk):
            version = f'version "{gvk.group_version}"'
            if gvk.version == INTERNAL:
                version = f'the internal version of group "{gvk.group}"'
            return f'no kind "{gvk.kind}" is registered for {version} in scheme "{self.scheme}"'
        internal = internal_group(self.gvk.group, self.gvk.kind).partition(".")[0] or "core"
        return f"converting ({gvk.version}.{gvk.kind}) to ({internal}.{self.gvk.kind}): unknown conversion"


def _check_known(problems: list[str]) -> None:
    """
    Reject unknown fields.

    @raise ValueError: There are unknown fields; the text is the reference's.
    """
    if problems:
        raise ValueError(f"strict decoding error: {', '.join(problems)}")


def type_meta(value: JSONValue) -> tuple[str, str]:
    """
    Return the kind and apiVersion in a value, each C{""} if it is missing.

    @raise ValueError: A field has the wrong type; the message is the reference's.
    """
    unmarshal_error = "couldn't get version/kind; json parse error: json: cannot unmarshal"
    if not isinstance(value, dict):
        raise ValueError(
            f"{unmarshal_error} {json_type(value)} into Go value of type struct {{ "
            'APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        )
    kind, api_version = value.get("kind"), value.get("apiVersion")
    for name, text in (("kind", kind), ("apiVersion", api_version)):
        if text is not None and text.__class__ is not str:
            raise ValueError(f"{unmarshal_error} {json_type(text)} into Go struct field .{name} of type string")
    if api_version and "/" in api_version:
        GroupVersion.parse(api_version)
    return kind or "", api_version or ""


def _parsable(api_version: str) -> str:
    """Return the apiVersion of a protobuf body; C{""} if it is malformed or only a group, as in the reference."""
    return "" if api_version.count("/") > 1 or api_version.endswith("/") else api_version


def ensure_metadata(obj: JSONObject, value: JSONObject) -> None:
    """
    Add missing metadata to a decoded object.

    An empty list of managedFields, which decoding drops, is restored: clients send it to reset the managed fields.

    @param value: The value that the object was decoded from.
    """
    meta = obj.setdefault("metadata", {})
    if "managedFields" not in meta:
        sent = value.get("metadata")
        if isinstance(sent, dict) and sent.get("managedFields") == []:
            meta["managedFields"] = []


def quote_body(raw: bytes) -> str:
    """Return the beginning of a body as the reference quotes it: text for a JSON object, else hexadecimal."""
    if not raw:
        return "<empty>"
    if raw[:1] == b"{":
        text = raw.decode("utf-8", "replace")
        return text if len(text) <= 30 else f"{text[:30]} ..."
    return raw.hex() if len(raw) <= 30 else f"{raw[:30].hex()} ..."


def report_strict_errors(
    problems: list[str], field_validation: str, warn: Callable[[str], object], kind: str, version: str
) -> None:
    """
    Report unknown and duplicate fields according to C{fieldValidation}.

    @param problems: The messages for the fields.
    @param field_validation: C{"Ignore"}, C{"Warn"} or C{"Strict"}.
    @param warn: Called with each warning.
    @param kind: The kind, for the error.
    @param version: The version of the kind, for the error.
    @raise APIStatusError: The validation is C{Strict} and there are problems (400).
    """
    if not problems or field_validation == "Ignore":
        return
    if field_validation == "Strict":
        raise APIStatusError.bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {", ".join(problems)}'
        )
    for warning in warnings_of(problems):
        warn(warning)


def warnings_of(problems: list[str]) -> list[str]:
    """Return the warnings for problems: the lines of a YAML parser's message after its title, or the message itself."""
    return [line.strip() for text in problems for line in (text.split("\n")[1:] or [text])]


def sort_keys(value: JSONValue) -> JSONValue:
    """Return a value with the keys of its objects sorted."""
    if isinstance(value, list):
        return [sort_keys(item) for item in value]
    if isinstance(value, dict):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    return value


def invalid_patch_error(value: str, reason: str) -> APIStatusError:
    """Return the 422 for a patch whose result is not an object; the reference quotes C{value}."""
    field_error = FieldError("FieldValueInvalid", f"Invalid value: {shown(value)}: {reason}", "patch")
    return APIStatusError.invalid(GroupKind("", ""), "", [field_error])
