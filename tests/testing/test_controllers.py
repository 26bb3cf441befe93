"""Tests for L{kubetwist.testing.controllers}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.controllers.machinery.controller import Controller
from kubetwist.controllers.machinery.factory import ControllerFactory
from kubetwist.testing import memory
from kubetwist.testing.controllers import ControllerHarness
from kubetwist.testing.memory import START, NoResult

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}


class Labels(Controller[str]):
    """Gives pods a label."""

    name = "labels-controller"

    def register_handlers(self) -> None:
        """Watch pods."""
        self.pods = self.watch("", "pods")

    async def sync(self, key: str) -> None:
        """Label the pod."""
        record = self.pods.by_key(key)
        if record is not None and "team" not in record.labels:
            patch = {"metadata": {"labels": {"team": "none"}}}
            await self.client.patch("", "pods", record.namespace, record.name, patch)


class Failing(Labels):
    """Fails with an error of the test."""

    error: Exception = KeyError("k")

    async def sync(self, key: str) -> None:
        """Fail."""
        raise self.error


class Restless(Labels):
    """Is never idle."""

    async def sync(self, key: str) -> None:
        """Add the key again."""
        self.queue.add(key)


class HarnessTests(SynchronousTestCase):
    """L{ControllerHarness}."""

    def labels(self, harness: ControllerHarness, name: str = "a") -> Any:
        """Return the labels of a pod."""
        pod = harness.get("pods", name, "default")
        assert pod is not None
        return pod["metadata"].get("labels")

    def test_existing_objects(self) -> None:
        """The controller works on the objects that exist at the start."""
        with ControllerHarness(Labels, [POD]) as harness:
            self.assertIsNone(self.labels(harness))
            harness.settle()
            self.assertEqual(self.labels(harness), {"team": "none"})
            self.assertEqual(harness.clock.seconds(), START + 60)

    def test_changes(self) -> None:
        """The controller works on objects that tests create, change and delete."""
        with ControllerHarness(Labels) as harness:
            created = harness.create(POD)
            self.assertEqual(created["metadata"]["creationTimestamp"], "2027-01-15T08:00:00Z")
            harness.settle()
            harness.update({**POD, "metadata": {**created["metadata"], "labels": {"a": "b"}, "resourceVersion": ""}})
            self.assertEqual(self.labels(harness), {"a": "b"})
            harness.settle(1)
            self.assertEqual(self.labels(harness), {"a": "b", "team": "none"})
            harness.delete("pods", "a", "default")
            harness.settle()
            self.assertEqual(harness.list("pods"), [])

    def test_validation(self) -> None:
        """Objects of tests are validated as requests are."""
        with ControllerHarness(Labels) as harness:
            self.assertRaises(APIStatusError, harness.create, {**POD, "spec": {"containers": []}})
            self.assertRaises(APIStatusError, harness.delete, "pods", "a", "default")

    def test_forms(self) -> None:
        """The controller is a class, a factory, or the name of an installed controller."""
        place = "tests.testing.test_controllers:Labels"
        for controller in (Labels, ControllerFactory("labels-controller", place, needs=("pods",))):
            with ControllerHarness(controller, [POD]) as harness:
                harness.settle()
                self.assertEqual(self.labels(harness), {"team": "none"})
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
        with ControllerHarness("serviceaccount-controller", [namespace]) as harness:
            harness.settle()
            self.assertIsNotNone(harness.get("serviceaccounts", "default", "n"))
        self.assertRaises(ValueError, ControllerHarness, "unknown-controller")

    def test_unusable(self) -> None:
        """An object that is no controller, or nothing to do, is an error."""
        unusable: Any = lambda context: object()  # noqa: E731 # shorter than a function
        self.assertRaises(ValueError, ControllerHarness, unusable)
        place = "tests.testing.test_controllers:Labels"
        self.assertRaises(ValueError, ControllerHarness, ControllerFactory("l", place, needs=("kites.example.com",)))

    def test_failures(self) -> None:
        """An exception of the controller is raised once; conflicts are retried."""
        with ControllerHarness(Failing, [POD]) as harness:
            self.assertRaises(KeyError, harness.settle)
            self.assertEqual({key for key, _ in harness.failures}, {"default/a"})
            harness.failures.clear()
        with ControllerHarness(Failing, [POD]) as harness:
            controller: Any = harness.controller
            controller.error = APIStatusError(409, "Conflict", "changed")
            harness.settle()
            self.assertEqual(harness.failures, [])

    def test_restless(self) -> None:
        """A controller that is never idle is an error."""
        self.patch(memory, "MAX_CALLS", 20)
        with ControllerHarness(Restless, [POD]) as harness:
            self.assertRaises(NoResult, harness.settle)

    def test_custom_resources(self) -> None:
        """A controller watches custom resources, also those that are defined later."""

        class Kites(Labels):
            name = "kites-controller"

            def register_handlers(self) -> None:
                self.kites = self.watch("stable.example.com", "kites")

            async def sync(self, key: str) -> None:
                seen.append(key)

        seen: list[str] = []
        kite = {"apiVersion": "stable.example.com/v1", "kind": "Kite", "metadata": {"name": "k", "namespace": "n"}}
        with ControllerHarness(Kites, [kite]) as harness:
            harness.settle()
            harness.create({**kite, "metadata": {"name": "l", "namespace": "n"}})
            harness.settle()
        self.assertEqual(seen, ["n/k", "n/l"])
