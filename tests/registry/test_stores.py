"""Tests of L{kubetwist.registry.stores}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.stores import Stores
from tests.registry.storetools import StoreTestCase
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
