"""Tests of L{kubetwist.registry.generic.store}: creation, and shared caches."""

from __future__ import annotations

from typing import Any

import orjson

from zope.interface.verify import verifyObject

from kubetwist.api.errors import APIStatusError
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.options import CreateOptions, GetOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.api.resource import GroupResource
from kubetwist.interfaces import ICollectionDeleter, ICreator, IGetter, IGracefulDeleter, ILister, IPatcher, IWatcher
from kubetwist.registry.generic import creation
from kubetwist.storage.errors import StorageUnavailable
from tests.registry.storetools import Plugin, StoreTestCase, content
from tests.resources.server import config_map, pod


class CreateTests(StoreTestCase):
    """Tests of POST."""

    def setUp(self) -> None:
        """Create the store of ConfigMaps."""
        super().setUp()
        self.maps = self.store("configmaps")

    def test_interfaces(self) -> None:
        """A store provides all interfaces; namespaces have no collection deletion."""
        everything = (ICreator, IGetter, ILister, IWatcher, IPatcher, IGracefulDeleter, ICollectionDeleter)
        for interface in everything:
            verifyObject(interface, self.maps)
        self.assertFalse(ICollectionDeleter.providedBy(self.store("namespaces")))

    def test_identity(self) -> None:
        """The server sets the creation time and the uid; values of clients are dropped."""
        claims = {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "selfLink": "/x", "generation": 0}
        claims |= {"deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}
        obj = config_map("a")
        obj["metadata"] |= claims
        meta = self.made(self.maps, obj)["metadata"]
        self.assertEqual(set(meta), {"name", "namespace", "uid", "creationTimestamp", "resourceVersion"})
        self.assertNotEqual(meta["uid"], "mine")
        self.assertNotEqual(meta["creationTimestamp"], "2001-01-01T00:00:00Z")

    def test_claimed_generation(self) -> None:
        """Kinds without generations keep the generation of the client."""
        obj = config_map("a")
        obj["metadata"]["generation"] = 7
        self.assertEqual(self.made(self.maps, obj)["metadata"]["generation"], 7)

    def test_odd_revision(self) -> None:
        """A malformed resourceVersion is ignored."""
        for number, version in enumerate(("0", "x", "1e3")):
            obj = config_map(f"a{number}")
            obj["metadata"]["resourceVersion"] = version
            self.made(self.maps, obj)

    def test_revision(self) -> None:
        """The resourceVersion is the revision of the write; a body with one is rejected."""
        made = self.made(self.maps, config_map("a"))
        self.assertEqual(made["metadata"]["resourceVersion"], str(self.server.backend.revision))
        obj = config_map("b")
        obj["metadata"]["resourceVersion"] = "7"
        error = self.refused(self.maps.create(self.scope, obj, CreateOptions()))
        self.assertEqual(
            (error.code, error.message), (500, "resourceVersion should not be set on objects to be created")
        )
        obj["metadata"]["resourceVersion"] = "0"
        self.assertEqual(self.made(self.maps, obj)["metadata"]["name"], "b")

    def test_kept_generation(self) -> None:
        """Kinds without generations keep a valid generation of the client."""
        obj, below = config_map("a"), config_map("b")
        obj["metadata"]["generation"], below["metadata"]["generation"] = 7, -1
        self.assertEqual(self.made(self.maps, obj)["metadata"]["generation"], 7)
        error = self.refused(self.maps.create(self.scope, below, CreateOptions()))
        self.assertIn("metadata.generation: Invalid value: -1", error.message)

    def test_generation(self) -> None:
        """Kinds with generations start with 1."""
        made = self.made(self.store("pods"), pod("a"))
        self.assertEqual(made["metadata"]["generation"], 1)

    def test_stored_bytes(self) -> None:
        """A stored value begins with kind and apiVersion and has no resourceVersion, as in kube-apiserver."""
        self.made(self.maps, config_map("a", x="1"))
        stored = self.successResultOf(self.server.backend.read("/registry/configmaps/default/a"))
        obj = orjson.loads(stored.value)
        self.assertEqual(list(obj)[:2], ["kind", "apiVersion"])
        self.assertNotIn("resourceVersion", obj["metadata"])
        self.assertEqual(obj["data"], {"x": "1"})

    def test_namespace(self) -> None:
        """An object gets the namespace of the path and must not name another; a cluster-scoped one has none."""
        obj = config_map("a")
        del obj["metadata"]["namespace"]
        self.assertEqual(self.made(self.maps, obj)["metadata"]["namespace"], "default")
        error = self.refused(self.maps.create(self.scope, config_map("b", "elsewhere"), CreateOptions()))
        self.assertEqual(error.code, 400)
        made = self.made(self.store("namespaces"), {"metadata": {"name": "a", "namespace": "b"}}, RequestScope())
        self.assertNotIn("namespace", made["metadata"])

    def test_already_exists(self) -> None:
        """Creating an existing name is a conflict, and the message mentions a pending deletion."""
        obj = config_map("a")
        obj["metadata"]["finalizers"] = ["example.org/wait"]
        self.made(self.maps, obj)
        error = self.refused(self.maps.create(self.scope, config_map("a"), CreateOptions()))
        self.assertEqual((error.code, error.reason), (409, "AlreadyExists"))
        self.assertEqual(error.message, 'configmaps "a" already exists')
        self.delete(self.maps, "a")
        error = self.refused(self.maps.create(self.scope, config_map("a"), CreateOptions()))
        self.assertEqual(error.message, 'object is being deleted: configmaps "a" already exists')

    def test_invalid(self) -> None:
        """An invalid object is not stored, and all errors are reported."""
        error = self.refused(self.maps.create(self.scope, config_map("Big_Name"), CreateOptions()))
        self.assertEqual((error.code, error.reason), (422, "Invalid"))
        self.assertEqual(self.server.backend.revision, 1)

    def test_generate_name(self) -> None:
        """A name is generated from generateName, and again if it exists."""
        names = iter(["a-1", "a-1", "a-1", "a-2"])
        self.patch(creation, "generate_name", lambda base: next(names))
        for expected in ("a-1", "a-2"):
            made = self.made(self.maps, {"metadata": {"generateName": "a-"}})
            self.assertEqual(made["metadata"]["name"], expected)
            self.assertEqual(made["metadata"]["generateName"], "a-")

    def test_generate_name_with_labels(self) -> None:
        """Values that are derived from a generated name are derived again if the first name is in use."""
        jobs = self.store("jobs", "batch")
        names = iter(("a-1", "a-1", "a-2"))
        self.patch(creation, "generate_name", lambda base: next(names))
        spec = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
        for name in ("a-1", "a-2"):
            job = {"metadata": {"generateName": "a-"}, "spec": {"template": {"spec": spec}}}
            jobs.strategy.default(job)
            made = self.made(jobs, job)
            self.assertEqual(made["spec"]["template"]["metadata"]["labels"]["job-name"], name)

    def test_generate_name_gives_up(self) -> None:
        """If all generated names exist, the client is asked to retry."""
        self.patch(creation, "generate_name", lambda base: "a-1")
        self.made(self.maps, {"metadata": {"generateName": "a-"}})
        error = self.refused(self.maps.create(self.scope, {"metadata": {"generateName": "a-"}}, CreateOptions()))
        self.assertEqual((error.code, error.reason, error.retry_after), (409, "AlreadyExists", 1))
        self.assertIn("was not able to generate a unique name", error.message)

    def test_generate_name_once(self) -> None:
        """A single name is generated if the gate is disabled, as in 1.31 on request."""
        names = iter(("a-1", "a-1", "a-2"))
        self.patch(creation, "generate_name", lambda base: next(names))
        self.maps.strategy = self.maps.strategy.with_features(FeatureGates((1, 31), {"RetryGenerateName": False}))
        self.made(self.maps, {"metadata": {"generateName": "a-"}})
        error = self.refused(self.maps.create(self.scope, {"metadata": {"generateName": "a-"}}, CreateOptions()))
        self.assertEqual(error.code, 409)
        self.assertEqual(next(names), "a-2")

    def test_name_wins(self) -> None:
        """generateName has no effect if there is a name, and is kept."""
        made = self.made(self.maps, {"metadata": {"name": "b", "generateName": "a-"}})
        self.assertEqual((made["metadata"]["name"], made["metadata"]["generateName"]), ("b", "a-"))

    def test_dry_run(self) -> None:
        """A dry run returns the result of the write without writing; an existing name is an error, too."""
        events = self.events(self.maps)
        made = self.made(self.maps, config_map("a"), dry_run=True)
        self.assertIn("uid", made["metadata"])
        self.assertNotIn("resourceVersion", made["metadata"])
        self.assertIsNone(self.stored(self.maps, "a"))
        self.made(self.maps, config_map("a"))
        error = self.refused(self.maps.create(self.scope, config_map("a"), CreateOptions(dry_run=True)))
        self.assertEqual(error.reason, "AlreadyExists")
        self.assertEqual(events, [("ADDED", "a")])

    def test_repeated_owners(self) -> None:
        """A duplicate owner is removed, with a warning that names it."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-1"}
        obj = config_map("a")
        obj["metadata"]["ownerReferences"] = [owner, {**owner, "uid": "u-2"}, dict(owner)]
        made = self.made(self.maps, obj)
        self.assertEqual([one["uid"] for one in made["metadata"]["ownerReferences"]], ["u-1", "u-2"])
        self.assertEqual(len(self.warnings), 1)
        self.assertTrue(self.warnings[0].endswith("duplicate UID(s) observed: u-1"))

    def test_admission(self) -> None:
        """Mutating plugins get the object before validation, validating plugins the object to be stored."""

        def act(attributes: Any) -> None:
            if plugin.seen == [("CREATE", "")]:
                self.assertNotIn("uid", attributes.object["metadata"])
                attributes.object["data"] = {"by": "plugin"}
            else:
                self.assertEqual(attributes.object["data"], {"by": "plugin"})
                self.assertIn("uid", attributes.object["metadata"])

        plugin = Plugin(act)
        self.admit(plugin)
        self.assertEqual(self.made(self.maps, config_map("a"))["data"], {"by": "plugin"})
        self.assertEqual(plugin.seen, [("CREATE", ""), ("CREATE", "")])

    def test_refused_by_admission(self) -> None:
        """An object that a plugin rejects is not stored."""

        def act(attributes: Any) -> None:
            raise APIStatusError.forbidden(GroupResource("", "configmaps"), "a", "no")

        self.admit(Plugin(act))
        error = self.refused(self.maps.create(self.scope, config_map("a"), CreateOptions()))
        self.assertEqual(error.code, 403)
        self.assertIsNone(self.stored(self.maps, "a"))

    def test_storage_is_lost(self) -> None:
        """A storage error of a write is raised to the caller."""
        self.successResultOf(self.server.backend.close())
        self.failureResultOf(self.maps.create(self.scope, config_map("a"), CreateOptions()), StorageUnavailable)


class SharedCacheTests(StoreTestCase):
    """Tests of resources that share a storage prefix."""

    resources = ("events",)

    def test_two_groups(self) -> None:
        """An event of one group is an event of the other."""
        old, new = self.store("events"), self.store("events", "events.k8s.io")
        event = {
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        }
        made = self.made(old, event)
        found = content(new.get(self.scope, "e", GetOptions()))
        self.assertEqual(found["metadata"]["uid"], made["metadata"]["uid"])

    def test_ttl(self) -> None:
        """Events expire."""
        store = self.store("events")
        event = {
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        }
        self.made(store, event)
        self.server.clock.advance(3599)
        self.assertIsNotNone(self.stored(store, "e"))
        self.server.clock.advance(2)
        self.assertIsNone(self.stored(store, "e"))
