"""Tests for L{kubetwist.cel.calls}."""

from __future__ import annotations

from typing import Any

from kubetwist.cel import types
from kubetwist.cel.environment import Environment
from kubetwist.cel.errors import EvaluationError
from kubetwist.cel.functions import Library, function, member, overload
from kubetwist.cel.types import ObjectType
from kubetwist.cel.values import NONE, Optional, Value
from tests.cel.support import CelTestCase


class FunctionTests(CelTestCase):
    """Tests for functions of libraries."""

    def test_lazy_arguments(self) -> None:
        """A lazy function may leave arguments unevaluated, which then have no cost."""

        def otherwise(value: Value, alternative: Any) -> Value:
            return alternative() if value is None else value

        either = member("either", (types.DYN, types.DYN), types.DYN, otherwise, lazy=True)
        environment = Environment({"a": types.DYN}, (Library("test", (function("either", either),)),))
        program = environment.compile("a.either(1 / 0 + 2)")
        self.assertEqual(program.evaluate({"a": 5}), (5, 1))
        self.assertRaises(EvaluationError, program.evaluate, {"a": None})

    def test_dispatch(self) -> None:
        """Dynamic dispatch selects the overload by the types of the values, and for lists by the first element."""
        library = Library(
            "test",
            (
                function(
                    "kind",
                    overload("kind_texts", (types.list_of(types.STRING),), types.STRING, lambda _: "texts"),
                    overload("kind_ints", (types.list_of(types.INT),), types.STRING, lambda _: "ints"),
                    overload("kind_map", (types.map_of(types.STRING, types.DOUBLE),), types.STRING, lambda _: "map"),
                ),
            ),
        )
        program = Environment({"a": types.DYN}, (library,)).compile("kind(a)")
        for value, kind in ((["x"], "texts"), ([1, "x"], "ints"), ([], "texts"), ({"a": 1.5}, "map")):
            self.assertEqual(program.evaluate({"a": value})[0], kind)
        error = self.assertRaises(EvaluationError, program.evaluate, {"a": {"a": 1}})
        self.assertEqual(error.message, "no such overload: kind(map)")

    def test_values_of_wrong_types(self) -> None:
        """A variable whose value does not have its declared type causes an evaluation error."""
        program = Environment({"a": types.INT}).compile("a + 1 > 2")
        error = self.assertRaises(EvaluationError, program.evaluate, {"a": "text"})
        self.assertEqual(error.message, "no such overload")
        error = self.assertRaises(EvaluationError, program.evaluate, {})
        self.assertEqual(error.message, "no such attribute(s): a")

    def test_objects(self) -> None:
        """A message literal creates a value of its type, by default a map."""
        point = ObjectType("Point", {"x": types.INT}, make=lambda fields: sorted(fields.items()))
        plain = ObjectType("Plain", {"x": types.INT})
        environment = Environment({"m": types.optional_of(types.INT)}, find_type={"Point": point, "Plain": plain}.get)
        self.assertEqual(environment.compile("Point{x: 1}").evaluate({})[0], [("x", 1)])
        self.assertEqual(environment.compile("Plain{x: 1}.x").evaluate({})[0], 1)
        self.assertEqual(environment.compile("Plain{?x: m}").evaluate({"m": NONE})[0], {})
        self.assertEqual(environment.compile("Plain{?x: m}").evaluate({"m": Optional(3)})[0], {"x": 3})
