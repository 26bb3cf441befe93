"""Tests of L{kubetwist.registry.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.resource import GroupVersionKind
from kubetwist.api.tables import TableDefinition
from kubetwist.registry.kindtable import KINDS
from kubetwist.registry.printers import built_in_table, cells, columns, row
from tests.registry.printertools import NOW, made


def table(group: str, kind: str) -> TableDefinition:
    """Return the Table of a kind."""
    return built_in_table(GroupVersionKind(group, "v1", kind), lambda type_name, field: "")


class EveryKindTests(SynchronousTestCase):
    """Tests of the printers of all kinds."""

    def test_zero_objects(self) -> None:
        """The zero object of every kind has a row with a cell for each column, and one more for IPAddress."""
        for kind in KINDS:
            for empty in ({}, {"spec": {}, "status": {}}):
                obj = {"apiVersion": f"{kind.group}/v1" if kind.group else "v1", "metadata": {}, **empty}
                more = 1 if kind.kind == "IPAddress" else 0
                self.assertEqual(
                    len(row(kind.group, kind.kind, obj)), len(columns(kind.group, kind.kind)) + more, kind.kind
                )

    def test_releases(self) -> None:
        """In every release, a row has a cell for each column."""
        for minor in range(25, 38):
            features = FeatureGates((1, minor))
            for kind in KINDS:
                obj = {"apiVersion": f"{kind.group}/v1" if kind.group else "v1", "metadata": {}}
                more = 1 if kind.kind == "IPAddress" else 0
                shown = columns(kind.group, kind.kind, features=features)
                cells_of_row = row(kind.group, kind.kind, obj, features)
                self.assertEqual(len(cells_of_row), len(shown) + more, (minor, kind.kind))

    def test_order(self) -> None:
        """FlowSchemas are sorted by their matching order; other kinds are not sorted."""
        order = table("flowcontrol.apiserver.k8s.io", "FlowSchema").sort_key
        assert order is not None, "flow schemas have one"
        self.assertEqual(order(made({"spec": {"matchingPrecedence": 3}})), (3, "x"))
        self.assertIsNone(table("", "Pod").sort_key)

    def test_conditions(self) -> None:
        """The row of a finished pod has a condition; rows of other kinds have none."""
        obj = made({"status": {"phase": "Succeeded"}})
        self.assertEqual(len(table("", "Pod").conditions(obj)), 1)
        self.assertEqual(table("", "Node").conditions(obj), [])

    def test_default(self) -> None:
        """The default columns are the name and the creation time."""
        self.assertEqual(cells("", "LimitRange", made(), NOW), ["x", "2026-01-01T00:00:00Z"])
        capacity = cells("storage.k8s.io", "CSIStorageCapacity", made({"storageClassName": "s"}), NOW)
        self.assertEqual(capacity, ["x", "2026-01-01T00:00:00Z"])
        names = [(column["name"], column["type"], column["format"]) for column in columns("", "LimitRange")]
        self.assertEqual(names, [("Name", "string", "name"), ("Created At", "date", "")])

    def test_descriptions(self) -> None:
        """Columns of a field have the description of the field."""
        found = columns("", "Pod", "v1", lambda kind, field: f"{kind} {field}")
        self.assertEqual(
            found[5],
            {"name": "IP", "type": "string", "format": "", "description": "api.core.v1.PodStatus podIP", "priority": 1},
        )

    def test_descriptions_of_other_releases(self) -> None:
        """If a release lacks the usual version of a type, the description is that of the requested version."""
        texts = {("api.networking.v1beta1.ServiceCIDRSpec", "cidrs"): "ranges"}
        found = columns("networking.k8s.io", "ServiceCIDR", "v1beta1", lambda *field: texts.get(field, ""))
        self.assertEqual(found[1]["description"], "ranges")

    def test_changed_descriptions(self) -> None:
        """Earlier releases take descriptions from types that are no longer served."""
        for release, text in (((1, 35), "affected by this deployment."), ((1, 36), "selector")):
            found = columns("apps", "Deployment", "v1", lambda kind, field: field, FeatureGates(release))
            self.assertTrue(found[-1]["description"].endswith(text), release)

    def test_changed_rows(self) -> None:
        """Rows of earlier releases have the columns and texts of these releases."""
        default = {"ingressclass.kubernetes.io/is-default-class": "true"}
        for group, kind, obj, release, before, after in (
            ("", "ServiceAccount", made({"secrets": [{"name": "a"}]}), (1, 35), ["x", 1, "3m"], ["x", "3m"]),
            ("", "ResourceQuota", made(), (1, 33), ["x", "3m", "", ""], ["x", "", "", "3m"]),
            (
                "networking.k8s.io",
                "IngressClass",
                made(annotations=default),
                (1, 36),
                ["x", "", "<none>", "3m"],
                ["x (default)", "", "<none>", "3m"],
            ),
            ("scheduling.k8s.io", "PriorityClass", made(), (1, 32), ["x", 0, False, "3m"], ["x", 0, False, "3m", ""]),
            (
                "storage.k8s.io",
                "VolumeAttributesClass",
                made(annotations={"volumeattributesclass.alpha.kubernetes.io/is-default-class": "true"}),
                (1, 34),
                ["x (default)", "", "3m"],
                ["x", "", "3m"],
            ),
            (
                "storagemigration.k8s.io",
                "StorageVersionMigration",
                made({"spec": {"resource": {"group": "apps", "version": "v1", "resource": "deployments"}}}),
                (1, 35),
                ["x", "deployments.v1.apps"],
                ["x", "deployments.apps", "Unknown"],
            ),
        ):
            earlier = FeatureGates((release[0], release[1] - 1))
            self.assertEqual(cells(group, kind, obj, NOW, earlier), before, kind)
            self.assertEqual(cells(group, kind, obj, NOW, FeatureGates(release)), after, kind)

    def test_states(self) -> None:
        """The states of nodes, jobs and pods are shown as in each release."""
        node = made({"status": {"nodeInfo": {"kernelVersion": "6.8", "architecture": "amd64"}}})
        job = made({"status": {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}})
        failed = {"exitCode": 3, "reason": "Error"}
        ended = [{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}, {"state": {"terminated": failed}}]
        pod = made({"spec": {"containers": [{}, {}]}, "status": {"containerStatuses": ended}})
        for group, kind, obj, place, release, before, after in (
            ("", "Node", node, 8, (1, 36), "6.8", "6.8 (amd64)"),
            ("batch", "Job", job, 1, (1, 34), "Running", "SuccessCriteriaMet"),
            ("", "Pod", pod, 2, (1, 35), "Completed", "Error"),
        ):
            earlier = FeatureGates((release[0], release[1] - 1))
            self.assertEqual(cells(group, kind, obj, NOW, earlier)[place], before, kind)
            self.assertEqual(cells(group, kind, obj, NOW, FeatureGates(release))[place], after, kind)

    def test_scale(self) -> None:
        """A Scale has its row in the group of the kind, not of the scaled resource."""
        obj = made({"spec": {"replicas": 2}, "status": {"replicas": 1}})
        self.assertEqual(cells("autoscaling", "Scale", obj, NOW), ["x", 2, 1, "3m"])
        self.assertEqual([column["name"] for column in columns("autoscaling", "Scale")][1:3], ["Desired", "Available"])
