"""Tests for L{kubetwist.registry.generic.updates} and the views of objects: status, scale, finalize."""

from __future__ import annotations

from typing import Any

from zope.interface.verify import verifyObject

from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions, DeleteOptions, GetOptions, UpdateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.interfaces import IPatcher, IUpdater
from kubetwist.registry.core.namespace.store import finalize_rules
from kubetwist.registry.generic import objects, updates
from kubetwist.registry.generic.parts import Part, WritablePart, status_rules
from kubetwist.registry.generic.scalestore import ScaleStore
from kubetwist.registry.generic.updates import parse_version, same
from tests.registry.storetools import Plugin, StoreTestCase, content
from tests.resources.server import config_map, pod


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    """A Deployment."""
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "example.org/main:1"}]},
            },
            **spec,
        },
    }


class UpdateTests(StoreTestCase):
    """PUT and PATCH."""

    def setUp(self) -> None:
        """ConfigMaps, one of them there already."""
        super().setUp()
        self.maps = self.store("configmaps")
        self.first = self.made(self.maps, config_map("a", x="1"))

    def put_error(self, obj: dict[str, Any], **options: Any) -> APIStatusError:
        """The error that a PUT fails with."""
        return self.refused(
            self.maps.update(self.scope, obj["metadata"]["name"], lambda stored: obj, UpdateOptions(**options))
        )

    def test_replaces(self) -> None:
        """A PUT without a resourceVersion replaces whatever is there, but for what identifies it."""
        events = self.events(self.maps)
        new = self.put(self.maps, config_map("a", y="2"))
        self.assertEqual(new["data"], {"y": "2"})
        for field in ("uid", "creationTimestamp"):
            self.assertEqual(new["metadata"][field], self.first["metadata"][field])
        self.assertGreater(int(new["metadata"]["resourceVersion"]), int(self.first["metadata"]["resourceVersion"]))
        self.assertEqual(events, [("MODIFIED", "a")])

    def test_newest_version(self) -> None:
        """A PUT that names a resourceVersion replaces that one only."""
        second = self.put(self.maps, {**self.first, "data": {"y": "2"}})
        error = self.put_error({**self.first, "data": {"z": "3"}})
        self.assertEqual((error.code, error.reason), (409, "Conflict"))
        self.assertTrue(error.message.endswith("please apply your changes to the latest version and try again"))
        self.assertEqual(self.put(self.maps, {**second, "data": {"z": "3"}})["data"], {"z": "3"})

    def test_unreadable_version(self) -> None:
        """A resourceVersion that is no number is a 500 without a reason, as in the reference."""
        for text in ("x", "-1", "1.0", "٣", str(1 << 64), "1" * 5000):
            obj = config_map("a")
            obj["metadata"]["resourceVersion"] = text
            error = self.put_error(obj)
            self.assertEqual((error.code, error.reason), (500, ""), text)
        self.assertEqual(parse_version(""), 0)
        self.assertEqual(parse_version(str((1 << 64) - 1)), (1 << 64) - 1)

    def test_versions_that_are_required(self) -> None:
        """Leases can only be replaced by whoever says which version."""
        leases = self.store("leases", "coordination.k8s.io")
        lease = self.made(
            leases, {"metadata": {"name": "l", "namespace": "default"}, "spec": {"leaseDurationSeconds": 9}}
        )
        del lease["metadata"]["resourceVersion"]
        error = self.refused(leases.update(self.scope, "l", lambda stored: lease, UpdateOptions()))
        self.assertEqual((error.code, error.reason), (422, "Invalid"))
        self.assertEqual(error.details, {**(error.details or {}), "kind": "leases", "name": "l"})

    def test_missing(self) -> None:
        """Most kinds are not made by PUT, and none by PATCH."""
        self.assertEqual(self.put_error(config_map("b")).code, 404)
        leases = self.store("leases", "coordination.k8s.io")
        error = self.refused(leases.update(self.scope, "l", lambda old: {}, UpdateOptions(), patching=True))
        self.assertEqual(error.code, 404)

    def test_creates(self) -> None:
        """Some kinds are made by PUT, whatever resourceVersion it names, but not under another's uid."""
        leases = self.store("leases", "coordination.k8s.io")
        lease: dict[str, Any] = {"metadata": {"name": "l", "resourceVersion": "5"}, "spec": {"leaseDurationSeconds": 9}}
        record, created = self.successResultOf(leases.update(self.scope, "l", lambda old: lease, UpdateOptions()))
        self.assertTrue(created)
        self.assertEqual(content(record)["metadata"]["namespace"], "default")
        other = {"metadata": {"name": "m", "uid": "u"}, "spec": {"leaseDurationSeconds": 9}}
        error = self.refused(leases.update(self.scope, "m", lambda old: other, UpdateOptions()))
        self.assertEqual(error.code, 409)
        self.assertIn("UID in precondition: u, UID in object meta: ", error.message)

    def test_creates_in_a_race(self) -> None:
        """A PUT that makes an object and finds it made meanwhile replaces it."""
        leases = self.store("leases", "coordination.k8s.io")

        def lease(seconds: int, **meta: str) -> dict[str, Any]:
            return {"metadata": {"name": "l", **meta}, "spec": {"leaseDurationSeconds": seconds}}

        self.meddler(leases).before.append(lambda: self.made(leases, lease(1)))

        def change(stored: Any) -> dict[str, Any]:
            return lease(2) if stored is None else lease(2, resourceVersion=stored["metadata"]["resourceVersion"])

        record, created = self.successResultOf(leases.update(self.scope, "l", change, UpdateOptions()))
        self.assertFalse(created)
        self.assertEqual(content(record)["spec"]["leaseDurationSeconds"], 2)

    def test_uid(self) -> None:
        """A PUT that names another object's uid is a conflict."""
        obj = config_map("a")
        obj["metadata"]["uid"] = "other"
        with self.assertRaises(APIStatusError) as caught:
            self.maps.check_uid(self.scope, obj, self.first)
        self.assertEqual(caught.exception.code, 409)
        self.assertIn("Key: /registry/configmaps/default/a, ", caught.exception.message)
        self.scope.dry_run = True
        with self.assertRaises(APIStatusError) as caught:
            self.maps.check_uid(self.scope, obj, self.first)
        self.assertIn("Key: /configmaps/default/a, ", caught.exception.message)
        self.maps.check_uid(self.scope, config_map("a"), self.first)

    def test_unchanged(self) -> None:
        """A write that changes nothing is not written: no event, the same resourceVersion."""
        events = self.events(self.maps)
        again = self.put(self.maps, config_map("a", x="1"))
        self.assertEqual(again["metadata"]["resourceVersion"], self.first["metadata"]["resourceVersion"])
        self.assertEqual(events, [])

    def test_what_python_takes_for_the_same(self) -> None:
        """True and 1 are different values, and so are 1 and 1.0; the order of keys is none."""
        self.assertFalse(same({"a": True}, {"a": 1}))
        self.assertFalse(same({"a": 1.0}, {"a": 1}))
        self.assertFalse(same({"a": {"b": [False]}}, {"a": {"b": [0]}}))
        self.assertTrue(same({"a": 1, "b": 2, "kind": "X", "apiVersion": "v1"}, {"b": 2, "a": 1}))

    def test_dry_run(self) -> None:
        """A dry run answers with the new state and its old resourceVersion, and writes nothing."""
        new = self.put(self.maps, config_map("a", y="2"), dry_run=True)
        self.assertEqual(new["data"], {"y": "2"})
        self.assertEqual(new["metadata"]["resourceVersion"], self.first["metadata"]["resourceVersion"])
        self.assertEqual(self.stored(self.maps, "a")["data"], {"x": "1"})

    def test_patch_is_repeated(self) -> None:
        """A patch that somebody's write overtakes is applied to what he wrote."""
        self.meddler(self.maps).before.append(
            lambda: self.changed(self.maps, "a", lambda obj: obj["data"].update(y="2"))
        )
        new = self.changed(self.maps, "a", lambda obj: obj["data"].update(z="3"))
        self.assertEqual(new["data"], {"x": "1", "y": "2", "z": "3"})

    def test_patch_of_a_version(self) -> None:
        """A patch that says a resourceVersion is not repeated on another."""
        version = self.first["metadata"]["resourceVersion"]
        self.changed(self.maps, "a", lambda obj: obj["data"].update(y="2"))

        def change(obj: Any) -> Any:
            obj["metadata"]["resourceVersion"] = version
            return obj

        error = self.refused(self.maps.update(self.scope, "a", change, UpdateOptions(), patching=True))
        self.assertEqual(error.code, 409)

    def test_put_of_a_version_is_not_repeated(self) -> None:
        """A PUT of a resourceVersion that is overtaken between its check and its write is a conflict."""
        self.meddler(self.maps).before.append(
            lambda: self.changed(self.maps, "a", lambda obj: obj["data"].update(y="2"))
        )
        error = self.put_error({**self.first, "data": {"z": "3"}})
        self.assertEqual((error.code, error.reason), (409, "Conflict"))
        self.assertEqual(self.stored(self.maps, "a")["data"], {"x": "1", "y": "2"})

    def test_deleted_meanwhile(self) -> None:
        """A patch whose object goes away finds nothing."""
        self.meddler(self.maps).before.append(lambda: self.delete(self.maps, "a"))
        error = self.refused(
            self.maps.update(self.scope, "a", lambda old: {**old, "data": {}}, UpdateOptions(), patching=True)  # type: ignore[dict-item]
        )
        self.assertEqual(error.code, 404)

    def test_gives_up(self) -> None:
        """A patch that is overtaken again and again is a conflict in the end."""
        meddler = self.meddler(self.maps)
        backend = self.server.backend

        def touch() -> None:
            self.maps.backend = backend
            self.changed(self.maps, "a", lambda obj: obj["data"].update(n=str(meddler.commits)))
            self.maps.backend = meddler  # type: ignore[assignment]

        meddler.before += [touch] * (updates.ATTEMPTS + 1)
        error = self.refused(
            self.maps.update(self.scope, "a", lambda old: {**old, "data": {}}, UpdateOptions(), patching=True)  # type: ignore[dict-item]
        )
        self.assertEqual((error.code, meddler.commits), (409, updates.ATTEMPTS))

    def test_invalid(self) -> None:
        """An update that breaks the rules changes nothing."""
        obj = config_map("a")
        obj["metadata"]["labels"] = {"no good": "x"}
        self.assertEqual(self.put_error(obj).code, 422)
        self.assertEqual(self.stored(self.maps, "a")["data"], {"x": "1"})

    def test_other_namespace(self) -> None:
        """An update can not move an object."""
        self.assertEqual(self.put_error(config_map("a", "elsewhere")).code, 400)

    def test_too_large(self) -> None:
        """What could not be written back is not stored, however small the request was that leads to it."""
        self.patch(objects, "LONGEST", 2000)
        self.made(self.maps, config_map("b", x="1" * 1000))
        error = self.refused(self.maps.create(self.scope, config_map("c", x="1" * 2000), CreateOptions()))
        self.assertEqual((error.code, error.reason), (413, "RequestEntityTooLarge"))
        self.assertEqual(self.put_error(config_map("b", x="1" * 2000)).code, 413)

    def test_large_already(self) -> None:
        """What is too large already may become smaller, and go."""
        self.made(self.maps, config_map("b", x="1" * 3000))
        self.patch(objects, "LONGEST", 2000)
        self.assertEqual(self.put(self.maps, config_map("b", x="1" * 2500))["data"], {"x": "1" * 2500})
        self.assertEqual(self.put_error(config_map("b", x="1" * 2501)).code, 413)

    def test_admission_sees_the_final_object(self) -> None:
        """
        CVE-2016-1905: a patch is admitted as the object that will be stored, as a PUT is, in the main resource and
        in a subresource.
        """
        plugin = Plugin()
        self.admit(plugin)
        seen: list[Any] = []
        plugin.act = lambda attributes: seen.append(attributes.object["data"])
        self.put(self.maps, config_map("a", y="2"))
        self.changed(self.maps, "a", lambda obj: obj["data"].update(z="3"))
        self.assertEqual(seen, [{"y": "2"}] * 2 + [{"y": "2", "z": "3"}] * 2)
        plugin.act = lambda attributes: None
        plugin.seen.clear()
        self.made(self.store("pods"), pod("p"))
        pods = self.store("pods")
        self.changed(pods, "p", lambda obj: obj["status"].update(message="x"), rules=status_rules(pods))
        self.assertEqual(plugin.seen, [("CREATE", "")] * 2 + [("UPDATE", "status")] * 2)

    def test_old_object_is_a_copy(self) -> None:
        """CVE-2021-25735: plugins see the old object as it is stored, apart from the new one."""

        def act(attributes: Any) -> None:
            self.assertEqual(attributes.old_object["data"], {"x": "1"})
            self.assertIsNot(attributes.old_object["data"], attributes.object["data"])

        self.admit(Plugin(act))
        self.changed(self.maps, "a", lambda obj: obj["data"].update(x="9"))
        self.assertEqual(self.stored(self.maps, "a")["data"], {"x": "9"})


class ViewTests(StoreTestCase):
    """Writing only a part of an object."""

    def setUp(self) -> None:
        """A Deployment."""
        super().setUp()
        self.deployments = self.store("deployments", "apps")
        self.first = self.made(self.deployments, deployment("d", replicas=2))

    def test_main_leaves_status(self) -> None:
        """The main resource does not write the status, and counts generations when the spec changes."""
        new = self.changed(
            self.deployments, "d", lambda obj: (obj["spec"].update(replicas=3), obj.update(status={"replicas": 9}))
        )
        self.assertEqual(new["metadata"]["generation"], 2)
        self.assertNotEqual(new.get("status"), {"replicas": 9})
        new = self.changed(self.deployments, "d", lambda obj: obj["metadata"].update(labels={"a": "b"}))
        self.assertEqual(new["metadata"]["generation"], 2)

    def test_status_leaves_the_rest(self) -> None:
        """The status subresource writes the status alone."""
        part = Part(self.deployments, status_rules(self.deployments))
        verifyObject(IPatcher, part)

        def change(obj: Any) -> Any:
            obj["spec"]["replicas"] = 7
            obj["metadata"]["labels"] = {"a": "b"}
            obj["status"] = {"replicas": 1}
            return obj

        record, created = self.successResultOf(part.update(self.scope, "d", change, UpdateOptions(), patching=True))
        new = content(record)
        self.assertFalse(created)
        self.assertEqual((new["spec"]["replicas"], new["status"]["replicas"]), (2, 1))
        self.assertNotIn("labels", new["metadata"])
        self.assertEqual(new["metadata"]["generation"], 1)
        self.assertEqual(content(part.get(self.scope, "d", GetOptions())), new)

    def test_status_makes_nothing(self) -> None:
        """A PUT on the status of what is not there is a 404, also for kinds that PUT makes."""
        part = Part(self.deployments, status_rules(self.deployments))
        error = self.refused(part.update(self.scope, "none", lambda old: deployment("none"), UpdateOptions()))
        self.assertEqual(error.code, 404)

    def test_scale(self) -> None:
        """A scale shows and writes the number of replicas, and the object counts a generation for it."""
        scale = ScaleStore(self.deployments, "v1")
        verifyObject(IPatcher, scale)
        shown = scale.get(self.scope, "d", GetOptions())
        self.assertEqual((shown["kind"], shown["spec"]), ("Scale", {"replicas": 2}))
        self.assertEqual(shown["status"]["selector"], "app=d")
        self.assertEqual(shown["metadata"]["resourceVersion"], self.first["metadata"]["resourceVersion"])

        def change(obj: Any) -> Any:
            return {**obj, "spec": {"replicas": 5}}

        new, created = self.successResultOf(scale.update(self.scope, "d", change, UpdateOptions()))
        self.assertEqual((new["spec"], created), ({"replicas": 5}, False))
        stored = self.stored(self.deployments, "d")
        self.assertEqual((stored["spec"]["replicas"], stored["metadata"]["generation"]), (5, 2))

    def test_scale_conflict(self) -> None:
        """A scale of another resourceVersion is a conflict; a negative one is invalid; of nothing, a 404."""
        scale = ScaleStore(self.deployments, "v1")

        def of(version: str, replicas: int) -> Any:
            meta = {"name": "d", "namespace": "default", "resourceVersion": version}
            return scale.update(
                self.scope, "d", lambda old: {"metadata": meta, "spec": {"replicas": replicas}}, UpdateOptions()
            )

        self.assertEqual(self.refused(of("1", 3)).code, 409)
        error = self.refused(of("", -1))
        self.assertEqual((error.code, (error.details or {})["kind"]), (422, "Scale"))
        missing = scale.update(self.scope, "none", lambda old: {}, UpdateOptions())
        self.assertEqual(self.refused(missing).code, 404)


class NamespaceTests(StoreTestCase):
    """The two steps in which namespaces end."""

    def setUp(self) -> None:
        """A namespace."""
        super().setUp()
        self.namespaces = self.store("namespaces")
        self.scope = RequestScope()
        self.first = self.made(self.namespaces, {"metadata": {"name": "n"}})

    def terminating(self) -> Any:
        """The namespace after a DELETE."""
        marked, gone = self.delete(self.namespaces, "n")
        self.assertFalse(gone)
        return marked

    def test_born_active(self) -> None:
        """A new namespace is active, held by the finalizer of whoever cleans it."""
        self.assertEqual(self.first["status"], {"phase": "Active"})
        self.assertEqual(self.first["spec"], {"finalizers": ["kubernetes"]})

    def test_delete(self) -> None:
        """A deleted namespace is terminating; a second DELETE changes nothing."""
        marked = self.terminating()
        self.assertEqual(marked["status"]["phase"], "Terminating")
        self.assertIn("deletionTimestamp", marked["metadata"])
        self.assertEqual(self.terminating(), marked)

    def test_finalize(self) -> None:
        """It disappears when C{finalize} takes away what held it."""
        self.terminating()
        part = WritablePart(self.namespaces, finalize_rules(self.namespaces))
        verifyObject(IUpdater, part)
        self.assertFalse(IPatcher.providedBy(part))
        events = self.events(self.namespaces)
        done = self.stored(self.namespaces, "n", "")
        done["spec"] = {}
        self.successResultOf(part.update(self.scope, "n", lambda old: done, UpdateOptions()))
        self.assertIsNone(self.stored(self.namespaces, "n", ""))
        self.assertEqual(events, [("DELETED", "n")])

    def test_finalizers_of_metadata(self) -> None:
        """Finalizers hold a namespace that nothing else holds any more."""
        self.changed(self.namespaces, "n", lambda obj: obj["metadata"].update(finalizers=["example.org/wait"]))
        self.terminating()
        part = WritablePart(self.namespaces, finalize_rules(self.namespaces))
        done = self.stored(self.namespaces, "n", "")
        done["spec"] = {}
        self.successResultOf(part.update(self.scope, "n", lambda old: done, UpdateOptions()))
        self.assertIsNotNone(self.stored(self.namespaces, "n", ""))
        self.changed(self.namespaces, "n", lambda obj: obj["metadata"].pop("finalizers"))
        self.assertIsNone(self.stored(self.namespaces, "n", ""))

    def test_held_by_its_spec(self) -> None:
        """A namespace whose last finalizer of metadata goes is still held by those of its spec."""
        self.changed(self.namespaces, "n", lambda obj: obj["metadata"].update(finalizers=["example.org/wait"]))
        self.terminating()
        self.changed(self.namespaces, "n", lambda obj: obj["metadata"].pop("finalizers"))
        self.assertIsNotNone(self.stored(self.namespaces, "n", ""))

    def test_preconditions(self) -> None:
        """A DELETE of another namespace of that name is a conflict."""
        error = self.refused(self.namespaces.delete(self.scope, "n", DeleteOptions(precondition_uid="other")))
        self.assertEqual(error.code, 409)
        self.assertIn("Precondition failed: UID in precondition: other, UID in object meta: ", error.message)
        self.assertTrue(error.message.startswith('Operation cannot be fulfilled on namespaces "n": '), error.message)
        options = DeleteOptions(precondition_resource_version="x")
        error = self.refused(self.namespaces.delete(self.scope, "n", options))
        self.assertIn("ResourceVersion in precondition: x, ResourceVersion in object meta: ", error.message)
