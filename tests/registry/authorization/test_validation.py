"""Tests for L{kubetwist.registry.authorization.validation}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.authorization.validation import (
    validate_access_review,
    validate_local_access_review,
    validate_self_access_review,
)

RESOURCE = {"verb": "get", "resource": "pods", "namespace": "ns"}


def fields(validate: Callable[[Any], Any], *, namespace: str = "", **spec: Any) -> list[str]:
    """Return the fields with errors of a review."""
    meta = {"namespace": namespace} if namespace else {}
    return [cause.field for cause in validate({"metadata": meta, "spec": spec})]


class ReviewTests(SynchronousTestCase):
    """Tests for access reviews."""

    def test_resource_or_path(self) -> None:
        """A review has either a resource or a path."""
        path = {"verb": "get", "path": "/"}
        for spec, wrong in (
            ({"resourceAttributes": RESOURCE}, []),
            ({"nonResourceAttributes": path}, []),
            ({"resourceAttributes": RESOURCE, "nonResourceAttributes": path}, ["spec.nonResourceAttributes"]),
            ({}, ["spec.resourceAttributes"]),
        ):
            self.assertEqual(fields(validate_self_access_review, **spec), wrong)
            self.assertEqual(fields(validate_access_review, user="u", **spec), wrong)

    def test_subject(self) -> None:
        """A review for another user has a user or a group."""
        spec = {"resourceAttributes": RESOURCE}
        self.assertEqual(fields(validate_access_review, **spec), ["spec.user"])
        self.assertEqual(fields(validate_access_review, groups=["g"], **spec), [])

    def test_local(self) -> None:
        """A local review has resources of its namespace."""
        spec = {"user": "u", "resourceAttributes": RESOURCE}
        self.assertEqual(fields(validate_local_access_review, namespace="ns", **spec), [])
        errors = fields(validate_local_access_review, namespace="other", **spec)
        self.assertEqual(errors, ["spec.resourceAttributes.namespace"])
        path = {"user": "u", "nonResourceAttributes": {"path": "/"}}
        self.assertEqual(fields(validate_local_access_review, namespace="ns", **path), ["spec.nonResourceAttributes"])

    def test_metadata(self) -> None:
        """A review has only the metadata that servers add; a local one has a namespace."""
        spec = {"user": "u", "resourceAttributes": RESOURCE}
        self.assertEqual(fields(validate_access_review, namespace="ns", **spec), ["metadata"])
        managed = {"metadata": {"managedFields": [{"manager": "m"}]}, "spec": spec}
        self.assertEqual(validate_access_review(managed), [])

    def test_selectors(self) -> None:
        """A selector has text or requirements, whose values fit the operator; unknown operators are accepted."""
        place = "spec.resourceAttributes.labelSelector"
        for selector, wrong in (
            ({"rawSelector": "a=b"}, []),
            ({}, [f"{place}.requirements"]),
            ({"rawSelector": "a", "requirements": [{"key": "a", "operator": "Exists"}]}, [f"{place}.rawSelector"]),
            ({"requirements": [{"key": "a", "operator": "In"}]}, [f"{place}.requirements[0].values"]),
            (
                {"requirements": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
                [f"{place}.requirements[0].values"],
            ),
            ({"requirements": [{"key": "a", "operator": "Later"}]}, []),
            ({"requirements": [{"key": "a/b/c", "operator": "Exists"}]}, [f"{place}.requirements[0].key"]),
        ):
            spec = {"resourceAttributes": {**RESOURCE, "labelSelector": selector}}
            self.assertEqual(fields(validate_self_access_review, **spec), wrong, selector)
