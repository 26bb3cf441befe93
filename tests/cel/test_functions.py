"""Tests for L{kubetwist.cel.functions}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.environment import Environment
from kubetwist.cel.functions import Library, function, member, overload
from kubetwist.cel.types import INT, STRING


class DeclarationTests(SynchronousTestCase):
    """Tests for declarations of libraries."""

    def test_members(self) -> None:
        """A member function is called on its target, a global function with all arguments in parentheses."""
        self.assertFalse(overload("f", (INT,), INT, abs).member)
        self.assertTrue(member("f", (INT,), INT, abs).member)
        library = Library(
            "test",
            [function("twice", member("m", [STRING], STRING, lambda text: text * 2))],
            constants={"n.A": (INT, 5)},
        )
        environment = Environment({}, (library,))
        self.assertEqual(environment.compile("'a'.twice()").evaluate({})[0], "aa")
        self.assertEqual(environment.compile("n.A + 1").evaluate({})[0], 6)

    def test_frozen(self) -> None:
        """Sequences are stored as tuples, so that libraries are immutable."""
        library = Library("test", [function("f", overload("f", [INT], INT, abs))])
        self.assertEqual(library.functions[0].overloads[0].parameters, (INT,))
        self.assertIsInstance(library.functions, tuple)
