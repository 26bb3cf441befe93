"""Tests of L{kubetwist.registry.generic.empties}, directly and over HTTP in memory."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import FieldError
from kubetwist.registry.generic.empties import as_sent, remove_empties, restore_empties
from tests.resources.server import Server

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

values = st.recursive(
    st.none() | st.integers(0, 3) | st.just([]) | st.just({}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


class RestoreTests(SynchronousTestCase):
    """Tests of restored empty lists and maps."""

    @given(objects, objects)
    @settings(deadline=None)
    def test_undone(self, obj: dict[str, Any], sent: dict[str, Any]) -> None:
        """An object is unchanged after a restoration and its removal, for any body."""
        before = copy.deepcopy(obj)
        remove_empties(restore_empties(obj, sent))
        self.assertEqual(obj, before)

    def test_restore(self) -> None:
        """
        Values that are empty in the body and missing or null are restored, in lists of the same length, except in
        metadata.
        """
        obj: dict[str, Any] = {"metadata": {}, "a": None, "b": [{"c": 1}, {}], "e": [{}], "f": 1}
        sent = {"metadata": {"labels": {}}, "a": [], "b": [{"c": []}, {"d": {}}], "e": [{"x": []}, {}], "f": []}
        undo = restore_empties(obj, sent)
        self.assertEqual(obj, {"metadata": {}, "a": [], "b": [{"c": 1}, {"d": {}}], "e": [{}], "f": 1})
        remove_empties(undo)
        self.assertEqual(obj, {"metadata": {}, "a": None, "b": [{"c": 1}, {}], "e": [{}], "f": 1})

    def test_not_sent(self) -> None:
        """Nothing is restored if the body is unknown."""
        for sent in (None, [], "x"):
            self.assertEqual(restore_empties({"a": None}, sent), [])

    def test_messages_only(self) -> None:
        """Messages contain the values of the body; errors that occur only with them are ignored."""
        obj: dict[str, Any] = {}

        def validate() -> list[FieldError]:
            causes = [FieldError("FieldValueInvalid", f"Invalid value: {obj.get('a')}", "a")]
            if "b" in obj:
                causes.append(FieldError("FieldValueInvalid", "changed", "b"))
            return causes

        found = as_sent(validate(), obj, {"a": [], "b": []}, validate)
        self.assertEqual([(cause.field, cause.message) for cause in found], [("a", "Invalid value: []")])
        self.assertEqual(obj, {})


class SentTests(SynchronousTestCase):
    """Tests of empty lists and maps in requests."""

    def setUp(self) -> None:
        """Create a server."""
        self.server = Server("configmaps", "secrets", "resourcequotas")
        self.client = self.server.client()

    def test_message(self) -> None:
        """A message contains an empty list as such, in any encoding."""
        path = "/api/v1/namespaces/default/resourcequotas"
        quota = {"metadata": {"name": "q"}, "spec": {"scopes": ["Terminating"]}}
        self.client.ask("POST", path, quota)
        for media, patch in (
            (MERGE, {"spec": {"scopes": []}}),
            (JSON_PATCH, [{"op": "replace", "path": "/spec/scopes", "value": []}]),
        ):
            _, status = self.client.ask("PATCH", f"{path}/q", patch, Content_Type=media)
            self.assertEqual(status["details"]["causes"][0]["message"], "Invalid value: []: field is immutable")
        _, status = self.client.ask("PUT", f"{path}/q", {**quota, "spec": {"scopes": []}})
        self.assertEqual(status["details"]["causes"][0]["message"], "Invalid value: []: field is immutable")
        _, status = self.client.ask("PATCH", f"{path}/q", {"spec": {"scopes": None}}, Content_Type=MERGE)
        self.assertEqual(status["details"]["causes"][0]["message"], "Invalid value: null: field is immutable")

    def test_immutable(self) -> None:
        """For immutable objects, an empty map is a change only in a Secret's data and a ConfigMap's binaryData."""
        for kind, name, refused in (
            ("Secret", "data", True),
            ("ConfigMap", "binaryData", True),
            ("ConfigMap", "data", False),
        ):
            path = f"/api/v1/namespaces/default/{kind.lower()}s"
            obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "immutable": True}
            self.client.ask("POST", path, obj)
            code = 422 if refused else 200
            empty = {**obj, name: {}}
            self.assertEqual(self.client.ask("PUT", f"{path}/x", empty)[0], code)
            for media, patch in (
                (MERGE, {name: {}}),
                (STRATEGIC, {name: {}}),
                (JSON_PATCH, [{"op": "add", "path": f"/{name}", "value": {}}]),
            ):
                self.assertEqual(self.client.ask("PATCH", f"{path}/x", patch, Content_Type=media)[0], code)
            applied = f"{path}/x?fieldManager=m&force=true"
            self.assertEqual(self.client.ask("PATCH", applied, empty, Content_Type=APPLY)[0], code)
            self.assertEqual(self.client.ask("PATCH", f"{path}/x", {name: None}, Content_Type=MERGE)[0], 200)
            self.assertNotIn(name, self.client.ask("GET", f"{path}/x")[1])
            self.client.ask("DELETE", f"{path}/x")
