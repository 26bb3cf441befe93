"""Tests for L{kubetwist.registry.generic.fieldselectors}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.fieldselectors import check_field_selector, selectable_fields

from ..test_kinds import served


class SelectableFieldsTests(SynchronousTestCase):
    """What the store keeps of an object for field selectors."""

    def values(self, group: str, resource: str, obj: dict[str, Any]) -> dict[str, str]:
        """The fields of C{obj}."""
        return {label: getter(obj) for label, getter in selectable_fields(group, resource)}

    def test_pod(self) -> None:
        """A Pod is selected by where it runs, as whom, and in which phase."""
        pod = {
            "spec": {"nodeName": "n1", "restartPolicy": "Always", "serviceAccountName": "sa", "schedulerName": "s"},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}]},
        }
        self.assertEqual(
            self.values("", "pods", pod),
            {
                "spec.nodeName": "n1",
                "spec.restartPolicy": "Always",
                "spec.schedulerName": "s",
                "spec.serviceAccountName": "sa",
                "spec.hostNetwork": "false",
                "status.phase": "Running",
                "status.podIP": "10.0.0.2",
                "status.nominatedNodeName": "",
            },
        )

    def test_absent_parts(self) -> None:
        """Fields of parts that are missing or null have their zero values."""
        for obj in ({}, {"spec": None, "status": None}):
            self.assertEqual(self.values("", "nodes", obj), {"spec.unschedulable": "false"})
            self.assertEqual(self.values("batch", "jobs", obj), {"status.successful": "0"})
            self.assertEqual(self.values("", "secrets", obj), {"type": ""})

    def test_numbers_and_flags(self) -> None:
        """Numbers and flags are compared as texts."""
        self.assertEqual(self.values("", "nodes", {"spec": {"unschedulable": True}}), {"spec.unschedulable": "true"})
        self.assertEqual(self.values("batch", "jobs", {"status": {"succeeded": 3}}), {"status.successful": "3"})

    def test_event_source(self) -> None:
        """The source of an event is its component, or who reported it."""
        old = self.values("", "events", {"source": {"component": "kubelet"}, "reportingComponent": "x"})
        new = self.values("events.k8s.io", "events", {"source": {}, "reportingComponent": "x"})
        self.assertEqual((old["source"], new["source"]), ("kubelet", "x"))

    def test_kind_without_fields(self) -> None:
        """Most kinds have none."""
        self.assertEqual(selectable_fields("", "configmaps"), ())


class CheckFieldSelectorTests(SynchronousTestCase):
    """Which fields may be asked for."""

    def check(self, group: str, resource: str, label: str) -> str:
        """The name of C{label} in the stored version."""
        info = served()[group, resource]
        ((found, value, equal),) = check_field_selector(info, info.versions[0], [(label, "x", False)])
        self.assertEqual((value, equal), ("x", False))
        return found

    def refusal(self, group: str, resource: str, label: str) -> str:
        """What is said about C{label}."""
        return str(self.assertRaises(ValueError, self.check, group, resource, label))

    def test_name_and_namespace(self) -> None:
        """Names can always be asked for, namespaces where there are any."""
        for label in ("metadata.name", "metadata.namespace"):
            self.assertEqual(self.check("", "pods", label), label)
            self.assertEqual(self.check("", "configmaps", label), label)
        self.assertEqual(self.check("", "nodes", "metadata.name"), "metadata.name")
        self.assertEqual(
            self.refusal("", "nodes", "metadata.namespace"), "field label not supported: metadata.namespace"
        )

    def test_old_name(self) -> None:
        """spec.host is what spec.nodeName was called once."""
        self.assertEqual(self.check("", "pods", "spec.host"), "spec.nodeName")

    def test_field_without_value(self) -> None:
        """status.podIPs may be asked for, though no pod has a value for it."""
        self.assertEqual(self.check("", "pods", "status.podIPs"), "status.podIPs")
        self.assertNotIn("status.podIPs", dict(selectable_fields("", "pods")))

    def test_events_of_both_groups(self) -> None:
        """Each group of events has its own names for the same fields, and only those."""
        self.assertEqual(self.check("", "events", "involvedObject.name"), "involvedObject.name")
        self.assertEqual(self.check("events.k8s.io", "events", "regarding.name"), "involvedObject.name")
        self.assertEqual(self.check("events.k8s.io", "events", "reportingController"), "reportingComponent")
        self.assertEqual(self.check("events.k8s.io", "events", "metadata.namespace"), "metadata.namespace")
        self.assertEqual(
            self.refusal("events.k8s.io", "events", "involvedObject.name"),
            "field label not supported: involvedObject.name",
        )
        self.assertEqual(self.refusal("", "events", "regarding.name"), "field label not supported: regarding.name")

    def test_refusals(self) -> None:
        """Unknown fields are refused in the words that the kind has for it."""
        for group, resource, words in (
            ("", "pods", "field label not supported: spec.foo"),
            ("", "configmaps", '"spec.foo" is not a known field selector: only "metadata.name", "metadata.namespace"'),
            ("batch", "jobs", 'field label "spec.foo" not supported for Job'),
            (
                "resource.k8s.io",
                "resourceslices",
                "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.foo",
            ),
        ):
            self.assertEqual(self.refusal(group, resource, "spec.foo"), words)

    def test_quotes(self) -> None:
        """Where the name of an unknown field stands in quotes, it is quoted."""
        self.assertTrue(self.refusal("", "configmaps", 'a\\"').startswith('"a\\\\\\"" is not'))
        self.assertIn('"a\\\\" not supported', self.refusal("batch", "jobs", "a\\"))
