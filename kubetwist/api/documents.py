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

TOO_DEEP: Final = "exceeded max depth"


class BodyError(ValueError):
    """
    A document that cannot be read; C{str} of it is what the parser of the reference says.

    @ivar json: Whether it was read as JSON.
    """

    def __init__(self, message: str, json: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.json = json

    def as_body_of_object(self) -> str:
        """Return the reference's error for a document that should have been an object of some kind."""
        return f"couldn't get version/kind; json parse error: {self.message}" if self.json else self.message


def json_type(value: JSONValue) -> str:
    """Return the name Go's decoder gives to a JSON value of this type."""
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
    A document.

    @ivar value: The decoded value; no other object shares any part of it.
    @ivar duplicates: A text for every key given twice in one object, in the order of the document.
    @ivar with_duplicates: If there are such keys, and it was JSON, the document with all of them
        (L{DuplicateKeyDict<kubetwist.api.repeatedkeys.DuplicateKeyDict>}); else L{None}.
    @ivar by_map: Whether the reference reads it by way of a map, which has its keys in the order of their names.
    """

    value: JSONValue
    duplicates: list[str] = field(factory=list)
    with_duplicates: JSONValue = None
    by_map: bool = False
