"""The four kinds of patch, as functions from an object to an object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final

import orjson

from ...api.decoding import BodyError, Decoded, decode_cbor, decode_json, decode_yaml, json_type
from ...api.errors import APIStatusError, clear_frames
from ...api.go.text import go_text
from ...api.jsonpatch import apply_json_patch, check_operations, validate_json_patch
from ...api.jsontypes import JSONValue
from ...api.mergepatch import bad_merge_patch, check_merge_patch, merge_patch
from ...api.options import PatchOptions
from ...api.resource import JSONObject
from ...api.times import now
from ...http.negotiation import APPLY_CBOR_PATCH, APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from ...http.request import KubeRequest
from ...registry.generic.codec import MissingField, invalid_patch_error, warnings_of
from ...registry.generic.internaltypes import ConversionError
from ...schema.nodes import TypeNode
from ...schema.objecttype import ObjectType
from ...schema.strategicmerge import StrategicMergeError, strategic_merge
from ..endpoint import Endpoint
from .bodies import JSON_IN_REACTOR, YAML_IN_REACTOR
from .patcherrors import merged_text, stepwise_text


class Patch(ABC):
    """
    A patch for one endpoint, which is applied again after a conflicting write.

    A malformed body is rejected when the patch is applied, after the object was read: a missing object is 404 even if
    the body is malformed. Rule: C{applyPatch} in apiserver's C{pkg/endpoints/handlers/patch.go}.

    @ivar lenient: C{fieldValidation=Ignore}, for which the reference skips the first decoding of the patch, so that
        other error messages result.
    @ivar last_result: The result of the last application, before it was decoded.
    @ivar foreign: Whether that result names another kind or version, whose fields are unknown and have no owners.
    @ivar problems: Unknown and duplicate fields of the last application, for Warning headers.
    @ivar new_object: Whether decoding makes a new object, so that the patched value may share values with the stored
        object: the objects of built-in kinds, but not custom resources.
    @cvar uses_unstructured_map: Whether kube-apiserver decodes the result from a map instead of JSON, which changes the
        texts and the order of errors.
    @cvar in_place: Whether L{patched} modifies the current object.
    """

    uses_unstructured_map = False
    in_place = False
    creates = False
    updates_managed_fields = False

    def __init__(self, endpoint: Endpoint, data: bytes, options: PatchOptions) -> None:
        self.endpoint = endpoint
        self.options = options
        self.field_validation = options.field_validation or "Warn"
        self.problems: list[str] = []
        self.lenient = self.field_validation == "Ignore"
        self.duplicates: list[str] = []
        self.last_result: Any = None
        self.foreign = False
        self.new_object = isinstance(endpoint.codec.type, ObjectType)
        self._parse_error: APIStatusError | None = None
        try:
            self.parse(data)
        except APIStatusError as error:
            # The frames of the traceback refer to this patch, which refers to the error.
            clear_frames(error)
            self._parse_error = error

    @abstractmethod
    def parse(self, data: bytes) -> None:
        """
        Parse the patch.

        @raise APIStatusError: The body is not a valid patch.
        """

    def check(self) -> None:
        """
        Reject a patch that L{parse} failed to decode.

        @raise APIStatusError: The error that L{parse} raised.
        """
        if self._parse_error is not None:
            raise self._parse_error

    def audited(self, data: bytes) -> bytes:
        """Return the form of a patch for the audit log: the body, unless it is binary."""
        return data

    @abstractmethod
    def patched(self, current: JSONObject) -> JSONValue:
        """Return the patched value, before decoding into the kind; changes C{current} only if L{in_place} is set."""

    @abstractmethod
    def reaches_managed_fields(self) -> bool:
        """Return whether the patch may read or change the managed fields."""

    @abstractmethod
    def error_text(self, value: JSONValue) -> str:
        """Return the text that errors about the result quote."""

    def _root(self) -> TypeNode | None:
        """Return the Go type of the object; L{None} for custom resources."""
        type_ = self.endpoint.codec.type
        return type_.root if isinstance(type_, ObjectType) else None

    def apply_to_stored(self, stored: JSONObject | None) -> JSONObject:
        """
        Return the object after the patch, in the endpoint's version.

        @param stored: The object in the stored version; L{None} if it does not exist and the patch creates.
        @raise APIStatusError: The patch is malformed, cannot be applied, or its result is not an object of the kind.
        """
        self.check()
        assert stored is not None, "this patch does not create"
        if self.new_object and self.endpoint.field_manager is not None and not self.reaches_managed_fields():
            # The field manager sets them afterwards from the stored object; it takes time to decode them.
            meta = {name: value for name, value in stored["metadata"].items() if name != "managedFields"}
            try:
                return self._apply_to_current({**stored, "metadata": meta})
            except APIStatusError:
                # Errors quote the whole object.
                pass
        return self._apply_to_current(stored)

    def _apply_to_current(self, stored: JSONObject) -> JSONObject:
        current = orjson.loads(orjson.dumps(stored)) if self.in_place or not self.new_object else stored
        return self.apply(self.endpoint.codec.from_storage(current))

    def apply(self, current: JSONObject) -> JSONObject:
        """
        Return the patched object, in the endpoint's version.

        @raise APIStatusError: The patch cannot be applied, or its result is not an object of the kind.
        """
        self.last_result = value = self.patched(current)
        problems: list[str] = []
        try:
            obj = self.endpoint.codec.decode_patched(value, problems, converted=self.uses_unstructured_map)
        except ConversionError as error:
            if self.uses_unstructured_map:
                raise APIStatusError.unknown(str(error)) from None
            raise invalid_patch_error(self.error_text(value), str(error)) from None
        except MissingField as error:
            text = self.error_text(value)
            raise invalid_patch_error(text, error.within(text)) from None
        except ValueError as error:
            raise invalid_patch_error(self.error_text(value), str(error)) from None
        gvk = self.endpoint.codec.gvk
        self.foreign = obj["kind"] != gvk.kind or obj["apiVersion"] != gvk.api_version
        if self.uses_unstructured_map:
            problems.sort()
        elif len(problems) > 1:
            # The reference decodes the result from its text, and reports errors in that order.
            problems = []
            self.endpoint.codec.decode_patched(orjson.loads(self.error_text(value)), problems)
        problems = [*self.duplicates, *problems]
        if problems and self.field_validation == "Strict":
            raise invalid_patch_error(self.error_text(value), f"strict decoding error: {', '.join(problems)}")
        self.problems = problems if self.field_validation == "Warn" else []
        return obj


class JSONPatch(Patch):
    """JSON patch, RFC 6902."""

    in_place = True
    operations: list[Any]

    def parse(self, data: bytes) -> None:
        """Read the operations."""
        document = _document(data, "" if self.lenient else _DECODING)
        self.operations = document.value if document.value is not None else []
        if self.lenient:
            check_operations(self.operations)
            return
        self.duplicates = [f"json patch {text}" for text in document.duplicates]
        self.duplicates += validate_json_patch(self.operations)

    def patched(self, current: JSONObject) -> JSONValue:
        """Apply the operations one by one."""
        return apply_json_patch(current, self.operations)

    def reaches_managed_fields(self) -> bool:
        """Return whether an operation has a path above or below the managed fields."""
        return not isinstance(self.operations, list) or any(
            not isinstance(step, dict)
            or _reaches_managed_fields(step.get("path"))
            or ("from" in step and _reaches_managed_fields(step["from"]))
            for step in self.operations
        )

    def error_text(self, value: JSONValue) -> str:
        """Return the result, with its keys in the order that the operations leave."""
        return stepwise_text(value, self.operations, self._root())


class MergePatch(Patch):
    """JSON merge patch, RFC 7386."""

    patch: Any

    def parse(self, data: bytes) -> None:
        """Read the patch."""
        try:
            document = _document(data, _DECODING)
        except APIStatusError:
            if self.lenient:
                raise bad_merge_patch() from None
            raise
        self.patch, self.duplicates = document.value, document.duplicates
        if not self.lenient:
            check_merge_patch(self.patch)

    def patched(self, current: JSONObject) -> JSONValue:
        """Merge."""
        return merge_patch(current, self.patch)

    def reaches_managed_fields(self) -> bool:
        """Return whether the patch has managed fields, or replaces the metadata."""
        if not isinstance(self.patch, dict):
            return True
        meta = self.patch.get("metadata", _NOTHING)
        return not isinstance(meta, dict) or "managedFields" in meta

    def error_text(self, value: JSONValue) -> str:
        """Return the result, with its keys in the order that the merge leaves."""
        return merged_text(value, self.patch, self._root())


class StrategicMergePatch(Patch):
    """Strategic merge patch: lists merge by the keys that the schema names."""

    uses_unstructured_map = True
    patch: Any

    def parse(self, data: bytes) -> None:
        """Read the patch."""
        document = _document(data, "")
        self.patch, self.duplicates = document.value, document.duplicates

    def patched(self, current: JSONObject) -> JSONObject:
        """Merge by the schema."""
        try:
            return strategic_merge(current, self.patch, self.endpoint.codec.type)
        except StrategicMergeError as error:
            if error.code == 400:
                raise APIStatusError.bad_request(error.message) from None
            if error.code == 422:
                raise APIStatusError(422, "Invalid", error.message, {}) from None
            raise APIStatusError.unknown(error.message) from None

    def reaches_managed_fields(self) -> bool:
        """Return whether the patch has managed fields, or replaces the metadata; directives may do that."""
        if not isinstance(self.patch, dict) or any(key.startswith("$") for key in self.patch):
            return True
        meta = self.patch.get("metadata", _NOTHING)
        return not isinstance(meta, dict) or any(key == "managedFields" or key.startswith("$") for key in meta)

    def error_text(self, value: JSONValue) -> str:
        """Return the patch as Go prints a map."""
        return go_text(self.patch)


class Apply(Patch):
    """Server-side apply: the client's configuration, merged with the fields of other managers."""

    creates = True
    updates_managed_fields = True
    applied: Any

    def parse(self, data: bytes) -> None:
        """Parse the applied configuration: YAML, of which JSON is a subset."""
        try:
            document = decode_yaml(data)
        except BodyError as error:
            raise APIStatusError.bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
        if document.value is not None and not isinstance(document.value, dict):
            raise APIStatusError.bad_request(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
                f"{json_type(document.value)} into Go value of type map[string]interface {{}}"
            )
        self.applied, self.duplicates = document.value or {}, document.duplicates

    def patched(self, current: JSONObject) -> JSONValue:
        """Unused: see L{apply_to_stored}."""
        raise AssertionError("an apply needs the managed fields of the stored object")

    def reaches_managed_fields(self) -> bool:
        """Return that an apply changes them."""
        return True

    def error_text(self, value: JSONValue) -> str:
        """Unused: the errors of an apply do not quote its result."""
        raise AssertionError("errors of an apply do not quote its result")

    def apply_to_stored(self, stored: JSONObject | None) -> JSONObject:
        """Merge; the managed fields of the result contain the owners."""
        self.check()
        fields = self.endpoint.field_manager
        assert fields is not None, "this endpoint does not take apply patches"
        merged = fields.apply(stored, self.applied, self.options.field_manager, now(), bool(self.options.force))
        if self.duplicates and self.field_validation == "Strict":
            reasons = ", ".join(self.duplicates)
            raise APIStatusError.bad_request(f"error strict decoding YAML: error converting YAML to JSON: {reasons}")
        self.last_result = merged
        # The field manager has encoded them.
        entries = merged["metadata"].pop("managedFields", None) if self.new_object else None
        problems: list[str] = []
        try:
            obj = self.endpoint.codec.decode_patched(merged, problems, converted=True)
        except ConversionError as error:
            meta, gvk = self.applied.get("metadata") or {}, self.endpoint.gvk
            position = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}; {gvk.api_version}, Kind={gvk.kind}"
            raise APIStatusError.unknown(f"failed to convert to unversioned ({position}): {error}") from None
        except ValueError as error:
            raise fields.unconvertible(self.applied, str(error)) from None
        if entries is not None:
            obj["metadata"]["managedFields"] = entries
        if self.field_validation == "Warn":
            self.problems = warnings_of(self.duplicates)
        return obj


class ApplyCBOR(Apply):
    """Server-side apply with a configuration in CBOR, whose duplicate keys are always an error."""

    def parse(self, data: bytes) -> None:
        """Parse the applied configuration."""
        try:
            value = decode_cbor(data).value
        except BodyError as error:
            raise APIStatusError.bad_request(f"error decoding patch: {error}") from None
        if value is not None and not isinstance(value, dict):
            kind = json_type(value)
            raise APIStatusError.bad_request(
                f"error decoding patch: cbor: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            )
        self.applied = value or {}

    def audited(self, data: bytes) -> bytes:
        """Return the configuration in JSON; nothing if it is invalid."""
        return b"null" if self._parse_error is not None else orjson.dumps(self.applied)


#: The metadata of a merge patch without them, which changes nothing.
_NOTHING: Final[JSONObject] = {}


def _reaches_managed_fields(pointer: JSONValue) -> bool:
    """Return whether a pointer of a JSON patch leads above or below the managed fields, or is malformed."""
    if not isinstance(pointer, str):
        return True
    # As in the reference, text before the first slash is ignored.
    tokens = pointer.split("/", 3)[1:]
    return not tokens or (tokens[0] == "metadata" and (len(tokens) == 1 or tokens[1] == "managedFields"))


_KINDS: dict[str, type[Patch]] = {
    APPLY_CBOR_PATCH: ApplyCBOR,
    APPLY_PATCH: Apply,
    JSON_PATCH: JSONPatch,
    MERGE_PATCH: MergePatch,
    STRATEGIC_MERGE_PATCH: StrategicMergePatch,
}


async def make_patch(media: str, request: KubeRequest, endpoint: Endpoint, options: PatchOptions) -> Patch:
    """
    Construct the patch of a body.

    @raise APIStatusError: The media type is not supported (415), or the body is not such a patch (400).
    """
    kind = _KINDS.get(media)
    if kind is None or (issubclass(kind, Apply) and endpoint.field_manager is None):
        raise APIStatusError.unsupported_media_type(one for one in _KINDS if not issubclass(_KINDS[one], Apply))
    data = request.read_body()
    if len(data) > (YAML_IN_REACTOR if issubclass(kind, Apply) else JSON_IN_REACTOR):
        patch: Patch = await endpoint.defer_to_thread(kind, endpoint, data, options)
        return patch
    return kind(endpoint, data, options)


#: Prefix of the decoder's message, except for strategic merge patches.
_DECODING: Final = "error decoding patch: "


def _document(data: bytes, prefix: str) -> Decoded:
    """
    Decode the JSON of a patch.

    @param what: Prefix of the decoder's message.
    @raise APIStatusError: The body is not JSON (400).
    """
    try:
        return decode_json(data)
    except BodyError as error:
        raise APIStatusError.bad_request(f"{prefix}{error}") from None
