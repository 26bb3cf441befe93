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
    """What C{--controllers} says."""

    def names(self, *wanted: str) -> str:
        """Which are on."""
        return " ".join(factory.name.removesuffix("-controller") for factory in select_controllers(wanted, INSTALLED))

    def test_meaning(self) -> None:
        """A star means those on by default, a name one, and a minus all but one; the first word on one counts."""
        for wanted, on in (
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
            self.assertEqual(self.names(*filter(None, wanted.split(","))), on, wanted)

    def test_aliases(self) -> None:
        """The names that controllers had before are good, too."""
        self.assertEqual(self.names("*", "-garbagecollector"), "namespace")
        self.assertEqual(self.names("namespace", "deployment"), "deployment namespace")
        aliases = [alias for alias in KNOWN.values() if alias]
        self.assertEqual(len(set(aliases)), len(aliases))
        self.assertFalse(set(aliases) & set(KNOWN))

    def test_others(self) -> None:
        """What only others have can be switched off, and not on."""
        self.assertEqual(self.names("*", "-nodeipam", "-node-lifecycle-controller"), "garbage-collector namespace")
        for name in ("nodeipam", "node-ipam-controller", "+node-ipam-controller"):
            with self.assertRaises(UnknownControllers) as raised:
                self.names("*", name)
            self.assertEqual(str(raised.exception), f'"{name.lstrip("+")}" is not in the list of known controllers')

    def test_unknown(self) -> None:
        """unknown names are reported together, with the message of the reference."""
        with self.assertRaises(UnknownControllers) as raised:
            self.names("foo", "*", "-bar")
        self.assertEqual(
            str(raised.exception),
            '["foo" is not in the list of known controllers, "bar" is not in the list of known controllers]',
        )

    def test_twice(self) -> None:
        """Two controllers of one name are one too many."""
        self.assertRaises(UnknownControllers, select_controllers, ["*"], [*INSTALLED, Factory("my-controller")])

    def test_installed_factories(self) -> None:
        """All that are built in have the interface, and a name that kube-controller-manager knows or that is ours."""
        found = list(getPlugins(IControllerFactory))
        self.assertEqual(len(installed_factories(found)), len(found))
        for factory in found:
            verifyObject(IControllerFactory, factory)
            self.assertTrue(factory.name in KNOWN or not factory.default or factory.name.endswith("-controller"))
        self.assertIn("serviceaccount-controller", installed_factories())
