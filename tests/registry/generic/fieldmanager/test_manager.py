"""Tests of L{kubetwist.registry.generic.fieldmanager.manager}, with L{lastapplied}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.resource import GroupVersion, GroupVersionKind, JSONObject
from kubetwist.registry.generic.fieldmanager.manager import (
    BuiltInVersionConverter,
    built_in_field_manager,
    ignore_managed_fields_timestamps,
)
from kubetwist.registry.kinds import kinds_for
from tests.registry.generic.fieldmanager.objects import (
    CONFIG_MAPS,
    LATER,
    NOW,
    config_map,
    copied,
    created,
    endpoint,
    owners,
    stored,
    updated,
)
from tests.schema.release import definitions


def times(obj: JSONObject) -> dict[str, Any]:
    """Return the time of each manager."""
    return {entry["manager"]: entry.get("time") for entry in obj["metadata"].get("managedFields", ())}


class UpdateTests(SynchronousTestCase):
    """Tests of writes other than apply."""

    def test_create(self) -> None:
        """The creator of an object owns its fields, except those of its identity."""
        obj = created({**config_map(a="1"), "metadata": {"name": "x", "namespace": "y", "labels": {"l": "1"}}})
        expected = {
            "manager": "maker",
            "operation": "Update",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:data": {".": {}, "f:a": {}},
                "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            },
        }
        self.assertEqual(obj["metadata"]["managedFields"], [expected])

    def test_zero_values(self) -> None:
        """Fields that every object of the kind has have no owner until they change."""
        codec = definitions().type_for(GroupVersionKind("apps", "v1", "Deployment"))
        obj = codec.decode(
            {"metadata": {"name": "x"}, "spec": {"replicas": 1, "template": {"spec": {"containers": []}}}}, []
        )
        found = created(obj, fields=endpoint("deployments"))
        self.assertEqual(owners(found), {"maker": {"f:spec": {"f:replicas": {}}}})

    def test_unnamed(self) -> None:
        """A client without a name has the manager name unknown."""
        self.assertEqual(list(owners(created(config_map(a="1"), manager=""))), ["unknown"])

    def test_change(self) -> None:
        """A changed field gets a new owner; other fields keep theirs."""
        live = created(config_map(a="1", b="1"))
        obj = updated(live, data={"a": "2", "b": "1", "c": "1"})
        self.assertEqual(
            owners(obj),
            {"maker": {"f:data": {".": {}, "f:b": {}}}, "other": {"f:data": {"f:a": {}, "f:c": {}}}},
        )
        self.assertEqual(times(obj), {"maker": NOW, "other": LATER})

    def test_no_change(self) -> None:
        """Without changes the entries stay the same, whether or not the client sent them."""
        live = created(config_map(a="1"))
        sent = copied(live)
        CONFIG_MAPS.update(live, sent, "other", LATER)
        self.assertEqual(sent, live)
        del sent["metadata"]["managedFields"]
        CONFIG_MAPS.update(live, sent, "other", LATER)
        self.assertEqual(sent, live)

    def test_live_stays(self) -> None:
        """The live object is not modified."""
        live = created(config_map(a="1", b="1"))
        before = copied(live)
        updated(live, data={"a": "2"})
        self.assertEqual(live, before)

    def test_reset(self) -> None:
        """An update can reset the entries; subsequent updates record nothing."""
        for sent in ([], [{}]):
            live = created(config_map(a="1"))
            obj = copied(live)
            obj["metadata"]["managedFields"] = sent
            CONFIG_MAPS.update(live, obj, "other", LATER)
            self.assertNotIn("managedFields", obj["metadata"])
            self.assertEqual(owners(updated(stored(obj), data={"b": "1"})), {})

    def test_create_ignores_reset(self) -> None:
        """A reset in a new object is ignored."""
        obj = config_map(a="1")
        obj["metadata"]["managedFields"] = [{}]
        self.assertEqual(list(owners(created(obj))), ["maker"])

    def test_sent_entries(self) -> None:
        """A client can send the entries."""
        live = created(config_map(a="1", b="1"))
        obj = copied(live)
        obj["metadata"]["managedFields"][0].update(manager="someone", fieldsV1={"f:data": {"f:b": {".": {}}}})
        CONFIG_MAPS.update(live, obj, "other", LATER)
        self.assertEqual(owners(obj), {"someone": {"f:data": {"f:b": {}}}})

    def test_bad_entries(self) -> None:
        """Malformed entries are ignored; entries of an unknown version are dropped."""
        live = created(config_map(a="1"))
        for change, expected in (
            ({"operation": "Take"}, ["maker"]),
            ({"fieldsType": "FieldsV9"}, ["maker"]),
            ({"fieldsV1": {"data": {}}}, ["maker"]),
            ({"apiVersion": ""}, ["maker"]),
            ({"apiVersion": "v9"}, []),
            ({"apiVersion": "apps/v1"}, []),
        ):
            obj = copied(live)
            obj["metadata"]["managedFields"][0].update(change)
            CONFIG_MAPS.update(live, obj, "other", LATER)
            self.assertEqual(list(owners(obj)), expected, change)

    def test_untypical_object(self) -> None:
        """An update of an object that does not fit its type clears the entries; the write succeeds."""
        live = created(config_map(a="1"))
        obj = copied(live)
        obj.update(data=["no", "map"], more=1)
        CONFIG_MAPS.update(live, obj, "other", LATER)
        self.assertNotIn("managedFields", obj["metadata"])

    def test_unparsable_version(self) -> None:
        """An entry whose version has two slashes clears all entries; one of an unknown version is dropped."""
        live = created(config_map(a="1", b="1"))
        (entry,) = live["metadata"]["managedFields"]
        for version, expected in (("v9", ["maker"]), ("x/y/z", [])):
            obj = copied(live)
            obj["metadata"]["managedFields"] = [entry, {**entry, "manager": "bad", "apiVersion": version}]
            CONFIG_MAPS.update(live, obj, "other", LATER)
            self.assertEqual(list(owners(obj)), expected, version)

    def test_nameless_item(self) -> None:
        """Applying to an object with a list item without a key fails; the error contains the position of the item."""
        accounts = endpoint("serviceaccounts")
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x", "namespace": "y"}}
        live = stored({**body, "secrets": [{}]})
        error = self.assertRaises(APIStatusError, accounts.apply, live, body, "me", NOW, False)
        assert isinstance(error, APIStatusError)
        self.assertTrue(
            error.message.startswith(
                "failed to create manager for existing fields: failed to convert new object "
                "(y/x; /v1, Kind=ServiceAccount) to smd typed: .secrets: element 0: associative list with keys"
            ),
            error.message,
        )
        live["metadata"]["managedFields"] = created({**body, "secrets": []}, fields=accounts)["metadata"].get(
            "managedFields", [{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:secrets": {}}}]
        )
        error = self.assertRaises(
            APIStatusError, accounts.apply, live, {**body, "secrets": [{"name": "a"}]}, "me", NOW, False
        )
        assert isinstance(error, APIStatusError)
        self.assertTrue(
            error.message.startswith("failed to create typed live object (y/x; /v1, Kind=ServiceAccount): .secrets: "),
            error.message,
        )

    def test_deep_object(self) -> None:
        """An object nested deeper than the recursion limit has no entries, and cannot be applied."""
        value: Any = "x"
        for _ in range(3000):
            value = {"a": value}
        crd = endpoint("customresourcedefinitions")
        live = stored({"metadata": {"name": "x", "managedFields": []}})
        versions = [{"name": "v1", "schema": {"openAPIV3Schema": {"default": value}}}]
        body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"}}
        obj = {**body, "metadata": {"name": "x"}, "status": value}
        crd.update(None, obj, "me", NOW)
        self.assertNotIn("managedFields", obj["metadata"])
        kind = endpoint("controllerrevisions")
        kind.update(None, {"metadata": {}, "data": value}, "me", NOW)
        error = self.assertRaises(
            APIStatusError, crd.apply, live, {**body, "spec": {"versions": versions}}, "me", NOW, True
        )
        assert isinstance(error, APIStatusError)
        self.assertEqual(error.code, 400)

    def test_status(self) -> None:
        """Clients of the main resource do not own the status, and those of the status own nothing else."""
        main, status = endpoint("deployments"), endpoint("deployments", subresource="status")
        obj = {"metadata": {"name": "x"}, "spec": {"replicas": 1}, "status": {"replicas": 1}}
        live = created(obj, fields=main)
        found = updated(live, fields=status, status={"replicas": 2}, spec={"replicas": 5})
        self.assertEqual(
            owners(found), {"maker": {"f:spec": {"f:replicas": {}}}, "other": {"f:status": {"f:replicas": {}}}}
        )
        self.assertEqual(found["metadata"]["managedFields"][1]["subresource"], "status")

    def test_status_takes_no_entries(self) -> None:
        """Entries that are sent through a subresource are ignored."""
        live = created(config_map(a="1"))
        obj = copied(live)
        obj["metadata"]["managedFields"] = [{}]
        endpoint("configmaps", subresource="status").update(live, obj, "other", LATER)
        self.assertEqual(owners(obj), owners(live))

    def test_versions(self) -> None:
        """An update in one version takes fields from owners in another version."""
        two, one = endpoint("horizontalpodautoscalers", "v2"), endpoint("horizontalpodautoscalers", "v1")
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
        }
        live = created({"metadata": {"name": "h"}, "spec": {"maxReplicas": 5, "metrics": [metric]}}, fields=two)
        other = copied(metric)
        other["resource"]["target"]["averageUtilization"] = 50
        found = updated(live, fields=one, spec={"maxReplicas": 5, "metrics": [other]})
        self.assertEqual(
            owners(found),
            {"maker": {"f:spec": {"f:maxReplicas": {}}}, "other": {"f:spec": {"f:targetCPUUtilizationPercentage": {}}}},
        )

    def test_groups(self) -> None:
        """An update of an event in one group drops the owners of the other group."""
        older, newer = (
            built_in_field_manager(definitions(), info, "v1", {})
            for group in ("", "events.k8s.io")
            for info in kinds_for(set(definitions().gvks()), FeatureGates())
            if (info.group, info.resource) == (group, "events")
        )
        event = {"metadata": {"name": "e"}, "message": "m", "involvedObject": {}, "source": {}}
        live = created(event, fields=newer)
        self.assertEqual(owners(live), {"maker": {"f:note": {}}})
        found = updated(live, fields=older, count=2)
        self.assertEqual(owners(found), {"other": {"f:count": {}}})

    def test_many_updaters(self) -> None:
        """An object has at most ten entries of updates."""
        live = created(config_map())
        for number in range(14):
            live = updated(live, f"u{number:02d}", data={**live["data"], f"k{number}": "1"})
        self.assertEqual(len(owners(live)), 10)
        self.assertIn("f:k0", owners(live)["ancient-changes"]["f:data"])


class ApplyTests(SynchronousTestCase):
    """Tests of server-side apply."""

    def apply(self, live: JSONObject | None, applied: Any, manager: str = "ann", force: bool = False) -> JSONObject:
        """Apply to a ConfigMap."""
        return stored(CONFIG_MAPS.apply(live, applied, manager, LATER, force))

    def refused(self, live: JSONObject | None, applied: Any, manager: str = "ann") -> APIStatusError:
        """Return the error of an apply."""
        error = self.assertRaises(APIStatusError, CONFIG_MAPS.apply, live, applied, manager, LATER, False)
        assert isinstance(error, APIStatusError)
        return error

    def test_create(self) -> None:
        """Applying an object that does not exist creates it, and its manager owns the applied fields."""
        obj = self.apply(None, config_map(a="1"))
        self.assertEqual(obj["data"], {"a": "1"})
        self.assertEqual(owners(obj), {"ann": {"f:data": {"f:a": {}}}})
        self.assertEqual(times(obj), {"ann": LATER})

    def test_no_op(self) -> None:
        """Applying the same object again changes nothing."""
        live = self.apply(None, config_map(a="1"))
        again = CONFIG_MAPS.apply(live, config_map(a="1"), "ann", "2027-01-01T00:00:00Z", False)
        self.assertEqual(stored(again), live)

    def test_shared(self) -> None:
        """Managers that apply the same value share its ownership; the new entry has no time."""
        live = self.apply(None, config_map(a="1"))
        obj = self.apply(live, config_map(a="1"), "bea")
        self.assertEqual(owners(obj), {"ann": {"f:data": {"f:a": {}}}, "bea": {"f:data": {"f:a": {}}}})
        self.assertEqual(times(obj), {"ann": LATER, "bea": None})
        self.assertEqual(obj["metadata"]["managedFields"][0]["manager"], "bea")

    def test_removal(self) -> None:
        """A field that its last owner omits is removed; one with other owners stays."""
        live = self.apply(None, config_map(a="1", b="1", c="1"))
        live = self.apply(live, config_map(b="1"), "bea")
        obj = self.apply(live, config_map(c="1"))
        self.assertEqual(obj["data"], {"b": "1", "c": "1"})

    def test_update_keeps(self) -> None:
        """A field that an update changed stays when its former applier omits it."""
        live = updated(self.apply(None, config_map(a="1", b="1")), data={"a": "2", "b": "1"})
        self.assertEqual(self.apply(live, config_map(b="1"))["data"], {"a": "2", "b": "1"})

    def test_conflict(self) -> None:
        """A single conflict has a one-line message; updaters are named with their version."""
        error = self.refused(created(config_map(a="1")), config_map(a="2"))
        self.assertEqual((error.code, error.reason), (409, "Conflict"))
        self.assertEqual(error.message, 'Apply failed with 1 conflict: conflict with "maker" using v1: .data.a')
        cause = {"reason": "FieldManagerConflict", "message": 'conflict with "maker" using v1', "field": ".data.a"}
        self.assertEqual(error.details, {"causes": [cause]})

    def test_conflicts(self) -> None:
        """Several conflicts are grouped by manager."""
        live = self.apply(None, config_map(a="1", b="1"), "bea")
        live = self.apply(live, config_map(c="1"), "ann")
        error = self.refused(live, config_map(a="2", b="2", c="2"), "cat")
        self.assertEqual(
            error.message,
            'Apply failed with 3 conflicts: conflicts with "ann":\n- .data.c\n'
            'conflicts with "bea":\n- .data.a\n- .data.b',
        )

    def test_force(self) -> None:
        """Force takes the fields from their owners."""
        obj = self.apply(created(config_map(a="1", b="1")), config_map(a="2"), force=True)
        self.assertEqual(obj["data"], {"a": "2", "b": "1"})
        self.assertEqual(owners(obj), {"ann": {"f:data": {"f:a": {}}}, "maker": {"f:data": {".": {}, "f:b": {}}}})

    def test_before_first_apply(self) -> None:
        """Without entries, the first apply adds an owner of all existing fields."""
        live = created(config_map(a="1"))
        del live["metadata"]["managedFields"]
        error = self.refused(live, config_map(a="2"))
        self.assertIn('"before-first-apply" using v1: .data.a', error.message)
        obj = self.apply(live, config_map(a="2"), force=True)
        self.assertEqual(owners(obj), {"ann": {"f:data": {"f:a": {}}}, "before-first-apply": {"f:data": {}}})

    def test_wrong_kind(self) -> None:
        """An object of another kind or version is rejected."""
        for applied, gvk in (
            (None, "/, Kind="),
            ({}, "/, Kind="),
            ({"apiVersion": "v1"}, "/v1, Kind="),
            ({"kind": "ConfigMap"}, "/, Kind=ConfigMap"),
            ({"kind": "Role", "apiVersion": "g/v2"}, "g/v2, Kind=Role"),
            ({"kind": "Role", "apiVersion": "a/b/c"}, "/, Kind="),
        ):
            error = self.refused(None, applied)
            self.assertEqual((error.code, error.message), (400, f"invalid object type: {gvk}"))

    def test_entries_in_the_body(self) -> None:
        """Applied managedFields are rejected."""
        applied = config_map(a="1")
        applied["metadata"]["managedFields"] = []
        error = self.refused(None, applied)
        self.assertEqual((error.code, error.message), (400, "metadata.managedFields must be nil"))

    def test_schema_errors(self) -> None:
        """Unknown fields and wrong types are errors (500)."""
        error = self.refused(None, {**config_map(a="1"), "extra": 1})
        self.assertEqual((error.code, error.reason), (500, ""))
        self.assertEqual(
            error.message,
            "failed to create typed patch object (/x; /v1, Kind=ConfigMap): .extra: field not declared in schema",
        )

    def test_arguments_unmodified(self) -> None:
        """The live object and the body are not modified."""
        live, applied = created(config_map(a="1", b="1")), config_map(a="2")
        before = copied(live), copied(applied)
        self.apply(live, applied, force=True)
        self.assertEqual((live, applied), before)

    def test_list_items(self) -> None:
        """Ports are merged by number and protocol."""
        services = endpoint("services")
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
        live = stored(
            services.apply(None, {**body, "spec": {"ports": [{"port": 53, "protocol": "UDP"}]}}, "a", NOW, False)
        )
        obj = stored(services.apply(live, {**body, "spec": {"ports": [{"port": 53}]}}, "b", NOW, False))
        self.assertEqual(obj["spec"]["ports"], [{"port": 53, "protocol": "UDP"}, {"port": 53}])
        obj = stored(services.apply(obj, body, "a", NOW, False))
        self.assertEqual(obj["spec"]["ports"], [{"port": 53}])

    def test_large(self) -> None:
        """Lists of ten thousand items are merged by item."""
        services = endpoint("services")
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
        ports = [{"port": number, "protocol": "TCP"} for number in range(10_000)]
        live = stored(services.apply(None, {**body, "spec": {"ports": ports}}, "a", NOW, False))
        obj = services.apply(live, {**body, "spec": {"ports": ports[1:]}}, "a", LATER, False)
        self.assertEqual(obj["spec"]["ports"], ports[1:])


class TimesTests(SynchronousTestCase):
    """Tests of L{ignore_managed_fields_timestamps}."""

    def test_only_times(self) -> None:
        """If only times differ, the old times are restored."""
        live = created(config_map(a="1"))
        obj = {**copied(live), "kind": "ConfigMap"}
        obj["metadata"]["managedFields"][0]["time"] = LATER
        ignore_managed_fields_timestamps(live, obj)
        self.assertEqual(times(obj), {"maker": NOW})

    def test_more(self) -> None:
        """If anything else differs, the new times stay."""
        live = created(config_map(a="1"))
        for change in ({"data": {"a": "2"}}, {"immutable": True}):
            obj = {**copied(live), **change}
            obj["metadata"]["managedFields"][0]["time"] = LATER
            ignore_managed_fields_timestamps(live, obj)
            self.assertEqual(times(obj), {"maker": LATER})
        obj = copied(live)
        obj["metadata"]["managedFields"][0].update(time=LATER, manager="other")
        ignore_managed_fields_timestamps(live, obj)
        self.assertEqual(times(obj), {"other": LATER})


class VersionsTests(SynchronousTestCase):
    """Tests of L{BuiltInVersionConverter}."""

    def test_unknown(self) -> None:
        """A version that the kind does not have has no type."""
        kind = GroupVersionKind(*GroupVersion.parse("v1"), "ConfigMap")
        versions = BuiltInVersionConverter(definitions(), {"v1": kind})
        self.assertIsNone(versions.type_of("v2"))
        self.assertIs(versions.type_of("v1"), definitions().merge_type_for(kind))
