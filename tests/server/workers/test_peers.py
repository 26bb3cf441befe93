"""Tests for L{kubetwist.server.workers.peers}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.workers.control import ControlError
from kubetwist.server.workers.peers import FrontPeers, StoragePeers


class Fronts:
    """Fronts that answer their names, except for one that has ended."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def call_peers(self, caller: object, name: str, *arguments: object) -> list[Deferred[Any]]:
        """Call a function."""
        self.calls.append((caller, name, *arguments))
        return [succeed("one"), fail(ControlError("ended")), succeed("three")]


class StoragePeersTests(SynchronousTestCase):
    """Tests for L{StoragePeers}."""

    def setUp(self) -> None:
        """Create the processes."""
        self.peers = StoragePeers()
        self.fronts: Any = Fronts()
        self.peers.fronts = self.fronts
        self.peers.register("name", lambda prefix: succeed(f"{prefix} storage"))

    def test_call(self) -> None:
        """A call of the storage process has the results of the fronts that answer."""
        self.assertEqual(self.successResultOf(self.call("name", "the")), ["one", "three"])

    def call(self, *arguments: Any) -> Deferred[Sequence[object]]:
        """Call a function in all fronts."""
        return Deferred.fromCoroutine(self.peers.call(*arguments))

    def test_call_peers(self) -> None:
        """A call of a front has the results of the storage process and of the other fronts."""
        front: Any = object()
        called = Deferred.fromCoroutine(self.peers.call_peers(front, "name", ["the"]))
        self.assertEqual(self.successResultOf(called), ["the storage", "one", "three"])
        self.assertEqual(self.fronts.calls, [(front, "name", "the")])

    def test_no_fronts(self) -> None:
        """There are no results before fronts are started."""
        self.peers.fronts = None
        self.assertEqual(self.successResultOf(self.call("name", "the")), [])


class FrontPeersTests(SynchronousTestCase):
    """Tests for L{FrontPeers}."""

    def test_call(self) -> None:
        """A front calls the other processes through the storage process."""
        calls: list[tuple[object, ...]] = []

        class Control:
            """A connection."""

            def call(self, *arguments: object) -> Deferred[Any]:
                """Record a call."""
                calls.append(arguments)
                return succeed(["result"])

        peers = FrontPeers()
        control: Any = Control()
        peers.control = control
        result = Deferred.fromCoroutine(peers.call("verbosity", 3))
        self.assertEqual(self.successResultOf(result), ["result"])
        self.assertEqual(calls, [("call peers", "verbosity", (3,))])
