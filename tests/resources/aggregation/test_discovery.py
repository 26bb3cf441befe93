"""Tests for L{kubetwist.resources.aggregation.discovery} and the documents that it reads."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.kinds import Priority
from kubetwist.resources.aggregation.discovery import RemoteDiscovery
from kubetwist.resources.discovery.endpoints import DiscoveryDocuments
from kubetwist.resources.mux import DelegatingMux
from kubetwist.resources.routing import RoutedApp
from tests.resources.aggregation.discoverytools import LAMPS, everything
from tests.resources.aggregation.remotesfake import AGGREGATED_TYPE, FakeRemotes, FakeServer, answer, refused
from tests.resources.apps import ask
from tests.resources.fakeservedresources import NotFound, served_resources


class RemoteDiscoveryTests(SynchronousTestCase):
    """Aggregated discovery with aggregated servers."""

    def setUp(self) -> None:
        """Create a server with one aggregated server."""
        self.clock = Clock()
        self.remotes = FakeRemotes()
        self.discovery = RemoteDiscovery(self.remotes, self.clock, execute)
        self.mux = DelegatingMux("test", NotFound())
        documents = DiscoveryDocuments(served_resources(), lambda: "", list, remote=lambda: self.discovery)
        self.mux.handle("/apis", RoutedApp(documents.make_app))
        self.far = FakeServer("far")
        self.far.answers["/apis"] = answer(
            everything(("far.example.com", "v1"), ("far.example.com", "v2")),
            content_type=AGGREGATED_TYPE,
            etag='"one"',
        )
        self.discovery.start()
        self.addCleanup(lambda: self.successResultOf(Deferred.fromCoroutine(self.discovery.stop())))

    def document(self) -> tuple[dict[str, list[tuple[str, str, list[str]]]], str]:
        """Return the groups with their versions, freshness and resources, and the ETag of the document."""
        _, headers, body = ask(self.mux, "GET", "/apis", accept=AGGREGATED_TYPE)
        items = json.loads(body)["items"]
        shown = {
            item["metadata"]["name"]: [
                (one["version"], one["freshness"], [resource["resource"] for resource in one.get("resources", ())])
                for one in item["versions"]
            ]
            for item in items
        }
        return shown, headers.getRawHeaders("etag", [""])[0]

    def groups(self) -> dict[str, list[tuple[str, str, list[str]]]]:
        """Return the groups."""
        return self.document()[0]

    def test_merged(self) -> None:
        """Resources of an aggregated server are listed like local ones, and the ETag of the document changes."""
        before = self.document()[1]
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        shown, after = self.document()
        self.assertEqual(shown["far.example.com"], [("v1", "Current", ["lamps"])])
        self.assertNotEqual(before, after)

    def test_order(self) -> None:
        """Groups and versions are sorted by the priorities of their APIServices."""
        self.remotes.add(self.far, "far.example.com", "v1", Priority(18_000, 5))
        self.remotes.add(self.far, "far.example.com", "v2", Priority(17_000, 10))
        self.clock.advance(0)
        shown = self.groups()
        self.assertEqual(next(iter(shown)), "far.example.com")
        self.assertEqual([version for version, _, _ in shown["far.example.com"]], ["v2", "v1"])

    def test_one_request(self) -> None:
        """A server is requested once for all of its versions, as the aggregator's user."""
        self.remotes.add(self.far, "far.example.com", "v1")
        self.remotes.add(self.far, "far.example.com", "v2")
        self.clock.advance(0)
        self.assertEqual(self.far.calls, [("/apis", "", "system:kube-aggregator")])
        self.assertEqual([one for one, _, _ in self.groups()["far.example.com"]], ["v2", "v1"])

    def test_not_modified(self) -> None:
        """A server is polled once a minute with the ETag of its document, and may answer 304."""
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        tag = self.document()[1]
        self.far.answers["/apis"] = lambda etag: answer(b"", 304 if etag == '"one"' else 500)
        self.clock.advance(60)
        self.assertEqual([etag for _, etag, _ in self.far.calls], ["", '"one"'])
        self.assertEqual(self.document(), ({**self.groups()}, tag))
        self.assertEqual(self.groups()["far.example.com"], [("v1", "Current", ["lamps"])])

    def test_changed(self) -> None:
        """Resources that a server adds are listed within a minute."""
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        chairs = everything(("far.example.com", "v1"), resources=[{**LAMPS, "resource": "chairs"}])
        self.far.answers["/apis"] = answer(chairs, content_type=AGGREGATED_TYPE, etag='"two"')
        self.clock.advance(60)
        self.assertEqual(self.groups()["far.example.com"], [("v1", "Current", ["chairs"])])

    def test_removed(self) -> None:
        """A version whose APIService was deleted is not listed, and its server is not polled."""
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        self.remotes.remove("far.example.com", "v1")
        self.assertNotIn("far.example.com", self.groups())
        self.far.calls.clear()
        self.clock.pump([60] * 3)
        self.assertEqual(self.far.calls, [])

    def test_not_available(self) -> None:
        """An unavailable version is stale at once and its server is not polled; an available version is current."""
        remote = self.remotes.add(self.far, "far.example.com", "v1", up=False)
        self.clock.advance(1)
        self.assertEqual(self.groups()["far.example.com"], [("v1", "Stale", [])])
        self.assertEqual(self.far.calls, [])
        remote.available = True
        self.remotes.notify(remote.group_version)
        self.clock.advance(0)
        self.assertEqual(self.groups()["far.example.com"], [("v1", "Current", ["lamps"])])

    def test_dead(self) -> None:
        """The versions of an unreachable server are stale; it is retried with backoff, at most a minute."""
        self.far.answers["/apis"] = refused()
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        self.assertEqual(self.groups()["far.example.com"], [("v1", "Stale", [])])
        self.far.calls.clear()
        waits = []
        for _ in range(9):
            started = self.clock.seconds()
            while not self.far.calls:
                self.clock.advance(0.5)
            self.far.calls.clear()
            waits.append(self.clock.seconds() - started)
        self.assertEqual(waits, [0.5, 1, 2, 4, 8, 16, 32, 60, 60])

    def test_recovers(self) -> None:
        """The versions of a server that recovers are current again."""
        good = self.far.answers["/apis"]
        self.far.answers["/apis"] = refused()
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        self.far.answers["/apis"] = good
        self.clock.advance(0.5)
        self.assertEqual(self.groups()["far.example.com"], [("v1", "Current", ["lamps"])])

    def test_slow(self) -> None:
        """A server that does not respond does not delay the documents of further servers."""
        slow = FakeServer("slow")
        waiting: Deferred[Any] = Deferred()
        slow.answers["/apis"] = waiting
        self.remotes.add(slow, "slow.example.com", "v1")
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        shown = self.groups()
        self.assertIn("far.example.com", shown)
        self.assertNotIn("slow.example.com", shown)
        waiting.callback(answer(everything(("slow.example.com", "v1")), content_type=AGGREGATED_TYPE))
        self.assertIn("slow.example.com", self.groups())

    def test_removed_during_request(self) -> None:
        """A version that is removed during the request to its server is not listed afterwards."""
        waiting: Deferred[Any] = Deferred()
        self.far.answers["/apis"] = waiting
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        self.remotes.remove("far.example.com", "v1")
        waiting.callback(answer(everything(("far.example.com", "v1")), content_type=AGGREGATED_TYPE))
        self.assertNotIn("far.example.com", self.groups())

    def test_not_mentioned(self) -> None:
        """A version that its server does not mention is current and has no resources."""
        self.remotes.add(self.far, "far.example.com", "v3")
        self.clock.advance(0)
        self.assertEqual(self.groups()["far.example.com"], [("v3", "Current", [])])

    def test_plain(self) -> None:
        """For servers without aggregated discovery, the resource lists of their versions are read."""
        line = {"name": "lamps", "singularName": "lamp", "namespaced": True, "kind": "Lamp", "verbs": ["get"]}
        self.far.answers = {
            "/apis": answer({"kind": "APIGroupList", "groups": []}),
            "/apis/far.example.com/v1": answer({"kind": "APIResourceList", "resources": [line]}),
        }
        self.remotes.add(self.far, "far.example.com", "v1")
        self.remotes.add(self.far, "far.example.com", "v2")
        self.clock.advance(0)
        self.assertEqual(
            self.groups()["far.example.com"],
            [("v2", "Stale", []), ("v1", "Current", ["lamps"])],
        )

    def test_garbage(self) -> None:
        """An invalid document makes the versions of its server stale; further entries do not change."""
        before = self.groups()
        for body in (b"", b"{", b"[]", b"\xff", b'{"kind":"Pod"}', b'{"items":[1]}', b"[" * 100_000):
            self.far.answers["/apis"] = answer(body, content_type=AGGREGATED_TYPE)
            self.remotes.add(self.far, "far.example.com", "v1")
            self.clock.advance(0)
            self.assertEqual(self.groups(), {**before, "far.example.com": [("v1", "Stale", [])]}, body)
            self.remotes.remove("far.example.com", "v1")

    def test_in_front(self) -> None:
        """The version of an aggregated server replaces a local version of the same name."""
        self.far.answers["/apis"] = answer(everything(("apps", "v1")), content_type=AGGREGATED_TYPE)
        self.remotes.add(self.far, "apps", "v1")
        self.clock.advance(0)
        self.assertEqual(self.groups()["apps"], [("v1", "Current", ["lamps"])])
