"""Tests for L{kubetwist.registry.apiextensions.apiapproval}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.apiextensions.apiapproval import (
    ANNOTATION,
    api_approval_condition,
    is_protected,
    validate_api_approval,
)

URL = "https://github.com/kubernetes/kubernetes/pull/1"


def definition(annotation: str | None = None, group: str = "x.k8s.io") -> dict[str, Any]:
    """Return a CRD with an approval annotation."""
    annotations = {} if annotation is None else {ANNOTATION: annotation}
    return {"metadata": {"annotations": annotations}, "spec": {"group": group}}


class ApprovalTests(SynchronousTestCase):
    """Tests for the approval of CRDs in protected groups."""

    def test_groups(self) -> None:
        """The protected groups are two domains and their subdomains."""
        for group in ("k8s.io", "x.k8s.io", "kubernetes.io", "a.b.kubernetes.io"):
            self.assertTrue(is_protected(group), group)
        for group in ("example.com", "notk8s.io", "k8s.io.example.com", ""):
            self.assertFalse(is_protected(group), group)
        self.assertIsNone(api_approval_condition(definition(group="example.com")))

    def test_conditions(self) -> None:
        """The condition has the state of the approval."""
        for annotation, status, reason in (
            (None, "False", "MissingAnnotation"),
            (URL, "True", "ApprovedAnnotation"),
            ("unapproved, an experiment", "False", "UnapprovedAnnotation"),
            ("nonsense", "False", "InvalidAnnotation"),
            ("https://[", "False", "InvalidAnnotation"),
        ):
            result = api_approval_condition(definition(annotation))
            assert result is not None
            self.assertEqual(result[:2], (status, reason), annotation)

    def test_refused(self) -> None:
        """A new CRD requires an approval, or a reason why there is none."""
        self.assertEqual([cause.reason for cause in validate_api_approval(definition(), None)], ["FieldValueRequired"])
        self.assertEqual(
            [cause.reason for cause in validate_api_approval(definition("x"), None)], ["FieldValueInvalid"]
        )
        for annotation in (URL, "unapproved"):
            self.assertEqual(validate_api_approval(definition(annotation), None), [])

    def test_unchanged_errors(self) -> None:
        """An update may keep an invalid annotation, but not add one."""
        self.assertEqual(validate_api_approval(definition(), definition()), [])
        self.assertEqual(validate_api_approval(definition("x"), definition("y")), [])
        self.assertEqual(len(validate_api_approval(definition(), definition(URL))), 1)
