"""Tests for L{kubetwist.admission.deferred}."""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from twisted.plugin import IPlugin
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.admission.deferred import DeferredPlugin, DeferredPluginFactory
from kubetwist.admission.plugins import installed
from kubetwist.api.admission import OPERATIONS
from kubetwist.interfaces import (
    IAdmissionPluginFactory,
    IMeasuredAdmission,
    IMutatingAdmission,
    IValidatingAdmission,
)
from tests.admission_plugins.fakes import Context

PLACE = f"{__name__}:Counting"


@implementer(IMutatingAdmission, IValidatingAdmission)
class Counting:
    """A plugin whose instances and calls are counted; its gate is disabled for updates."""

    name = "Counting"
    made: ClassVar[list[tuple[Any, Any]]] = []
    calls: ClassVar[list[str]] = []

    @classmethod
    def configured(cls, server: Any, configuration: Any) -> Counting:
        """Create a plugin."""
        cls.made.append((server, configuration))
        return cls()

    def handles(self, operation: str) -> bool:
        """Return whether it is a creation."""
        return operation == "CREATE"

    def admit(self, attributes: Any) -> None:
        """Count a call."""
        self.calls.append(f"admit {attributes.operation}")

    def validate(self, attributes: Any) -> None:
        """Count a call."""
        self.calls.append(f"validate {attributes.operation}")


class Attributes:
    """A request."""

    def __init__(self, operation: str) -> None:
        self.operation = operation


class DeferredTests(SynchronousTestCase):
    """Tests for L{DeferredPluginFactory}."""

    def setUp(self) -> None:
        """Count from zero."""
        Counting.made.clear()
        Counting.calls.clear()
        self.factory = DeferredPluginFactory("Counting", PLACE, ("pods",), ("CREATE", "UPDATE"), ("admit", "validate"))
        verifyObject(IPlugin, self.factory)
        verifyObject(IAdmissionPluginFactory, self.factory)

    def test_first_request(self) -> None:
        """The plugin is created at the first request, once, and called for the operations that it handles."""
        plugin: Any = self.factory.make("server", None)
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        self.assertEqual((plugin.name, plugin.resources), ("Counting", ("pods",)))
        self.assertEqual([one for one in OPERATIONS if plugin.handles(one)], ["CREATE", "UPDATE"])
        self.assertEqual(Counting.made, [])
        for operation in ("UPDATE", "CREATE"):
            self.assertIsNone(plugin.admit(Attributes(operation)))
            self.assertIsNone(plugin.validate(Attributes(operation)))
        self.assertEqual(Counting.made, [("server", None)])
        self.assertEqual(Counting.calls, ["admit CREATE", "validate CREATE"])

    def test_configuration(self) -> None:
        """A plugin with a configuration is created at once, so that errors stop the start."""
        self.assertIsInstance(self.factory.make("server", {"a": 1}), Counting)
        self.assertEqual(Counting.made, [("server", {"a": 1})])

    def test_one_phase(self) -> None:
        """A plugin provides the interfaces of its phases only."""
        factory = DeferredPluginFactory("Counting", PLACE, ("pods",), ("CREATE",), ("validate",))
        plugin = factory.make("server", None)
        self.assertTrue(IValidatingAdmission.providedBy(plugin))
        self.assertFalse(IMutatingAdmission.providedBy(plugin))

    def test_missing_module(self) -> None:
        """A module that cannot be imported fails the request."""
        factory = DeferredPluginFactory("Missing", "kubetwist.nowhere:Missing", ("pods",), ("CREATE",), ("admit",))
        plugin: Any = factory.make("server", None)
        with self.assertRaises(ModuleNotFoundError):
            plugin.admit(Attributes("CREATE"))
        self.assertNotIn("kubetwist.nowhere", sys.modules)


class InstalledTests(SynchronousTestCase):
    """Tests of the factories of kubetwist."""

    def test_descriptions(self) -> None:
        """Each factory describes its plugin."""
        factories: dict[str, Any] = {
            name: factory for name, factory in installed().items() if isinstance(factory, DeferredPluginFactory)
        }
        self.assertGreater(len(factories), 15)
        for name, factory in factories.items():
            self.assertTrue(factory.place.startswith("kubetwist."), name)
            server: Any = Context()
            plugin: Any = factory.make_now(server, None)
            self.assertEqual(plugin.name, name)
            self.assertEqual(tuple(plugin.resources), factory.resources, name)
            handled = tuple(operation for operation in OPERATIONS if plugin.handles(operation))
            self.assertTrue(set(handled) <= set(factory.operations), (name, handled))
            phases = {"admit": IMutatingAdmission, "validate": IValidatingAdmission}
            provided = tuple(phase for phase, interface in phases.items() if interface.providedBy(plugin))
            self.assertEqual(provided, factory.phases, name)
            self.assertFalse(IMeasuredAdmission.providedBy(plugin), name)
            self.assertFalse(hasattr(plugin, "timeout") or hasattr(plugin, "failure_policy"), name)
            self.assertIsInstance(factory.make(server, None), DeferredPlugin, name)
