"""
Decoding of objects of one kind in one version.

The result is the JSON that Go encodes after decoding into the struct of the kind. The decoders are in
L{kubetwist.schema.nodes}.
"""

from __future__ import annotations

from ..api.jsontypes import JSONValue
from ..api.resource import GroupVersionKind, JSONObject
from .leaves import StrictErrors
from .mismatch import DecodeError, UnmarshalerError, UnmarshalTypeError
from .nodes import DecodePath, StructNode

__all__ = ["DecodeError", "ObjectType"]


class ObjectType:
    """
    A kind, compiled at first use.

    @ivar gvk: The group, version and kind.
    @ivar definition: The name of the OpenAPI definition.
    @ivar root: The type of the object, which also defines strategic merge patches.
    """

    __slots__ = ("definition", "gvk", "root")

    def __init__(self, gvk: GroupVersionKind, root: StructNode) -> None:
        self.gvk = gvk
        self.definition = root.name
        self.root = root

    @property
    def top_level_fields(self) -> tuple[str, ...]:
        """Return the names of the fields of the object itself."""
        return tuple(self.root.fields)

    def decode(self, obj: JSONValue, strict_errors: list[str], *, from_unstructured: bool = False) -> JSONObject:
        """
        Normalize an object as Go's decoder and encoder do.

        Unknown fields, nulls, and zero values that Go omits are removed; zero values that Go writes are added.
        Quantities, times and bytes are written as Go writes them.

        @param obj: Decoded JSON; not modified.
        @param strict_errors: Receives a message for each unknown field that was removed.
        @param from_unstructured: Whether numbers are converted as in unstructured objects, where C{2.0} is an integer,
            too.
        @return: A new object that shares no mutable value with C{obj}.
        @raise DecodeError: A value has the wrong type.
        """
        nested_errors = StrictErrors() if isinstance(strict_errors, StrictErrors) else None
        unknown: list[str] = [] if nested_errors is None else nested_errors
        try:
            decoded: JSONObject = self.root.compiled()(obj, unknown)
        except (UnmarshalTypeError, UnmarshalerError):
            if from_unstructured:
                # Such numbers are rare: the decoder for other objects does not handle them.
                return self.decode(self.root.convert_numbers(obj), strict_errors)
            self.root.walk(obj, DecodePath())
            raise
        if nested_errors is not None and isinstance(strict_errors, StrictErrors):
            strict_errors.inexact |= nested_errors.inexact
        if unknown:
            strict_errors += self.find_strict_errors(obj)
        return decoded

    def find_strict_errors(self, obj: JSONValue) -> list[str]:
        """
        Return a message for each unknown and each duplicate field of an object, in order.

        @param obj: As for L{decode}; with
            L{DuplicateKeyDict<kubetwist.api.repeatedkeys.DuplicateKeyDict>} objects, if it has duplicate fields.
        @raise DecodeError: A value has the wrong type.
        """
        path = DecodePath()
        self.root.walk(obj, path)
        return list(path.strict_errors)

    def zero(self) -> JSONObject:
        """Return an object of this kind without content, as bookmarks carry it; without C{kind} and C{apiVersion}."""
        zero: JSONObject = self.root.zero()
        return zero
