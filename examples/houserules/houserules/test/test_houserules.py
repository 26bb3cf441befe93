"""Tests of the plugins, alone and in a server that finds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

from houserules.admission import HouseRules
from houserules.authorizer import OwnNamespace
from kubetwist.admission.plugins import PluginInitError
from kubetwist.api.authorization import Decision
from kubetwist.server.errors import StartError
from kubetwist.testing.admission import AdmissionHarness
from kubetwist.testing.authorization import AuthorizerHarness
from kubetwist.testing.trial import KubeAPIMixin

PODS = "/api/v1/namespaces/alice/pods"


NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "alice", "labels": {"example.org/team": "blue"}},
}


def pod(image: str = "registry.example.org/main", **metadata: Any) -> dict[str, Any]:
    """Return a pod."""
    spec = {"containers": [{"name": "main", "image": image}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "alice", **metadata},
        "spec": spec,
    }


class AdmissionTests(SynchronousTestCase):
    """The admission plugin without a server."""

    def harness(self, **configuration: Any) -> AdmissionHarness:
        """Return a harness with a labelled namespace."""
        return AdmissionHarness(HouseRules, configuration, objects=[NAMESPACE])

    def test_label(self) -> None:
        """A new pod gets the label of its namespace."""
        outcome = self.harness().create(pod())
        self.assertTrue(outcome.allowed, outcome)
        labels = {"example.org/team": "blue"}
        self.assertEqual(outcome.patch, [{"op": "add", "path": "/metadata/labels", "value": labels}])

    def test_labelled(self) -> None:
        """A pod that has the label is not changed, nor is a pod of a namespace without it, nor an updated one."""
        harness = self.harness()
        labelled = pod(labels={"example.org/team": "red"})
        for outcome in (
            harness.create(labelled),
            harness.create(pod(namespace="bob")),
            self.harness().update(pod(labels={"a": "b"}), old=pod()),
        ):
            self.assertEqual((outcome.allowed, outcome.patch), (True, []), outcome)

    def test_registries(self) -> None:
        """An image of another registry is refused, with an annotation in the audit event."""
        outcome = self.harness(registries=["registry.example.org/"]).create(pod("elsewhere/a"))
        self.assertTrue(outcome.denied, outcome)
        text = "spec.containers[0]: the image 'elsewhere/a' of container 'main' is not ours"
        self.assertEqual((outcome.code, outcome.message), (403, f'pods "a" is forbidden: {text}'))
        self.assertEqual(outcome.audit_annotations, {"houserules.example.org/refused-image": "elsewhere/a"})

    def test_debugging(self) -> None:
        """Images of ephemeral containers are checked."""
        new = pod()
        new["spec"]["ephemeralContainers"] = [{"name": "d", "image": "elsewhere/d"}]
        harness = self.harness(registries=["registry.example.org/"])
        outcome = harness.update(new, old=pod(), subresource="ephemeralcontainers")
        self.assertTrue(outcome.denied, outcome)

    def test_templates(self) -> None:
        """Images in pod templates are checked; other objects are not handled."""
        harness = self.harness(registries=["registry.example.org/"])
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("elsewhere/a")["spec"]}
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        }
        outcome = harness.create(deployment)
        self.assertIn("spec.template.spec.containers[0]", outcome.message)
        self.assertFalse(harness.create({**NAMESPACE, "metadata": {"name": "bob"}}).handled)

    def test_configuration(self) -> None:
        """An invalid configuration stops the start with the reason."""
        for configuration, reason in (
            ({"registrys": []}, "unknown field: registrys"),
            ({"registries": "x"}, "registries must be a list of prefixes of images"),
        ):
            with self.assertRaises(PluginInitError) as caught:
                AdmissionHarness(HouseRules, configuration)
            self.assertEqual(str(caught.exception), f'couldn\'t init admission plugin "HouseRules": {reason}')


class AuthorizerTests(SynchronousTestCase):
    """The authorizer without a server."""

    def test_namespaces(self) -> None:
        """Users may do everything in the namespace of their name; there is no opinion on other requests."""
        harness = AuthorizerHarness(OwnNamespace())
        self.assertTrue(harness.authorize("alice", "delete", "secrets", namespace="alice").allowed)
        for outcome in (
            harness.authorize("alice", "delete", "secrets", namespace="bob"),
            harness.authorize("alice", "list", "nodes"),
            harness.authorize("alice", "get", path="/metrics"),
        ):
            self.assertIs(outcome.decision, Decision.NO_OPINION)


class HouseRulesTests(KubeAPIMixin, TestCase):
    """The plugins in a server that finds them."""

    async def start(self, **configuration: Any) -> None:
        """Start a server with the plugins and create a labelled namespace."""
        path = Path(self.mktemp())
        plugin = {"name": "HouseRules", "configuration": configuration}
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "apiserver.config.k8s.io/v1",
                    "kind": "AdmissionConfiguration",
                    "plugins": [plugin],
                }
            )
        )
        self.server = await self.startKubeAPI(
            f"--admission-control-config-file={path}",
            "--authorization-mode=OwnNamespace,RBAC",
            "--disable-admission-plugins=ServiceAccount",
        )
        namespace = {"metadata": {"name": "alice", "labels": {"example.org/team": "blue"}}}
        await self.ask("POST", "/api/v1/namespaces", namespace)

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request of the administrator."""
        code, answer = await deferToThread(self.server.request, method, path, body)
        return code, answer

    async def test_label(self) -> None:
        """New pods get the label of their namespace, unless they have one."""
        await self.start()
        pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        _, made = await self.ask("POST", PODS, pod)
        self.assertEqual(made["metadata"]["labels"], {"example.org/team": "blue"})
        pod["metadata"] = {"name": "b", "labels": {"example.org/team": "red"}}
        _, made = await self.ask("POST", PODS, pod)
        self.assertEqual(made["metadata"]["labels"], {"example.org/team": "red"})

    async def test_registries(self) -> None:
        """Images of other registries are refused, in every kind of container and object."""
        await self.start(registries=["registry.example.org/"])
        ours, theirs = {"name": "c", "image": "registry.example.org/c"}, {"name": "i", "image": "elsewhere/i"}
        code, answer = await self.ask("POST", PODS, {"metadata": {"name": "a"}, "spec": {"containers": [ours]}})
        self.assertEqual(code, 201, answer)
        spec = {"containers": [ours], "initContainers": [theirs]}
        code, answer = await self.ask("POST", PODS, {"metadata": {"name": "b"}, "spec": spec})
        why = "spec.initContainers[0]: the image 'elsewhere/i' of init container 'i' is not ours"
        self.assertEqual((code, answer["message"]), (403, f'pods "b" is forbidden: {why}'))
        template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
        deployment = {
            "metadata": {"name": "d"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        }
        code, answer = await self.ask("POST", "/apis/apps/v1/namespaces/alice/deployments", deployment)
        self.assertEqual((code, answer["message"]), (403, f'deployments.apps "d" is forbidden: spec.template.{why}'))

    async def test_configuration(self) -> None:
        """An invalid configuration stops the start with the reason."""
        with self.assertRaises(StartError) as caught:
            await self.start(registrys=[])
        text = 'couldn\'t init admission plugin "HouseRules": unknown field: registrys'
        self.assertEqual(str(caught.exception), text)

    async def test_own_namespace(self) -> None:
        """Users may do everything in their own namespace; RBAC decides for other namespaces."""
        await self.start()
        for namespace, allowed in (("alice", True), ("bob", False)):
            asked = {"verb": "delete", "resource": "secrets", "namespace": namespace}
            review = {"spec": {"user": "alice", "resourceAttributes": asked}}
            _, answer = await self.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
            self.assertEqual(answer["status"]["allowed"], allowed, namespace)
