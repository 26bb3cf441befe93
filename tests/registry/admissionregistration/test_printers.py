"""Tests for L{kubetwist.registry.admissionregistration.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class PolicyTests(SynchronousTestCase):
    """Tests for rows of policies."""

    def test_policy_binding(self) -> None:
        """A binding shows its parameters or their selector."""
        for reference, shown in (
            (None, "<unset>"),
            ({"name": "p"}, "*/p"),
            ({"name": "p", "namespace": "ns"}, "ns/p"),
            (
                {"selector": {"matchLabels": {"a": "b"}}},
                "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}",
            ),
        ):
            obj = made({"spec": {"policyName": "q", "paramRef": reference}})
            shown_cells = cells("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", obj, NOW)
            self.assertEqual(shown_cells[1:3], ["q", shown])
