"""Tests for L{kubetwist.schema.validation.result}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.validation.result import Result, composite_error, invalid_value, too_many, type_problem


class ResultTests(SynchronousTestCase):
    """Tests for L{Result} and L{Problem}."""

    def test_once(self) -> None:
        """An error is reported only once."""
        one, other = type_problem("spec.a", "string", "integer"), type_problem("spec.b", "string", "integer")
        result = Result([one], 1)
        result.merge(Result([one, other], 2))
        self.assertEqual((result.problems, result.matches), ([one, other], 3))

    def test_causes(self) -> None:
        """The path of the object is a prefix of the path of the error; an error without a path has none."""
        cause = type_problem("spec.a", "string", "integer").cause("")
        self.assertEqual((cause.reason, cause.field), ("FieldValueTypeInvalid", "spec.a"))
        self.assertEqual(cause.message, 'Invalid value: "integer": spec.a in body must be of type string: "integer"')
        self.assertEqual(invalid_value("a", 7, "is odd").cause("spec").field, "spec.a")
        self.assertEqual(composite_error("x").cause("").field, "<nil>")

    def test_too_many(self) -> None:
        """The text of a list with too many items has the limit, the message the size."""
        problem = too_many("spec.l", 5, 3, "items")
        self.assertEqual(problem.text, "spec.l in body should have at most 3 items")
        self.assertEqual(problem.message, "Too many: 5: must have at most 3 items")
