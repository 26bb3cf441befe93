"""Tests for L{kubetwist.controllers.machinery.controller}."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.internet.defer import Deferred
from twisted.logger import globalLogPublisher

from kubetwist.api.errors import APIStatusError
from kubetwist.controllers.machinery.controller import Controller
from kubetwist.controllers.machinery.informer import Informer
from kubetwist.storage.errors import StorageUnavailable
from tests.controllers.harness import ControllerTestCase


class RecordingController(Controller[str]):
    """A controller that records its keys, and fails on request."""

    name: ClassVar[str] = "counting-controller"

    maps: Informer
    error: Exception | None = None

    def register_handlers(self) -> None:
        """Register a handler for config maps."""
        self.seen: list[str] = []
        self.maps = self.watch("", "configmaps")

    async def sync(self, key: str) -> None:
        """Record the key."""
        self.seen.append(key)
        if self.error is not None:
            raise self.error


class ControllerTests(ControllerTestCase):
    """The base class of controllers."""

    resources = ("configmaps", "namespaces")

    def setUp(self) -> None:
        """Start a controller."""
        super().setUp()
        self.make("configmaps", "a", "one")
        self.controller: RecordingController = self.start(RecordingController)

    def failing(self, error: Exception, seconds: float = 1.0) -> None:
        """Let C{sync} fail for a while."""
        self.controller.seen.clear()
        self.controller.error = error
        self.controller.queue.add("one/a")
        self.settle(seconds)
        self.controller.error = None

    def test_keys(self) -> None:
        """Keys of existing objects and of changed objects are reconciled."""
        self.make("configmaps", "b", "one")
        self.settle()
        self.remove("configmaps", "a", "one")
        self.settle()
        self.assertEqual(self.controller.seen, ["one/a", "one/b", "one/a"])

    def test_errors(self) -> None:
        """A failed key is retried until it succeeds, and logged once. Bugs are logged with a traceback."""
        for error, logged in ((ValueError("bug"), 1), (StorageUnavailable("gone"), 0)):
            self.failing(error)
            self.assertEqual(len(self.controller.seen), 8)
            self.settle(10)
            self.assertEqual(len(self.controller.seen), 9)
            self.assertEqual(self.controller.queue.num_requeues("one/a"), 0)
            self.assertEqual(len(self.flushLoggedErrors(ValueError)), logged)

    def test_expected_errors(self) -> None:
        """Conflicts and missing objects are retried without a log line."""
        events: list[Any] = []
        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        group_resource = self.controller.maps.group_resource
        for error in (APIStatusError.modified(group_resource, "a"), APIStatusError.not_found(group_resource, "a")):
            self.failing(error)
            self.assertEqual(len(self.controller.seen), 8)
            self.settle(10)
        self.assertEqual(events, [])
        self.failing(APIStatusError.internal("oops"))
        self.assertEqual(len(events), 1)

    def test_stop(self) -> None:
        """After stop no key is reconciled and no delayed call remains."""
        self.failing(ValueError("bug"), 0)
        self.flushLoggedErrors(ValueError)
        self.successResultOf(Deferred.fromCoroutine(self.controller.stop()))
        self.make("configmaps", "b", "one")
        self.settle(10)
        self.assertEqual((self.controller.seen, self.clock.getDelayedCalls()), (["one/a"], []))

    def test_unserved(self) -> None:
        """A controller of a resource that is not served fails to start with an error."""

        class UnservedController(RecordingController):
            def register_handlers(self) -> None:
                self.watch("", "unicorns")

        self.assertRaises(KeyError, UnservedController(self.context).start)
