"""Tests of the order of the errors of an update in metadata and other fields, through the stores."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.resources.server import Server

MERGE = "application/merge-patch+json"
LABELS = {"labels": {"a/b/c": "d"}}
META = "metadata.labels"
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


class OrderTests(SynchronousTestCase):
    """Tests of the order of errors: the registry validates metadata first, then each kind in its order."""

    def setUp(self) -> None:
        """Create a server."""
        self.server = Server(
            *("secrets", "ingressclasses", "runtimeclasses", "roles", "storageclasses", "statefulsets", "jobs"),
            *("poddisruptionbudgets", "events", "configmaps", "clusterroles", "rolebindings", "clusterrolebindings"),
        )
        self.client = self.server.client()

    def fields(self, path: str, obj: dict[str, Any], patch: dict[str, Any], part: str = "") -> list[str]:
        """Return the fields with errors of a merge patch to a new object."""
        code, made = self.client.ask("POST", path, {**obj, "metadata": {"name": "x"}})
        self.assertEqual(code, 201, made)
        bad = {"metadata": LABELS, **patch}
        _, status = self.client.ask("PATCH", f"{path}/x{part}", bad, Content_Type=MERGE)
        return [cause["field"] for cause in status["details"]["causes"]]

    def test_changes_before_the_new_object(self) -> None:
        """For kinds that compare first and validate the new object then, changes come before metadata."""
        self.assertEqual(
            self.fields("/api/v1/namespaces/default/secrets", {"type": "a"}, {"type": "b"}), [META] * 3 + ["type", META]
        )
        self.assertEqual(
            self.fields(
                "/apis/networking.k8s.io/v1/ingressclasses",
                {"spec": {"controller": "a.b/c"}},
                {"spec": {"controller": "d.e/f"}},
            ),
            [META] * 3 + ["spec.controller", META],
        )

    def test_the_new_object_before_changes(self) -> None:
        """For kinds that validate the new object first and compare then, content comes before the comparison."""
        self.assertEqual(
            self.fields("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "a"}, {"handler": "B"}),
            [META] * 3 + ["handler", META, "handler"],
        )
        self.assertEqual(
            self.fields(
                "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", {}, {"rules": [{"apiGroups": [""]}]}
            ),
            [META] * 3 + ["rules[0].verbs", "rules[0].resources", META],
        )
        self.assertEqual(
            self.fields("/apis/storage.k8s.io/v1/storageclasses", {"provisioner": "a"}, {"provisioner": "B c"}),
            [META] * 3 + ["provisioner", META, "provisioner"],
        )
        spec = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}
        found = self.fields("/apis/batch/v1/namespaces/default/jobs", {"spec": spec}, {"spec": {"backoffLimit": -1}})
        self.assertEqual(found, [META] * 3 + ["spec.backoffLimit", META, "spec.backoffLimit"])

    def test_status(self) -> None:
        """Errors in the status of a StatefulSet come before those in its metadata."""
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
        found = self.fields(
            "/apis/apps/v1/namespaces/default/statefulsets",
            {"spec": spec},
            {"status": {"observedGeneration": -1}},
            "/status",
        )
        self.assertEqual(found, [META] * 2 + ["status.observedGeneration", META])

    def test_finalizers(self) -> None:
        """Kinds whose metadata only the registry validates accept any finalizer and name."""
        for path, obj in (
            ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"spec": {}}),
            ("/api/v1/namespaces/default/events", {"involvedObject": {"namespace": "default"}}),
        ):
            meta = {"name": "A b", "finalizers": ["bad"]}
            self.assertEqual(self.client.ask("POST", path, {**obj, "metadata": meta})[0], 201)
        code, _ = self.client.ask("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {**meta, "name": "a"}})
        self.assertEqual(code, 422)
