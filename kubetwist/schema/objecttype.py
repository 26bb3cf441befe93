"""
One kind in one version: what decoding JSON into its Go struct and encoding it again makes of an object.

L{ObjectType} is what the layers above use; how it works is in L{kubetwist.schema.nodes}.
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
    @ivar definition: The name of its OpenAPI definition.
    @ivar root: Its fields, by which strategic merge patches go.
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
        Normalize an object to the form of the reference.

        Unknown fields, nulls, and zero values that Go omits are removed; zero values that Go writes are added.
        Quantities, times and bytes are written as Go writes them.

        @param obj: Decoded JSON; not modified.
        @param problems: Receives a text per unknown field that was removed.
        @param converted: Whether numbers are converted as in unstructured objects, where C{2.0} is an integer too.
        @return: A new object that shares no mutable value with C{obj}.
        @raise DecodeError: A value does not fit its field.
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
        Return a text for each field of an object that the kind does not have, or that was there before, in their order.

        @param obj: As for L{decode}; with
            L{DuplicateKeyDict<kubetwist.api.repeatedkeys.DuplicateKeyDict>} objects, if it has such fields.
        @raise DecodeError: A value does not fit its field.
        """
        path = DecodePath()
        self.root.walk(obj, path)
        return list(path.strict_errors)

    def zero(self) -> JSONObject:
        """Return an object of this kind without content, as bookmarks carry it; without C{kind} and C{apiVersion}."""
        zero: JSONObject = self.root.zero()
        return zero
