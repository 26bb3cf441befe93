"""Tests for L{kubetwist.resources.handlers.patch}, over HTTP in memory."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.api.options import PatchOptions
from kubetwist.api.resource import GroupVersionKind
from kubetwist.resources.handlers.patch import JSONPatch, MergePatch, Patch, StrategicMergePatch
from tests.resources.server import Server, config_map, definitions, pod

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class PatchTests(SynchronousTestCase):
    """PATCH requests."""

    def setUp(self) -> None:
        """Create a ConfigMap and a Pod."""
        self.server = Server("configmaps", "pods", "namespaces")
        self.client = self.server.client()
        self.client.ask("POST", MAPS, config_map("a", x="1"))
        self.client.ask("POST", PODS, pod("p"))

    def patched(self, body: Any, media: str, path: str = f"{MAPS}/a", query: str = "") -> tuple[int, Any]:
        """Return the response to a patch."""
        answer = self.client.answer("PATCH", f"{path}?{query}", body, Content_Type=media)
        self.warning = answer.header("warning")
        return answer.code, orjson.loads(answer.body)

    def data(self) -> Any:
        """Return the stored data."""
        return self.client.ask("GET", f"{MAPS}/a")[1].get("data")

    def test_json_patch(self) -> None:
        """A JSON patch is a list of operations that are all applied, or none."""
        steps = [{"op": "add", "path": "/data/y", "value": "2"}, {"op": "remove", "path": "/data/x"}]
        code, new = self.patched(steps, JSON)
        self.assertEqual((code, new["data"]), (200, {"y": "2"}))
        code, status = self.patched([*steps[:1], {"op": "test", "path": "/data/y", "value": "no"}], JSON)
        self.assertEqual((code, status["reason"]), (422, "Invalid"))
        self.assertEqual(self.data(), {"y": "2"})

    def test_merge_patch(self) -> None:
        """A merge patch sets its values, and removes those that are null."""
        code, new = self.patched({"data": {"x": None, "y": "2"}}, MERGE)
        self.assertEqual((code, new["data"]), (200, {"y": "2"}))

    def test_strategic_merge_patch(self) -> None:
        """A strategic merge patch merges lists by the keys of their items."""
        patch = {"spec": {"containers": [{"name": "main", "image": "example.org/main:2"}]}}
        code, new = self.patched(patch, STRATEGIC, f"{PODS}/p")
        self.assertEqual(code, 200, new)
        (container,) = new["spec"]["containers"]
        self.assertEqual(container["image"], "example.org/main:2")
        self.assertIn("terminationMessagePath", container)

    def test_media_types(self) -> None:
        """A patch in another media type is 415; the comparison is case-sensitive."""
        for media in ("application/json", "text/plain", "", "Application/Merge-Patch+JSON"):
            self.assertEqual(self.patched({"data": {"y": "2"}}, media)[0], 415, media)
        self.assertEqual(self.patched({"data": {"y": "2"}}, f"{MERGE}; charset=utf-8")[0], 200)

    def test_malformed(self) -> None:
        """A malformed patch is a 400."""
        for body, media in ((b"{", MERGE), (b"{", JSON), (b"[", STRATEGIC), ({}, JSON), ([1], JSON), ([1], MERGE)):
            self.assertEqual(self.patched(body, media)[0], 400, (body, media))

    def test_messages_of_unreadable_patches(self) -> None:
        """A body that is not JSON is rejected with the decoder's message, which two types of patches prefix."""
        reason = "invalid character 'x' looking for beginning of value"
        for media, query, message in (
            (MERGE, "", f"error decoding patch: {reason}"),
            (JSON, "", f"error decoding patch: {reason}"),
            (STRATEGIC, "", reason),
            (MERGE, "fieldValidation=Ignore", "Invalid JSON Patch"),
            (JSON, "fieldValidation=Ignore", reason),
            (STRATEGIC, "fieldValidation=Ignore", reason),
        ):
            for body in (b"x", b"x{}"):
                code, status = self.patched(body, media, query=query)
                self.assertEqual((code, status["message"]), (400, message), (media, query))

    def test_lists_for_merge_patches(self) -> None:
        """
        Without field validation, a merge patch that is a list replaces the object, and the result is not an object.
        """
        code, status = self.patched([1], MERGE, query="fieldValidation=Ignore")
        self.assertEqual((code, status["reason"]), (422, "Invalid"))
        self.assertIn('"[1]": couldn\'t get version/kind', status["message"])

    def test_missing_object_first(self) -> None:
        """A patch of a missing object is 404, even if the patch is malformed."""
        for media in (JSON, MERGE, STRATEGIC):
            self.assertEqual(self.patched(b"x", media, path=f"{MAPS}/none")[0], 404)

    def test_kinds_in_strategic_merge_patches(self) -> None:
        """A strategic merge patch may name any kind and version: the kind is the path's."""
        for index, fields in enumerate(
            (
                {"kind": "Secret"},
                {"apiVersion": "a/b/c"},
                {"kind": None, "apiVersion": None},
                {"kind": "", "apiVersion": "x"},
            )
        ):
            code, new = self.patched({**fields, "data": {"n": str(index)}}, STRATEGIC)
            self.assertEqual(
                (code, new["kind"], new["apiVersion"], new["data"]["n"]), (200, "ConfigMap", "v1", str(index))
            )
        code, status = self.patched({"kind": 7}, STRATEGIC)
        self.assertEqual(code, 422)
        self.assertIn('"map[kind:7]": cannot convert int64 to string', status["message"])

    def test_kinds_in_other_patches(self) -> None:
        """Other patches may omit the kind, but not change it."""
        for body, media in (
            ({"kind": None}, MERGE),
            ({"kind": ""}, MERGE),
            ([{"op": "remove", "path": "/kind"}], JSON),
        ):
            code, new = self.patched(body, media)
            self.assertEqual((code, new["kind"]), (200, "ConfigMap"))
        for fields, reason in (
            ({"kind": "Secret"}, "illegal base64 data at input byte 0"),
            ({"kind": "Pod"}, "converting (v1.Pod) to (core.ConfigMap): unknown conversion"),
            ({"kind": "Nope"}, 'no kind "Nope" is registered for version "v1" in scheme'),
            ({"apiVersion": "/v2"}, 'no kind "ConfigMap" is registered for version "v2" in scheme'),
            ({"apiVersion": "v1/"}, "Object 'apiVersion' is missing in '{"),
        ):
            code, status = self.patched(fields, MERGE)
            self.assertEqual(code, 422)
            self.assertIn(reason, status["message"])

    def test_no_version(self) -> None:
        """
        A result without a version is decoded as the reference's internal type: its fields are unknown, its name is
        lost.
        """
        for body, media in (({"apiVersion": None}, MERGE), ([{"op": "remove", "path": "/apiVersion"}], JSON)):
            code, status = self.patched(body, media)
            self.assertEqual(code, 400)
            self.assertIn("name must be provided", status["message"])
            self.assertEqual(self.warning, '299 - "unknown field \\"data\\""')

    def test_numbers_in_strategic_merge_patches(self) -> None:
        """Strategic merge patches convert whole floats to integers, and drop the bits that do not fit the field."""
        for number in (8080.0, 8.08e3, 8080 + (1 << 32)):
            patch = {"spec": {"containers": [{"name": "new", "image": "i", "ports": [{"containerPort": number}]}]}}
            code, status = self.patched(patch, STRATEGIC, f"{PODS}/p", "dryRun=All")
            # It is decoded before it is refused.
            self.assertEqual(code, 422)
            self.assertIn("pod updates may not add or remove containers", status["message"])
            self.assertNotIn("cannot convert", status["message"])
        code, status = self.patched({"spec": {"terminationGracePeriodSeconds": 1.5}}, STRATEGIC, f"{PODS}/p")
        self.assertEqual(code, 422)
        self.assertIn("cannot convert float64 to int64", status["message"])
        code, status = self.patched({"spec": {"terminationGracePeriodSeconds": 2.0}}, MERGE, f"{PODS}/p")
        self.assertEqual(code, 422)
        self.assertIn("cannot unmarshal number 2.0", status["message"])

    def test_no_object_any_more(self) -> None:
        """A patch whose result is not an object of the kind is a 422 that quotes the result."""
        for body in (
            [{"op": "replace", "path": "", "value": [1]}],
            [{"op": "replace", "path": "/metadata", "value": [1]}],
            [{"op": "replace", "path": "/data", "value": "x"}],
            [{"op": "replace", "path": "/kind", "value": 1}],
            [{"op": "replace", "path": "/apiVersion", "value": "a/b/c"}],
            [{"op": "replace", "path": "", "value": {"apiVersion": "v1/"}}],
        ):
            code, status = self.patched(body, JSON)
            self.assertEqual((code, status["reason"]), (422, "Invalid"), body)
            self.assertTrue(status["message"].startswith(' "" is invalid: patch: Invalid value: '), status["message"])
        self.assertEqual(self.data(), {"x": "1"})

    def test_unreadable_result_of_apply(self) -> None:
        """Values that do not fit their type in an apply are reported with the object and the converter's message."""
        for value, reason in (
            ("not base64", "error decoding from json: illegal base64 data at input byte 3"),
            ("YQ", "error decoding from json: illegal base64 data at input byte 0"),
        ):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "binaryData": {"b": value}}
            code, status = self.patched(body, "application/apply-patch+yaml", query="fieldManager=m")
            self.assertEqual(code, 500)
            self.assertEqual(
                status["message"],
                "failed to convert new object (/a; /v1, Kind=ConfigMap) to proper version: "
                f"unable to convert unstructured object to /v1, Kind=ConfigMap: {reason}",
            )

    def test_name(self) -> None:
        """A patch cannot rename an object."""
        for meta in ({"name": "b"}, {"name": None}, None):
            self.assertEqual(self.patched({"metadata": meta}, MERGE)[0], 400, meta)

    def test_identity(self) -> None:
        """A patch cannot change the fields that identify an object, and a patch to another kind is rejected."""
        self.assertEqual(self.patched({"metadata": {"uid": "other"}}, MERGE)[0], 422)
        self.assertEqual(self.patched({"kind": "Secret"}, MERGE)[0], 422)

    def test_version(self) -> None:
        """A patch with a resourceVersion applies only to that version."""
        self.assertEqual(self.patched({"metadata": {"resourceVersion": "1"}}, MERGE)[0], 409)

    def test_missing(self) -> None:
        """A patch of a missing object is a 404."""
        self.assertEqual(self.patched({}, MERGE, f"{MAPS}/none")[0], 404)

    def test_unchanged(self) -> None:
        """A patch that changes nothing writes nothing."""
        revision = self.server.backend.revision
        for body, media in (({}, MERGE), ([], JSON), ({"data": {"x": "1"}}, STRATEGIC)):
            self.assertEqual(self.patched(body, media)[0], 200)
        self.assertEqual(self.server.backend.revision, revision)

    def test_unknown_fields(self) -> None:
        """Unknown fields are dropped with a warning, dropped silently, or rejected, depending on fieldValidation."""
        for media, body in ((MERGE, {"colour": "red"}), (JSON, [{"op": "add", "path": "/colour", "value": "red"}])):
            for validation, warned in (("Warn", True), ("Ignore", False)):
                code, new = self.patched(body, media, query=f"fieldValidation={validation}")
                self.assertEqual(code, 200)
                self.assertNotIn("colour", new)
                self.assertEqual(self.warning is not None, warned)
            code, status = self.patched(body, media, query="fieldValidation=Strict")
            self.assertEqual(code, 422)
            self.assertIn('unknown field "colour"', status["message"])

    def test_unknown_fields_of_a_refused_patch(self) -> None:
        """The warning is also sent if the patch is rejected for another reason."""
        body = {"colour": "red", "metadata": {"labels": {"a b": ""}}}
        self.assertEqual(self.patched(body, MERGE, query="fieldValidation=Warn")[0], 422)
        self.assertIn('unknown field \\"colour\\"', self.warning or "")

    def test_unknown_fields_of_conflicts(self) -> None:
        """Unknown fields are reported even if the patch is rejected because of a conflict."""
        body = {"colour": "red", "metadata": {"resourceVersion": "1"}}
        self.assertEqual(self.patched(body, MERGE)[0], 409)
        self.assertEqual(self.warning, '299 - "unknown field \\"colour\\""')

    def test_warned_of_what_fails(self) -> None:
        """Warnings about fields are sent even if the object is rejected for another reason."""
        for media in (MERGE, STRATEGIC):
            code, _ = self.patched(b'{"data":{"y":"1","y":"2"},"metadata":{"labels":{"-":"-"}}}', media)
            self.assertEqual((code, self.warning), (422, '299 - "duplicate field \\"data.y\\""'))

    def test_too_many_operations(self) -> None:
        """CVE-2019-1002100: a JSON patch of more than 10,000 operations is rejected."""
        steps = [{"op": "test", "path": "/data/x", "value": "1"}] * 10_001
        self.assertEqual(self.patched(steps, JSON)[0], 413)

    def test_amplification(self) -> None:
        """CVE-2019-1002100: a JSON patch cannot grow an object by copying it into itself repeatedly."""
        steps = [{"op": "add", "path": "/data/x", "value": "x" * 10_000}]
        steps += [{"op": "copy", "from": "/data", "path": f"/data/c{n}"} for n in range(60)]
        self.assertIn(self.patched(steps, JSON)[0], (413, 422))
        self.assertEqual(self.data(), {"x": "1"})

    def test_dry_run(self) -> None:
        """A dry run returns the result without storing it."""
        code, new = self.patched({"data": {"y": "2"}}, MERGE, query="dryRun=All")
        self.assertEqual((code, new["data"]), (200, {"x": "1", "y": "2"}))
        self.assertEqual(self.data(), {"x": "1"})

    def test_repeated(self) -> None:
        """A patch is applied again after a concurrent write, whose changes are kept."""
        store = self.server.stores.get("", "configmaps")
        backend, other = self.server.backend, self.server.client()

        class Overtaken:
            def commit(self, writes: Any) -> Any:
                store.backend = backend
                other.ask("PUT", f"{MAPS}/a", config_map("a", other="1"))
                return backend.commit(writes)

        for media, body in (
            (MERGE, {"data": {"y": "2"}}),
            (STRATEGIC, {"data": {"y": "2"}}),
            (JSON, [{"op": "add", "path": "/data/y", "value": "2"}]),
        ):
            other.ask("PUT", f"{MAPS}/a", config_map("a", x="1"))
            store.backend = Overtaken()  # type: ignore[assignment]
            code, new = self.patched(body, media)
            self.assertEqual((code, new["data"]), (200, {"other": "1", "y": "2"}), media)


#: Names, of which some lead to the managed fields.
names = st.sampled_from(["metadata", "managedFields", "labels", "data", "x", "0", "$patch", "$retainKeys", "", "-"])
values = st.recursive(
    st.none() | st.sampled_from(["1", "replace", "delete"]),
    lambda values: st.dictionaries(names, values, max_size=2) | st.lists(values, max_size=1),
    max_leaves=4,
)
merges = values | st.dictionaries(st.sampled_from(["metadata", "data", "$patch"]), st.dictionaries(names, values))
pointers = st.lists(names, max_size=3).map(lambda tokens: "/".join(["", *tokens])) | st.sampled_from(
    ["x", "x/metadata"]
)
operations = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": pointers},
        optional={"from": pointers, "value": values},
    ),
    max_size=2,
)


class ManagedFieldsTests(SynchronousTestCase):
    """Patches of objects with managed fields, which are not decoded if the patch does not reach them."""

    LIVE: Any = {  # noqa: RUF012
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a", "labels": {"x": "1"}, "managedFields": [{"manager": "m"}]},
        "data": {"x": "1"},
    }

    def result(self, patch: Patch, current: Any) -> Any:
        """Return a patched object, or the error."""
        before = deepcopy(current)
        try:
            result = patch.patched(deepcopy(current) if patch.in_place else current)
        except APIStatusError as error:
            return error.status()
        self.assertEqual(current, before)
        return deepcopy(result)

    def check_reach(self, kind: type[Patch], body: Any) -> None:
        """Check that a patch that does not reach the managed fields has the same result without them."""
        codec = SimpleNamespace(type=definitions().type_for(GroupVersionKind("", "v1", "ConfigMap")))
        endpoint: Any = SimpleNamespace(codec=codec)
        patch = kind(endpoint, orjson.dumps(body), PatchOptions(field_validation="Ignore"))
        try:
            patch.check()
        except APIStatusError:
            return
        if patch.reaches_managed_fields():
            return
        live = deepcopy(self.LIVE)
        complete = self.result(patch, live)
        entries = live["metadata"].pop("managedFields")
        if complete.get("kind") != "Status":
            self.assertEqual(complete["metadata"].pop("managedFields"), entries)
        self.assertEqual(self.result(patch, live), complete)

    @given(merges)
    def test_merge(self, body: Any) -> None:
        """A merge patch reaches the managed fields if it has them, or replaces the metadata."""
        self.check_reach(MergePatch, body)

    @given(merges)
    def test_strategic_merge(self, body: Any) -> None:
        """A strategic merge patch reaches them with directives, too."""
        self.check_reach(StrategicMergePatch, body)

    @given(operations)
    def test_operations(self, body: Any) -> None:
        """An operation of a JSON patch reaches them if one of its paths leads above or below them."""
        self.check_reach(JSONPatch, body)

    def test_not_reached(self) -> None:
        """Most patches do not reach them."""
        endpoint: Any = SimpleNamespace(codec=SimpleNamespace(type=None))
        body: Any
        for kind, body in (
            (MergePatch, {"data": {}, "metadata": {"labels": None}}),
            (StrategicMergePatch, {"data": {"$patch": "replace"}, "metadata": {"labels": {"$patch": "delete"}}}),
            (JSONPatch, [{"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"}]),
        ):
            self.assertFalse(kind(endpoint, orjson.dumps(body), PatchOptions()).reaches_managed_fields())

    def test_written(self) -> None:
        """All patches record the owner; one that reaches the managed fields can reset them."""
        client = Server("configmaps", "namespaces").client()
        client.ask("POST", MAPS, config_map("a", x="1"))
        query = "fieldManager=m"
        expected = []
        for media, name, body in (
            (MERGE, "m", {"data": {"m": "1"}}),
            (JSON, "j", [{"op": "add", "path": "/data/j", "value": "1"}]),
            (STRATEGIC, "s", {"data": {"s": "1"}}),
        ):
            new = client.ask("PATCH", f"{MAPS}/a?{query}", body, Content_Type=media)[1]
            expected.append(f"f:{name}")
            (owned,) = [entry for entry in new["metadata"]["managedFields"] if entry.get("manager") == "m"]
            self.assertEqual(list(owned["fieldsV1"]["f:data"]), sorted(expected), media)
        new = client.ask("PATCH", f"{MAPS}/a", {"metadata": {"managedFields": [{}]}}, Content_Type=MERGE)[1]
        self.assertNotIn("managedFields", new["metadata"])

    def test_errors(self) -> None:
        """An error about the result quotes the whole object."""
        client = Server("configmaps", "namespaces").client()
        client.ask("POST", MAPS, config_map("a", x="1"))
        code, status = client.ask("PATCH", f"{MAPS}/a", {"data": 1}, Content_Type=MERGE)
        self.assertEqual(code, 422)
        self.assertIn('\\"managedFields\\":[{', status["message"])


class LabelTests(SynchronousTestCase):
    """Pod templates without labels."""

    PATH = "/apis/apps/v1/namespaces/default/deployments"

    def deployment(self, name: str, **metadata: Any) -> Any:
        """Return a Deployment with a template of this metadata."""
        template = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}

    def test_shown(self) -> None:
        """The message shows an empty map as such, and an absent one as null, however the labels were removed."""
        client = Server("deployments", "namespaces").client()
        client.ask("POST", self.PATH, self.deployment("d", labels={"a": "b"}))
        apply = "application/apply-patch+yaml"

        def emptied(labels: Any) -> Any:
            return {"spec": {"template": {"metadata": {"labels": labels}}}}

        labels = "/spec/template/metadata/labels"
        for method, path, body, media, shown in (
            ("POST", "", self.deployment("e", labels={}), "application/json", "{}"),
            ("POST", "", self.deployment("e"), "application/json", "null"),
            ("PUT", "/d", self.deployment("d", labels={}), "application/json", "{}"),
            ("PATCH", "/d", emptied({"a": None}), MERGE, "{}"),
            ("PATCH", "/d", emptied(None), MERGE, "null"),
            ("PATCH", "/d", emptied({"a": None}), STRATEGIC, "{}"),
            ("PATCH", "/d", [{"op": "remove", "path": f"{labels}/a"}], JSON, "{}"),
            ("PATCH", "/d", [{"op": "remove", "path": labels}], JSON, "null"),
            ("PATCH", "/e?fieldManager=m", self.deployment("e", labels={}), apply, "{}"),
        ):
            code, status = client.ask(method, f"{self.PATH}{path}", body, Content_Type=media)
            self.assertEqual(code, 422)
            reason = (
                f"spec.template.metadata.labels: Invalid value: {shown}: `selector` does not match template `labels`"
            )
            self.assertIn(reason, status["message"])

    def test_not_stored(self) -> None:
        """A selector without requirements selects pods without labels, whose template then has no labels."""
        client = Server("deployments", "namespaces").client()
        body = self.deployment("d", labels={})
        body["spec"]["selector"] = {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}
        code, created = client.ask("POST", self.PATH, body)
        self.assertEqual((code, created["spec"]["template"]["metadata"]), (201, {}))
