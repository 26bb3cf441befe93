"""The three kinds of patch, as functions from an object to an object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import orjson

from ..api.decoding import BodyError, decode_json
from ..api.errors import APIStatusError
from ..api.jsonpatch import apply_json_patch, json_patch_problems
from ..api.mergepatch import merge_patch
from ..api.resource import JSONObject
from ..registry.codec import patch_failure
from ..schema.gotext import go_text
from ..schema.strategicmerge import StrategicMergeError, strategic_merge
from .endpoint import Endpoint

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


class Patch(ABC):
    """
    A patch for one endpoint; applied again when somebody else wrote in between.

    @ivar problems: Unknown and duplicate fields of the last application, for Warning headers.
    @cvar by_map: The reference makes an object of the result from a map, where it else has JSON: that shows in the
        words and the order of its complaints.
    """

    by_map = False

    def __init__(self, endpoint: Endpoint, data: bytes, field_validation: str) -> None:
        self.endpoint = endpoint
        self.field_validation = field_validation
        self.problems: list[str] = []
        self.duplicates: list[str] = []
        self.parse(data)

    @abstractmethod
    def parse(self, data: bytes) -> None:
        """
        Read the patch.

        @raise APIStatusError: It is none.
        """

    @abstractmethod
    def patched(self, current: JSONObject) -> Any:
        """The patched value, not yet an object of the kind again; C{current} may be changed."""

    def quoted(self, value: Any) -> str:
        """What an error about the result quotes."""
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()

    def apply(self, current: JSONObject) -> JSONObject:
        """
        The object after the patch, in the endpoint's version.

        @raise APIStatusError: It can not be applied, or leaves no object of the kind.
        """
        value = self.patched(current)
        problems: list[str] = []
        try:
            obj = self.endpoint.codec.redecode(value, problems, converted=self.by_map)
        except ValueError as error:
            raise patch_failure(self.quoted(value), str(error)) from None
        if self.by_map:
            problems.sort()
        elif len(problems) > 1:
            # The reference reads the result from JSON with sorted keys, and complains in that order.
            problems = []
            by_key = orjson.loads(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
            self.endpoint.codec.redecode(by_key, problems)
        problems = [*self.duplicates, *problems]
        if problems and self.field_validation == "Strict":
            raise patch_failure(self.quoted(value), f"strict decoding error: {', '.join(problems)}")
        self.problems = problems if self.field_validation == "Warn" else []
        return obj


class JSONPatch(Patch):
    """RFC 6902."""

    operations: list[Any]

    def parse(self, data: bytes) -> None:
        """Read the operations."""
        document = _document(data)
        self.operations = document.value if document.value is not None else []
        self.duplicates = [f"json patch {text}" for text in document.duplicates]
        self.duplicates += json_patch_problems(self.operations)

    def patched(self, current: JSONObject) -> Any:
        """Apply the operations one by one."""
        return apply_json_patch(current, self.operations)


class MergePatch(Patch):
    """RFC 7386."""

    patch: Any

    def parse(self, data: bytes) -> None:
        """Read the patch."""
        document = _document(data)
        self.patch, self.duplicates = document.value, document.duplicates

    def patched(self, current: JSONObject) -> JSONObject:
        """Merge."""
        return merge_patch(current, self.patch)


class StrategicMergePatch(Patch):
    """Kubernetes' own: lists merge by the keys that the schema names."""

    by_map = True
    patch: Any

    def parse(self, data: bytes) -> None:
        """Read the patch."""
        document = _document(data)
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

    def quoted(self, value: Any) -> str:
        """The patch as Go prints a map."""
        return go_text(self.patch)


_KINDS: dict[str, type[Patch]] = {
    JSON_PATCH: JSONPatch,
    MERGE_PATCH: MergePatch,
    STRATEGIC_MERGE_PATCH: StrategicMergePatch,
}


def make_patch(media: str, data: bytes, endpoint: Endpoint, field_validation: str) -> Patch:
    """
    The patch that a body is.

    @raise APIStatusError: It is of a type that is not served (415), or can not be read as one (400).
    """
    kind = _KINDS.get(media)
    if kind is None:
        raise APIStatusError.unsupported_media_type(_KINDS)
    return kind(endpoint, data, field_validation)


def _document(data: bytes) -> Any:
    try:
        return decode_json(data)
    except BodyError as error:
        raise APIStatusError.bad_request(f"error decoding patch: {error}") from None
