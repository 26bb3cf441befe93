"""An environment with object types, opaque types and its functions, for tests of the checker."""

from __future__ import annotations

from kubetwist.cel import types
from kubetwist.cel.environment import Environment
from kubetwist.cel.functions import Library, function, member, overload
from kubetwist.cel.types import ObjectType, list_of, map_of, opaque, type_parameter
from tests.cel.support import CelTestCase

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
    """Assertions on the types of expressions."""

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
        """Assert that expressions have these types."""
        for text, shown in expected.items():
            self.assertEqual(str(self.compile(text).output_type), shown, text)
