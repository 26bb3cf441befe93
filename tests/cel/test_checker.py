"""Tests for L{kubetwist.cel.checker}."""

from __future__ import annotations

from kubetwist.cel.errors import CompileErrors
from tests.cel.checkingcase import CheckingTestCase


class TypeTests(CheckingTestCase):
    """Tests for the types of expressions."""

    def test_results(self) -> None:
        """The type of an expression follows from its subexpressions, and is C{dyn} if it is not known."""
        self.assertTypes(
            {
                "1 + 2": "int",
                "line.points.map(p, p.x)": "list(int)",
                "line.points[0].name": "string",
                "{'a': point.x}": "map(string, int)",
                "[]": "list(dyn)",
                "any.field": "dyn",
                "any == 1 ? 1 : 2": "int",
                "true ? any : 1": "dyn",
                "type(1)": "type(int)",
                "type(1) == int": "bool",
                "timestamp('2020-01-01T00:00:00Z') - duration('1s')": "google.protobuf.Timestamp",
                "[1, 2].first()": "int",
                "[[1]].first().first()": "int",
                "pick(1, any)": "dyn",
                "color('red')": "paint.Color",
                "type(color('red')) == paint.Color": "bool",
                "limits.MAX + 1": "int",
                "ns.twice(2)": "int",
                "maybe.x": "optional_type(int)",
                "maybe.?name": "optional_type(string)",
                "counts[?'a']": "optional_type(int)",
                "geo.Point{x: 1, ?name: maybe.name}": "geo.Point",
                "null": "null_type",
            }
        )

    def test_undeclared(self) -> None:
        """All undeclared names, functions and types are reported together."""
        error = self.assertRaises(CompileErrors, self.compile, "nosuch + other(1) + i.third()")
        self.assertEqual(
            [issue.message for issue in error.issues],
            [
                "undeclared reference to 'nosuch' (in container '')",
                "undeclared reference to 'other' (in container '')",
                "undeclared reference to 'third' (in container '')",
            ],
        )

    def test_fields(self) -> None:
        """Only declared fields can be selected, and only on types with fields."""
        self.assertRefused(
            {
                "line.points[0].z": "1:15: undefined field 'z'",
                "has(point.z)": "1:4: undefined field 'z'",
                "i.x": "1:2: type 'int' does not support field selection",
                "'a'.x": "1:4: type 'string' does not support field selection",
                "geo.Point{z: 1}": "1:12: undefined field 'z'",
                "geo.Point{x: 'a'}": "1:12: expected type of field 'x' is 'int' but provided type is 'string'",
                "geo.Nowhere{}": "1:12: undeclared reference to 'geo.Nowhere' (in container '')",
                "i{}": "1:2: 'int' is not a type",
                "paint.Color{}": "1:12: 'paint.Color' is not a message type",
            }
        )

    def test_overloads(self) -> None:
        """A call that matches no overload is an error that contains the types of the arguments."""
        self.assertRefused(
            {
                "i + 'a'": "1:3: found no matching overload for '_+_' applied to '(int, string)'",
                "i == 'a'": "1:3: found no matching overload for '_==_' applied to '(int, string)'",
                "point.x.first()": "1:14: found no matching overload for 'first' applied to 'int.()'",
                "i.size()": "1:7: found no matching overload for 'size' applied to 'int.()'",
                "point == line": "1:7: found no matching overload for '_==_' applied to '(geo.Point, geo.Line)'",
                "'a' in ints": "1:5: found no matching overload for '@in' applied to '(string, list(int))'",
                "true ? 1 : 'a'": "1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'",
                "duration('1s') < timestamp('2020-01-01T00:00:00Z')": (
                    "1:16: found no matching overload for '_<_' applied to '(duration, timestamp)'"
                ),
                "ints.map(x, null + [x])": "1:18: found no matching overload for '_+_' applied to '(null, list(int))'",
                "1 && true": "1:1: expected type 'bool' but found 'int'",
                "!i": "1:1: found no matching overload for '!_' applied to '(int)'",
                "i.all(x, true)": (
                    "1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"
                ),
            }
        )

    def test_numbers_compare(self) -> None:
        """Numbers of different types can be ordered, but compared for equality only if one type is dynamic."""
        self.assertTypes({"i < 1.5": "bool", "i >= 1u": "bool", "any == 1.5": "bool"})
