"""Tests of L{kubetwist.registry.assembly}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission.chain import AdmissionChain
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.options import CreateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.interfaces import ICorruptObjectDeleter
from kubetwist.registry.admissioncontext import ServerAdmissionContext
from kubetwist.registry.apiextensions.store import CustomResourceDefinitionStore
from kubetwist.registry.assembly import RegistryOptions, ResourceRegistry
from kubetwist.registry.core.service.store import ServiceStore
from kubetwist.registry.generic.store import Store
from kubetwist.registry.rbac.ruleresolver import GROUP, RuleResolver
from kubetwist.registry.rbac.store import RoleStore
from kubetwist.registry.stores import Stores
from kubetwist.storage.memory import MemoryStorage
from tests.registry.storetools import Plugin
from tests.resources.server import all_kinds, definitions


class ResourceRegistryTests(SynchronousTestCase):
    """Tests of L{ResourceRegistry}."""

    def registry(self, *resources: str, **parameters: Any) -> ResourceRegistry:
        """Return a registry of some resources over an empty storage."""
        clock = Clock()
        backend = MemoryStorage(clock)
        self.successResultOf(Deferred.fromCoroutine(backend.open()))
        return ResourceRegistry(
            backend, clock, [info for info in all_kinds() if info.resource in resources], **parameters
        )

    def test_stores(self) -> None:
        """Each resource with objects has a store, some of a special class; other resources only have an entry."""
        registry = self.registry("configmaps", "services", "clusterroles", "tokenreviews", "customresourcedefinitions")
        stores = registry.stores
        self.assertIs(type(stores.get("", "configmaps")), Store)
        self.assertIsInstance(stores.get("", "services"), ServiceStore)
        self.assertIsInstance(stores.get(GROUP, "clusterroles"), RoleStore)
        self.assertIsInstance(
            stores.get("apiextensions.k8s.io", "customresourcedefinitions"), CustomResourceDefinitionStore
        )
        self.assertIsNone(stores.find("authentication.k8s.io", "tokenreviews"))
        self.assertIn(("authentication.k8s.io", "tokenreviews"), stores.infos)

    def test_shared(self) -> None:
        """All stores have the admission chain and the context of the registry."""
        registry = self.registry("configmaps", "namespaces")
        for store in registry.stores:
            self.assertIs(store.admission, registry.admission)
            self.assertIs(store.context, registry.context)

    def test_container(self) -> None:
        """The registry adds its stores to the container of the given rule resolver."""
        grants = RuleResolver(Stores())
        registry = self.registry("clusterroles", "roles", "clusterrolebindings", "rolebindings", grants=grants)
        self.assertIs(registry.stores, grants.stores)
        self.successResultOf(Deferred.fromCoroutine(registry.start()))
        self.assertEqual(grants.bindings(), [])
        registry.stop()

    def test_admission(self) -> None:
        """Plugins are constructed with the context, and run for every write."""
        plugin = Plugin()
        contexts: list[ServerAdmissionContext] = []

        def admission(context: ServerAdmissionContext) -> AdmissionChain:
            contexts.append(context)
            return AdmissionChain([plugin], context.reactor)

        registry = self.registry("namespaces", admission=admission)
        self.assertEqual(contexts, [registry.context])
        self.successResultOf(Deferred.fromCoroutine(registry.start()))
        store = registry.stores.get("", "namespaces")
        obj: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {}}
        self.successResultOf(Deferred.fromCoroutine(store.create(RequestScope(), obj, CreateOptions())))
        self.assertEqual(plugin.seen, [("CREATE", ""), ("CREATE", "")])

    def test_options(self) -> None:
        """Options set lifetimes, caches, encodings and capabilities of stores."""
        options = RegistryOptions(
            event_ttl=60.0,
            cache_sizes={"configmaps": 0},
            protobuf=True,
            features=FeatureGates(settings={"AllowUnsafeMalformedObjectDeletion": True}),
        )
        registry = self.registry(
            "configmaps", "events", "customresourcedefinitions", options=options, definitions=definitions()
        )
        maps, events = registry.stores.get("", "configmaps"), registry.stores.get("", "events")
        self.assertEqual((maps.ttl, events.ttl), (None, 60.0))
        self.assertEqual((maps.cached, events.cached), (False, True))
        self.assertIsNotNone(maps.stored_as)
        self.assertIsNone(registry.stores.get("apiextensions.k8s.io", "customresourcedefinitions").stored_as)
        self.assertTrue(ICorruptObjectDeleter.providedBy(maps))
        self.assertFalse(ICorruptObjectDeleter.providedBy(self.registry("configmaps").stores.get("", "configmaps")))
