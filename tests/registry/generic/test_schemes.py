"""Tests of L{kubetwist.registry.generic.schemes} and of messages about bodies of other kinds."""

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.generic.codec import Codec
from kubetwist.registry.generic.schemes import SCHEME
from tests.resources.server import definitions


class OtherKindTests(SynchronousTestCase):
    """Tests of bodies of another kind or version than that of the URL."""

    def refused(self, expected: tuple[str, str, str], api_version: str, kind: str) -> str:
        """Return the message for a body of an unexpected kind."""
        gvk = GroupVersionKind(*expected)
        codec = Codec(definitions(), gvk, gvk)
        error = self.assertRaises(APIStatusError, codec.decode, {"apiVersion": api_version, "kind": kind}, [])
        self.assertEqual((error.code, error.reason), (400, "BadRequest"))
        return error.message

    def test_other_versions(self) -> None:
        """The message for another version of a kind names the version, also for its former group."""
        for expected, said in (
            (("autoscaling", "v2", "HorizontalPodAutoscaler"), "autoscaling/v1"),
            (("apps", "v1", "Deployment"), "extensions/v1beta1"),
            (("networking.k8s.io", "v1", "Ingress"), "extensions/v1beta1"),
            (("autoscaling", "v1", "Scale"), "apps/v1beta2"),
            (("", "v1", "Event"), "events.k8s.io/v1"),
            (("events.k8s.io", "v1", "Event"), "v1"),
            (("apps", "v1", "Deployment"), "apps/__internal"),
            (("apiregistration.k8s.io", "v1", "APIService"), "apiregistration.k8s.io/v1beta1"),
        ):
            wanted = GroupVersionKind(*expected).api_version
            text = f"the API version in the data ({said}) does not match the expected API version ({wanted})"
            self.assertEqual(self.refused(expected, said, expected[2]), text)

    def test_unknown_versions(self) -> None:
        """The message for an unknown version or group states that it is not registered."""
        for expected, said, shown in (
            (("autoscaling", "v2", "HorizontalPodAutoscaler"), "autoscaling/v2beta2", "autoscaling/v2beta2"),
            (("apps", "v1", "StatefulSet"), "extensions/v1beta1", "extensions/v1beta1"),
            (("batch", "v1", "Job"), "apps/v1", "apps/v1"),
            (("batch", "v1", "Job"), "/v1", "v1"),
        ):
            found = self.refused(expected, said, expected[2])
            self.assertIn(f'no kind "{expected[2]}" is registered for version "{shown}" in scheme "{SCHEME}"', found)

    def test_other_kinds(self) -> None:
        """The message for another known kind states that it cannot be converted."""
        for said, kind in (("apps/v1", "Deployment"), ("v1", "List"), ("v1", "PodExecOptions")):
            text = f"converting (v1.{kind}) to (batch.Job): unknown conversion"
            self.assertIn(text, self.refused(("batch", "v1", "Job"), said, kind))

    def test_own_schemes(self) -> None:
        """Servers with a separate scheme do not know other groups."""
        text = self.refused(("apiregistration.k8s.io", "v1", "APIService"), "v1", "Pod")
        self.assertIn('no kind "Pod" is registered for version "v1" in scheme "k8s.io/kube-aggregator/', text)

    def test_group_alone(self) -> None:
        """A body with a group but no version has the version of the URL."""
        gvk = GroupVersionKind("apps", "v1", "Deployment")
        decoded = Codec(definitions(), gvk, gvk).decode({"apiVersion": "apps/", "kind": "Deployment"}, [])
        self.assertEqual(decoded["apiVersion"], "apps/v1")
