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
    """The fields of a review that something is wrong with."""
    meta = {"namespace": namespace} if namespace else {}
    return [cause.field for cause in validate({"metadata": meta, "spec": spec})]


class ReviewTests(SynchronousTestCase):
    """Tests for access reviews."""

    def test_one_question(self) -> None:
        """A review asks about a resource or a path, and about one of them."""
        path = {"verb": "get", "path": "/"}
        for asked, wrong in (
            ({"resourceAttributes": RESOURCE}, []),
            ({"nonResourceAttributes": path}, []),
            ({"resourceAttributes": RESOURCE, "nonResourceAttributes": path}, ["spec.nonResourceAttributes"]),
            ({}, ["spec.resourceAttributes"]),
        ):
            self.assertEqual(fields(validate_self_access_review, **asked), wrong)
            self.assertEqual(fields(validate_access_review, user="u", **asked), wrong)

    def test_who(self) -> None:
        """A review of somebody else's rights names a user or a group."""
        asked = {"resourceAttributes": RESOURCE}
        self.assertEqual(fields(validate_access_review, **asked), ["spec.user"])
        self.assertEqual(fields(validate_access_review, groups=["g"], **asked), [])

    def test_local(self) -> None:
        """A local review is about resources of its namespace."""
        asked = {"user": "u", "resourceAttributes": RESOURCE}
        self.assertEqual(fields(validate_local_access_review, namespace="ns", **asked), [])
        found = fields(validate_local_access_review, namespace="other", **asked)
        self.assertEqual(found, ["spec.resourceAttributes.namespace"])
        path = {"user": "u", "nonResourceAttributes": {"path": "/"}}
        self.assertEqual(fields(validate_local_access_review, namespace="ns", **path), ["spec.nonResourceAttributes"])

    def test_metadata(self) -> None:
        """A review has no metadata, but what servers add; a local one has a namespace."""
        asked = {"user": "u", "resourceAttributes": RESOURCE}
        self.assertEqual(fields(validate_access_review, namespace="ns", **asked), ["metadata"])
        managed = {"metadata": {"managedFields": [{"manager": "m"}]}, "spec": asked}
        self.assertEqual(validate_access_review(managed), [])

    def test_selectors(self) -> None:
        """A selector is raw or has requirements, whose values go with their operator; other operators pass."""
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
            asked = {"resourceAttributes": {**RESOURCE, "labelSelector": selector}}
            self.assertEqual(fields(validate_self_access_review, **asked), wrong, selector)
