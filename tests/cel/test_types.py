"""Tests for L{kubetwist.cel.types}."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.types import (
    DYN,
    INT,
    STRING,
    ObjectType,
    Type,
    is_optional,
    list_of,
    map_of,
    nullable,
    opaque,
    optional_of,
    type_of_type,
    type_parameter,
)


class TypeTests(SynchronousTestCase):
    """Tests for L{Type} and its factories."""

    def test_equal(self) -> None:
        """Types with equal parts are equal and have the same hash; a wrapper type differs from its primitive type."""
        self.assertEqual(map_of(STRING, list_of(INT)), map_of(STRING, list_of(INT)))
        self.assertEqual(len({list_of(INT), list_of(INT), list_of(STRING)}), 2)
        self.assertNotEqual(INT, nullable(INT))
        self.assertNotEqual(INT, "int")

    def test_text(self) -> None:
        """The text of a type contains its parameters and marks type parameters and wrapper types."""
        for type_, text in (
            (map_of(STRING, list_of(INT)), "map(string, list(int))"),
            (nullable(INT), "wrapper(int)"),
            (type_parameter("T"), "<T>"),
            (optional_of(DYN), "optional_type(dyn)"),
            (type_of_type(INT), "type(int)"),
            (opaque("net.IP"), "net.IP"),
        ):
            self.assertEqual(str(type_), text)

    def test_optionals(self) -> None:
        """Of the opaque types only C{optional_type} is an optional type."""
        self.assertTrue(is_optional(optional_of(INT)))
        self.assertFalse(is_optional(opaque("net.IP")) or is_optional(INT))

    def test_fields(self) -> None:
        """The fields of an object are loaded once, at first use; other types have none."""
        loaded = []

        def load() -> Mapping[str, Type]:
            loaded.append(1)
            return {"a": INT}

        lazy = ObjectType("x", load)
        self.assertEqual(loaded, [])
        self.assertEqual((lazy.fields(), lazy.fields()), ({"a": INT}, {"a": INT}))
        self.assertEqual(loaded, [1])
        self.assertEqual(INT.fields(), {})

    def test_closed(self) -> None:
        """An object without declared fields is closed; one with an empty set of fields is not."""
        self.assertTrue(ObjectType("x").closed)
        self.assertFalse(ObjectType("x", {}).closed)
        self.assertEqual(ObjectType("x"), ObjectType("x", {"a": INT}))
