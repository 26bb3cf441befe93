"""Tests for L{kubetwist.schema.definitions}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind
from kubetwist.schema.definitions import Definitions, UnknownRelease
from kubetwist.schema.releasefiles import available_versions
from tests.schema.release import definitions


class ReleaseTests(SynchronousTestCase):
    """Tests for L{Definitions}."""

    def test_unknown_version(self) -> None:
        """Loading an unknown release fails with a list of the available releases."""
        error = self.assertRaises(UnknownRelease, Definitions.load, "1.2")
        self.assertIn("1.36", str(error))

    def test_every_kind_of_every_version(self) -> None:
        """Every kind of every release compiles, and its zero object decodes to itself."""
        for version in available_versions():
            release = Definitions.load(version)
            for gvk in release.gvks():
                kind = release.type_for(gvk)
                zero = kind.zero()
                problems: list[str] = []
                self.assertEqual(kind.decode(zero, problems), zero, gvk)
                self.assertEqual(problems, [])

    def test_kinds_differ_by_release(self) -> None:
        """A release has the API versions that it served."""
        beta = GroupVersionKind("flowcontrol.apiserver.k8s.io", "v1beta3", "FlowSchema")
        self.assertTrue(Definitions.load("1.28").has_kind(beta))
        self.assertFalse(definitions().has_kind(beta))
        self.assertRaises(KeyError, definitions().type_for, beta)

    def test_types_are_compiled_once(self) -> None:
        """A second call returns the same type."""
        pod = GroupVersionKind("", "v1", "Pod")
        self.assertIs(definitions().type_for(pod), definitions().type_for(pod))
        self.assertEqual(definitions().definition_of(pod), "io.k8s.api.core.v1.Pod")

    def test_description(self) -> None:
        """The description of a field is the release's, and empty for unknown fields and types."""
        pod_ip = definitions().description("io.k8s.api.core.v1.PodStatus", "podIP")
        self.assertIn("IP address allocated to the pod", pod_ip)
        self.assertEqual(definitions().description("io.k8s.api.core.v1.PodStatus", "absent"), "")
        self.assertEqual(definitions().description("io.k8s.api.core.v1.Absent", "podIP"), "")
