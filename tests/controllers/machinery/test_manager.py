"""Tests for L{kubetwist.controllers.machinery.manager} with C{selection} and C{factory}."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from kubetwist.controllers.machinery.controller import Controller
from kubetwist.controllers.machinery.factory import ControllerFactory
from kubetwist.controllers.machinery.manager import ControllerManager
from kubetwist.interfaces import IController
from tests.controllers.harness import ControllerTestCase
from tests.controllers.machinery.controllers import Factory


class RecordingController(Controller[str]):
    """A controller that records its start and stop."""

    life: ClassVar[list[str]] = []
    name: ClassVar[str] = "one"

    def start(self) -> None:
        """Record the start."""
        self.life.append(f"{self.name} starts")

    async def stop(self) -> None:
        """Record the stop."""
        self.life.append(f"{self.name} stops")


class FailingController(RecordingController):
    """A controller that fails to start and to stop."""

    name: ClassVar[str] = "failing"

    def start(self) -> None:
        """Fail."""
        raise RuntimeError("no")

    async def stop(self) -> None:
        """Fail."""
        raise RuntimeError("no")


class OtherController(RecordingController):
    """Another controller."""

    name: ClassVar[str] = "two"


class ControllerManagerTests(ControllerTestCase):
    """The controllers of a server."""

    resources = ("configmaps",)

    def setUp(self) -> None:
        """Clear the record."""
        super().setUp()
        RecordingController.life = []

    def controllers(self, *classes: Any) -> ControllerManager:
        """Return a manager of controllers of the classes."""
        return ControllerManager(self.context, [Factory(made.name, made=made) for made in classes])

    def test_life(self) -> None:
        """Controllers start one after the other, with reactor iterations in between, and stop together."""
        running = self.controllers(RecordingController, OtherController)
        running.start()
        self.assertEqual(RecordingController.life, [])
        self.clock.callLater(0, RecordingController.life.append, "a request")
        self.settle()
        self.successResultOf(running.started)
        self.assertEqual(RecordingController.life, ["one starts", "a request", "two starts"])
        self.successResultOf(Deferred.fromCoroutine(running.stop()))
        self.successResultOf(Deferred.fromCoroutine(running.stop()))
        self.assertEqual(RecordingController.life[3:], ["one stops", "two stops"])
        self.assertEqual(list(running.controllers), ["one", "two"])
        for controller in running.controllers.values():
            verifyObject(IController, controller)

    def test_stopped_early(self) -> None:
        """After a stop during the start, no further controllers start."""
        running = self.controllers(RecordingController, OtherController)
        running.start()
        self.clock.callLater(0, lambda: Deferred.fromCoroutine(running.stop()))
        self.settle()
        self.assertEqual(RecordingController.life, ["one starts", "one stops"])

    def test_failing(self) -> None:
        """A controller that fails to start or stop is logged and does not affect other controllers."""
        running = self.controllers(FailingController, OtherController)
        running.start()
        self.settle()
        self.assertEqual(RecordingController.life, ["two starts"])
        self.successResultOf(Deferred.fromCoroutine(running.stop()))
        self.assertEqual(RecordingController.life, ["two starts", "two stops"])
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 2)

    def test_needs(self) -> None:
        """A controller is neither made nor imported if a resource that it needs is not served."""
        place = f"{__name__}:RecordingController"
        self.assertIsInstance(
            ControllerFactory("one", place, needs=("configmaps",)).make(self.context), RecordingController
        )
        self.assertIsNone(ControllerFactory("one", "nowhere:Nothing", needs=("jobs.batch",)).make(self.context))
        running = ControllerManager(self.context, [ControllerFactory("one", "no:No", needs=("jobs.batch",))])
        running.start()
        self.settle()
        self.assertEqual(running.controllers, {})
