"""Tests for L{kubetwist.controllers.machinery.factory}."""

from __future__ import annotations

from typing import Any, cast

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.controllers.machinery.factory import ControllerFactory
from kubetwist.interfaces import IControllerFactory


class ControllerContext:
    """A context with a few served resources."""

    def __init__(self, *resources: tuple[str, str]) -> None:
        self.resources = resources

    def served(self, group: str, resource: str) -> bool:
        """Return whether a resource is served."""
        return (group, resource) in self.resources


class Made:
    """A controller."""

    def __init__(self, context: Any) -> None:
        self.context = context


class FactoryTests(SynchronousTestCase):
    """Tests for L{ControllerFactory}."""

    def make(self, place: str, *resources: tuple[str, str], needs: tuple[str, ...] = ()) -> Any:
        """Return the controller that a factory makes."""
        factory = ControllerFactory("made", place, needs=needs)
        verifyObject(IControllerFactory, factory)
        return factory.make(cast(Any, ControllerContext(*resources)))

    def test_needs(self) -> None:
        """A controller is made if all resources that it needs are served."""
        place, needs = f"{__name__}:Made", ("pods", "jobs.batch")
        self.assertIsNone(self.make(place, ("", "pods"), needs=needs))
        self.assertIsNone(self.make(place, ("", "pods"), ("apps", "jobs"), needs=needs))
        made = self.make(place, ("", "pods"), ("batch", "jobs"), needs=needs)
        self.assertIsInstance(made, Made)
        self.assertIsInstance(made.context, ControllerContext)

    def test_late(self) -> None:
        """A factory is listed even if its module cannot be imported."""
        factory = ControllerFactory("lost", "kubetwist.no_such_module:Lost", needs=("pods",))
        self.assertIsNone(factory.make(cast(Any, ControllerContext())))
        self.assertRaises(ModuleNotFoundError, factory.make, cast(Any, ControllerContext(("", "pods"))))
