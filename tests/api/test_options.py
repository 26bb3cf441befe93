"""Tests for L{kubetwist.api.options}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.options import CreateOptions, DeleteOptions, PatchOptions, UpdateOptions, options_object

HEAD = {"apiVersion": "meta.k8s.io/v1"}


class ObjectTests(SynchronousTestCase):
    """Tests for L{options_object}."""

    def test_kinds(self) -> None:
        """Options without values are an object of their kind; options of a patch have the kind of its operation."""
        for options, operation, kind in (
            (CreateOptions(), "CREATE", "CreateOptions"),
            (UpdateOptions(), "UPDATE", "UpdateOptions"),
            (PatchOptions(), "CREATE", "CreateOptions"),
            (PatchOptions(force=True), "UPDATE", "UpdateOptions"),
            (DeleteOptions(), "DELETE", "DeleteOptions"),
        ):
            self.assertEqual(options_object(options, operation), {**HEAD, "kind": kind})

    def test_writes(self) -> None:
        """The options of writes have the names of the API."""
        options = UpdateOptions(dry_run=True, field_manager="m", field_validation="Strict")
        self.assertEqual(
            options_object(options, "UPDATE"),
            {
                **HEAD,
                "kind": "UpdateOptions",
                "dryRun": ["All"],
                "fieldManager": "m",
                "fieldValidation": "Strict",
            },
        )

    def test_deletions(self) -> None:
        """
        The options of deletions have the names of the API; a grace period of 0 is shown, and a single precondition.
        """
        options = DeleteOptions(
            dry_run=True, grace_period_seconds=0, propagation_policy="Orphan", precondition_resource_version="7"
        )
        self.assertEqual(
            options_object(options, "DELETE"),
            {
                **HEAD,
                "kind": "DeleteOptions",
                "gracePeriodSeconds": 0,
                "preconditions": {"resourceVersion": "7"},
                "propagationPolicy": "Orphan",
                "dryRun": ["All"],
            },
        )
        both = options_object(DeleteOptions(precondition_uid="u", precondition_resource_version="7"), "DELETE")
        self.assertEqual(both["preconditions"], {"uid": "u", "resourceVersion": "7"})
