"""Tests for L{kubetwist.api.resource}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource

PARTS = st.text(st.characters(exclude_characters="/", exclude_categories=("Cs",)), max_size=8)


class NameTests(SynchronousTestCase):
    """Tests for identifiers of the API."""

    def test_texts(self) -> None:
        """The core group is omitted in texts."""
        self.assertEqual(str(GroupResource("apps", "deployments")), "deployments.apps")
        self.assertEqual(str(GroupResource("", "pods")), "pods")
        self.assertEqual(str(GroupKind("apps", "Deployment")), "Deployment.apps")
        self.assertEqual(str(GroupKind("", "Pod")), "Pod")
        self.assertEqual(GroupVersionKind("", "v1", "Pod").api_version, "v1")
        self.assertEqual(GroupVersionKind("apps", "v1", "Deployment").api_version, "apps/v1")

    @given(PARTS.filter(bool) | st.just(""), PARTS)
    def test_round_trip(self, group: str, version: str) -> None:
        """A formatted C{apiVersion} is parsed to the same value."""
        self.assertEqual(GroupVersion.parse(str(GroupVersion(group, version))), (group, version))

    def test_slashes(self) -> None:
        """An C{apiVersion} has at most one slash."""
        error = self.assertRaises(ValueError, GroupVersion.parse, "a/b/c")
        self.assertEqual(str(error), "unexpected GroupVersion string: a/b/c")

    def test_parts(self) -> None:
        """Identifiers are converted to less specific ones."""
        resource = GroupVersionResource("apps", "v1", "deployments")
        self.assertEqual(resource.group_version, GroupVersion("apps", "v1"))
        self.assertEqual(resource.group_resource, GroupResource("apps", "deployments"))
        kind = GroupVersionKind("apps", "v1", "Deployment")
        self.assertEqual((kind.group_version, kind.group_kind), (("apps", "v1"), ("apps", "Deployment")))
