"""Tests of L{kubetwist.registry.generic.updates}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import ensureDeferred

from kubetwist.api.changes import ReadOnlyChange
from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import CreateOptions, UpdateOptions
from kubetwist.registry.generic import objects, updates
from kubetwist.registry.generic.parts import status_rules
from kubetwist.registry.generic.updates import equal_objects, parse_version
from tests.registry.storetools import Plugin, StoreTestCase, content
from tests.resources.server import config_map, pod


class UpdateTests(StoreTestCase):
    """Tests of PUT and PATCH."""

    def setUp(self) -> None:
        """Create a ConfigMap."""
        super().setUp()
        self.maps = self.store("configmaps")
        self.first = self.made(self.maps, config_map("a", x="1"))

    def put_error(self, obj: dict[str, Any], **options: Any) -> APIStatusError:
        """Return the error of a PUT."""
        return self.refused(
            self.maps.update(self.scope, obj["metadata"]["name"], lambda stored: obj, UpdateOptions(**options))
        )

    def test_replaces(self) -> None:
        """A PUT without a resourceVersion replaces any state, except for the identity."""
        events = self.events(self.maps)
        new = self.put(self.maps, config_map("a", y="2"))
        self.assertEqual(new["data"], {"y": "2"})
        for field in ("uid", "creationTimestamp"):
            self.assertEqual(new["metadata"][field], self.first["metadata"][field])
        self.assertGreater(int(new["metadata"]["resourceVersion"]), int(self.first["metadata"]["resourceVersion"]))
        self.assertEqual(events, [("MODIFIED", "a")])

    def test_copies(self) -> None:
        """A change may modify the object that it gets, or promise not to."""

        def modified(stored: dict[str, Any]) -> dict[str, Any]:
            stored["data"]["x"] = "2"
            return stored

        def replaced(stored: Any) -> dict[str, Any]:
            return {**stored, "data": {"x": "3"}}

        for change, value in ((modified, "2"), (ReadOnlyChange(replaced), "3")):
            events = self.events(self.maps)
            self.successResultOf(
                ensureDeferred(self.maps.update(self.scope, "a", change, UpdateOptions(), patching=True))
            )
            self.assertEqual((events, self.maps.get_copy("default", "a")["data"]), ([("MODIFIED", "a")], {"x": value}))

    def test_newest_version(self) -> None:
        """A PUT with a resourceVersion replaces only that version."""
        second = self.put(self.maps, {**self.first, "data": {"y": "2"}})
        error = self.put_error({**self.first, "data": {"z": "3"}})
        self.assertEqual((error.code, error.reason), (409, "Conflict"))
        self.assertTrue(error.message.endswith("please apply your changes to the latest version and try again"))
        self.assertEqual(self.put(self.maps, {**second, "data": {"z": "3"}})["data"], {"z": "3"})

    def test_unreadable_version(self) -> None:
        """A malformed resourceVersion is a 500 without a reason, as in the reference."""
        for text in ("x", "-1", "1.0", "٣", str(1 << 64), "1" * 5000):
            obj = config_map("a")
            obj["metadata"]["resourceVersion"] = text
            error = self.put_error(obj)
            self.assertEqual((error.code, error.reason), (500, ""), text)
        self.assertEqual(parse_version(""), 0)
        self.assertEqual(parse_version(str((1 << 64) - 1)), (1 << 64) - 1)

    def test_versions_that_are_required(self) -> None:
        """Leases can only be replaced with a resourceVersion."""
        leases = self.store("leases", "coordination.k8s.io")
        lease = self.made(
            leases, {"metadata": {"name": "l", "namespace": "default"}, "spec": {"leaseDurationSeconds": 9}}
        )
        del lease["metadata"]["resourceVersion"]
        error = self.refused(leases.update(self.scope, "l", lambda stored: lease, UpdateOptions()))
        self.assertEqual((error.code, error.reason), (422, "Invalid"))
        self.assertEqual(error.details, {**(error.details or {}), "kind": "leases", "name": "l"})

    def test_missing(self) -> None:
        """Most kinds are not created by PUT, and none by PATCH."""
        self.assertEqual(self.put_error(config_map("b")).code, 404)
        leases = self.store("leases", "coordination.k8s.io")
        error = self.refused(leases.update(self.scope, "l", lambda old: {}, UpdateOptions(), patching=True))
        self.assertEqual(error.code, 404)

    def test_creates(self) -> None:
        """Some kinds are created by PUT with any resourceVersion, but not with a uid."""
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
        """A PUT that creates an object that exists by then replaces it."""
        leases = self.store("leases", "coordination.k8s.io")

        def lease(seconds: int, **meta: str) -> dict[str, Any]:
            return {"metadata": {"name": "l", **meta}, "spec": {"leaseDurationSeconds": seconds}}

        self.racing_backend(leases).before.append(lambda: self.made(leases, lease(1)))

        def change(stored: Any) -> dict[str, Any]:
            return lease(2) if stored is None else lease(2, resourceVersion=stored["metadata"]["resourceVersion"])

        record, created = self.successResultOf(leases.update(self.scope, "l", change, UpdateOptions()))
        self.assertFalse(created)
        self.assertEqual(content(record)["spec"]["leaseDurationSeconds"], 2)

    def test_uid(self) -> None:
        """A PUT with another uid is a conflict."""
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
        """An update without changes is not written: there is no event, and the resourceVersion stays."""
        events = self.events(self.maps)
        again = self.put(self.maps, config_map("a", x="1"))
        self.assertEqual(again["metadata"]["resourceVersion"], self.first["metadata"]["resourceVersion"])
        self.assertEqual(events, [])

    def test_equal_objects_compares_types(self) -> None:
        """True and 1 differ, and so do 1 and 1.0; the order of keys is ignored."""
        self.assertFalse(equal_objects({"a": True}, {"a": 1}))
        self.assertFalse(equal_objects({"a": 1.0}, {"a": 1}))
        self.assertFalse(equal_objects({"a": {"b": [False]}}, {"a": {"b": [0]}}))
        self.assertTrue(equal_objects({"a": 1, "b": 2, "kind": "X", "apiVersion": "v1"}, {"b": 2, "a": 1}))

    def test_dry_run(self) -> None:
        """A dry run returns the new state with the old resourceVersion, and writes nothing."""
        new = self.put(self.maps, config_map("a", y="2"), dry_run=True)
        self.assertEqual(new["data"], {"y": "2"})
        self.assertEqual(new["metadata"]["resourceVersion"], self.first["metadata"]["resourceVersion"])
        self.assertEqual(self.stored(self.maps, "a")["data"], {"x": "1"})

    def test_patch_is_repeated(self) -> None:
        """A patch with a concurrent write is applied to the new state."""
        self.racing_backend(self.maps).before.append(
            lambda: self.changed(self.maps, "a", lambda obj: obj["data"].update(y="2"))
        )
        new = self.changed(self.maps, "a", lambda obj: obj["data"].update(z="3"))
        self.assertEqual(new["data"], {"x": "1", "y": "2", "z": "3"})

    def test_patch_of_a_version(self) -> None:
        """A patch with a resourceVersion is not retried with another."""
        version = self.first["metadata"]["resourceVersion"]
        self.changed(self.maps, "a", lambda obj: obj["data"].update(y="2"))

        def change(obj: Any) -> Any:
            obj["metadata"]["resourceVersion"] = version
            return obj

        error = self.refused(self.maps.update(self.scope, "a", change, UpdateOptions(), patching=True))
        self.assertEqual(error.code, 409)

    def test_put_of_a_version_is_not_repeated(self) -> None:
        """A PUT with a resourceVersion that a concurrent write replaces is a conflict."""
        self.racing_backend(self.maps).before.append(
            lambda: self.changed(self.maps, "a", lambda obj: obj["data"].update(y="2"))
        )
        error = self.put_error({**self.first, "data": {"z": "3"}})
        self.assertEqual((error.code, error.reason), (409, "Conflict"))
        self.assertEqual(self.stored(self.maps, "a")["data"], {"x": "1", "y": "2"})

    def test_concurrent_deletion(self) -> None:
        """A patch of an object that is concurrently deleted is a 404."""
        self.racing_backend(self.maps).before.append(lambda: self.delete(self.maps, "a"))
        error = self.refused(
            self.maps.update(self.scope, "a", lambda old: {**old, "data": {}}, UpdateOptions(), patching=True)  # type: ignore[dict-item]
        )
        self.assertEqual(error.code, 404)

    def test_gives_up(self) -> None:
        """A patch with a conflict in each attempt is a conflict."""
        racing_backend = self.racing_backend(self.maps)
        backend = self.server.backend

        def touch() -> None:
            self.maps.backend = backend
            self.changed(self.maps, "a", lambda obj: obj["data"].update(n=str(racing_backend.commits)))
            self.maps.backend = racing_backend  # type: ignore[assignment]

        racing_backend.before += [touch] * (updates.ATTEMPTS + 1)
        error = self.refused(
            self.maps.update(self.scope, "a", lambda old: {**old, "data": {}}, UpdateOptions(), patching=True)  # type: ignore[dict-item]
        )
        self.assertEqual((error.code, racing_backend.commits), (409, updates.ATTEMPTS))

    def test_invalid(self) -> None:
        """An invalid update changes nothing."""
        obj = config_map("a")
        obj["metadata"]["labels"] = {"no good": "x"}
        self.assertEqual(self.put_error(obj).code, 422)
        self.assertEqual(self.stored(self.maps, "a")["data"], {"x": "1"})

    def test_other_namespace(self) -> None:
        """An update cannot move an object to another namespace."""
        self.assertEqual(self.put_error(config_map("a", "elsewhere")).code, 400)

    def test_too_large(self) -> None:
        """An object that is larger than a request can be is not stored."""
        self.patch(objects, "MAX_OBJECT_SIZE", 2000)
        self.made(self.maps, config_map("b", x="1" * 1000))
        error = self.refused(self.maps.create(self.scope, config_map("c", x="1" * 2000), CreateOptions()))
        self.assertEqual((error.code, error.reason), (413, "RequestEntityTooLarge"))
        self.assertEqual(self.put_error(config_map("b", x="1" * 2000)).code, 413)

    def test_large_already(self) -> None:
        """A stored object that is too large can become smaller, and can be deleted."""
        self.made(self.maps, config_map("b", x="1" * 3000))
        self.patch(objects, "MAX_OBJECT_SIZE", 2000)
        self.assertEqual(self.put(self.maps, config_map("b", x="1" * 2500))["data"], {"x": "1" * 2500})
        self.assertEqual(self.put_error(config_map("b", x="1" * 2501)).code, 413)

    def test_admission_sees_the_final_object(self) -> None:
        """CVE-2016-1905: a patch is admitted as the resulting object, in the main resource and in subresources."""
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
        """CVE-2021-25735: plugins get the old object as a copy of the stored one."""

        def act(attributes: Any) -> None:
            self.assertEqual(attributes.old_object["data"], {"x": "1"})
            self.assertIsNot(attributes.old_object["data"], attributes.object["data"])

        self.admit(Plugin(act))
        self.changed(self.maps, "a", lambda obj: obj["data"].update(x="9"))
        self.assertEqual(self.stored(self.maps, "a")["data"], {"x": "9"})
