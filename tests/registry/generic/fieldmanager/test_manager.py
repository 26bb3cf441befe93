"""
Tests for L{kubetwist.registry.generic.fieldmanager.manager}, L{kubetwist.registry.generic.fieldmanager.lastapplied} and
what is around them.
"""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
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
    """Who owns since when."""
    return {entry["manager"]: entry.get("time") for entry in obj["metadata"].get("managedFields", ())}


class UpdateTests(SynchronousTestCase):
    """Writes other than applies."""

    def test_create(self) -> None:
        """Whoever creates an object owns what is in it, but for what says which object it is."""
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
        """Fields that show up empty in every object of the kind are nobody's until they change."""
        codec = definitions().type_for(GroupVersionKind("apps", "v1", "Deployment"))
        obj = codec.decode(
            {"metadata": {"name": "x"}, "spec": {"replicas": 1, "template": {"spec": {"containers": []}}}}, []
        )
        found = created(obj, fields=endpoint("deployments"))
        self.assertEqual(owners(found), {"maker": {"f:spec": {"f:replicas": {}}}})

    def test_unnamed(self) -> None:
        """A client that does not say who it is is unknown."""
        self.assertEqual(list(owners(created(config_map(a="1"), manager=""))), ["unknown"])

    def test_change(self) -> None:
        """A field that changes gets another owner, others stay whose they are."""
        live = created(config_map(a="1", b="1"))
        obj = updated(live, data={"a": "2", "b": "1", "c": "1"})
        self.assertEqual(
            owners(obj),
            {"maker": {"f:data": {".": {}, "f:b": {}}}, "other": {"f:data": {"f:a": {}, "f:c": {}}}},
        )
        self.assertEqual(times(obj), {"maker": NOW, "other": LATER})

    def test_no_change(self) -> None:
        """When nothing changed, the entries are those of before, whether the client sent them or not."""
        live = created(config_map(a="1"))
        sent = copied(live)
        CONFIG_MAPS.update(live, sent, "other", LATER)
        self.assertEqual(sent, live)
        del sent["metadata"]["managedFields"]
        CONFIG_MAPS.update(live, sent, "other", LATER)
        self.assertEqual(sent, live)

    def test_live_stays(self) -> None:
        """The object that is replaced is not touched."""
        live = created(config_map(a="1", b="1"))
        before = copied(live)
        updated(live, data={"a": "2"})
        self.assertEqual(live, before)

    def test_reset(self) -> None:
        """An update can say that nobody owns anything; from then on updates track nothing."""
        for sent in ([], [{}]):
            live = created(config_map(a="1"))
            obj = copied(live)
            obj["metadata"]["managedFields"] = sent
            CONFIG_MAPS.update(live, obj, "other", LATER)
            self.assertNotIn("managedFields", obj["metadata"])
            self.assertEqual(owners(updated(stored(obj), data={"b": "1"})), {})

    def test_create_ignores_reset(self) -> None:
        """A new object is tracked whatever it says."""
        obj = config_map(a="1")
        obj["metadata"]["managedFields"] = [{}]
        self.assertEqual(list(owners(created(obj))), ["maker"])

    def test_sent_entries(self) -> None:
        """A client may say who owns what."""
        live = created(config_map(a="1", b="1"))
        obj = copied(live)
        obj["metadata"]["managedFields"][0].update(manager="someone", fieldsV1={"f:data": {"f:b": {".": {}}}})
        CONFIG_MAPS.update(live, obj, "other", LATER)
        self.assertEqual(owners(obj), {"someone": {"f:data": {"f:b": {}}}})

    def test_bad_entries(self) -> None:
        """Entries that are wrong in themselves are ignored; those of a version that is not there are dropped."""
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
        """An update to an object that does not fit its type clears the entries; the write does not fail."""
        live = created(config_map(a="1"))
        obj = copied(live)
        obj.update(data=["no", "map"], more=1)
        CONFIG_MAPS.update(live, obj, "other", LATER)
        self.assertNotIn("managedFields", obj["metadata"])

    def test_unparsable_version(self) -> None:
        """
        An entry whose version has two slashes clears all entries, while one of an unknown version is only dropped.
        """
        live = created(config_map(a="1", b="1"))
        (entry,) = live["metadata"]["managedFields"]
        for version, expected in (("v9", ["maker"]), ("x/y/z", [])):
            obj = copied(live)
            obj["metadata"]["managedFields"] = [entry, {**entry, "manager": "bad", "apiVersion": version}]
            CONFIG_MAPS.update(live, obj, "other", LATER)
            self.assertEqual(list(owners(obj)), expected, version)

    def test_nameless_item(self) -> None:
        """
        An apply to an object with a list item without a key fails, and the error contains the position of the item.
        """
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
        """The main resource's clients do not own the status, and those of the status own nothing else."""
        main, status = endpoint("deployments"), endpoint("deployments", subresource="status")
        obj = {"metadata": {"name": "x"}, "spec": {"replicas": 1}, "status": {"replicas": 1}}
        live = created(obj, fields=main)
        found = updated(live, fields=status, status={"replicas": 2}, spec={"replicas": 5})
        self.assertEqual(
            owners(found), {"maker": {"f:spec": {"f:replicas": {}}}, "other": {"f:status": {"f:replicas": {}}}}
        )
        self.assertEqual(found["metadata"]["managedFields"][1]["subresource"], "status")

    def test_status_takes_no_entries(self) -> None:
        """Through a subresource nobody can say who owns what."""
        live = created(config_map(a="1"))
        obj = copied(live)
        obj["metadata"]["managedFields"] = [{}]
        endpoint("configmaps", subresource="status").update(live, obj, "other", LATER)
        self.assertEqual(owners(obj), owners(live))

    def test_versions(self) -> None:
        """An update in one version takes fields from those who set them in another."""
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
        """An event that is changed by one of its two groups forgets who set what by the other."""
        older, newer = (
            built_in_field_manager(definitions(), info, "v1")
            for group in ("", "events.k8s.io")
            for info in kinds_for(set(definitions().gvks()), 36)
            if (info.group, info.resource) == (group, "events")
        )
        event = {"metadata": {"name": "e"}, "message": "m", "involvedObject": {}, "source": {}}
        live = created(event, fields=newer)
        self.assertEqual(owners(live), {"maker": {"f:note": {}}})
        found = updated(live, fields=older, count=2)
        self.assertEqual(owners(found), {"other": {"f:count": {}}})

    def test_many_updaters(self) -> None:
        """There are never more than ten entries of updates."""
        live = created(config_map())
        for number in range(14):
            live = updated(live, f"u{number:02d}", data={**live["data"], f"k{number}": "1"})
        self.assertEqual(len(owners(live)), 10)
        self.assertIn("f:k0", owners(live)["ancient-changes"]["f:data"])


class ApplyTests(SynchronousTestCase):
    """Server-side apply."""

    def apply(self, live: JSONObject | None, applied: Any, manager: str = "ann", force: bool = False) -> JSONObject:
        """Apply to a ConfigMap."""
        return stored(CONFIG_MAPS.apply(live, applied, manager, LATER, force))

    def refused(self, live: JSONObject | None, applied: Any, manager: str = "ann") -> APIStatusError:
        """The error for an apply."""
        error = self.assertRaises(APIStatusError, CONFIG_MAPS.apply, live, applied, manager, LATER, False)
        assert isinstance(error, APIStatusError)
        return error

    def test_create(self) -> None:
        """What is not there is made, and its applier owns what it said."""
        obj = self.apply(None, config_map(a="1"))
        self.assertEqual(obj["data"], {"a": "1"})
        self.assertEqual(owners(obj), {"ann": {"f:data": {"f:a": {}}}})
        self.assertEqual(times(obj), {"ann": LATER})

    def test_no_op(self) -> None:
        """Applying the same again changes nothing at all."""
        live = self.apply(None, config_map(a="1"))
        again = CONFIG_MAPS.apply(live, config_map(a="1"), "ann", "2027-01-01T00:00:00Z", False)
        self.assertEqual(stored(again), live)

    def test_shared(self) -> None:
        """Those who apply the same value own it together, the newcomer without a time."""
        live = self.apply(None, config_map(a="1"))
        obj = self.apply(live, config_map(a="1"), "bea")
        self.assertEqual(owners(obj), {"ann": {"f:data": {"f:a": {}}}, "bea": {"f:data": {"f:a": {}}}})
        self.assertEqual(times(obj), {"ann": LATER, "bea": None})
        self.assertEqual(obj["metadata"]["managedFields"][0]["manager"], "bea")

    def test_removal(self) -> None:
        """A field that its last applier leaves out is removed, one that others own stays."""
        live = self.apply(None, config_map(a="1", b="1", c="1"))
        live = self.apply(live, config_map(b="1"), "bea")
        obj = self.apply(live, config_map(c="1"))
        self.assertEqual(obj["data"], {"b": "1", "c": "1"})

    def test_update_keeps(self) -> None:
        """A field that an updater changed since stays when its applier leaves it out."""
        live = updated(self.apply(None, config_map(a="1", b="1")), data={"a": "2", "b": "1"})
        self.assertEqual(self.apply(live, config_map(b="1"))["data"], {"a": "2", "b": "1"})

    def test_conflict(self) -> None:
        """One conflict is told in a line; updaters are named with their version."""
        error = self.refused(created(config_map(a="1")), config_map(a="2"))
        self.assertEqual((error.code, error.reason), (409, "Conflict"))
        self.assertEqual(error.message, 'Apply failed with 1 conflict: conflict with "maker" using v1: .data.a')
        cause = {"reason": "FieldManagerConflict", "message": 'conflict with "maker" using v1', "field": ".data.a"}
        self.assertEqual(error.details, {"causes": [cause]})

    def test_conflicts(self) -> None:
        """Several conflicts are told by owner."""
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
        """When nothing was tracked, the first apply gives all there is an owner."""
        live = created(config_map(a="1"))
        del live["metadata"]["managedFields"]
        error = self.refused(live, config_map(a="2"))
        self.assertIn('"before-first-apply" using v1: .data.a', error.message)
        obj = self.apply(live, config_map(a="2"), force=True)
        self.assertEqual(owners(obj), {"ann": {"f:data": {"f:a": {}}}, "before-first-apply": {"f:data": {}}})

    def test_wrong_kind(self) -> None:
        """What is not of the endpoint's kind and version is refused."""
        for applied, said in (
            (None, "/, Kind="),
            ({}, "/, Kind="),
            ({"apiVersion": "v1"}, "/v1, Kind="),
            ({"kind": "ConfigMap"}, "/, Kind=ConfigMap"),
            ({"kind": "Role", "apiVersion": "g/v2"}, "g/v2, Kind=Role"),
            ({"kind": "Role", "apiVersion": "a/b/c"}, "/, Kind="),
        ):
            error = self.refused(None, applied)
            self.assertEqual((error.code, error.message), (400, f"invalid object type: {said}"))

    def test_entries_in_the_body(self) -> None:
        """Nobody applies managedFields."""
        applied = config_map(a="1")
        applied["metadata"]["managedFields"] = []
        error = self.refused(None, applied)
        self.assertEqual((error.code, error.message), (400, "metadata.managedFields must be nil"))

    def test_schema_errors(self) -> None:
        """What the type does not have, or has otherwise, is a plain failure."""
        error = self.refused(None, {**config_map(a="1"), "extra": 1})
        self.assertEqual((error.code, error.reason), (500, ""))
        self.assertEqual(
            error.message,
            "failed to create typed patch object (/x; /v1, Kind=ConfigMap): .extra: field not declared in schema",
        )

    def test_nothing_is_changed(self) -> None:
        """The live object and the body stay as they are."""
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
        """Lists of ten thousand items are merged item by item."""
        services = endpoint("services")
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
        ports = [{"port": number, "protocol": "TCP"} for number in range(10_000)]
        live = stored(services.apply(None, {**body, "spec": {"ports": ports}}, "a", NOW, False))
        obj = services.apply(live, {**body, "spec": {"ports": ports[1:]}}, "a", LATER, False)
        self.assertEqual(obj["spec"]["ports"], ports[1:])


class TimesTests(SynchronousTestCase):
    """L{ignore_managed_fields_timestamps}."""

    def test_only_times(self) -> None:
        """When nothing but times differs, they are those of before."""
        live = created(config_map(a="1"))
        obj = {**copied(live), "kind": "ConfigMap"}
        obj["metadata"]["managedFields"][0]["time"] = LATER
        ignore_managed_fields_timestamps(live, obj)
        self.assertEqual(times(obj), {"maker": NOW})

    def test_more(self) -> None:
        """When anything else differs, they stay."""
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
    """L{BuiltInVersionConverter}."""

    def test_unknown(self) -> None:
        """A version that the kind does not have has no type."""
        kind = GroupVersionKind(*GroupVersion.parse("v1"), "ConfigMap")
        versions = BuiltInVersionConverter(definitions(), {"v1": kind})
        self.assertIsNone(versions.type_of("v2"))
        self.assertIs(versions.type_of("v1"), definitions().merge_type_for(kind))
