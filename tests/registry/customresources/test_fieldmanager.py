"""Tests for L{kubetwist.registry.customresources.fieldmanager}, over HTTP in memory."""

from __future__ import annotations

from kubetwist.client.factory import ClientFactory
from kubetwist.registry.customresources.conversion import CRConverterFactory
from tests.resources.customapply import OLD, TEXT, CustomApplyTestCase, struct
from tests.resources.hostandport import HostAndPort, two_versions


class IgnoredPartTests(CustomApplyTestCase):
    """Tests for fields that an endpoint ignores, and objects that violate their schema."""

    def test_filter_of_the_request(self) -> None:
        """In a version without a status subresource clients own the status, independent of other versions."""
        schema = struct(status=struct(s=TEXT))
        self.define_versions(schema, schema, subresources={"status": {}})
        self.assertEqual(self.owners(self.applied({"status": {"s": "1"}})), {})
        result = self.applied({"status": {"s": "1"}}, path=OLD)
        self.assertEqual(self.owners(result), {"me": {"f:status": {"f:s": {}}}})

    def test_ill_typed_status(self) -> None:
        """A status of the wrong type is ignored by the main resource, but clears the managed fields."""
        self.define(struct(spec=struct(a=TEXT), status=struct(n={"type": "integer"})), subresources={"status": {}})
        self.create({"spec": {"a": "1"}})
        result = self.merge({"spec": {"a": "2"}, "status": {"n": "many"}})
        self.assertEqual((result["spec"], result["metadata"].get("managedFields")), ({"a": "2"}, None))

    def test_live_object_does_not_fit(self) -> None:
        """After a type became stricter, updates clear managed fields, and applies fail until the object fits."""
        self.define(struct(spec=struct(a={"x-kubernetes-preserve-unknown-fields": True}, b=TEXT)))
        self.applied({"spec": {"a": "x"}})
        integer = {"openAPIV3Schema": struct(spec=struct(a={"type": "integer"}, b=TEXT))}
        self.redefine(lambda versions: [{**versions[0], "schema": integer}])
        about = "(default/a; example.com/v1, Kind=Kite)"
        misfit = ".spec.a: expected numeric (int or float), got string"
        code, status = self.apply({"spec": {"a": 1}})
        self.assertEqual((code, status["message"]), (500, f"failed to create typed live object {about}: {misfit}"))
        self.assertEqual(self.owners(self.merge({"spec": {"b": "y"}})), {})
        code, status = self.apply({"spec": {"a": 1}})
        expected = f"failed to create manager for existing fields: failed to convert new object {about} to smd typed"
        self.assertEqual((code, status["message"]), (500, f"{expected}: {misfit}"))
        self.merge({"spec": {"a": 1}})
        self.assertEqual(set(self.owners(self.applied({"spec": {"a": 1}}))), {"before-first-apply", "me"})

    def test_fields_of_other_version(self) -> None:
        """An apply fails when another manager's version does not have a field of the object."""
        self.define_versions(struct(spec=struct(a=TEXT, new=TEXT)), struct(spec=struct(a=TEXT)))
        self.applied({"spec": {"a": "1"}}, "old", OLD)
        code, status = self.apply({"spec": {"new": "1"}})
        self.assertEqual(
            (code, status["message"]), (500, "failed to convert new object: .spec.new: field not declared in schema")
        )

    def test_removed_version(self) -> None:
        """While managed fields name a removed version, applies fail; an update clears them."""
        schema = struct(spec=struct(a=TEXT, b=TEXT))
        self.define_versions(schema, schema)
        self.applied({"spec": {"a": "1"}}, "old", OLD)
        self.redefine(lambda versions: versions[:1])
        code, status = self.apply({"spec": {"b": "1"}})
        self.assertEqual(
            (code, status["message"]), (500, "request to convert CR to an invalid group/version: example.com/v1beta1")
        )
        self.assertEqual(self.owners(self.merge({"spec": {"b": "2"}})), {})


class ConvertedElsewhereTests(CustomApplyTestCase):
    """Tests for kinds that a plugin converts."""

    def test_same_version(self) -> None:
        """Applies in the storage version that all managers use need no conversion."""
        plugin = HostAndPort()
        self.server.custom._make_converter = CRConverterFactory(
            ClientFactory(None, lambda namespace, name: None), self.server.clock, [plugin]
        )
        self.server.define(self.client, two_versions())
        self.applied({"spec": {"address": "here:1"}})
        self.applied({"spec": {"note": "x"}}, "other")
        self.assertEqual(self.applied({})["spec"], {"note": "x"})
        self.assertEqual(plugin.calls, [])
