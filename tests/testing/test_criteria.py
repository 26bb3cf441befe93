"""Tests for L{kubetwist.testing._criteria}."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis.strategies import integers, text

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.jsonpath import JSONPathError
from kubetwist.testing._criteria import Condition, Criteria, PathValue, compile_path


def with_condition(status: str, **more: Any) -> dict[str, Any]:
    """Return an object of generation 2 with the condition Ready."""
    condition = {"type": "Ready", "status": status, **more}
    return {"metadata": {"generation": 2}, "status": {"conditions": [{"type": "Other", "status": "True"}, condition]}}


class ConditionTests(SynchronousTestCase):
    """L{Condition}."""

    def test_parse(self) -> None:
        """The status is True unless the text has another one."""
        self.assertEqual(Condition.parse("Ready"), Condition("Ready", "True"))
        self.assertEqual(Condition.parse("condition=Ready=false"), Condition("Ready", "false"))
        for text_ in ("", "=True", "Ready="):
            with self.assertRaisesRegex(ValueError, "is no condition"):
                Condition.parse(text_)

    def test_status(self) -> None:
        """The status is compared without its case; the problem has the reason and the message."""
        ready = Condition("ready", "true")
        self.assertEqual(ready.problem(with_condition("True")), "")
        self.assertEqual(
            ready.problem(with_condition("False", reason="Starting", message="1 of 2")),
            "condition ready is False (Starting: 1 of 2)",
        )
        self.assertEqual(Condition("Ready", "Unknown").problem(with_condition("Unknown")), "")

    def test_missing(self) -> None:
        """An object without status or condition does not meet it."""
        for obj in ({}, {"status": None}, {"status": {"conditions": None}}, {"status": "x"}):
            self.assertEqual(Condition("Ready").problem(obj), "there is no condition Ready")

    def test_generation(self) -> None:
        """A condition of an older generation does not count."""
        ready = Condition("Ready")
        self.assertIn("generation 1", ready.problem(with_condition("True", observedGeneration=1)))
        self.assertEqual(ready.problem(with_condition("True", observedGeneration=2)), "")
        obj = with_condition("True")
        obj["status"]["observedGeneration"] = 1
        self.assertIn("generation 1", ready.problem(obj))


class PathTests(SynchronousTestCase):
    """L{PathValue}."""

    def problem(self, expression: str, obj: Any) -> str:
        """Return the problem of an object with an expression."""
        return PathValue.parse(expression).problem(obj)

    def test_forms(self) -> None:
        """Braces and the first dot may be missing, and values may have quotes."""
        obj = {"status": {"phase": "Running"}}
        for form in ("{.status.phase}", ".status.phase", "status.phase", "{status.phase}", "{$.status.phase}"):
            for value in ("=Running", "='Running'", '="Running"', "==Running", "", "= Running "):
                self.assertEqual(self.problem(f"{form}{value}", obj), "")
        self.assertEqual(self.problem(".status.phase=Pending", obj), "{.status.phase} is 'Running'")
        self.assertEqual(self.problem(".status.x", obj), "{.status.x} has no value")

    def test_types(self) -> None:
        """Numbers and booleans are compared by their text; lists and objects are not compared."""
        obj = {"n": 3, "yes": True, "none": None, "list": [1], "map": {}, "x": [{"a": 1}, {"a": 1}]}
        for expression in (".n=3", ".yes=true", ".none=<nil>", ".x[0].a=1"):
            self.assertEqual(self.problem(expression, obj), "")
        self.assertEqual(self.problem(".yes=True", obj), "{.yes} is True")
        self.assertIn("not compared", self.problem(".list=1", obj))
        self.assertIn("not compared", self.problem(".map={}", obj))
        self.assertEqual(self.problem(".x[*].a=1", obj), "{.x[*].a} has 2 values")

    def test_filter(self) -> None:
        """An equals sign in a filter does not separate the value."""
        obj = {"status": {"containers": [{"name": "a=b", "ready": True}, {"name": "c", "ready": False}]}}
        self.assertEqual(self.problem('{.status.containers[?(@.name=="a=b")].ready}=true', obj), "")
        self.assertEqual(
            self.problem('.status.containers[?(@.name=="c")].ready=true', obj),
            '{.status.containers[?(@.name=="c")].ready} is False',
        )

    def test_malformed(self) -> None:
        """Malformed paths and missing values are errors."""
        for expression in ("{}", "=3", ".a="):
            self.assertRaises(ValueError, PathValue.parse, expression)
        self.assertRaises(JSONPathError, PathValue.parse, ".a[?(x")

    @given(text(), integers())
    def test_exact(self, value: str, number: int) -> None:
        """Values of a mapping are compared as JSON."""
        criteria = Criteria.of(jsonpath={"{.a}": value, ".b": number})
        self.assertEqual(criteria.problems({"a": value, "b": number}), [])
        self.assertEqual(len(criteria.problems({"a": f"{value}x", "b": str(number)})), 2)

    @given(text(max_size=30))
    def test_any_text(self, expression: str) -> None:
        """Any text is parsed, or is a ValueError."""
        with contextlib.suppress(ValueError):
            PathValue.parse(expression).problem({"a": [1]})

    def test_text(self) -> None:
        """The text of the path is shown with braces."""
        self.assertEqual(PathValue.parse("a.b=3").text, "jsonpath {.a.b}=3")
        self.assertEqual(PathValue(compile_path("{.a}")).text, "jsonpath {.a}")


class CriteriaTests(SynchronousTestCase):
    """L{Criteria}."""

    def test_nothing(self) -> None:
        """Without criteria, each object meets them."""
        self.assertEqual(Criteria.of().problems({}), [])
        self.assertEqual(Criteria.of().text, "")

    def test_several(self) -> None:
        """All criteria have to be met."""

        def scaled(obj: dict[str, Any]) -> bool:
            return obj["n"] == 1

        criteria = Criteria.of(["Ready", "Other=False"], [".n=1", ".m"], scaled)
        self.assertEqual(
            criteria.text,
            "condition Ready=True and condition Other=False and jsonpath {.n}=1 and jsonpath {.m} and where scaled",
        )
        self.assertEqual(len(criteria.problems({"n": 2})), 5)

    def test_where(self) -> None:
        """A missing field means "not yet"; other errors of the function are raised."""
        self.assertEqual(
            Criteria.of(where=lambda obj: obj["status"]["n"] == 1).problems({}), ["where raised KeyError: 'status'"]
        )
        self.assertEqual(Criteria.of(where=lambda obj: 0).problems({}), ["where returned a false value"])
        self.assertRaises(ZeroDivisionError, Criteria.of(where=lambda obj: 1 / 0).problems, {})
