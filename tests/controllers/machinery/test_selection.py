"""Tests for L{kubetwist.controllers.machinery.selection}."""

from __future__ import annotations

from twisted.plugin import getPlugins
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.controllers.machinery.selection import (
    KNOWN,
    UnknownControllers,
    installed_factories,
    select_controllers,
)
from kubetwist.interfaces import IControllerFactory
from tests.controllers.machinery.controllers import Factory

INSTALLED = (
    Factory("namespace-controller"),
    Factory("garbage-collector-controller"),
    Factory("deployment-controller", False, ("workloads",)),
    Factory("replicaset-controller", False, ("workloads",)),
    Factory("my-controller", False),
)


class SelectionTests(SynchronousTestCase):
    """The items of C{--controllers}."""

    def names(self, *items: str) -> str:
        """Return the names of the enabled controllers."""
        return " ".join(factory.name.removesuffix("-controller") for factory in select_controllers(items, INSTALLED))

    def test_meaning(self) -> None:
        """
        C{*} enables the default controllers, a name one controller, and C{-name} disables one. The first match decides.
        """
        for items, on in (
            ("*", "garbage-collector namespace"),
            ("", ""),
            ("namespace-controller", "namespace"),
            ("*,-namespace-controller", "garbage-collector"),
            ("-namespace-controller,*", "garbage-collector"),
            ("-namespace-controller", ""),
            ("*,my-controller", "garbage-collector my namespace"),
            ("*,+my-controller", "garbage-collector my namespace"),
            ("-my-controller,my-controller", ""),
            ("+my-controller,-my-controller", "my"),
            ("*,+workloads", "deployment garbage-collector namespace replicaset"),
            ("workloads,-deployment-controller", "deployment replicaset"),
            ("-deployment-controller,workloads", "replicaset"),
            ("workloads,*,-workloads", "deployment garbage-collector namespace replicaset"),
        ):
            self.assertEqual(self.names(*filter(None, items.split(","))), on, items)

    def test_aliases(self) -> None:
        """Former names of controllers are accepted."""
        self.assertEqual(self.names("*", "-garbagecollector"), "namespace")
        self.assertEqual(self.names("namespace", "deployment"), "deployment namespace")
        aliases = [alias for alias in KNOWN.values() if alias]
        self.assertEqual(len(set(aliases)), len(aliases))
        self.assertFalse(set(aliases) & set(KNOWN))

    def test_unimplemented(self) -> None:
        """Controllers that exist only in kube-controller-manager can be disabled, but not enabled."""
        self.assertEqual(self.names("*", "-nodeipam", "-node-lifecycle-controller"), "garbage-collector namespace")
        for name in ("nodeipam", "node-ipam-controller", "+node-ipam-controller"):
            with self.assertRaises(UnknownControllers) as raised:
                self.names("*", name)
            self.assertEqual(str(raised.exception), f'"{name.lstrip("+")}" is not in the list of known controllers')

    def test_unknown(self) -> None:
        """Unknown names are reported together, with kube-controller-manager's message."""
        with self.assertRaises(UnknownControllers) as raised:
            self.names("foo", "*", "-bar")
        self.assertEqual(
            str(raised.exception),
            '["foo" is not in the list of known controllers, "bar" is not in the list of known controllers]',
        )

    def test_twice(self) -> None:
        """Two controllers with the same name are rejected."""
        self.assertRaises(UnknownControllers, select_controllers, ["*"], [*INSTALLED, Factory("my-controller")])

    def test_installed_factories(self) -> None:
        """All built-in factories provide the interface, with names of kube-controller-manager or additional names."""
        found = list(getPlugins(IControllerFactory))
        self.assertEqual(len(installed_factories(found)), len(found))
        for factory in found:
            verifyObject(IControllerFactory, factory)
            self.assertTrue(factory.name in KNOWN or not factory.default or factory.name.endswith("-controller"))
        self.assertIn("serviceaccount-controller", installed_factories())
