"""Results of decoding a document, and the limits shared by all formats."""

from __future__ import annotations

from typing import Final

from attrs import define, field

from .jsontypes import JSONValue

#: The maximum nesting depth of documents. The reference accepts 10,000 levels, but orjson's encoder supports only 254,
#: some of which are needed for lists, events and field sets around an object.
MAX_DEPTH: Final = 240
#: The maximum depth of orjson's encoder.
ENCODER_DEPTH: Final = 254

#: The tag of self-described CBOR, with which every document in CBOR begins.
CBOR_MAGIC: Final = b"\xd9\xd9\xf7"

TOO_DEEP: Final = "exceeded max depth"


class BodyError(ValueError):
    """
    A document that cannot be decoded; C{str} of it is the message of the reference's parser.

    @ivar json: Whether it was decoded as JSON.
    """

    def __init__(self, message: str, json: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.json = json

    def as_body_of_object(self) -> str:
        """Return the reference's error for a document that should have been an object of some kind."""
        return f"couldn't get version/kind; json parse error: {self.message}" if self.json else self.message


def json_type(value: JSONValue) -> str:
    """Return the name that Go's decoder has for the type of a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    if isinstance(value, dict):
        return "object"
    return "null" if value is None else "number"


@define
class Decoded:
    """
    A decoded document.

    @ivar value: The decoded value; no other object shares any part of it.
    @ivar duplicates: A message for each duplicate key, in document order.
    @ivar with_duplicates: For JSON with duplicate keys, the value with all of them
        (L{DuplicateKeyDict<kubetwist.api.repeatedkeys.DuplicateKeyDict>}); else L{None}.
    @ivar by_map: Whether the reference decodes it into a map, which orders keys by name.
    """

    value: JSONValue
    duplicates: list[str] = field(factory=list)
    with_duplicates: JSONValue = None
    by_map: bool = False
