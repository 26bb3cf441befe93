"""Tests of L{kubetwist.registry.generic.fieldselectors}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.fieldselectors import check_field_selector, selectable_fields

from ..test_kinds import served


class SelectableFieldsTests(SynchronousTestCase):
    """Tests of the selectable fields of objects."""

    def values(self, group: str, resource: str, obj: dict[str, Any]) -> dict[str, str]:
        """Return the selectable fields of an object."""
        return {label: getter(obj) for label, getter in selectable_fields(group, resource)}

    def test_pod(self) -> None:
        """A Pod has the selectable fields node, restart policy, scheduler, service account, phase and addresses."""
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
        """Selectable fields that are missing or null have their zero values."""
        for obj in ({}, {"spec": None, "status": None}):
            self.assertEqual(self.values("", "nodes", obj), {"spec.unschedulable": "false"})
            self.assertEqual(self.values("batch", "jobs", obj), {"status.successful": "0"})
            self.assertEqual(self.values("", "secrets", obj), {"type": ""})

    def test_numbers_and_flags(self) -> None:
        """Numbers and booleans are compared as texts."""
        self.assertEqual(self.values("", "nodes", {"spec": {"unschedulable": True}}), {"spec.unschedulable": "true"})
        self.assertEqual(self.values("batch", "jobs", {"status": {"succeeded": 3}}), {"status.successful": "3"})

    def test_event_source(self) -> None:
        """The source of an event is its component, or the reporting component."""
        old = self.values("", "events", {"source": {"component": "kubelet"}, "reportingComponent": "x"})
        new = self.values("events.k8s.io", "events", {"source": {}, "reportingComponent": "x"})
        self.assertEqual((old["source"], new["source"]), ("kubelet", "x"))

    def test_kind_without_fields(self) -> None:
        """Most kinds have no selectable fields."""
        self.assertEqual(selectable_fields("", "configmaps"), ())


class CheckFieldSelectorTests(SynchronousTestCase):
    """Tests of L{check_field_selector}."""

    def check(self, group: str, resource: str, label: str) -> str:
        """Return the name of a field in the stored version."""
        info = served()[group, resource]
        ((found, value, equal),) = check_field_selector(info, info.versions[0], [(label, "x", False)])
        self.assertEqual((value, equal), ("x", False))
        return found

    def refusal(self, group: str, resource: str, label: str) -> str:
        """Return the error for a field."""
        return str(self.assertRaises(ValueError, self.check, group, resource, label))

    def test_name_and_namespace(self) -> None:
        """Names are always selectable, and namespaces of namespaced resources."""
        for label in ("metadata.name", "metadata.namespace"):
            self.assertEqual(self.check("", "pods", label), label)
            self.assertEqual(self.check("", "configmaps", label), label)
        self.assertEqual(self.check("", "nodes", "metadata.name"), "metadata.name")
        self.assertEqual(
            self.refusal("", "nodes", "metadata.namespace"), "field label not supported: metadata.namespace"
        )

    def test_old_name(self) -> None:
        """spec.host is an alias of spec.nodeName."""
        self.assertEqual(self.check("", "pods", "spec.host"), "spec.nodeName")

    def test_field_without_value(self) -> None:
        """status.podIPs is selectable, but its value is always empty."""
        self.assertEqual(self.check("", "pods", "status.podIPs"), "status.podIPs")
        self.assertNotIn("status.podIPs", dict(selectable_fields("", "pods")))

    def test_events_of_both_groups(self) -> None:
        """Each group of events has its names of the fields, and only those."""
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
        """Unknown fields are rejected with the message of the kind."""
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
        """Messages quote the name of an unknown field if the kind does so."""
        self.assertTrue(self.refusal("", "configmaps", 'a\\"').startswith('"a\\\\\\"" is not'))
        self.assertIn('"a\\\\" not supported', self.refusal("batch", "jobs", "a\\"))
