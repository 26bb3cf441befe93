"""
Tests for L{kubetwist.resources.aggregation.openapi}, and for documents merged with documents of aggregated servers.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock

from kubetwist.api.resource import JSONObject
from kubetwist.client.httpclient import Response
from kubetwist.registry.kinds import Priority
from kubetwist.resources.aggregation.openapi import RemoteOpenAPI

from ..openapi.test_endpoints import OpenAPICase
from ..openapi.test_protobufv2 import every, pairs
from .remotesfake import FakeRemotes, FakeServer, answer, refused

GROUP = "far.example.com"
WHERE = f"/apis/{GROUP}/v1/lamps"
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V3_PROTOBUF = V2_PROTOBUF.replace("v2", "v3")
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
REFERENCE = {"$ref": f"#/definitions/{META}"}
KIND = {"group": GROUP, "version": "v1", "kind": "Lamp"}
LAMP: JSONObject = {
    "type": "object",
    "properties": {"metadata": {"description": "Of the lamp.", **REFERENCE}, "watts": {"type": "integer"}},
    "x-kubernetes-group-version-kind": [KIND],
}


def swagger(**definitions: Any) -> JSONObject:
    """Return a v2 document of an aggregated server."""
    body = {"name": "body", "in": "body", "required": True, "schema": {"$ref": "#/definitions/com.example.far.Lamp"}}
    responses = {"200": {"description": "OK", "schema": {"$ref": "#/definitions/com.example.far.Lamp"}}}
    operation = {
        "operationId": "createLamp",
        "consumes": ["application/json"],
        "produces": ["application/json"],
        "parameters": [body, {"$ref": "#/parameters/pretty"}],
        "responses": responses,
        "x-kubernetes-action": "post",
        "x-kubernetes-group-version-kind": KIND,
    }
    return {
        "swagger": "2.0",
        "info": {"title": "Lamps", "version": "v1"},
        "paths": {
            WHERE: {"post": operation},
            WHERE.replace("v1", "v2"): {"get": {"responses": responses}},
            "/api/v1/secrets": {"get": {"responses": {}}},
        },
        "definitions": {"com.example.far.Lamp": LAMP, META: {"type": "object", "description": "Another."}},
        "parameters": {"pretty": {"name": "pretty", "in": "query", "type": "string", "description": "How?"}},
    }


class RemoteCase(OpenAPICase):
    """Test case with one aggregated server."""

    def setUp(self) -> None:
        """Create the clients without sending a request."""
        self.clock = Clock()
        self.remotes = FakeRemotes()
        self.remote = RemoteOpenAPI(self.remotes, self.clock, execute)
        self.far = FakeServer("far")
        self.far.answers = {
            "/openapi/v2": answer(swagger(), etag='"two"'),
            "/openapi/v3": self.index("ABC"),
            f"/openapi/v3/apis/{GROUP}/v1": answer({"openapi": "3.0.0", "paths": {WHERE: {}}}, etag='"ABC"'),
        }
        super().setUp()
        self.remote.start()
        self.addCleanup(self.stop)

    def stop(self) -> None:
        """Stop the clients."""
        assert self.remote is not None
        stopped = Deferred.fromCoroutine(self.remote.stop())
        self.clock.advance(0)
        self.clock.advance(0)
        self.successResultOf(stopped)

    def index(self, found: str) -> Response:
        """
        Return the v3 index of the aggregated server: its document, and one of a group-version that it does not own.
        """
        url = f"/openapi/v3/apis/{GROUP}/v1"
        urls = {f"apis/{GROUP}/v1": f"{url}?hash={found}" if found else url, "apis/apps/v1": "/openapi/v3/x?hash=EVIL"}
        return answer({"paths": {name: {"serverRelativeURL": url} for name, url in urls.items()}})

    def add(self, version: str = "v1", up: bool = True) -> Any:
        """Add a version to the aggregated server and poll it."""
        remote = self.remotes.add(self.far, GROUP, version, up=up)
        self.clock.advance(1)
        return remote


class V2Tests(RemoteCase):
    """The v2 document."""

    def test_without_servers(self) -> None:
        """Without aggregated servers, no request is sent and no timer runs."""
        self.get("/openapi/v2")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_merged(self) -> None:
        """
        The paths of a group-version are merged into the local document, with the definitions that they refer to, under
        free names.
        """
        own = self.get("/openapi/v2")
        self.add()
        merged = self.get("/openapi/v2")
        self.assertEqual(set(merged["paths"]) - set(own["paths"]), {WHERE})
        lamp = merged["definitions"]["com.example.far.Lamp"]
        self.assertEqual(lamp["properties"]["metadata"]["$ref"], f"#/definitions/{META}_v2")
        self.assertEqual(lamp["x-kubernetes-group-version-kind"], [KIND])
        self.assertEqual(merged["definitions"][f"{META}_v2"], {"type": "object", "description": "Another."})
        self.assertEqual({**own["paths"], WHERE: merged["paths"][WHERE]}, merged["paths"])
        self.assertIn("pretty", merged["parameters"])
        self.assertEqual(
            {name: merged[name] for name in ("info", "security")}, {n: own[n] for n in ("info", "security")}
        )

    def test_one_request(self) -> None:
        """A server is requested once for all of its versions, as the aggregator's user."""
        self.remotes.add(self.far, GROUP, "v2")
        self.add()
        asked = [call for call in self.far.calls if call[0] == "/openapi/v2"]
        self.assertEqual(asked, [("/openapi/v2", "", "system:aggregator")])
        self.assertLessEqual({WHERE, WHERE.replace("v1", "v2")}, set(self.get("/openapi/v2")["paths"]))

    def test_protobuf(self) -> None:
        """The protobuf document contains the merged paths and definitions."""
        self.add()
        code, _, body = self.ask("/openapi/v2", accept=V2_PROTOBUF)
        self.assertEqual(code, 200)
        self.assertIn(WHERE, pairs(every(body, 8, 2)))
        self.assertIn("com.example.far.Lamp", pairs(every(body, 9, 1)))

    def test_not_modified(self) -> None:
        """A server is polled once a minute with the ETag; an unchanged document does not change the merged one."""
        self.add()
        self.get("/openapi/v2")
        built = self.built
        self.far.answers["/openapi/v2"] = lambda etag: answer(b"", 304 if etag == '"two"' else 500)
        self.far.calls.clear()
        self.clock.advance(60)
        self.assertIn(("/openapi/v2", '"two"', "system:aggregator"), self.far.calls)
        self.get("/openapi/v2")
        self.assertEqual(self.built, built)

    def test_no_tags(self) -> None:
        """
        For a server without ETags, an equal document does not change the merged one, and a different document does.
        """
        self.far.answers["/openapi/v2"] = answer(swagger())
        self.add()
        before = self.ask("/openapi/v2")[1].getRawHeaders("etag")
        self.clock.advance(60)
        self.assertEqual(self.ask("/openapi/v2")[1].getRawHeaders("etag"), before)
        changed = swagger()
        changed["definitions"]["com.example.far.Lamp"] = {"type": "object"}
        self.far.answers["/openapi/v2"] = answer(changed)
        self.clock.advance(60)
        self.assertNotEqual(self.ask("/openapi/v2")[1].getRawHeaders("etag"), before)

    def test_another_version(self) -> None:
        """A version that is added later is read although the document has not changed."""
        self.far.answers["/openapi/v2"] = lambda etag: answer(b"", 304) if etag else answer(swagger(), etag='"two"')
        self.add()
        self.add("v2")
        self.assertIn(WHERE.replace("v1", "v2"), self.get("/openapi/v2")["paths"])

    def test_dead(self) -> None:
        """The last document of a server stays while it is unreachable, until its APIService is deleted."""
        self.add()
        self.far.answers["/openapi/v2"] = refused()
        self.clock.advance(60)
        self.assertIn(WHERE, self.get("/openapi/v2")["paths"])
        self.remotes.remove(GROUP, "v1")
        self.assertNotIn(WHERE, self.get("/openapi/v2")["paths"])
        self.far.calls.clear()
        self.clock.pump([60] * 20)
        self.assertEqual(self.far.calls, [])

    def test_slow(self) -> None:
        """A server that does not respond delays neither the local document nor the documents of further servers."""
        slow = FakeServer("slow", {"/openapi/v2": Deferred(), "/openapi/v3": Deferred()})
        self.remotes.add(slow, "slow.example.com", "v1")
        self.add()
        self.assertIn(WHERE, self.get("/openapi/v2")["paths"])
        self.assertIn(f"apis/{GROUP}/v1", self.get("/openapi/v3")["paths"])

    def test_garbage(self) -> None:
        """An invalid document is not merged; the rest does not change."""
        own = self.get("/openapi/v2")
        for body in (b"", b"{", b'{"paths": []}', b'{"paths": {"%b": 1}}' % WHERE.encode(), b"[" * 100_000):
            self.far.answers["/openapi/v2"] = answer(body)
            self.add()
            self.assertEqual(self.get("/openapi/v2"), own, body[:20])
            self.remotes.remove(GROUP, "v1")

    def test_order(self) -> None:
        """Groups of higher priority keep the names of their definitions."""
        near = FakeServer("near")
        other = json.loads(orjson.dumps(swagger()).replace(GROUP.encode(), b"near.example.com"))
        other["definitions"]["com.example.far.Lamp"] = {"type": "string"}
        near.answers["/openapi/v2"] = answer(other)
        self.remotes.add(near, "near.example.com", "v1", Priority(2000, 1))
        self.add()
        definitions = self.get("/openapi/v2")["definitions"]
        self.assertEqual(definitions["com.example.far.Lamp"], {"type": "string"})
        self.assertEqual(definitions["com.example.far.Lamp_v2"]["properties"]["watts"], {"type": "integer"})


class V3Tests(RemoteCase):
    """The v3 documents."""

    def test_listed(self) -> None:
        """
        The document of an aggregated group-version is listed with its hash; documents of other group-versions are not.
        """
        own = self.get("/openapi/v3")["paths"]
        self.add()
        url = f"/openapi/v3/apis/{GROUP}/v1?hash=ABC"
        expected = {**own, f"apis/{GROUP}/v1": {"serverRelativeURL": url}}
        self.assertEqual(self.get("/openapi/v3")["paths"], expected)

    def test_document(self) -> None:
        """A document is fetched at its first request and cached; its hash is the one in the index."""
        self.add()
        self.far.calls.clear()
        url = f"/openapi/v3/apis/{GROUP}/v1"
        code, headers, body = self.ask(f"{url}?hash=ABC")
        self.assertEqual((code, json.loads(body)["paths"]), (200, {WHERE: {}}))
        self.assertEqual(headers.getRawHeaders("etag"), ['"ABC"'])
        self.assertEqual(headers.getRawHeaders("cache-control"), ["public, immutable"])
        self.assertEqual(self.ask(url, if_none_match='"ABC"')[0], 304)
        self.assertEqual(self.far.calls, [(url, "", "system:aggregator")])

    def test_protobuf(self) -> None:
        """A document is served in protobuf, too."""
        self.add()
        _, headers, body = self.ask(f"/openapi/v3/apis/{GROUP}/v1", accept=V3_PROTOBUF)
        self.assertEqual(headers.getRawHeaders("etag"), ['"ABC"'])
        self.assertIn(WHERE, pairs(every(body, 4, 1)))

    def test_old_hash(self) -> None:
        """A request with an old hash is redirected to the new one by this server."""
        self.add()
        _, headers, _ = self.ask(f"/openapi/v3/apis/{GROUP}/v1?hash=OLD")
        self.assertEqual(headers.getRawHeaders("location"), [f"/openapi/v3/apis/{GROUP}/v1?hash=ABC"])

    def test_changed(self) -> None:
        """A document whose hash in the index has changed is fetched again, with the ETag of the cached one."""
        self.add()
        url = f"/openapi/v3/apis/{GROUP}/v1"
        self.ask(url)
        self.far.answers["/openapi/v3"] = self.index("DEF")
        self.far.answers[url] = answer({"paths": {}}, etag='"DEF"')
        self.clock.advance(60)
        self.far.calls.clear()
        self.assertEqual(self.get(f"{url}?hash=DEF"), {"paths": {}})
        self.assertEqual(self.far.calls, [(url, '"ABC"', "system:aggregator")])

    def test_no_hash(self) -> None:
        """A document of a server without hashes is fetched at most once a minute."""
        self.far.answers["/openapi/v3"] = self.index("")
        url = f"/openapi/v3/apis/{GROUP}/v1"
        self.add()
        self.assertEqual(self.get("/openapi/v3")["paths"][f"apis/{GROUP}/v1"], {"serverRelativeURL": url})
        self.get(url)
        self.get(url)
        self.assertEqual(self.far.paths().count(url), 1)
        self.clock.advance(60)
        self.far.answers[url] = lambda etag: answer(b"", 304 if etag == '"ABC"' else 500)
        self.assertEqual(self.get(url)["paths"], {WHERE: {}})
        self.assertEqual(self.far.paths().count(url), 1)

    def test_dead(self) -> None:
        """
        A fetched document stays available while its server is unreachable; a document that was not fetched is 503.
        """
        remote = self.add()
        url = f"/openapi/v3/apis/{GROUP}/v1"
        remote.available = False
        self.assertEqual(self.ask(url)[0::2], (503, b""))
        remote.available = True
        self.get(url)
        self.far.answers = {"/openapi/v3": self.index("DEF"), url: refused()}
        self.clock.advance(60)
        self.assertEqual(self.get(url)["paths"], {WHERE: {}})

    def test_concurrent_requests(self) -> None:
        """Concurrent requests for a document share one request to its server."""
        self.add()
        url = f"/openapi/v3/apis/{GROUP}/v1"
        waiting: Deferred[Any] = Deferred()
        self.far.answers[url] = waiting
        self.far.calls.clear()
        asked = [self.begin(url) for _ in range(3)]
        self.assertEqual(self.far.paths(), [url])
        waiting.callback(answer({"paths": {}}))
        self.client.flush()
        self.assertEqual([self.successResultOf(one).code for one in asked], [200] * 3)

    def test_garbage(self) -> None:
        """An invalid index lists no documents, and an invalid document is 503."""
        own = self.get("/openapi/v3")
        for body in (b"", b"[]", b'{"paths": 1}', b'{"paths": {"a": {}}}'):
            self.far.answers["/openapi/v3"] = answer(body)
            self.add()
            self.assertEqual(self.get("/openapi/v3"), own, body)
            self.remotes.remove(GROUP, "v1")
        self.far.answers["/openapi/v3"] = self.index("ABC")
        self.add()
        for body in (b"", b"[]", b'{"paths": ', b"\xff"):
            self.far.answers[f"/openapi/v3/apis/{GROUP}/v1"] = answer(body)
            self.assertEqual(self.ask(f"/openapi/v3/apis/{GROUP}/v1")[0], 503)

    def test_removed(self) -> None:
        """A removed document is neither listed nor served."""
        self.add()
        self.get(f"/openapi/v3/apis/{GROUP}/v1")
        self.remotes.remove(GROUP, "v1")
        self.assertNotIn(f"apis/{GROUP}/v1", self.get("/openapi/v3")["paths"])
        self.assertEqual(self.ask(f"/openapi/v3/apis/{GROUP}/v1")[0], 404)

    def test_converted(self) -> None:
        """For a server without v3, the documents are converted from v2."""
        del self.far.answers["/openapi/v3"]
        self.add()
        self.clock.advance(5)
        url = self.get("/openapi/v3")["paths"][f"apis/{GROUP}/v1"]["serverRelativeURL"]
        document = self.get(url)
        post = document["paths"][WHERE]["post"]
        lamp = {"$ref": "#/components/schemas/com.example.far.Lamp"}
        content = {"content": {"application/json": {"schema": lamp}}}
        self.assertEqual(post["requestBody"], {**content, "required": True})
        self.assertEqual(post["responses"]["200"], {**content, "description": "OK"})
        self.assertEqual(post["x-kubernetes-group-version-kind"], KIND)
        pretty = {"name": "pretty", "in": "query", "description": "How?", "schema": {"type": "string"}}
        self.assertEqual(post["parameters"], [pretty])
        schemas = document["components"]["schemas"]
        self.assertEqual(
            schemas["com.example.far.Lamp"]["properties"]["metadata"],
            {"description": "Of the lamp.", "allOf": [{"$ref": f"#/components/schemas/{META}"}]},
        )
        self.assertIn(META, schemas)
        self.assertEqual(set(document["paths"]), {WHERE})
