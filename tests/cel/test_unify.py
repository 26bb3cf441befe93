"""Tests for L{kubetwist.cel.unify}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.types import (
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    list_of,
    map_of,
    nullable,
    optional_of,
    type_parameter,
)
from kubetwist.cel.unify import TypeSubstitutions, format_cel_type, most_general, substitute, type_params

T, U = type_parameter("T"), type_parameter("U")


class TypeSubstitutionsTests(SynchronousTestCase):
    """Tests for L{TypeSubstitutions}."""

    def test_plain(self) -> None:
        """A type is assignable to itself and to C{dyn}, in both directions."""
        for first, second, goes in (
            (INT, INT, True),
            (INT, STRING, False),
            (INT, DYN, True),
            (list_of(INT), list_of(DYN), True),
            (list_of(INT), list_of(STRING), False),
            (list_of(INT), map_of(INT, INT), False),
        ):
            self.assertIs(TypeSubstitutions().assign(first, second), goes, (first, second))
            self.assertIs(TypeSubstitutions().assign(second, first), goes, (second, first))

    def test_null(self) -> None:
        """Null is assignable to optional, duration and wrapper types, but not to primitive types."""
        for type_, goes in ((DURATION, True), (optional_of(INT), True), (nullable(INT), True), (INT, False)):
            self.assertIs(TypeSubstitutions().assign(NULL, type_), goes, type_)

    def test_variables(self) -> None:
        """A type parameter is bound to the same type wherever it occurs."""
        bindings = TypeSubstitutions()
        self.assertTrue(bindings.assign_all((INT, list_of(INT)), (T, list_of(T))))
        self.assertEqual(bindings.mapping, {"T": INT})
        self.assertFalse(bindings.assign(STRING, T))

    def test_rollback(self) -> None:
        """The bindings of a failed assignment are rolled back."""
        bindings = TypeSubstitutions()
        self.assertFalse(bindings.assign_all((INT, STRING), (T, list_of(U))))
        self.assertFalse(bindings.assign_all((map_of(INT, STRING), INT), (map_of(T, U), T, U)))
        self.assertEqual(bindings.mapping, {})

    def test_occurs_check(self) -> None:
        """A type parameter cannot be bound to a type that contains it."""
        bindings = TypeSubstitutions()
        self.assertFalse(bindings.assign(list_of(T), T))
        self.assertEqual(bindings.mapping, {})

    def test_general(self) -> None:
        """The less specific one of two types is the more general one."""
        self.assertEqual(most_general(DYN, INT), DYN)
        self.assertEqual(most_general(list_of(INT), list_of(DYN)), list_of(DYN))

    def test_substitute(self) -> None:
        """Type parameters are replaced by their bindings; unbound ones remain or become C{dyn}."""
        type_ = map_of(T, list_of(U))
        self.assertEqual(substitute({"T": STRING}, type_), map_of(STRING, list_of(U)))
        self.assertEqual(substitute({"T": STRING}, type_, free_to_dyn=True), map_of(STRING, list_of(DYN)))
        self.assertEqual(substitute({"T": U, "U": INT}, T), INT)
        self.assertEqual(type_params((type_, INT)), {"T", "U"})

    def test_display(self) -> None:
        """Errors contain types in cel-go's format."""
        self.assertEqual(format_cel_type(map_of(STRING, NULL)), "map(string, null)")
        self.assertEqual(format_cel_type(list_of(DURATION)), "list(duration)")
        self.assertEqual(format_cel_type(nullable(INT)), "wrapper(int)")
