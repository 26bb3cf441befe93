"""One version of one kind: what turns a client's value into the object that is stored, and back."""

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
from ...schema.leaves import Problems
from ...schema.objecttype import DecodeError, ObjectType
from ...schema.protobuf.codec import (
    WireError,
    read_envelope,
)
from .conversion import convert, convertible
from .internaltypes import ConversionError, internal_type, read_annotations, without_internal
from .removedversions import as_served, check_scale, label
from .schemes import INTERNAL, RESHAPED, SCHEME, STILL_KNOWN, internal_group, scheme_of

if TYPE_CHECKING:
    from ...schema.definitions import Definitions

_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


#: Kinds that are taken for others, which they only differ from by their version.
EQUIVALENT_KINDS: Final[dict[GroupVersionKind, tuple[str, str]]] = {
    GroupVersionKind("policy", "v1", "Eviction"): ("Eviction", "policy/v1beta1"),
}


class MissingField(ValueError):
    """
    An object lacks its kind or version.

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
        """The type of this version, compiled at first use."""
        if self._type is None:
            self._type = self._definitions.type_for(self.gvk)
        return self._type

    def knows(self, gvk: GroupVersionKind) -> bool:
        """Return whether L{scheme} contains a kind."""
        return self._definitions.knows(gvk) or gvk.kind == "List"

    def zero(self) -> JSONObject:
        """An object of this version without content."""
        zero = self.type.zero()
        if self._internal_type.convert_zero is not None:
            self._internal_type.convert_zero(zero)
        return zero

    def message(self, value: JSONObject, definition: str = "") -> bytes:
        """
        The protobuf message of an object of this version.

        @param definition: What it is, if it is no object of this kind; such as the metadata of a list.
        @raise WireError: It nests too deep, or is not what it should be.
        """
        return self._definitions.protobuf.encode(definition or self.type.definition, value)

    def decode(self, value: JSONValue, problems: list[str], raw: bytes = b"", *, json: bool = True) -> JSONObject:
        """
        Make an object of a decoded body.

        @param obj: The decoded body.
        @param problems: Receives a text per unknown field.
        @param raw: The body, for messages that quote its beginning, and for quantities that are numbers.
        @param json: Whether the body is JSON.
        @return: The object in this version, with C{kind}, C{apiVersion} and C{metadata}.
        @raise APIStatusError: The body is of another kind, or not an object of this type (400).
        """
        if value is None:
            value = {}
        try:
            kind, api_version = type_meta(value)
        except ValueError as error:
            raise self.unrecognized(str(error), raw) from None
        kind, api_version = kind or self.gvk.kind, api_version or self.gvk.api_version
        if (kind, api_version) not in ((self.gvk.kind, self.gvk.api_version), EQUIVALENT_KINDS.get(self.gvk)):
            said = GroupVersion.parse(api_version)
            own = self.gvk.group_version
            if said.version or said.group != own.group or kind != self.gvk.kind:
                self._refuse_kind(GroupVersionKind(said.group, said.version, kind))
            # The message contains only the group: the version is the request's.
            api_version = self.gvk.api_version
        found = Problems()
        try:
            obj = self.type.decode(value, found)
        except DecodeError as error:
            raise self.decoding_error(error.as_written(raw)) from None
        problems += found
        if found.inexact and json:
            written = with_written_numbers(raw)
            if written is not None:
                obj = without_written_numbers(self.type.decode(written, []))
        obj["kind"] = self.gvk.kind
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

        @param problems: What L{decode} had to say of the document.
        @raise APIStatusError: A value that another one replaced does not fit its field (400).
        """
        try:
            if document.with_duplicates is not None:
                return self.type.problems(document.with_duplicates)
        except DecodeError as error:
            raise self.decoding_error(error.as_written(raw)) from None
        if document.by_map and len(problems) > 1:
            problems = self.type.problems(sort_keys(document.value))
        return [*document.duplicates, *problems]

    def read_protobuf(self, data: bytes) -> Decoded:
        """
        Read a protobuf body for L{decode}.

        @raise BodyError: It has no kind or apiVersion.
        @raise APIStatusError: It is not what it says (400).
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

        @raise BodyError: It is none.
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
        Make an object of the result of a patch.

        JSON may omit the kind, and may name another version of it. JSON without a version is decoded into the
        reference's internal type, whose fields have other names, so that none of them is read. A map is decoded into
        the expected kind, whatever it names.

        @param problems: Receives a text per unknown field.
        @param converted: Whether the reference has a map instead of JSON, which changes the error messages.
        @param strict: Whether unknown fields are an error.
        @raise ConversionError: The object does not convert to the internal type.
        @raise ValueError: The result is not an object of this kind; the text is the reference's.
        """
        said = written = self.gvk
        if not converted:
            written = self._kind_of(value)
            said = self._served(written)
            if said.version == INTERNAL and said.kind == self.gvk.kind and said.group == self.gvk.group:
                problems += [f'unknown field "{name}"' for name in value if name not in ("kind", "apiVersion")]
                return {"kind": self.gvk.kind, "apiVersion": self.gvk.api_version, "metadata": {}}
        if said != self.gvk and not (self.knows(said) and convertible(said, self.storage)):
            self._check_decodable(said, value, strict)
            raise ValueError(self._mismatch(said))
        try:
            known = self.type if said == self.gvk else self._definitions.type_for(said)
            if said != written:
                value = as_served(written, value, problems)
            obj = known.decode(value, problems, converted=converted)
        except DecodeError as error:
            raise ValueError(error.converted if converted else str(error)) from None
        if strict:
            _check_known(problems)
        ensure_metadata(obj, value)
        read_annotations(said, obj)
        if said != self.gvk:
            return convert(convert(obj, said, self.storage), self.storage, self.gvk)
        label(written, obj)
        obj["kind"], obj["apiVersion"] = self.gvk.kind, self.gvk.api_version
        return obj

    def check_kind(self, obj: JSONObject) -> None:
        """
        Refuse a result of L{decode_patched} of another kind, which occurs for custom resources only.

        @raise APIStatusError: It is of another kind (422).
        """

    def _kind_of(self, value: JSONValue) -> GroupVersionKind:
        """
        Return the kind in a JSON object, with missing parts from the request: C{gvkWithDefaults} of apimachinery's
        C{json.go}.

        @raise ValueError: The apiVersion is malformed.
        """
        kind, api_version = type_meta(value)
        said = GroupVersion.parse(api_version)
        if not said.version:
            if said.group:
                raise MissingField("apiVersion")
            said = GroupVersion(self.gvk.group, INTERNAL if self.internal else self.gvk.version)
        return GroupVersionKind(said.group, said.version, kind or self.gvk.kind)

    def _served(self, said: GroupVersionKind) -> GroupVersionKind:
        """Return the served kind with the fields of an unserved one; the kind itself if there is none."""
        if said not in STILL_KNOWN or said.kind != self.gvk.kind or said.kind in RESHAPED:
            return said
        if said.kind == "Event":
            return GroupVersionKind(said.group, "v1", said.kind)
        same = internal_group(said.group, said.kind) == internal_group(self.gvk.group, self.gvk.kind)
        return self.gvk if same else said

    def _check_decodable(self, said: GroupVersionKind, value: JSONValue, strict: bool) -> None:
        """
        Read a value as the kind that it says it is, which the reference does before it minds that it is another one.

        @raise ValueError: It is not even that.
        """
        if said.kind == "Scale" and said in STILL_KNOWN:
            check_scale(value)
        if self.knows(said) and self._definitions.knows(said):
            problems: list[str] = []
            try:
                self._definitions.type_for(said).decode(value, problems)
            except DecodeError as error:
                raise ValueError(str(error)) from None
            if strict:
                _check_known(problems)

    def to_storage(self, obj: JSONObject) -> JSONObject:
        """The object in the stored version."""
        return convert(obj, self.gvk, self.storage) if self.converts else obj

    def from_storage(self, obj: JSONObject) -> JSONObject:
        """A stored object in this version, with C{kind} and C{apiVersion} first."""
        obj = {"kind": self.storage.kind, "apiVersion": self.storage.api_version, **obj}
        return convert(obj, self.storage, self.gvk) if self.converts else obj

    def item(self, record: Record) -> bytes:
        """A record in this version, as its own C{item} is: without kind and apiVersion. Made once, and kept with it."""
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
        Return the metadata in answers that the reference makes of the internal type: rows of Tables,
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
        What the definitions say of a field; C{""} when they say nothing.

        @param type_name: Without the leading C{io.k8s.}: C{"api.core.v1.PodStatus"}.
        """
        return self._definitions.description(f"io.k8s.{type_name}", field)

    def decoding_error(self, why: str) -> APIStatusError:
        """Return the error for a body that cannot be decoded as this kind."""
        return APIStatusError.bad_request(
            f'{self.gvk.kind} in version "{self.gvk.version}" cannot be handled as a {self.gvk.kind}: {why}'
        )

    def unrecognized(self, why: str, raw: bytes) -> APIStatusError:
        """Return the error for a body without kind or apiVersion."""
        return APIStatusError.bad_request(
            f"the object provided is unrecognized (must be of type {self.gvk.kind}): {why} ({summary(raw)})"
        )

    def _registered(self, said: GroupVersionKind) -> bool:
        """Return whether the reference's scheme here contains a kind, even if it is not served."""
        if self.scheme != SCHEME and said.group != self.gvk.group:
            return False
        internal = said.version == INTERNAL and (said.group, said.kind) == (self.gvk.group, self.gvk.kind)
        return internal or said in STILL_KNOWN or self.knows(said)

    def _refuse_kind(self, said: GroupVersionKind) -> NoReturn:
        """
        Refuse a body of another kind, or of another version of this kind.

        @raise APIStatusError: Always (400).
        """
        internal = internal_group(said.group, said.kind), said.kind
        if self._registered(said) and internal == (internal_group(self.gvk.group, self.gvk.kind), self.gvk.kind):
            raise APIStatusError.bad_request(
                f"the API version in the data ({said.group_version}) does not match the expected API version "
                f"({self.gvk.api_version})"
            )
        raise APIStatusError.bad_request(
            f'{said.kind} in version "{said.version}" cannot be handled as a {self.gvk.kind}: {self._mismatch(said)}'
        )

    def _mismatch(self, said: GroupVersionKind) -> str:
        if not self._registered(said):
            version = f'version "{said.group_version}"'
            if said.version == INTERNAL:
                version = f'the internal version of group "{said.group}"'
            return f'no kind "{said.kind}" is registered for {version} in scheme "{self.scheme}"'
        internal = internal_group(self.gvk.group, self.gvk.kind).partition(".")[0] or "core"
        return f"converting ({said.version}.{said.kind}) to ({internal}.{self.gvk.kind}): unknown conversion"


def _check_known(problems: list[str]) -> None:
    """
    Refuse unknown fields.

    @raise ValueError: There are unknown fields; the text is the reference's.
    """
    if problems:
        raise ValueError(f"strict decoding error: {', '.join(problems)}")


def type_meta(value: JSONValue) -> tuple[str, str]:
    """
    The kind and apiVersion that a value says it has; C{""} for what it does not say.

    @raise ValueError: A field has the wrong type; the text is the reference's.
    """
    unmarshal_error = "couldn't get version/kind; json parse error: json: cannot unmarshal"
    if not isinstance(value, dict):
        raise ValueError(
            f"{unmarshal_error} {json_type(value)} into Go value of type struct {{ "
            'APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        )
    for name in ("kind", "apiVersion"):
        part = value.get(name)
        if part is not None and not isinstance(part, str):
            raise ValueError(f"{unmarshal_error} {json_type(part)} into Go struct field .{name} of type string")
    api_version = value.get("apiVersion") or ""
    if "/" in api_version:
        GroupVersion.parse(api_version)
    return value.get("kind") or "", api_version


def _parsable(api_version: str) -> str:
    """A version in protobuf; one that cannot be parsed, or has only a group, counts as empty, as in the reference."""
    return "" if api_version.count("/") > 1 or api_version.endswith("/") else api_version


def ensure_metadata(obj: JSONObject, value: JSONObject) -> None:
    """
    Give a decoded object metadata where it has none.

    An empty list of managers, which decoding drops, stays: clients send it to start over.
    """
    meta = obj.setdefault("metadata", {})
    if "managedFields" not in meta:
        sent = value.get("metadata")
        if isinstance(sent, dict) and sent.get("managedFields") == []:
            meta["managedFields"] = []


def summary(raw: bytes) -> str:
    """The beginning of a body as the reference quotes it: text of an object, else hexadecimal."""
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
    Do with unknown and duplicate fields what C{fieldValidation} asks for.

    @raise APIStatusError: It is C{Strict} and there are some (400).
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
    """The warnings that tell of problems: of what the YAML parser says, each line but the first, a title."""
    return [line.strip() for text in problems for line in (text.split("\n")[1:] or [text])]


def sort_keys(value: JSONValue) -> JSONValue:
    """A value with the keys of its objects in order."""
    if isinstance(value, list):
        return [sort_keys(item) for item in value]
    if isinstance(value, dict):
        return {key: sort_keys(value[key]) for key in sorted(value)}
    return value


def invalid_patch_error(value: str, why: str) -> APIStatusError:
    """The 422 for a patch whose result is no object; C{value} is what the reference quotes of it."""
    field_error = FieldError("FieldValueInvalid", f"Invalid value: {shown(value)}: {why}", "patch")
    return APIStatusError.invalid(GroupKind("", ""), "", [field_error])
