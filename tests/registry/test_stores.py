"""Tests of L{kubetwist.registry.stores}."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.objects import FILL_TIMEOUT
from kubetwist.registry.stores import Stores
from tests.http.harness import Answer
from tests.registry.filledstorage import FilledStorage
from tests.registry.storetools import StoreTestCase
from tests.resources import server
from tests.resources.customserver import KITES, CustomServer, definition
from tests.resources.server import all_kinds


class ContainerTests(StoreTestCase):
    """Tests of built-in resources in the container."""

    resources = ("configmaps", "namespaces")

    def test_empty(self) -> None:
        """A container without stores finds nothing, and can be started and stopped."""
        stores = Stores()
        self.assertIsNone(stores.find("", "pods"))
        self.assertRaises(KeyError, stores.get, "", "pods")
        self.assertEqual(
            (stores.get_copy("", "pods", "a", "b"), stores.get_decoded("", "pods", "a", "b")), (None, None)
        )
        self.assertEqual((stores.list_copies("", "pods"), stores.list_decoded("", "pods")), ([], []))
        self.assertEqual((stores.sizes("", "pods"), stores.cache("", "pods")), (None, None))
        self.assertFalse(self.successResultOf(Deferred.fromCoroutine(stores.ensure_cached("", "pods"))))
        self.successResultOf(Deferred.fromCoroutine(stores.start()))
        stores.stop()

    def test_release_memory(self) -> None:
        """The joined forms of lists are dropped when memory is short."""
        stores = self.stores
        cache = stores.get("", "configmaps").cache
        self.made(self.store("configmaps"), {"metadata": {"name": "a"}})
        (block,) = cache.list().blocks
        for _ in range(2):
            admitted = block.admits("form", 5)
        self.assertTrue(admitted)
        block.keep("form", b"12345", 5)
        stores.release_memory()
        self.assertEqual((block.get("form"), len(cache.forms)), (None, 0))

    def test_objects(self) -> None:
        """Copies can be modified; decoded objects are shared and frozen."""
        self.made(self.store("configmaps"), {"metadata": {"name": "a"}, "data": {"k": "v"}})
        copy: Any = self.stores.get_copy("", "configmaps", "default", "a")
        copy["data"]["k"] = "other"
        view: Any = self.stores.get_decoded("", "configmaps", "default", "a")
        self.assertEqual(view["data"], {"k": "v"})
        self.assertIs(self.stores.get_decoded("", "configmaps", "default", "a"), view)
        self.assertEqual(self.stores.list_decoded("", "configmaps", "other"), [])
        self.assertEqual([load()["data"] for load in self.stores.list_lazy("", "configmaps")], [{"k": "v"}])

    def test_without_objects(self) -> None:
        """A resource without objects has an entry, but no store."""
        (info,) = (info for info in all_kinds() if info.resource == "tokenreviews")
        self.stores.add(info, None)
        self.assertNotIn(info, [store.info for store in self.stores])
        self.assertIs(self.stores.infos[info.group, info.resource], info)


class CustomTests(SynchronousTestCase):
    """Tests of custom resources in the container."""

    def test_loaded(self) -> None:
        """A custom resource is found once its cache is filled; any_stored works before."""
        server = CustomServer()
        stores = server.stores
        server.define(server.client(), definition())
        served = stores.custom["kites.example.com"]
        info = served.definition.info
        self.assertEqual((stores.find_cached("example.com", "kites"), served.ready), (None, False))
        self.assertFalse(self.successResultOf(Deferred.fromCoroutine(stores.any_stored(info))))
        self.assertTrue(self.successResultOf(Deferred.fromCoroutine(stores.ensure_cached("example.com", "kites"))))
        self.assertIs(stores.find_cached("example.com", "kites"), served.main)
        kite = {"apiVersion": "example.com/v1", "kind": "Kite", "metadata": {"name": "a"}}
        self.assertEqual(server.client().ask("POST", KITES, kite)[0], 201)
        self.assertTrue(self.successResultOf(Deferred.fromCoroutine(stores.any_stored(info, "default"))))
        self.assertFalse(self.successResultOf(Deferred.fromCoroutine(stores.any_stored(info, "other"))))
        self.assertEqual(stores.resources_for_kind("example.com", "v1", "Kite"), [("kites", True)])
        server.custom.remove("kites.example.com")
        self.assertIsNone(stores.find_cached("example.com", "kites"))
        self.assertFalse(self.successResultOf(Deferred.fromCoroutine(stores.any_stored(info))))


class OnDemandTests(SynchronousTestCase):
    """Tests of built-in resources whose caches are filled on demand."""

    path = "/api/v1/namespaces/a/configmaps"

    def setUp(self) -> None:
        """Start a server."""
        self.patch(server, "MemoryStorage", FilledStorage)
        self.server = server.Server("configmaps", "events")
        self.addCleanup(self.server.registry.stop)
        self.fill = self.server.stores.get("", "configmaps").cache.on_demand
        self.assertTrue(self.fill.pending)
        assert isinstance(self.server.backend, FilledStorage)
        self.server.backend.pages = self.pages = Deferred()

    def finish_fill(self) -> None:
        """Let the storage return pages."""
        self.assertTrue(self.fill.pending)
        self.pages.callback(None)
        self.server.clock.advance(0)
        self.assertFalse(self.fill.pending)

    def answer_after_fill(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Return the answer to a request that fills the cache."""
        client = self.server.client()
        content = b"" if body is None else orjson.dumps(body)
        fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n{fields}\r\n"
        client.send(head.encode() + content)
        self.assertEqual(client.transport.value(), b"")
        self.finish_fill()
        (answer,) = client.answers()
        return answer

    def test_small(self) -> None:
        """A resource with few objects is cached at the start."""
        self.assertTrue(self.server.stores.get("", "events").cache.ready)

    def test_get(self) -> None:
        """An object is read from the storage, and the fill begins."""
        code, found = self.server.client().ask("GET", f"{self.path}/c0007")
        self.assertEqual((code, found["metadata"]["name"], self.fill.pending), (200, "c0007", True))
        self.assertEqual(self.server.client().ask("GET", f"{self.path}/none")[0], 404)
        self.finish_fill()
        self.assertEqual(self.server.client().ask("GET", f"{self.path}/c0007"), (200, found))

    def test_get_fresh(self) -> None:
        """A read at a resourceVersion waits until the cache is filled."""
        answer = self.answer_after_fill("GET", f"{self.path}/c0007?resourceVersion=3")
        self.assertEqual((answer.code, orjson.loads(answer.body)["metadata"]["name"]), (200, "c0007"))

    def test_list(self) -> None:
        """A list waits until the cache is filled, and is complete."""
        answer = self.answer_after_fill("GET", self.path)
        self.assertEqual((answer.code, len(orjson.loads(answer.body)["items"])), (200, FilledStorage.count))

    def test_writes(self) -> None:
        """Writes wait until the cache is filled."""
        merge = {"Content_Type": "application/merge-patch+json"}
        requests: tuple[tuple[str, str, Any, dict[str, str], int], ...] = (
            ("POST", self.path, {"metadata": {"name": "new"}}, {"Content_Type": "application/json"}, 201),
            ("POST", self.path, {"metadata": {"name": "c0003"}}, {"Content_Type": "application/json"}, 409),
            ("PATCH", f"{self.path}/c0003", {"data": {"k": "v"}}, merge, 200),
            ("DELETE", f"{self.path}/c0003", None, {}, 200),
            ("DELETE", f"{self.path}?labelSelector=none", None, {}, 200),
        )
        for method, path, body, headers, code in requests:
            with self.subTest(method=method, path=path):
                self.setUp()
                self.assertEqual(self.answer_after_fill(method, path, body, **headers).code, code)

    def test_watch(self) -> None:
        """A watch waits until the cache is filled, and begins with all objects."""
        client = self.server.client()
        self.assertEqual(client.begin(f"{self.path}?watch=1"), b"")
        self.finish_fill()
        received = b""
        while data := client.taken():
            received += data
            self.server.clock.advance(0)
        self.assertEqual(received.count(b'"type":"ADDED"'), FilledStorage.count)
        client.disconnect()

    def test_long_fill(self) -> None:
        """A request that has waited for a while is answered 429, and succeeds when it is repeated after the fill."""
        client = self.server.client()
        client.send(f"GET {self.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.server.clock.advance(FILL_TIMEOUT)
        (answer,) = client.answers()
        status = orjson.loads(answer.body)
        self.assertEqual((answer.code, status["message"]), (429, "storage is (re)initializing"))
        self.assertEqual(status["details"], {"retryAfterSeconds": 1})
        self.finish_fill()
        self.assertEqual(self.server.client().ask("GET", self.path)[0], 200)

    def test_admission(self) -> None:
        """Code of admission that announces its reads of a resource waits until it is cached."""
        cached = Deferred.fromCoroutine(self.server.stores.ensure_cached("", "configmaps"))
        self.assertNoResult(cached)
        self.finish_fill()
        self.assertTrue(self.successResultOf(cached))
        self.assertEqual(len(self.server.stores.list_decoded("", "configmaps")), FilledStorage.count)
