"""Tests for L{kubetwist.resources.aggregation.discovery} and the documents that it reads."""

from __future__ import annotations

import json
from typing import Any

from treq.testing import StubTreq
from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.kinds import Priority
from kubetwist.resources.aggregation.discovery import RemoteDiscovery
from kubetwist.resources.discovery.endpoints import Groups
from kubetwist.resources.mux import DelegatingMux
from tests.resources.aggregation.discoverytools import LAMPS, everything
from tests.resources.aggregation.remotesfake import AGGREGATED_TYPE, FakeRemotes, FakeServer, answer, refused
from tests.resources.installedfake import NotFound, installed


class RemoteDiscoveryTests(SynchronousTestCase):
    """Tests for aggregated discovery, with others behind this server."""

    def setUp(self) -> None:
        """A server with one other behind it."""
        self.clock = Clock()
        self.remotes = FakeRemotes()
        self.discovery = RemoteDiscovery(self.remotes, self.clock, execute)
        mux = DelegatingMux("test", NotFound())
        mux.handle("/apis", Groups(installed(), remote=lambda: self.discovery))
        self.client = StubTreq(mux)
        self.far = FakeServer("far")
        self.far.answers["/apis"] = answer(
            everything(("far.example.com", "v1"), ("far.example.com", "v2")),
            content_type=AGGREGATED_TYPE,
            etag='"one"',
        )
        self.discovery.start()
        self.addCleanup(lambda: self.successResultOf(Deferred.fromCoroutine(self.discovery.stop())))

    def document(self) -> tuple[dict[str, list[tuple[str, str, list[str]]]], str]:
        """The groups with their versions, freshness and resources; and the tag of the document."""
        response = self.successResultOf(
            self.client.get("http://kube.invalid/apis", headers={"accept": AGGREGATED_TYPE})
        )
        items = json.loads(self.successResultOf(response.content()))["items"]
        shown = {
            item["metadata"]["name"]: [
                (one["version"], one["freshness"], [resource["resource"] for resource in one.get("resources", ())])
                for one in item["versions"]
            ]
            for item in items
        }
        return shown, response.headers.getRawHeaders("etag")[0]

    def groups(self) -> dict[str, list[tuple[str, str, list[str]]]]:
        """The groups alone."""
        return self.document()[0]

    def test_merged(self) -> None:
        """What another server serves is listed like what is served here, and the document has another tag."""
        before = self.document()[1]
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        shown, after = self.document()
        self.assertEqual(shown["far.example.com"], [("v1", "Current", ["lamps"])])
        self.assertNotEqual(before, after)

    def test_order(self) -> None:
        """Groups and versions stand where the priorities of their APIServices put them."""
        self.remotes.add(self.far, "far.example.com", "v1", Priority(18_000, 5))
        self.remotes.add(self.far, "far.example.com", "v2", Priority(17_000, 10))
        self.clock.advance(0)
        shown = self.groups()
        self.assertEqual(next(iter(shown)), "far.example.com")
        self.assertEqual([version for version, _, _ in shown["far.example.com"]], ["v2", "v1"])

    def test_asked_once(self) -> None:
        """A server is asked once for all of its versions, as the aggregator."""
        self.remotes.add(self.far, "far.example.com", "v1")
        self.remotes.add(self.far, "far.example.com", "v2")
        self.clock.advance(0)
        self.assertEqual(self.far.calls, [("/apis", "", "system:kube-aggregator")])
        self.assertEqual([one for one, _, _ in self.groups()["far.example.com"]], ["v2", "v1"])

    def test_not_modified(self) -> None:
        """A server is asked again every minute, with the tag of what is known, and may answer that it is still so."""
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        tag = self.document()[1]
        self.far.answers["/apis"] = lambda etag: answer(b"", 304 if etag == '"one"' else 500)
        self.clock.advance(60)
        self.assertEqual([etag for _, etag, _ in self.far.calls], ["", '"one"'])
        self.assertEqual(self.document(), ({**self.groups()}, tag))
        self.assertEqual(self.groups()["far.example.com"], [("v1", "Current", ["lamps"])])

    def test_changed(self) -> None:
        """What a server serves anew is listed within a minute."""
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        chairs = everything(("far.example.com", "v1"), resources=[{**LAMPS, "resource": "chairs"}])
        self.far.answers["/apis"] = answer(chairs, content_type=AGGREGATED_TYPE, etag='"two"')
        self.clock.advance(60)
        self.assertEqual(self.groups()["far.example.com"], [("v1", "Current", ["chairs"])])

    def test_gone(self) -> None:
        """What no APIService names any more is not listed, and its server not asked."""
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        self.remotes.remove("far.example.com", "v1")
        self.assertNotIn("far.example.com", self.groups())
        self.far.calls.clear()
        self.clock.pump([60] * 3)
        self.assertEqual(self.far.calls, [])

    def test_not_available(self) -> None:
        """What is known not to be available is stale at once, and nobody is asked; when it is, it is current."""
        remote = self.remotes.add(self.far, "far.example.com", "v1", up=False)
        self.clock.advance(1)
        self.assertEqual(self.groups()["far.example.com"], [("v1", "Stale", [])])
        self.assertEqual(self.far.calls, [])
        remote.available = True
        self.remotes.tell(remote.group_version)
        self.clock.advance(0)
        self.assertEqual(self.groups()["far.example.com"], [("v1", "Current", ["lamps"])])

    def test_dead(self) -> None:
        """A server that does not answer leaves its versions stale; it is asked again ever later, at most a minute."""
        self.far.answers["/apis"] = refused()
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        self.assertEqual(self.groups()["far.example.com"], [("v1", "Stale", [])])
        self.far.calls.clear()
        waits = []
        for _ in range(9):
            begun = self.clock.seconds()
            while not self.far.calls:
                self.clock.advance(0.5)
            self.far.calls.clear()
            waits.append(self.clock.seconds() - begun)
        self.assertEqual(waits, [0.5, 1, 2, 4, 8, 16, 32, 60, 60])

    def test_recovers(self) -> None:
        """A server that answers again is current again."""
        good = self.far.answers["/apis"]
        self.far.answers["/apis"] = refused()
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        self.far.answers["/apis"] = good
        self.clock.advance(0.5)
        self.assertEqual(self.groups()["far.example.com"], [("v1", "Current", ["lamps"])])

    def test_slow(self) -> None:
        """While one server has not answered yet, the others are listed."""
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

    def test_gone_while_asked(self) -> None:
        """What goes while its server is asked is not listed afterwards."""
        waiting: Deferred[Any] = Deferred()
        self.far.answers["/apis"] = waiting
        self.remotes.add(self.far, "far.example.com", "v1")
        self.clock.advance(0)
        self.remotes.remove("far.example.com", "v1")
        waiting.callback(answer(everything(("far.example.com", "v1")), content_type=AGGREGATED_TYPE))
        self.assertNotIn("far.example.com", self.groups())

    def test_not_mentioned(self) -> None:
        """A version that its server does not mention is current, and has no resources."""
        self.remotes.add(self.far, "far.example.com", "v3")
        self.clock.advance(0)
        self.assertEqual(self.groups()["far.example.com"], [("v3", "Current", [])])

    def test_plain(self) -> None:
        """Of servers without aggregated discovery, the documents of the versions are read."""
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
        """What makes no sense leaves a stale version, and the rest of the document as it is."""
        before = self.groups()
        for body in (b"", b"{", b"[]", b"\xff", b'{"kind":"Pod"}', b'{"items":[1]}', b"[" * 100_000):
            self.far.answers["/apis"] = answer(body, content_type=AGGREGATED_TYPE)
            self.remotes.add(self.far, "far.example.com", "v1")
            self.clock.advance(0)
            self.assertEqual(self.groups(), {**before, "far.example.com": [("v1", "Stale", [])]}, body)
            self.remotes.remove("far.example.com", "v1")

    def test_in_front(self) -> None:
        """Another server's version goes before one of the same name that is served here."""
        self.far.answers["/apis"] = answer(everything(("apps", "v1")), content_type=AGGREGATED_TYPE)
        self.remotes.add(self.far, "apps", "v1")
        self.clock.advance(0)
        self.assertEqual(self.groups()["apps"], [("v1", "Current", ["lamps"])])
