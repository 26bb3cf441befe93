"""Tests of L{kubetwist.server.apiserver}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from klein import Klein
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs
from twisted.web.resource import IResource, getChildForRequest

from kubetwist.api.cbor import encode_cbor
from kubetwist.resources.apis import install_apis
from kubetwist.resources.mux import DelegatingMux, NotFound
from kubetwist.resources.routetree import RouteTree
from kubetwist.resources.routing import Route
from kubetwist.server.chain import create_server_chain
from kubetwist.server.endpoints.fairness import PATH as FAIRNESS
from kubetwist.server.errors import StartError
from tests.server.endpoints.endpointcase import EndpointCase
from tests.server.servercase import ServerCase


def resource_of(front: DelegatingMux, path: str) -> IResource:
    """Return the resource at which the traversal for a GET ends."""
    encoded = path.encode()
    request = SimpleNamespace(method=b"GET", path=encoded, prepath=[], postpath=encoded[1:].split(b"/"))
    return getChildForRequest(front, request)


class FeatureGateTests(EndpointCase):
    """The feature gates of media types and compression."""

    async def test_defaults(self) -> None:
        """By default there is no CBOR; metrics show the gates."""
        await self.serve()
        self.assertEqual((await self.ask("GET", "/api/v1/namespaces", accept="application/cbor"))[0], 406)
        metrics = (await self.ask("GET", "/metrics", accept="*/*"))[1]
        self.assertIn('kubernetes_feature_enabled{name="CBORServingAndStorage",stage="ALPHA"} 0', metrics)
        self.assertIn('kubernetes_feature_enabled{name="APIResponseCompression",stage="BETA"} 1', metrics)

    async def test_emulation(self) -> None:
        """A server has the gates and the APIs of the emulated release, and names both releases."""
        with capturedLogs() as events:
            await self.serve(
                "--emulated-version=1.33",
                "--runtime-config=resource.k8s.io/v1beta1=true",
                "--feature-gates=ComponentFlagz=true,ComponentStatusz=true,ImageMaximumGCAge=false",
            )
        warnings = [event["text"] for event in events if "text" in event and "features" in event["text"]]
        self.assertEqual(
            warnings,
            [
                "component has alpha features enabled in emulated version, this is unsupported:"
                " features=[ComponentFlagz ComponentStatusz]"
            ],
        )
        version = (await self.ask("GET", "/version"))[1]
        self.assertEqual(
            (version["minor"], version["emulationMinor"], version["minCompatibilityMinor"]), ("36", "33", "33")
        )
        group = (await self.ask("GET", "/apis/resource.k8s.io"))[1]
        self.assertEqual([one["version"] for one in group["versions"]], ["v1beta1"])
        self.assertIn("\nEmulation version: 1.33\n", (await self.ask("GET", "/statusz", accept="text/plain"))[1])
        self.assertIn("\nemulated-version=[1.33]\n", (await self.ask("GET", "/flagz", accept="text/plain"))[1])
        metrics = (await self.ask("GET", "/metrics", accept="*/*"))[1]
        self.assertIn('version_info{binary="1.36.2",component="kube",emulation="1.33",min_compat="1.33"} 1', metrics)
        self.assertIn('kubernetes_feature_enabled{name="ContainerStopSignals",stage="ALPHA"} 0', metrics)
        self.assertNotIn('name="EnvFiles"', metrics)

    async def test_documents(self) -> None:
        """Discovery has hashes of storage versions, and OpenAPI has enumerations, with their gates."""
        crd = {
            "metadata": {"name": "kites.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Cluster",
                "names": {"plural": "kites", "kind": "Kite"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                ],
            },
        }
        for flags, expected in (
            ((), True),
            (("--feature-gates=StorageVersionHash=false,OpenAPIEnums=false",), False),
        ):
            await self.serve(*flags)
            await self.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
            for path in ("/api/v1", "/apis/example.com/v1"):
                resources = (await self.ask("GET", path))[1]["resources"]
                self.assertEqual("storageVersionHash" in repr(resources), expected, path)
            document = repr((await self.ask("GET", "/openapi/v3/api/v1"))[1])
            self.assertEqual("Possible enum values" in document, expected)
            self.assertEqual("'enum': [" in document, expected)

    async def test_gated_resources(self) -> None:
        """Resources need their gates, which warnings name."""
        with capturedLogs() as events:
            await self.serve(
                "--runtime-config=certificates.k8s.io/v1beta1=true", "--feature-gates=ClusterTrustBundle=true"
            )
        texts = [event.get("text") for event in events]
        disabled = "{} storage is disabled because the {} feature gate is disabled"
        self.assertIn(disabled.format("podcertificaterequests", "PodCertificateRequest"), texts)
        self.assertNotIn(disabled.format("clustertrustbundles", "ClusterTrustBundle"), texts)
        resources = (await self.ask("GET", "/apis/certificates.k8s.io/v1beta1"))[1]["resources"]
        self.assertEqual([one["name"] for one in resources], ["clustertrustbundles"])

    async def test_changed(self) -> None:
        """A server with the gate serves CBOR, for resources of all servers of the chain."""
        await self.serve("--feature-gates=CBORServingAndStorage=true,APIResponseCompression=false")
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for path in ("/api/v1/namespaces", definitions, "/apis/apiregistration.k8s.io/v1/apiservices"):
            code, body = await self.ask("GET", path, accept="application/cbor")
            self.assertEqual((code, "Dkind" in body), (200, True))
        for path, code in (
            ("/api/v1", 200),
            ("/apis/apps/v1", 200),
            ("/api", 406),
            ("/apis", 406),
            ("/apis/apps", 406),
        ):
            self.assertEqual((await self.ask("GET", path, accept="application/cbor"))[0], code)
        for document, documented in (("api/v1", True), ("apis", False)):
            described = repr((await self.ask("GET", f"/openapi/v3/{document}"))[1])
            for media in ("application/cbor", "application/cbor-seq", "application/apply-patch+cbor"):
                self.assertIs(f"'{media}'" in described, documented)
        created = encode_cbor({"metadata": {"name": "made"}})
        code, _ = await self.ask("POST", "/api/v1/namespaces", created, content_type="application/cbor")
        self.assertEqual(code, 201)
        metrics = (await self.ask("GET", "/metrics", accept="*/*"))[1]
        self.assertIn('kubernetes_feature_enabled{name="CBORServingAndStorage",stage="ALPHA"} 1', metrics)
        for name in ("objects", "bytes"):
            self.assertIn(f'kubetwist_watch_cache_encoded_{name}{{group="",resource="namespaces"}}', metrics)
        self.assertIn('kubernetes_feature_enabled{name="APIResponseCompression",stage="BETA"} 0', metrics)


class PrepareRunTests(ServerCase):
    """L{kubetwist.server.apiserver.APIServer.prepare_run}."""

    async def test_steps(self) -> None:
        """A chain has no health checks and documents; preparing adds them; running opens, listens, and stops."""
        self.service = self.make("--authorization-mode=AlwaysAllow")
        config = await self.service.complete()
        server = create_server_chain(config, install_apis)
        common = {"/readyz", "/version", "/metrics", "/openapi/v2"}
        self.assertFalse(common & set(server.front.mux.listed_paths()))
        self.assertIn("/apis/apiregistration.k8s.io/v1", server.front.mux.listed_paths())
        prepared = server.prepare_run()
        self.assertEqual(common - set(server.front.mux.listed_paths()), set())
        self.assertEqual(prepared.url, "")
        hooks = server.front.start_hooks()
        self.assertEqual([hook.name for hook in hooks if hook.problem is None], [])
        ready: Deferred[None] = Deferred()
        running = Deferred.fromCoroutine(prepared.run(lambda: ready.callback(None)))
        self.addCleanup(lambda: running)
        self.addCleanup(prepared.stop)
        await ready
        self.assertEqual([hook.name for hook in hooks if hook.problem is not None], [])
        self.service.server = prepared
        self.assertEqual((await self.ask("/readyz", self.admin)).body, b"ok")
        prepared.stop()
        prepared.stop()
        await running
        self.assertTrue(prepared.stopping)

    async def test_routes(self) -> None:
        """Every path that is listed or claimed is a route of a Klein app, and all further paths reach the end."""
        self.service = self.make("--authorization-mode=AlwaysAllow", "--enable-logs-handler")
        config = await self.service.complete()
        server = create_server_chain(config, install_apis)
        prepared = server.prepare_run()
        running = Deferred.fromCoroutine(prepared.run(lambda: None))
        self.addCleanup(lambda: running)
        self.addCleanup(prepared.stop)
        layers = [layer.mux for layer in server.front.chain()]
        self.assertEqual([mux.delegate for mux in layers[1:]], layers[:-1])
        self.assertIsInstance(layers[0].delegate, NotFound)
        apps = {id(app): app for mux in layers for _, app in mux.claims()}
        for routed in apps.values():
            self.assertIsInstance(routed.app, Klein)
            RouteTree(routed.app.url_map)
        listed = {path for mux in layers for path in mux.listed_paths()}
        expected = {"/livez/ping", "/version", "/metrics/slis", "/logs", "/statusz", "/openapi/v3", "/apis/apps/v1"}
        self.assertLessEqual(expected, listed)
        hidden = {"/", "/index.html", "/configz", "/debug/flags/v", "/debug/pprof/", f"{FAIRNESS}/dump_queues"}
        for path in sorted(listed | hidden | {"/api", "/apis/", "/kubetwist/v1/why"}):
            self.assertIsInstance(resource_of(server.front.mux, path), Route, path)
        for path in ("/x", "//api", "/apis/none.example.com/v1/things", "/metrics/none", f"{FAIRNESS}/none"):
            self.assertIs(resource_of(server.front.mux, path), layers[0].delegate, path)

    async def test_failing(self) -> None:
        """A server that cannot be prepared releases its data directory, and runs its destroy functions."""
        install = self.install

        def failing(config: Any, aggregator: Any, kube: Any, extensions: Any) -> Any:
            install(config, aggregator, kube, extensions)

            class APIs:
                aggregation = flow = None

                def install_documents(self) -> None:
                    raise StartError("no documents")

            return APIs()

        self.install = failing  # type: ignore[method-assign]
        self.assertEqual(await self.refused(), "no documents")
        self.assertEqual(self.calls, ["end"])
        self.install = install  # type: ignore[method-assign]
        await self.start()

    async def test_stopped_early(self) -> None:
        """A service that is stopped while it starts becomes ready and stops then."""
        self.service = service = self.make()
        service.startService()
        stopped = service.stopService()
        await service.ready
        await stopped
        await service.stopService()
        self.assertEqual(self.calls, ["cache", "hook", "pre-shutdown", "end"])
