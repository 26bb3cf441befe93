"""Tests for L{kubetwist.registry.customresources.strategy}, over HTTP in memory."""

from __future__ import annotations

from tests.resources.customapply import OLD, TEXT, CustomApplyTestCase, struct


class ContainerTests(CustomApplyTestCase):
    """Tests for containers that apply empties, and nulls."""

    def test_kept(self) -> None:
        """An emptied container remains, so that rules and required fields apply to it."""
        self.define({**struct(spec={**struct(a=TEXT), "nullable": True}), "required": ["spec"]})
        self.applied({"spec": {"a": "1"}})
        result = self.applied({"spec": {}})
        self.assertEqual((result["spec"], self.owners(result)), ({}, {"me": {"f:spec": {}}}))
        self.assertEqual(self.apply({})[0], 422)

    def test_null(self) -> None:
        """A null is invalid for a field that is not nullable and has no default, which would replace it."""
        self.define(struct(spec=struct(a=TEXT, b={**TEXT, "default": "B"}, c={**TEXT, "nullable": True})))
        code, status = self.apply({"spec": {"a": None}})
        self.assertEqual((code, status["details"]["causes"][0]["field"]), (422, "spec.a"))
        self.assertEqual(self.applied({"spec": {"b": None, "c": None}})["spec"], {"b": "B", "c": None})

    def test_null_without_type(self) -> None:
        """A null that is valid and that readers drop is not shown."""
        self.define(struct(free={"x-kubernetes-preserve-unknown-fields": True}))
        for query in ("&dryRun=All", ""):
            self.assertNotIn("free", self.applied({"free": None}, query=query))
        self.assertNotIn("free", self.get())

    def test_unknown_fields(self) -> None:
        """Fields that the types of apply allow and the schema does not are owned, but not stored."""
        self.define(struct(spec={"type": "object"}))
        for query in ("&dryRun=All", ""):
            result = self.applied({"spec": {"a": 1}}, query=query)
            self.assertEqual((result["spec"], self.owners(result)), ({}, {"me": {"f:spec": {"f:a": {}}}}))
        self.assertEqual(self.get()["spec"], {})

    def test_no_metadata(self) -> None:
        """An apply without metadata creates no object, since it has no name."""
        self.define(struct())
        code, status = self.apply({"metadata": None})
        self.assertEqual((code, status["reason"]), (400, "BadRequest"))

    def test_absent_is_not_null(self) -> None:
        """A nullable field that changes from absent to null increments the generation."""
        self.define(struct(spec={**struct(a=TEXT), "nullable": True}))
        self.create({})
        self.assertEqual(self.merge({"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"], 1)
        self.assertEqual(self.applied({"spec": None})["metadata"]["generation"], 2)

    def test_no_defaults_without_change(self) -> None:
        """An apply that changes nothing adds no defaults of its version."""
        self.define_versions(struct(spec=struct(a=TEXT)), struct(spec=struct(a={**TEXT, "default": "A"})))
        self.create({"spec": {}})
        self.assertEqual(self.applied({"spec": {}}, path=OLD)["spec"], {})
        self.assertEqual(self.applied({"metadata": {"name": "a", "labels": {"x": "y"}}}, path=OLD)["spec"], {"a": "A"})
