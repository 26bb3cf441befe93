"""Tests for L{kubetwist.resources.openapi.endpoints} and the creation of its documents."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from treq.testing import StubTreq
from twisted.internet.defer import Deferred, execute
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.aggregation.openapi import RemoteOpenAPI
from kubetwist.resources.mux import DelegatingMux
from kubetwist.resources.openapi.builder import Builder
from kubetwist.resources.openapi.endpoints import OpenAPIV2, OpenAPIV3, openapi_app
from kubetwist.resources.routing import RoutedApp
from tests.resources.fakeservedresources import APPS, NotFound, custom, served_resources
from tests.resources.openapi.fakedefinitions import META, FakeDefinitions
from tests.resources.openapi.test_protobufv2 import every

V3_PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"


V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


class OpenAPICase(SynchronousTestCase):
    """
    Test case that requests OpenAPI documents over HTTP in memory.

    @ivar remote: The documents of aggregated servers.
    @ivar non_api_paths: The served paths outside of C{/api} and C{/apis}.
    """

    remote: RemoteOpenAPI | None = None
    non_api_paths: tuple[str, ...] = ()

    def setUp(self) -> None:
        """Create a server that builds documents immediately."""
        self.groups = served_resources()
        self.definitions = FakeDefinitions()
        self.built = 0
        self.serve(self.run_now)

    def run_now(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        """Run a function immediately instead of in a thread."""
        self.built += 1
        return execute(function, *arguments)

    def serve(self, run: Any) -> None:
        """Create the server."""
        builder = Builder(self.definitions, "1.36", self.non_api_paths)
        mux = DelegatingMux("test", NotFound())
        v2 = OpenAPIV2(self.groups, lambda: builder, run, lambda: self.remote)
        now = datetime(2026, 1, 2, tzinfo=UTC)
        v3 = OpenAPIV3(self.groups, lambda: builder, run, lambda: now, lambda: self.remote)
        app = RoutedApp(lambda: openapi_app(v2, v3))
        mux.handle_prefix("/openapi/v2", app)
        mux.handle_prefix("/openapi/v3", app)
        self.client = StubTreq(mux)

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, Any, bytes]:
        """Return the code, the headers and the body of a response."""
        response = self.successResultOf(self.begin(path, method, **headers))
        return response.code, response.headers, self.successResultOf(response.content())

    def begin(self, path: str, method: str = "GET", **headers: str) -> Deferred[Any]:
        """Begin a request that may take long."""
        # treq requests gzip by default.
        sent = {"accept-encoding": "identity"} | {name.replace("_", "-"): value for name, value in headers.items()}
        asked: Deferred[Any] = self.client.request(
            method, f"http://kube.invalid{path}", headers=sent, allow_redirects=False
        )
        return asked

    def get(self, path: str, **headers: str) -> Any:
        """Return the decoded JSON of a successful response."""
        code, _, body = self.ask(path, **headers)
        self.assertEqual(code, 200, body)
        return json.loads(body)


class OpenAPIV3Tests(OpenAPICase):
    """L{OpenAPIV3}."""

    def test_index(self) -> None:
        """The index lists the documents with URLs that change with their content."""
        paths = self.get("/openapi/v3")["paths"]
        self.assertEqual(
            " ".join(paths),
            "api api/v1 apis apis/apps apis/apps/v1 apis/autoscaling apis/autoscaling/v1 apis/autoscaling/v2 version",
        )
        url = paths["apis/apps/v1"]["serverRelativeURL"]
        self.assertTrue(url.startswith("/openapi/v3/apis/apps/v1?hash="))
        self.assertEqual(self.get(url)["info"], {"title": "Kubernetes", "version": "1.36"})

    def test_document(self) -> None:
        """A document contains the paths of its version and the types that they need."""
        document = self.get("/openapi/v3/apis/apps/v1")
        self.assertEqual(document["openapi"], "3.0.0")
        scale = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]
        self.assertEqual([one["name"] for one in scale["parameters"]], ["name", "namespace", "pretty"])
        self.assertEqual(
            scale["put"]["x-kubernetes-group-version-kind"], {"group": "autoscaling", "version": "v1", "kind": "Scale"}
        )
        self.assertEqual(
            scale["put"]["requestBody"],
            {
                "content": {"*/*": {"schema": {"$ref": "#/components/schemas/io.k8s.api.autoscaling.v1.Scale"}}},
                "required": True,
            },
        )
        self.assertIn("application/apply-patch+yaml", scale["patch"]["requestBody"]["content"])
        self.assertNotIn("io.k8s.api.core.v1.Pod", document["components"]["schemas"])
        collection = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments"]
        self.assertNotIn("required", collection["delete"]["requestBody"])
        self.assertEqual(collection["get"]["x-kubernetes-action"], "list")

    def test_issuer(self) -> None:
        """The documents of the token issuer are described if they are served; they need no types."""
        path = "/.well-known/openid-configuration"
        self.assertEqual(self.ask(f"/openapi/v3{path}")[0], 404)
        self.assertNotIn(f"{path}/", self.get("/openapi/v2")["paths"])
        self.non_api_paths = (path, "/metrics")
        self.serve(self.run_now)
        names = [name for name in self.get("/openapi/v3")["paths"] if not name.startswith("api")]
        self.assertEqual(names, [path[1:], "version"])
        document = self.get(f"/openapi/v3{path}")
        (item,) = document["paths"].values()
        self.assertEqual(
            item["get"]["responses"]["200"]["content"], {"application/json": {"schema": {"type": "string"}}}
        )
        self.assertNotIn("schemas", document["components"])
        operation = self.get("/openapi/v2")["paths"][f"{path}/"]["get"]
        self.assertNotIn("consumes", operation)
        self.assertEqual(operation["operationId"], item["get"]["operationId"])

    def test_caching(self) -> None:
        """A document that is requested by its hash may be cached forever; an old hash is redirected."""
        url = self.get("/openapi/v3")["paths"]["api"]["serverRelativeURL"]
        _, headers, _ = self.ask(url)
        self.assertEqual(headers.getRawHeaders("cache-control"), ["public, immutable"])
        self.assertEqual(headers.getRawHeaders("expires"), ["Sat, 02 Jan 2027 00:00:00 GMT"])
        self.assertEqual(headers.getRawHeaders("vary"), ["Accept"])
        code, headers, body = self.ask("/openapi/v3/api?hash=STALE")
        self.assertEqual((code, headers.getRawHeaders("location"), body), (301, [url], b""))
        self.assertFalse(self.ask("/openapi/v3/api")[1].hasHeader("expires"))

    def test_not_modified(self) -> None:
        """A client with a current ETag gets 304."""
        (etag,) = self.ask("/openapi/v3/api")[1].getRawHeaders("etag")
        self.assertEqual(self.ask("/openapi/v3/api", if_none_match=etag)[0::2], (304, b""))
        self.assertEqual(self.ask("/openapi/v3/api", if_none_match=f'"x", W/{etag}')[0], 304)
        self.assertEqual(self.ask("/openapi/v3/api", if_none_match='"x"')[0], 200)

    def test_not_found(self) -> None:
        """A missing document is a 404 without a body and a content type."""
        for path in ("/openapi/v3/apis/apps/v7", "/openapi/v3/", "/openapi/v3/apis/nope?hash=x"):
            code, headers, body = self.ask(path)
            self.assertEqual((code, body, headers.hasHeader("content-type")), (404, b"", False))

    def test_not_acceptable(self) -> None:
        """Documents are available in JSON and protobuf only."""
        self.assertEqual(self.ask("/openapi/v3/version", accept="text/html")[0::2], (406, b""))
        for accept in ("application/*", "*/*", "text/html, application/json;q=0.1"):
            self.assertEqual(self.ask("/openapi/v3/version", accept=accept)[0], 200)
        self.assertEqual(self.ask("/openapi/v3", accept="text/html")[0], 200)

    def test_protobuf(self) -> None:
        """Documents are available in protobuf, encoded once, with the hash of the JSON."""
        (etag,) = self.ask("/openapi/v3/apis/apps/v1")[1].getRawHeaders("etag")
        for accept in (V3_PROTOBUF, V3_PROTOBUF.replace("v3.", "v3@")):
            code, headers, body = self.ask("/openapi/v3/apis/apps/v1", accept=accept)
            self.assertEqual((code, headers.getRawHeaders("content-type")), (200, [V3_PROTOBUF]))
            self.assertEqual(headers.getRawHeaders("etag"), [etag])
            self.assertEqual(every(body, 1), [b"3.0.0"])
        self.assertEqual(self.built, 2)
        code, headers, nothing = self.ask("/openapi/v3/apis/apps/v1", "HEAD", accept=V3_PROTOBUF)
        self.assertEqual((code, nothing), (200, b""))
        self.assertEqual(headers.getRawHeaders("content-length"), [str(len(body))])
        _, headers, _ = self.ask("/openapi/v3/apis/apps/v1?hash=STALE", accept=V3_PROTOBUF)
        self.assertEqual(headers.getRawHeaders("content-type"), [V3_PROTOBUF])

    def test_other_methods(self) -> None:
        """A request with a matching ETag and a method other than GET and HEAD is 412."""
        (etag,) = self.ask("/openapi/v3/api")[1].getRawHeaders("etag")
        self.assertEqual(self.ask("/openapi/v3/api", "POST", if_none_match=etag)[0::2], (412, b""))

    def test_head(self) -> None:
        """The response to HEAD has the length of the document."""
        for path in ("/openapi/v3", "/openapi/v3/apis/apps/v1"):
            _, _, body = self.ask(path)
            code, headers, nothing = self.ask(path, "HEAD")
            self.assertEqual((code, nothing), (200, b""))
            self.assertEqual(headers.getRawHeaders("content-length"), [str(len(body))])

    def test_gzip(self) -> None:
        """Clients that accept gzip get the cached compressed document."""
        plain = self.ask("/openapi/v3/api/v1")[2]
        code, headers, body = self.ask("/openapi/v3/api/v1", accept_encoding="gzip")
        self.assertEqual(code, 200)
        unpacked = zlib.decompress(body, 31) if body[:2] == b"\x1f\x8b" else body
        self.assertEqual(unpacked, plain)
        self.assertEqual(headers.getRawHeaders("vary"), ["Accept", "Accept-Encoding"])

    def test_built_once(self) -> None:
        """Documents are built at the first request, and again only after a change."""
        self.assertEqual(self.built, 0)
        before = self.get("/openapi/v3")["paths"]
        self.ask("/openapi/v3/api/v1")
        self.assertEqual(self.built, 1)
        self.groups.add(custom("apps", "v1"))
        after = self.get("/openapi/v3")["paths"]
        self.assertEqual(self.built, 2)
        self.assertEqual([name for name in after if after[name] != before.get(name)], ["apis/apps/v1"])
        self.groups.remove_group_version(APPS)
        self.assertNotIn("apis/apps", self.get("/openapi/v3")["paths"])


class WaitingTests(OpenAPICase):
    """Requests during the build of documents."""

    def setUp(self) -> None:
        """Defer builds until the test runs them."""
        super().setUp()
        self.work: list[Callable[[], None]] = []
        self.serve(self.run_later)

    def run_later(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        """Defer a function instead of running it in a thread."""
        done: Deferred[Any] = Deferred()
        self.work.append(lambda: execute(function, *arguments).chainDeferred(done))
        return done

    def test_shared_build(self) -> None:
        """Concurrent requests share one build."""
        asked = [self.begin("/openapi/v3/api"), self.begin("/openapi/v3"), self.begin("/openapi/v3/nope")]
        for one in asked:
            self.assertNoResult(one)
        (work,) = self.work
        work()
        self.client.flush()
        self.assertEqual([self.successResultOf(one).code for one in asked], [200, 200, 404])

    def test_client_disconnects(self) -> None:
        """A client that disconnects during the build affects no other request."""
        asked = self.begin("/openapi/v3/api")
        asked.addErrback(lambda failure: None)
        asked.cancel()
        self.client.flush()
        (work,) = self.work
        work()
        self.client.flush()
        self.assertEqual(self.ask("/openapi/v3/api")[0], 200)

    def test_failure(self) -> None:
        """A failed build is logged, and the next request tries again."""
        self.definitions.broken = True
        asked = self.begin("/openapi/v3/api")
        self.work.pop()()
        self.client.flush()
        self.assertEqual(self.successResultOf(asked).code, 503)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.definitions.broken = False
        asked = self.begin("/openapi/v3/api")
        self.work.pop()()
        self.client.flush()
        self.assertEqual(self.successResultOf(asked).code, 200)

    def test_change_while_building(self) -> None:
        """A change during a build is in the next documents."""
        asked = self.begin("/openapi/v3")
        self.groups.remove_group_version(APPS)
        self.work.pop()()
        self.client.flush()
        self.assertEqual(self.successResultOf(asked).code, 200)
        asked = self.begin("/openapi/v3")
        self.work.pop()()
        self.client.flush()
        body = json.loads(self.successResultOf(self.successResultOf(asked).content()))
        self.assertNotIn("apis/apps", body["paths"])


class OpenAPIV2Tests(OpenAPICase):
    """L{OpenAPIV2}."""

    def test_document(self) -> None:
        """One document contains everything, and all its references resolve."""
        document = self.get("/openapi/v2")
        self.assertEqual(document["swagger"], "2.0")
        self.assertIn("/apis/autoscaling/", document["paths"])
        item = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]
        self.assertEqual(item["get"]["operationId"], "readCoreV1NamespacedPod")
        self.assertEqual(item["put"]["parameters"][0]["schema"], {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"})
        shared = {name.partition("-")[0] for name in document["parameters"]}
        self.assertTrue({"pretty", "namespace", "body", "labelSelector"} <= shared)
        known = {f"#/parameters/{name}" for name in document["parameters"]}
        for path in document["paths"].values():
            for one in path.get("parameters", []):
                self.assertTrue(one["name"] == "name" if "name" in one else one["$ref"] in known, one)

    def test_parameters(self) -> None:
        """
        Parameters are shared under the names that kube-apiserver generates.

        Names, bodies of kinds, and the two parameters that kubectl reads without resolving references are not shared.
        """
        document = self.get("/openapi/v2")
        self.assertEqual(
            document["parameters"]["namespace-vgWSWtn3"],
            {
                "uniqueItems": True,
                "type": "string",
                "description": "object name and auth scope, such as for teams and projects",
                "name": "namespace",
                "in": "path",
                "required": True,
            },
        )
        item = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]
        self.assertEqual(item["patch"]["parameters"][0], {"$ref": "#/parameters/body-78PwaGsr"})
        self.assertEqual(item["delete"]["parameters"][0], {"$ref": "#/parameters/body-2Y1dVQaQ"})
        apart = {name for name in document["parameters"] if name.startswith(("name-", "fieldValidation-", "dryRun-"))}
        self.assertEqual(apart, set())
        for method in ("put", "patch"):
            own = [one["name"] for one in item[method]["parameters"] if "name" in one and one["in"] == "query"]
            self.assertEqual(own, ["dryRun", "fieldValidation"])

    def test_definitions(self) -> None:
        """The document has exactly the definitions that its paths refer to, directly or indirectly."""
        document = self.get("/openapi/v2")
        self.assertEqual(document["info"], {"title": "Kubernetes", "version": "1.36"})
        self.assertNotIn(f"{META}Unused", document["definitions"])
        self.assertIn("io.k8s.api.core.v1.PodSpec", document["definitions"])
        self.groups.remove_group_version(APPS)
        before, document = document, self.get("/openapi/v2")
        disconnected = before["definitions"].keys() - document["definitions"].keys()
        self.assertIn("io.k8s.api.apps.v1.Deployment", disconnected)
        self.assertNotIn("io.k8s.api.core.v1.Pod", disconnected)

    def test_headers(self) -> None:
        """The response varies by C{Accept}, and has an ETag."""
        _, headers, _ = self.ask("/openapi/v2")
        self.assertEqual(headers.getRawHeaders("vary"), ["Accept-Encoding", "Accept"])
        (etag,) = headers.getRawHeaders("etag")
        self.assertEqual(self.ask("/openapi/v2", if_none_match=etag)[0], 304)

    def test_not_acceptable(self) -> None:
        """HTML, and protobuf of another version, are not available."""
        for accept in ("text/html", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"):
            code, headers, body = self.ask("/openapi/v2", "HEAD", accept=accept)
            self.assertEqual((code, body, headers.hasHeader("content-type")), (406, b"", False))
        self.assertEqual(self.ask("/openapi/v2", accept="text/html,*/*")[0], 200)

    def test_protobuf(self) -> None:
        """The document is sent in protobuf to clients that prefer it, under both names of its media type."""
        schemas = self.get("/openapi/v2")["definitions"]
        _, headers, _ = self.ask("/openapi/v2")
        (json_tag,) = headers.getRawHeaders("etag")
        new_name = V2_PROTOBUF.replace("@", ".")
        for accept in (V2_PROTOBUF, new_name, f"{V2_PROTOBUF},*/*", f"application/json;q=0.5,{V2_PROTOBUF}"):
            code, headers, body = self.ask("/openapi/v2", accept=accept)
            self.assertEqual((code, headers.getRawHeaders("content-type")), (200, [new_name]))
            self.assertEqual(headers.getRawHeaders("vary"), ["Accept-Encoding", "Accept"])
            self.assertEqual([name.decode() for name in every(body, 9, 1, 1)], list(schemas))
        (etag,) = headers.getRawHeaders("etag")
        self.assertNotEqual(etag, json_tag)
        self.assertEqual(self.ask("/openapi/v2", accept=V2_PROTOBUF, if_none_match=etag)[0], 304)
        for accept in ("*/*", "application/*", f"{V2_PROTOBUF};q=0.5,application/json"):
            _, headers, _ = self.ask("/openapi/v2", accept=accept)
            self.assertEqual(headers.getRawHeaders("content-type"), ["application/json"])
        # The client unpacks what comes packed.
        _, headers, unpacked = self.ask("/openapi/v2", accept=V2_PROTOBUF, accept_encoding="gzip")
        self.assertEqual(unpacked, body)
        _, headers, nothing = self.ask("/openapi/v2", "HEAD", accept=V2_PROTOBUF)
        self.assertEqual((headers.getRawHeaders("content-length"), nothing), ([str(len(body))], b""))

    def test_below(self) -> None:
        """Paths below it are not found."""
        self.assertEqual(self.ask("/openapi/v2/x")[0::2], (404, b"404 page not found\n"))
