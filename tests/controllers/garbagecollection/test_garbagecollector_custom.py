"""
Tests for L{kubetwist.controllers.garbagecollection.garbagecollector} with custom resources, which may not be cached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.resource import GroupResource
from kubetwist.controllers.garbagecollection.garbagecollector import GarbageCollector
from kubetwist.controllers.machinery.context import ControllerContext
from kubetwist.controllers.namespaces.namespace import NamespaceController
from kubetwist.registry.customresources.crd import CustomDefinition
from kubetwist.registry.customresources.served import ServedResource
from tests.controllers.harness import ControllerTestCase

GROUP = "stable.example.com"
THINGS = GroupResource(GROUP, "things")
NAMES = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
SPEC = {
    "group": GROUP,
    "scope": "Namespaced",
    "names": NAMES,
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": SCHEMA}],
}
CRD = {"metadata": {"name": f"things.{GROUP}", "uid": "1"}, "spec": SPEC, "status": {"acceptedNames": NAMES}}


class ServedResourceNames:
    """A server of one custom resource."""

    def __init__(self, case: ControllerTestCase) -> None:
        self._followers: list[Callable[[], None]] = []
        registry = case.registry
        definition = CustomDefinition(CRD, case.definitions(), lambda crd: None)
        self.custom_names = ServedResource(
            definition, registry.custom_environment, registry.caches, on_ready=self.changed
        )
        registry.stores.custom[definition.name] = self.custom_names

    def served(self, name: str) -> ServedResource | None:
        """Return the custom resource by the name of its definition."""
        return self.custom_names if name == self.custom_names.definition.name else None

    def all_served(self) -> list[ServedResource]:
        """Return the custom resource."""
        return [self.custom_names]

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Register a listener."""
        self._followers.append(changed)
        return lambda: self._followers.remove(changed)

    def changed(self) -> None:
        """Call all listeners."""
        for follower in list(self._followers):
            follower()


class CustomTests(ControllerTestCase):
    """Custom objects as owners and dependents."""

    resources = ("namespaces", "configmaps", "events", "customresourcedefinitions")

    def open_stores(self) -> None:
        """Create the stores and a custom resource that is not cached."""
        super().open_stores()
        self.custom = ServedResourceNames(self)
        self.context = ControllerContext(self.registry, self.clock, self.config, self.custom)
        self.addCleanup(self.custom.custom_names.stop)

    def setUp(self) -> None:
        """Create the definition and a namespace."""
        super().setUp()
        parts = {"spec": SPEC, "status": CRD["status"]}
        self.make("customresourcedefinitions", f"things.{GROUP}", "", "apiextensions.k8s.io", **parts)
        self.make("namespaces", "one", spec={"finalizers": ["kubernetes"]})

    def create_custom(self, name: str, *owners: dict[str, Any]) -> dict[str, Any]:
        """Create a custom object, and return a reference to it."""
        meta = {"name": name, "namespace": "one", "ownerReferences": list(owners)}
        made = self.successResultOf(Deferred.fromCoroutine(self.user.create(GROUP, "things", {"metadata": meta})))
        uid = self.custom.custom_names.main.decode_record(made)["metadata"]["uid"]
        return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "name": name, "uid": uid, "blockOwnerDeletion": True}

    def map(self, name: str, *owners: dict[str, Any]) -> dict[str, Any]:
        """Create a config map, and return a reference to it."""
        made = self.make("configmaps", name, "one", metadata={"ownerReferences": list(owners)})
        uid = made["metadata"]["uid"]
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": True}

    def custom_names(self) -> list[str]:
        """Return the names of the custom objects."""
        return [record.name for record in self.custom.custom_names.cache.list().records]

    def test_empty_resource(self) -> None:
        """A custom resource without objects is not cached."""
        self.start(GarbageCollector, NamespaceController)
        self.remove("namespaces", "one")
        self.settle(1)
        self.assertEqual(self.names("namespaces"), [])
        self.assertFalse(self.custom.custom_names.ready)

    def test_first_object(self) -> None:
        """Custom objects that are created later are owners and dependents immediately."""
        self.start(GarbageCollector)
        top = self.map("top")
        self.map("bottom", self.create_custom("middle", top))
        self.remove("configmaps", "top", "one")
        self.settle(1)
        self.assertEqual((self.names("configmaps"), self.custom_names()), ([], []))

    def test_short_lived_owner(self) -> None:
        """Dependents of a custom object are deleted, even if it was the first one and was deleted immediately."""
        collector = self.start(GarbageCollector)
        self.map("bottom", self.create_custom("top"))
        collector.clock.advance(0)
        self.remove("things", "top", "one", GROUP)
        self.settle(1)
        self.assertEqual(self.names("configmaps"), [])

    def test_downtime(self) -> None:
        """After a restart, a deletion cascades through custom objects that are not cached."""
        for policy in ("Foreground", "Background"):
            top = self.map("top")
            self.map("bottom", self.create_custom("middle", top))
            self.remove("configmaps", "top", "one", propagation=policy)
            self.restart(GarbageCollector)
            self.settle(1)
            self.assertEqual((self.names("configmaps"), self.custom_names()), ([], []), policy)

    def test_cached_during_probe(self) -> None:
        """A custom resource that another request caches during the probe is watched."""
        self.create_custom("orphan", {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "11"})
        self.restart()
        looks: list[Deferred[None]] = []
        plain = self.memory.read_page

        async def read_page(*arguments: Any, **more: Any) -> Any:
            if more.get("limit") == 1:
                looks.append(Deferred())
                await looks[-1]
            return await plain(*arguments, **more)

        self.backend.read_page = read_page  # type: ignore[attr-defined]
        self.start(GarbageCollector)
        self.successResultOf(self.custom.custom_names.start())
        self.settle(0.2)
        [look] = looks
        look.callback(None)
        self.settle(1)
        self.assertEqual(self.custom_names(), [])

    def test_namespace(self) -> None:
        """Deleting a namespace removes custom objects that are not cached."""
        self.create_custom("a")
        self.restart(NamespaceController)
        self.remove("namespaces", "one")
        self.settle(1)
        self.assertEqual((self.names("namespaces"), self.custom_names()), ([], []))
