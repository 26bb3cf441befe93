"""
Tests for L{kubetwist.registry.generic.fieldmanager.manager}, L{kubetwist.registry.generic.fieldmanager.lastapplied} and
what is around them.
"""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import GroupVersion, GroupVersionKind, JSONObject
from kubetwist.registry.generic.fieldmanager.manager import (
    BuiltInVersions,
    FieldManager,
    built_in_field_manager,
    keep_times,
)
from kubetwist.registry.generic.fieldmanager.resetfields import BUT_STATUS, allowed_fields, usual_fields
from kubetwist.registry.generic.fieldmanager.scalehandler import from_scale, replicas_path, replicas_paths, to_scale
from kubetwist.registry.kinds import kinds_for
from kubetwist.schema.merge.fieldset import of_paths

from ....schema.release import definitions

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"

_INFOS = {info.resource: info for info in kinds_for(set(definitions().gvks()), 36)}


def endpoint(resource: str, version: str = "v1", subresource: str = "") -> FieldManager:
    """The field manager of an endpoint."""
    info = _INFOS[resource]
    kinds = {info.gvk(one).api_version: info.gvk(one) for one in info.known_versions}
    gvk = info.gvk(version)
    return FieldManager(
        gvk,
        BuiltInVersions(definitions(), kinds),
        definitions().type_for(gvk).zero,
        stored=info.storage_kind,
        subresource=subresource,
        filters=dict.fromkeys(kinds, allowed_fields(info, subresource)),
    )


CONFIG_MAPS = endpoint("configmaps")


def config_map(**data: str) -> JSONObject:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}


def created(obj: JSONObject, manager: str = "maker", fields: FieldManager = CONFIG_MAPS) -> JSONObject:
    """An object as it is when it was created by POST."""
    obj = copied(obj)
    fields.update(None, obj, manager, NOW)
    return stored(obj)


def stored(obj: JSONObject) -> JSONObject:
    """An object as it comes back from the store."""
    obj = copied(obj)
    obj["metadata"].update(uid="u-1", resourceVersion="7")
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    return obj


def copied(obj: JSONObject) -> JSONObject:
    """The same object, sharing nothing."""
    copy: JSONObject = orjson.loads(orjson.dumps(obj))
    return copy


def owners(obj: JSONObject) -> dict[str, Any]:
    """Who owns what."""
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", ())}


def times(obj: JSONObject) -> dict[str, Any]:
    """Who owns since when."""
    return {entry["manager"]: entry.get("time") for entry in obj["metadata"].get("managedFields", ())}


def updated(live: JSONObject, manager: str = "other", fields: FieldManager = CONFIG_MAPS, **parts: Any) -> JSONObject:
    """An object with other parts, as it is when it was updated."""
    obj = {**copied(live), **copied(parts)}
    fields.update(live, obj, manager, LATER)
    return stored(obj)


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


class KubectlTests(SynchronousTestCase):
    """From client-side apply to server-side apply."""

    def setUp(self) -> None:
        """An object that was applied from the client's side, and changed by someone else since."""
        left = orjson.dumps(config_map(a="1", b="1")).decode()
        obj = config_map(a="1", b="1")
        obj["metadata"]["annotations"] = {ANNOTATION: left}
        self.live = updated(created(obj, "kubectl-client-side-apply"), data={"a": "1", "b": "2"})

    def apply(self, applied: JSONObject, manager: str = "kubectl") -> JSONObject:
        """Apply to it."""
        return CONFIG_MAPS.apply(self.live, applied, manager, LATER, False)

    def test_migration(self) -> None:
        """What was applied from the client's side, and still is so, is no conflict for kubectl."""
        obj = self.apply(config_map(a="9"))
        self.assertEqual(obj["data"], {"a": "9", "b": "2"})
        self.assertEqual(owners(obj)["kubectl"], {"f:data": {"f:a": {}}})

    def test_others(self) -> None:
        """For everyone else it is, and what changed since is for kubectl too."""
        error = self.assertRaises(APIStatusError, self.apply, config_map(a="9"), "someone")
        self.assertIn(".data.a", str(error))
        error = self.assertRaises(APIStatusError, self.apply, config_map(a="9", b="9"))
        self.assertEqual(str(error), 'Apply failed with 1 conflict: conflict with "other" using v1: .data.b')

    def test_annotation(self) -> None:
        """The annotation is brought up to date, with sorted keys and a newline, by nobody."""
        obj = self.apply(config_map(b="2", a="<1>"))
        self.assertEqual(
            obj["metadata"]["annotations"][ANNOTATION],
            '{"apiVersion":"v1","data":{"a":"\\u003c1\\u003e","b":"2"},"kind":"ConfigMap","metadata":{"name":"x"}}\n',
        )
        self.assertEqual(owners(obj)["kubectl"], {"f:data": {"f:a": {}, "f:b": {}}})

    def test_unreadable_annotation(self) -> None:
        """An annotation that is no object of the version allows nothing."""
        for text in (
            "broken {",
            "[]",
            "{}",
            '{"kind":"ConfigMap","apiVersion":"v2"}',
            '{"kind":"ConfigMap","apiVersion":"v1","x":1}',
        ):
            self.live["metadata"]["annotations"][ANNOTATION] = text
            self.assertRaises(APIStatusError, self.apply, config_map(a="9"))


class TimesTests(SynchronousTestCase):
    """L{keep_times}."""

    def test_only_times(self) -> None:
        """When nothing but times differs, they are those of before."""
        live = created(config_map(a="1"))
        obj = {**copied(live), "kind": "ConfigMap"}
        obj["metadata"]["managedFields"][0]["time"] = LATER
        keep_times(live, obj)
        self.assertEqual(times(obj), {"maker": NOW})

    def test_more(self) -> None:
        """When anything else differs, they stay."""
        live = created(config_map(a="1"))
        for change in ({"data": {"a": "2"}}, {"immutable": True}):
            obj = {**copied(live), **change}
            obj["metadata"]["managedFields"][0]["time"] = LATER
            keep_times(live, obj)
            self.assertEqual(times(obj), {"maker": LATER})
        obj = copied(live)
        obj["metadata"]["managedFields"][0].update(time=LATER, manager="other")
        keep_times(live, obj)
        self.assertEqual(times(obj), {"other": LATER})


class ScaleTests(SynchronousTestCase):
    """Entries between a resource and its scale."""

    PATHS = replicas_paths(["apps/v1"])

    def entry(self, manager: str, fields: Any, **parts: Any) -> JSONObject:
        """An entry of the main resource."""
        return {
            "manager": manager,
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": fields},
            **parts,
        }

    def test_shown(self) -> None:
        """A scale shows who owns the replicas, as fields of its own."""
        entries = [
            self.entry("a", {"f:replicas": {}, "f:paused": {}}),
            self.entry("b", {"f:paused": {}}),
            self.entry("c", {"f:replicas": {}}, apiVersion="apps/v0"),
        ]
        [shown] = to_scale(entries, self.PATHS)
        self.assertEqual(
            shown, {**entries[0], "apiVersion": "autoscaling/v1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        )

    def test_taken(self) -> None:
        """Who changes the replicas through the scale takes them from their owner, who keeps the rest."""
        scales = FieldManager(
            GroupVersionKind("autoscaling", "v1", "Scale"),
            BuiltInVersions(definitions(), {"autoscaling/v1": GroupVersionKind("autoscaling", "v1", "Scale")}),
            dict,
            subresource="scale",
        )
        entries = [self.entry("a", {"f:replicas": {}, "f:paused": {}}), self.entry("b", {"f:replicas": {}})]
        live = {"metadata": {"uid": "u", "managedFields": to_scale(entries, self.PATHS)}, "spec": {"replicas": 1}}
        scale = {**copied(live), "spec": {"replicas": 2}}
        scales.update(live, scale, "hpa", LATER)
        found = from_scale(entries, scale["metadata"]["managedFields"], "apps/v1", self.PATHS)
        rest = self.entry("a", {"f:paused": {}})
        taken = self.entry("hpa", {"f:replicas": {}}, operation="Update", subresource="scale")
        del taken["time"]
        self.assertEqual(found, [rest, taken])

    def test_kept(self) -> None:
        """An applier whose replicas nobody touched keeps its entry."""
        entries = [self.entry("a", {"f:replicas": {}, "f:paused": {}})]
        self.assertEqual(from_scale(entries, to_scale(entries, self.PATHS), "apps/v1", self.PATHS), entries)

    def test_path(self) -> None:
        """Custom resources say where their replicas are."""
        self.assertEqual(replicas_path(".spec.count"), ("f:spec", "f:count"))


class AllowedFieldsTests(SynchronousTestCase):
    """L{kubetwist.registry.generic.fieldmanager.resetfields}."""

    def test_usual(self) -> None:
        """Where there is a status, the main resource's clients do not own it; elsewhere they own everything."""
        self.assertEqual(allowed_fields(_INFOS["nodes"], ""), BUT_STATUS)
        fields = of_paths([("f:spec",), ("f:status",), ("f:metadata", "f:labels")])
        self.assertEqual(allowed_fields(_INFOS["configmaps"], "")(fields), fields)
        self.assertEqual(usual_fields(True, "status")(fields), {"f:status": {}})

    def test_special(self) -> None:
        """Of requests for certificates their clients own nothing of what they ask; of a pod's resize all they send."""
        fields = of_paths([("f:spec", "f:containers", 'k:{"name":"a"}', name) for name in ("f:image", "f:resources")])
        self.assertEqual(allowed_fields(_INFOS["pods"], "resize")(fields), fields)
        self.assertEqual(allowed_fields(_INFOS["certificatesigningrequests"], "")(fields), {})
        labels = of_paths([("f:status",), ("f:metadata", "f:labels")])
        for resource in ("servicecidrs", "resourceclaims"):
            self.assertEqual(allowed_fields(_INFOS[resource], "status")(labels), {"f:status": {}})


class VersionsTests(SynchronousTestCase):
    """L{BuiltInVersions}."""

    def test_unknown(self) -> None:
        """A version that the kind does not have has no type."""
        kind = GroupVersionKind(*GroupVersion.parse("v1"), "ConfigMap")
        versions = BuiltInVersions(definitions(), {"v1": kind})
        self.assertIsNone(versions.type_of("v2"))
        self.assertIs(versions.type_of("v1"), definitions().merge_type_for(kind))
