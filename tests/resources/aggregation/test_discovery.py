"""Tests for L{kubetwist.resources.aggregation.discovery} and the documents that it reads."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from treq.testing import StubTreq
from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion, JSONObject
from kubetwist.registry.kinds import Priority
from kubetwist.resources.aggregation.discovery import RemoteDiscovery
from kubetwist.resources.aggregation.discoverydocuments import (
    is_aggregated,
    read_aggregated,
    read_resource_list,
)
from kubetwist.resources.discovery.endpoints import Groups
from kubetwist.resources.mux import Layer
from kubetwist.resources.remotedocuments import BadDocument

from ..installedfake import NotFound, installed
from .remotesfake import AGGREGATED_TYPE, FakeRemotes, FakeServer, answer, refused

LAMPS: JSONObject = {
    "resource": "lamps",
    "responseKind": {"group": "far.example.com", "version": "v1", "kind": "Lamp"},
    "scope": "Namespaced",
    "singularResource": "lamp",
    "verbs": ["get", "list"],
}


def everything(*versions: tuple[str, str], resources: Any = (LAMPS,)) -> JSONObject:
    """A document of everything."""
    groups: dict[str, list[JSONObject]] = {}
    for group, version in versions:
        groups.setdefault(group, []).append({"version": version, "resources": list(resources)})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "items": [{"metadata": {"name": name}, "versions": found} for name, found in groups.items()],
    }


class RemoteDiscoveryTests(SynchronousTestCase):
    """Tests for aggregated discovery, with others behind this server."""

    def setUp(self) -> None:
        """A server with one other behind it."""
        self.clock = Clock()
        self.remotes = FakeRemotes()
        self.discovery = RemoteDiscovery(self.remotes, self.clock, execute)
        layer = Layer("test", NotFound())
        layer.claim("/apis", Groups(installed(), remote=lambda: self.discovery))
        self.client = StubTreq(layer)
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


class RemoteDocumentsTests(SynchronousTestCase):
    """Tests for L{kubetwist.resources.aggregation.discoverydocuments}."""

    def test_content_type(self) -> None:
        """A document of everything is told from an old one by its type."""
        self.assertTrue(is_aggregated(AGGREGATED_TYPE))
        self.assertTrue(is_aggregated("application/json; as=APIGroupDiscoveryList; v=v2beta1; g=apidiscovery.k8s.io"))
        for other in ("", "application/json", AGGREGATED_TYPE.replace("v2", "v3"), "text/html;" + AGGREGATED_TYPE):
            self.assertFalse(is_aggregated(other), other)

    def test_kept(self) -> None:
        """What clients go by is passed on; what nobody knows is not."""
        line = {
            **LAMPS,
            "shortNames": ["la"],
            "categories": ["all"],
            "subresources": [
                {"subresource": "status", "responseKind": None, "verbs": ["get"], "acceptedTypes": [{"kind": "X"}]}
            ],
        }
        found = read_aggregated(json.dumps(everything(("g", "v1"), resources=[{**line, "odd": 1}])).encode())
        none = {"group": "", "version": "", "kind": ""}
        status = {
            "subresource": "status",
            "responseKind": none,
            "acceptedTypes": [none | {"kind": "X"}],
            "verbs": ["get"],
        }
        self.assertEqual(found, {GroupVersion("g", "v1"): [{**line, "subresources": [status]}]})

    def test_subresources_of_plain_documents(self) -> None:
        """Lines with a slash become subresources, of a resource without a line as well, if their scopes agree."""
        lines: list[JSONObject] = [
            {"name": "lamps/status", "namespaced": True, "kind": "Lamp", "verbs": ["get"]},
            {"name": "lamps", "namespaced": True, "kind": "Lamp", "verbs": ["list"]},
            {"name": "chairs/status", "namespaced": False, "verbs": ["get"]},
        ]
        lamps, chairs = read_resource_list(json.dumps({"resources": lines}).encode())
        self.assertEqual((lamps["resource"], lamps["subresources"][0]["subresource"]), ("lamps", "status"))
        self.assertEqual((chairs["resource"], chairs["verbs"], chairs["scope"]), ("chairs", [], "Cluster"))
        lines[0]["namespaced"] = False
        with self.assertRaises(BadDocument):
            read_resource_list(json.dumps({"resources": lines}).encode())

    def test_limits(self) -> None:
        """Documents of too many or too long things are not read."""
        for resources in (
            [LAMPS] * 5001,
            [{**LAMPS, "verbs": ["get"] * 65}],
            [{**LAMPS, "resource": "a" * 257}],
            [{**LAMPS, "subresources": [{"subresource": "status"}] * 5001}],
        ):
            with self.assertRaises(BadDocument):
                read_aggregated(json.dumps(everything(("g", "v1"), resources=resources)).encode())
        with self.assertRaises(BadDocument):
            read_aggregated(b"{" + b" " * 3_000_000 + b"}")

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "items",
                            "metadata",
                            "name",
                            "versions",
                            "version",
                            "resources",
                            "verbs",
                            "subresources",
                            "kind",
                        ]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=30,
        )
    )
    def test_anything(self, document: Any) -> None:
        """Whatever the document is, it is read, or a bad one."""
        body = json.dumps(document).encode()
        for read in (read_aggregated, read_resource_list):
            with contextlib.suppress(BadDocument):
                read(body)
