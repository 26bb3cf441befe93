"""Tests of the plugins, alone and in a server that finds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase
from zope.interface.verify import verifyObject

from houserules.admission import HouseRules
from houserules.authorizer import OwnNamespace
from kubetwist.api.errors import APIStatusError
from kubetwist.interfaces import IAuthorizer, IMutatingAdmission, IValidatingAdmission
from kubetwist.server.errors import StartError
from kubetwist.testing.admission import StubServer, write
from kubetwist.testing.trial import KubeAPIMixin

PODS = "/api/v1/namespaces/alice/pods"


class UnitTests(SynchronousTestCase):
    """Unit tests of the plugins."""

    def test_interfaces(self) -> None:
        """The plugins provide the interfaces that they declare."""
        plugin = HouseRules("example.org/team", ())
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        verifyObject(IAuthorizer, OwnNamespace())

    def test_twice(self) -> None:
        """A labelled pod is not changed again."""
        namespace = {"metadata": {"name": "default", "labels": {"example.org/team": "blue"}}}
        server = StubServer().add("", "namespaces", namespace)
        pod = {"metadata": {"name": "a"}, "spec": {"containers": []}}
        for _ in range(2):
            HouseRules("example.org/team", ()).admit(write(pod, server=server))
            self.assertEqual(pod["metadata"], {"name": "a", "labels": {"example.org/team": "blue"}})

    def test_debugging(self) -> None:
        """Images of ephemeral containers are checked, and a refused one is annotated in the audit event."""
        spec = {"containers": [], "ephemeralContainers": [{"name": "d", "image": "elsewhere/d"}]}
        attributes = write(
            {"metadata": {"name": "a"}, "spec": spec}, operation="UPDATE", subresource="ephemeralcontainers"
        )
        with self.assertRaises(APIStatusError):
            HouseRules("example.org/team", ("registry.example.org/",)).validate(attributes)
        self.assertEqual(list(attributes.annotations or {}), ["houserules.example.org/refused-image"])


class HouseRulesTests(KubeAPIMixin, TestCase):
    """Tests for L{houserules}."""

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
