"""Tests for L{kubetwist.cel.checker}, C{unify} and C{validators}."""

from __future__ import annotations

from kubetwist.cel import types
from kubetwist.cel.environment import Environment
from kubetwist.cel.errors import CompileErrors, ProgramError
from kubetwist.cel.functions import Library, function, member, overload
from kubetwist.cel.types import ObjectType, list_of, map_of, opaque, type_parameter

from .support import CelTestCase

POINT = ObjectType("geo.Point", {"x": types.INT, "y": types.INT, "name": types.STRING})
NESTED = ObjectType("geo.Line", lambda: {"from": POINT, "points": list_of(POINT)})
COLOR = opaque("paint.Color")
T = type_parameter("T")

LIBRARY = Library(
    "test",
    functions=(
        function("first", member("list_first", (list_of(T),), T, lambda values: values[0])),
        function("pick", overload("pick_a", (T, T), T, lambda left, right: left)),
        function("ns.twice", overload("twice_int", (types.INT,), types.INT, lambda number: number * 2)),
        function("color", overload("color_string", (types.STRING,), COLOR, lambda name: name)),
    ),
    types={"paint.Color": COLOR},
    constants={"limits.MAX": (types.INT, 10)},
)


class CheckingTestCase(CelTestCase):
    """Expressions over objects."""

    environment = Environment(
        {
            "line": NESTED,
            "point": POINT,
            "any": types.DYN,
            "i": types.INT,
            "counts": map_of(types.STRING, types.INT),
            "ints": list_of(types.INT),
            "maybe": types.optional_of(POINT),
        },
        (LIBRARY,),
        find_type={"geo.Point": POINT}.get,
    )

    def assertTypes(self, expected: dict[str, str]) -> None:
        """Expressions have these types."""
        for text, shown in expected.items():
            self.assertEqual(str(self.compile(text).output_type), shown, text)


class TypeTests(CheckingTestCase):
    """The types that are found."""

    def test_results(self) -> None:
        """The type of a whole follows from its parts; what nothing tells of is dynamic."""
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
        """Names, functions and types that there are not are told, all of them at once."""
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
        """Only declared fields can be selected, and only where there are fields."""
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
        """A call whose arguments fit no overload is refused with their types."""
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
        """Numbers of different types have an order, but only equal each other where a type is dynamic."""
        self.assertTypes({"i < 1.5": "bool", "i >= 1u": "bool", "any == 1.5": "bool"})

    def test_container(self) -> None:
        """Names are looked for in the container first, from the inside out."""
        environment = Environment({"a.b.x": types.INT, "a.y": types.STRING, "x": types.BOOL}, container="a.b")
        for text, shown in {"x": "int", ".x": "bool", "y": "string"}.items():
            self.assertEqual(str(environment.compile(text).output_type), shown, text)
        error = self.assertRaises(CompileErrors, environment.compile, "z")
        self.assertIn("undeclared reference to 'z' (in container 'a.b')", str(error))

    def test_dotted_names(self) -> None:
        """The longest dotted name that is a variable wins over a selection."""
        environment = Environment({"a": map_of(types.STRING, types.STRING), "a.b": types.INT})
        program = environment.compile("a.b + 1")
        self.assertEqual(program.evaluate({"a.b": 1, "a": {"b": "text"}}), (2, 2))

    def test_scopes(self) -> None:
        """A variable of a macro hides others within it and nowhere else."""
        self.assertTypes(
            {"ints.map(line, line + 1)": "list(int)", "[1].exists(i, [2].all(i, i == 2)) && i == 7": "bool"}
        )


class ValidatorTests(CheckingTestCase):
    """What is refused although its types are right."""

    def test_literals(self) -> None:
        """Durations, timestamps and expressions of RE2 that are written out must be some."""
        self.assertRefused(
            {
                "duration('1x') == duration('1s')": "1:10: invalid duration argument",
                "timestamp('yesterday') == null": "1:11: invalid timestamp argument",
                "timestamp(-62135596801) == null": "1:11: invalid timestamp argument",
                "'a'.matches('(')": "1:13: invalid matches argument",
            }
        )

    def test_mixed_literals(self) -> None:
        """Lists and maps that are written out hold values of one type."""
        self.assertRefused(
            {
                "[1, 'a'] == []": "1:5: expected type 'int' but found 'string'",
                "[1, any] == []": "1:5: expected type 'int' but found 'dyn'",
                "{'a': 1, 'b': 2.0} == {}": "1:15: expected type 'int' but found 'double'",
                "{'a': 1, 2: 2} == {}": "1:10: expected type 'string' but found 'int'",
                "[null, point].size()": "1:8: expected type 'null' but found 'geo.Point'",
            }
        )

    def test_constants_without_value(self) -> None:
        """What no evaluation could ever give is refused at once, though not as a wrong type."""
        for text, message in {
            "int('a')": "type conversion error from 'string' to 'int'",
            "uint(-1)": "unsigned integer overflow",
            "matches('a', ')')": "error parsing regexp: unexpected ): `)`",
        }.items():
            error = self.assertRaises(ProgramError, self.compile, text)
            self.assertEqual(str(error), message)
