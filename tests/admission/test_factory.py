"""Tests for L{kubetwist.admission.factory}."""

from __future__ import annotations

import sys
from typing import Any

from twisted.plugin import IPlugin
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.admission.factory import AdmissionPluginFactory
from kubetwist.interfaces import IAdmissionPluginFactory
from tests.admission_plugins.fakes import Context


class Plain:
    """A plugin without parameters."""


class Configured:
    """A plugin with a configuration."""

    def __init__(self, server: Any, configuration: Any) -> None:
        self.made_of = server, configuration

    @classmethod
    def configured(cls, server: Any, configuration: Any) -> Configured:
        """Create a plugin."""
        return cls(server, configuration)


class FactoryTests(SynchronousTestCase):
    """Tests for L{AdmissionPluginFactory}."""

    def test_interfaces(self) -> None:
        """A factory is a Twisted plugin that creates admission plugins."""
        factory = AdmissionPluginFactory("Plain", f"{__name__}:Plain")
        verifyObject(IAdmissionPluginFactory, factory)
        verifyObject(IPlugin, factory)

    def test_plain(self) -> None:
        """A class without C{configured} is called without arguments."""
        made: Any = AdmissionPluginFactory("Plain", f"{__name__}:Plain").make(Context(), {"a": 1})
        self.assertIsInstance(made, Plain)

    def test_configured(self) -> None:
        """A class with C{configured} gets the server and its configuration."""
        server = Context()
        made: Any = AdmissionPluginFactory("Configured", f"{__name__}:Configured").make(server, {"a": 1})
        self.assertEqual(made.made_of, (server, {"a": 1}))

    def test_imported_late(self) -> None:
        """The module of a plugin is imported when the plugin is created."""
        name = "kubetwist.admission_plugins.alwaysdeny"
        module = sys.modules.pop(name, None)
        self.addCleanup(lambda: module and sys.modules.__setitem__(name, module))
        factory = AdmissionPluginFactory("AlwaysDeny", f"{name}:AlwaysDeny")
        self.assertNotIn(name, sys.modules)
        self.assertEqual(factory.make(Context(), None).name, "AlwaysDeny")
        self.assertIn(name, sys.modules)
