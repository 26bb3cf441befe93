"""Tests for L{kubetwist.api.providers}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import Attribute, Interface, implementer

from kubetwist.api.providers import interface_error


class INamed(Interface):
    """An object with a name."""

    name: str = Attribute("What it is called.")


class IGreets(INamed):
    """An object that greets."""

    def greet(whom: str) -> str:
        """Return a greeting."""


@implementer(IGreets)
class Complete:
    """Implements the complete interface."""

    name = "complete"

    async def greet(self, whom: str) -> str:
        """@see: L{IGreets.greet}."""
        return f"hello {whom}"


@implementer(IGreets)
class Odd:
    """Lacks the name, and takes no argument."""

    def greet(self) -> str:
        """@see: L{IGreets.greet}."""
        return "hello"


class InterfaceErrorTests(SynchronousTestCase):
    """Tests for L{interface_error}."""

    def test_complete(self) -> None:
        """A complete provider is accepted for any of several interfaces."""
        self.assertEqual(interface_error(Complete(), IGreets), "")
        self.assertEqual(interface_error(Complete(), Interface, IGreets), "")

    def test_parts(self) -> None:
        """Each missing or wrong attribute is named, in one line."""
        error = interface_error(Odd(), IGreets)
        self.assertIn("Odd lacks the attribute name of IGreets (What it is called.)", error)
        self.assertIn("Odd.greet() does not fit IGreets: implementation doesn't allow enough arguments", error)
        self.assertNotIn("\n", error)

    def test_not_declared(self) -> None:
        """A provider must declare the interface."""
        undeclared: Any = object()
        self.assertEqual(
            interface_error(undeclared, INamed, IGreets),
            "object does not provide INamed or IGreets; declare it with @implementer",
        )
