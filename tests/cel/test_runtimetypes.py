"""Tests for L{kubetwist.cel.runtimetypes}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.runtimetypes import fits, is_certain, no_overload, signature_fits
from kubetwist.cel.types import (
    BOOL,
    DYN,
    INT,
    STRING,
    TYPE,
    UINT,
    list_of,
    map_of,
    nullable,
    optional_of,
    type_parameter,
)
from kubetwist.cel.values import NONE, UInt


class FitTests(SynchronousTestCase):
    """Tests for L{fits}."""

    def test_values(self) -> None:
        """A value fits only its exact type; of lists and maps the first element is checked."""
        for type_, good, bad in (
            (INT, [0], [True, 1.0, UInt(1), "1"]),
            (UINT, [UInt(1)], [1]),
            (BOOL, [True], [1, None]),
            (nullable(INT), [1, None], ["a", True]),
            (list_of(INT), [[], [1], [1, "a"]], [["a"], (1,), {}]),
            (map_of(STRING, INT), [{}, {"a": 1}], [{1: 1}, {"a": "b"}, []]),
            (optional_of(INT), [NONE], [None, 1]),
            (TYPE, [INT], ["int"]),
        ):
            check = fits(type_)
            assert check is not None
            for value in good:
                self.assertTrue(check(value), (type_, value))
            for value in bad:
                self.assertFalse(check(value), (type_, value))

    def test_anything(self) -> None:
        """C{dyn} and type parameters need no check."""
        self.assertIsNone(fits(DYN))
        self.assertIsNone(fits(type_parameter("T")))

    def test_certain(self) -> None:
        """A type is certain if no part of it is dynamic."""
        self.assertTrue(is_certain(map_of(STRING, list_of(INT))))
        self.assertFalse(is_certain(list_of(DYN)) or is_certain(type_parameter("T")))


class SignatureTests(SynchronousTestCase):
    """Tests for L{signature_fits}."""

    def test_needed(self) -> None:
        """Only arguments whose static type is not certain are checked."""
        self.assertIsNone(signature_fits((INT, STRING), (INT, STRING)))
        self.assertIsNone(signature_fits((DYN,), (DYN,)))
        one = signature_fits((INT, STRING), (DYN, STRING))
        both = signature_fits((INT, STRING), (DYN, DYN))
        assert one is not None and both is not None
        self.assertEqual([one((1, "a")), one(("a", "a"))], [True, False])
        self.assertEqual([both((1, "a")), both((1, 1)), both(("a", "a"))], [True, False, False])

    def test_message(self) -> None:
        """The error of a call that matches no overload contains the types of the arguments."""
        self.assertEqual(no_overload("f", (1, "a", [])), "no such overload: f(int, string, list)")
