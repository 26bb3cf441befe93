"""Tests for L{kubetwist.controllers.machinery.election}."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from twisted.internet.defer import Deferred
from zope.interface import implementer

from kubetwist.controllers.machinery.context import ControllerContext
from kubetwist.controllers.machinery.election import (
    LEASE_DURATION,
    NAME,
    NAMESPACE,
    LeaderElectedControllerManager,
)
from kubetwist.interfaces import IController, IControllerFactory
from tests.controllers.harness import ControllerTestCase


@implementer(IController)
class Worker:
    """A controller that records whether it runs."""

    def __init__(self, running: set[str], name: str) -> None:
        self._running = running
        self._name = name

    def start(self) -> None:
        """See L{IController.start}."""
        self._running.add(self._name)

    async def stop(self) -> None:
        """See L{IController.stop}."""
        self._running.discard(self._name)


@implementer(IControllerFactory)
@frozen
class Factory:
    """Makes a worker for a server."""

    running: set[str]
    server: str
    name: str = "worker"
    default: bool = True
    groups: tuple[str, ...] = ()

    def make(self, context: Any) -> Worker:
        """See L{IControllerFactory.make}."""
        return Worker(self.running, self.server)


class ElectionTests(ControllerTestCase):
    """Several servers with one storage."""

    resources = ("namespaces", "leases", "events")

    def setUp(self) -> None:
        """Create the namespace of the Lease."""
        super().setUp()
        self.make("namespaces", NAMESPACE)
        #: Names of the servers whose controllers run.
        self.at_work: set[str] = set()

    def server(self, name: str) -> LeaderElectedControllerManager:
        """Return the started manager of a server."""

        def context() -> ControllerContext:
            return ControllerContext(self.registry, self.clock)

        controllers = LeaderElectedControllerManager(context, [Factory(self.at_work, name)], name)
        controllers.start()
        self.settle()
        return controllers

    def end(self) -> None:
        """Cancel the delayed calls of all servers."""
        for call in self.clock.getDelayedCalls():
            call.cancel()
        super().end()

    def lease(self) -> Any:
        """Return the spec of the Lease."""
        return self.find("leases", NAME, NAMESPACE, "coordination.k8s.io")["spec"]

    def stop(self, controllers: LeaderElectedControllerManager) -> None:
        """Stop a server gracefully."""
        stopped = Deferred.fromCoroutine(controllers.stop())
        self.settle()
        self.successResultOf(stopped)

    def test_first(self) -> None:
        """The first server acquires the Lease. The second one waits while it is renewed."""
        self.server("a")
        self.server("b")
        self.settle(300)
        self.assertEqual(self.at_work, {"a"})
        lease = self.lease()
        self.assertEqual((lease["holderIdentity"], lease["leaseDurationSeconds"]), ("a", LEASE_DURATION))
        self.assertEqual(lease["leaseTransitions"], 0)
        self.assertNotEqual(lease["acquireTime"], lease["renewTime"])

    def test_release(self) -> None:
        """A stopped leader releases the Lease for the next attempt of another server."""
        first = self.server("a")
        self.server("b")
        self.stop(first)
        self.assertEqual(self.at_work, set())
        self.assertEqual(self.lease()["holderIdentity"], "")
        self.settle(3)
        self.assertEqual(self.at_work, {"b"})
        self.assertEqual(self.lease()["leaseTransitions"], 1)

    def test_killed(self) -> None:
        """The Lease of a killed server is acquired after it expires, not before."""
        first = self.server("a")
        assert first._elector._call is not None, "it would try again"
        first._elector._call.cancel()
        self.at_work.clear()
        self.server("b")
        self.settle(LEASE_DURATION - 3)
        self.assertEqual(self.at_work, set())
        self.settle(6)
        self.assertEqual(self.at_work, {"b"})
        self.assertEqual(self.lease()["holderIdentity"], "b")

    def test_renew_deadline(self) -> None:
        """A leader that cannot renew for ten seconds stops before another server may start, and may lead again."""
        self.server("a")
        self.backend.fails = lambda number: True
        self.settle(9)
        self.assertEqual(self.at_work, {"a"})
        self.settle(LEASE_DURATION - 9)
        self.assertEqual(self.at_work, set())
        self.backend.fails = lambda number: False
        self.settle(3)
        self.assertEqual(self.at_work, {"a"})

    def test_other_holder(self) -> None:
        """A leader that sees another holder stops immediately."""
        self.server("a")

        def update_holder(lease: Any) -> None:
            lease["spec"]["holderIdentity"] = "somebody"

        self.change("leases", NAME, update_holder, NAMESPACE, "coordination.k8s.io")
        self.settle(3)
        self.assertEqual(self.at_work, set())
        self.assertEqual(self.lease()["holderIdentity"], "somebody")

    def test_faults(self) -> None:
        """With every third write failing, the Lease is not lost and has one holder."""
        self.backend.fails = lambda number: number % 3 == 0
        self.server("a")
        self.server("b")
        for _ in range(100):
            self.settle(2)
            self.assertLessEqual(len(self.at_work), 1)
        self.assertEqual(self.lease()["leaseTransitions"], 0)
