"""
Tests for L{kubetwist.controllers.machinery.selection}, L{kubetwist.controllers.machinery.factory},
L{kubetwist.controllers.machinery.manager}.
"""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import frozen

from twisted.internet.defer import Deferred
from twisted.plugin import getPlugins
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.controllers.machinery.controller import Controller
from kubetwist.controllers.machinery.factory import ControllerFactory
from kubetwist.controllers.machinery.manager import RunningControllers
from kubetwist.controllers.machinery.selection import (
    KNOWN,
    UnknownControllers,
    chosen,
    installed,
)
from kubetwist.interfaces import IController, IControllerFactory
from tests.controllers.harness import ControllerTestCase


@implementer(IControllerFactory)
@frozen
class Factory:
    """A factory of nothing."""

    name: str
    default: bool = True
    groups: tuple[str, ...] = ()
    made: Any = None

    def make(self, context: Any) -> Any:
        """What it was given."""
        return self.made(context) if self.made else None


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
        return " ".join(factory.name.removesuffix("-controller") for factory in chosen(wanted, INSTALLED))

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
        """Names of nobody are told all together, in the reference's words."""
        with self.assertRaises(UnknownControllers) as raised:
            self.names("foo", "*", "-bar")
        self.assertEqual(
            str(raised.exception),
            '["foo" is not in the list of known controllers, "bar" is not in the list of known controllers]',
        )

    def test_twice(self) -> None:
        """Two controllers of one name are one too many."""
        self.assertRaises(UnknownControllers, chosen, ["*"], [*INSTALLED, Factory("my-controller")])

    def test_installed(self) -> None:
        """All that are built in have the interface, and a name that kube-controller-manager knows or that is ours."""
        found = list(getPlugins(IControllerFactory))
        self.assertEqual(len(installed(found)), len(found))
        for factory in found:
            verifyObject(IControllerFactory, factory)
            self.assertTrue(factory.name in KNOWN or not factory.default or factory.name.endswith("-controller"))
        self.assertIn("serviceaccount-controller", installed())


class Noting(Controller[str]):
    """Notes its life."""

    life: ClassVar[list[str]] = []
    name: ClassVar[str] = "one"

    def start(self) -> None:
        """Note it."""
        self.life.append(f"{self.name} starts")

    async def stop(self) -> None:
        """Note it."""
        self.life.append(f"{self.name} stops")


class Failing(Noting):
    """Can not be started."""

    name: ClassVar[str] = "failing"

    def start(self) -> None:
        """Fail."""
        raise RuntimeError("no")

    async def stop(self) -> None:
        """Fail likewise."""
        raise RuntimeError("no")


class Other(Noting):
    """Another one."""

    name: ClassVar[str] = "two"


class RunningTests(ControllerTestCase):
    """All controllers of a server."""

    resources = ("configmaps",)

    def setUp(self) -> None:
        """None has started."""
        super().setUp()
        Noting.life = []

    def controllers(self, *classes: Any) -> RunningControllers:
        """Those of some classes."""
        return RunningControllers(self.context, [Factory(made.name, made=made) for made in classes])

    def test_life(self) -> None:
        """They start one after the other, with time for others in between, and stop together."""
        running = self.controllers(Noting, Other)
        running.start()
        self.assertEqual(Noting.life, [])
        self.clock.callLater(0, Noting.life.append, "a request")
        self.settle()
        self.successResultOf(running.started)
        self.assertEqual(Noting.life, ["one starts", "a request", "two starts"])
        self.successResultOf(Deferred.fromCoroutine(running.stop()))
        self.successResultOf(Deferred.fromCoroutine(running.stop()))
        self.assertEqual(Noting.life[3:], ["one stops", "two stops"])
        self.assertEqual(list(running.controllers), ["one", "two"])
        for controller in running.controllers.values():
            verifyObject(IController, controller)

    def test_stopped_early(self) -> None:
        """A stop while they start leaves the rest unstarted."""
        running = self.controllers(Noting, Other)
        running.start()
        self.clock.callLater(0, lambda: Deferred.fromCoroutine(running.stop()))
        self.settle()
        self.assertEqual(Noting.life, ["one starts", "one stops"])

    def test_failing(self) -> None:
        """One that can not be started, or not be stopped, is logged and in nobody's way."""
        running = self.controllers(Failing, Other)
        running.start()
        self.settle()
        self.assertEqual(Noting.life, ["two starts"])
        self.successResultOf(Deferred.fromCoroutine(running.stop()))
        self.assertEqual(Noting.life, ["two starts", "two stops"])
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 2)

    def test_needs(self) -> None:
        """A controller is not made, nor imported, where what it needs is not served."""
        place = f"{__name__}:Noting"
        self.assertIsInstance(ControllerFactory("one", place, needs=("configmaps",)).make(self.context), Noting)
        self.assertIsNone(ControllerFactory("one", "nowhere:Nothing", needs=("jobs.batch",)).make(self.context))
        running = RunningControllers(self.context, [ControllerFactory("one", "no:No", needs=("jobs.batch",))])
        running.start()
        self.settle()
        self.assertEqual(running.controllers, {})
