"""Tests of the file, of the authorizer, and of a server that uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase
from twisted.web.http_headers import Headers
from zope.interface.verify import verifyObject

from kubetwist.api.authorization import Decision
from kubetwist.api.resource import UserInfo
from kubetwist.interfaces import IRuleResolver
from kubetwist.server.errors import StartError
from kubetwist.testing.authorization import AuthorizerHarness
from kubetwist.testing.trial import KubeAPIMixin
from namespaceowners.rules import read_configuration

LABEL = "example.org/owner"
FILE = """
label = "example.org/owner"
[[rules]]
apiGroups = [""]
resources = ["pods", "pods/log"]
verbs = ["get", "delete"]
"""
RULE = {"verbs": ["get", "delete"], "apiGroups": [""], "resources": ["pods", "pods/log"]}
ALICE = UserInfo("alice", groups=("team-shop", "system:authenticated"))
BOB = UserInfo("bob", groups=("team-mail", "system:authenticated"))


class FileTests(SynchronousTestCase):
    """The configuration file."""

    def test_read(self) -> None:
        """A file has a label and rules as in a Role."""
        configuration = read_configuration(FILE.encode())
        self.assertEqual((configuration.label, configuration.rules.rules), (LABEL, [RULE]))

    def test_invalid(self) -> None:
        """An invalid file is refused with the place and the reason."""
        for content, reason in (
            ("", "label must be the name of a label"),
            (f"label = '{LABEL}'\nrule = 1", "unknown field: rule"),
            (f"label = '{LABEL}'\nrules = 1", "rules must be a list of tables"),
            (f"label = '{LABEL}'\nrules = [1]", "rules[0]: it is not a table"),
            (FILE + "users = []", "rules[0]: unknown field: users"),
            (FILE.replace('["get", "delete"]', '"get"'), "rules[0]: verbs must be a list of texts"),
            (FILE.replace('[""]', "[]"), "rules[0]: apiGroups is missing"),
        ):
            error = self.assertRaises(ValueError, read_configuration, content.encode())
            self.assertEqual(str(error), reason)
        for damaged in (b"[", b"\xff"):
            self.assertRaises(ValueError, read_configuration, damaged)

    def test_namespaces(self) -> None:
        """Rules with which owners could change who owns a namespace are refused."""
        for resource in ("*", "*/status", "namespaces", "namespaces/finalize"):
            content = FILE.replace("pods/log", resource)
            error = self.assertRaises(ValueError, read_configuration, content.encode())
            self.assertIn(f"resources must not contain {resource}", str(error))


class AuthorizerTests(SynchronousTestCase):
    """The authorizer without a server."""

    NAMESPACES = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {example.org/owner: team-shop}}
---
apiVersion: v1
kind: Namespace
metadata: {name: plain}
---
apiVersion: v1
kind: Namespace
metadata: {name: empty, labels: {example.org/owner: ""}}
"""

    def setUp(self) -> None:
        """Create an authorizer and namespaces."""
        path = Path(self.mktemp())
        path.write_text(FILE)
        flag = f"--plugin-config-file=NamespaceOwners={path}"
        self.harness = AuthorizerHarness("NamespaceOwners", flag, objects=self.NAMESPACES)

    def decide(self, user: UserInfo, verb: str, resource: str, namespace: str, **more: str) -> Decision:
        """Return the decision on a request for a resource."""
        return self.harness.authorize(user, verb, resource, namespace=namespace, **more).decision

    def test_interfaces(self) -> None:
        """The authorizer lists its rules."""
        verifyObject(IRuleResolver, self.harness.authorizer)

    def test_owner(self) -> None:
        """Owners may do what the rules allow in their namespace; there is no opinion on other requests."""
        self.assertIs(self.decide(ALICE, "delete", "pods", "shop"), Decision.ALLOW)
        self.assertIs(self.decide(ALICE, "get", "pods", "shop", subresource="log"), Decision.ALLOW)
        for user, verb, resource, namespace in (
            (ALICE, "create", "pods", "shop"),
            (ALICE, "get", "secrets", "shop"),
            (ALICE, "get", "pods.metrics.k8s.io", "shop"),
            (ALICE, "update", "namespaces", "shop"),
            (ALICE, "get", "pods", "plain"),
            (ALICE, "get", "pods", "missing"),
            (ALICE, "get", "pods", ""),
            (BOB, "get", "pods", "shop"),
        ):
            self.assertIs(self.decide(user, verb, resource, namespace), Decision.NO_OPINION, (verb, resource))
        self.assertIs(self.harness.authorize(ALICE, "get", path="/metrics").decision, Decision.NO_OPINION)

    def test_reason(self) -> None:
        """The reason, which is in audit events, names the group and the namespace."""
        outcome = self.harness.authorize(ALICE, "get", "pods", namespace="shop")
        self.assertEqual(outcome.reason, "the group team-shop owns the namespace shop")

    def test_empty_label(self) -> None:
        """A namespace whose label is empty has no owner, not even a user with an empty group."""
        self.assertIs(self.decide(UserInfo("eve", groups=("",)), "get", "pods", "empty"), Decision.NO_OPINION)

    def test_rules(self) -> None:
        """The rules of a user are listed for namespaces that the user owns."""
        authorizer: Any = self.harness.authorizer
        for user, namespace, rules in ((ALICE, "shop", [RULE]), (ALICE, "plain", []), (BOB, "shop", [])):
            status = authorizer.rules_for(user, namespace)
            self.assertEqual((status["resourceRules"], status["incomplete"]), (rules, False))

    def test_no_file(self) -> None:
        """Without a file the server does not start."""
        error = self.assertRaises(StartError, AuthorizerHarness, "NamespaceOwners")
        reason = "the authorizer NamespaceOwners needs --plugin-config-file=NamespaceOwners=PATH"
        self.assertEqual(str(error), reason)


class ServerTests(KubeAPIMixin, TestCase):
    """A server with the authorizer."""

    async def start(self, content: str) -> None:
        """Start a server with a file, and create a namespace."""
        self.path = Path(self.mktemp())
        self.path.write_text(content)
        self.server = await self.startKubeAPI(
            "--authorization-mode=NamespaceOwners,RBAC", f"--plugin-config-file=NamespaceOwners={self.path}"
        )
        await self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "shop", "labels": {LABEL: "team-shop"}}})

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request of the administrator."""
        return await deferToThread(self.server.request, method, path, body)

    async def is_allowed(self, **attributes: str) -> bool:
        """Return whether a member of the team may send a request."""
        spec = {"user": "alice", "groups": ["team-shop"], "resourceAttributes": attributes}
        _, review = await self.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
        allowed: bool = review["status"]["allowed"]
        return allowed

    async def test_requests(self) -> None:
        """Owners may do what the file allows, until the namespace has another owner or the file changes."""
        await self.start(FILE)
        self.assertTrue(await self.is_allowed(verb="delete", resource="pods", namespace="shop"))
        self.assertFalse(await self.is_allowed(verb="delete", resource="pods", namespace="default"))
        self.path.write_text(FILE.replace('"pods"', '"secrets"'))
        await self.server.reload_files()
        self.assertFalse(await self.is_allowed(verb="delete", resource="pods", namespace="shop"))
        self.assertTrue(await self.is_allowed(verb="delete", resource="secrets", namespace="shop"))
        await self.ask("PUT", "/api/v1/namespaces/shop", {"metadata": {"name": "shop"}})
        self.assertFalse(await self.is_allowed(verb="delete", resource="secrets", namespace="shop"))

    async def test_invalid_change(self) -> None:
        """A file that becomes invalid is logged, and the previous rules stay in use."""
        await self.start(FILE)
        self.path.write_text("label = 1")
        await self.server.reload_files()
        self.assertTrue(await self.is_allowed(verb="delete", resource="pods", namespace="shop"))

    async def test_list(self) -> None:
        """C{kubectl auth can-i --list} shows the rules of an owner, and that they are complete."""
        await self.start(FILE)
        client = self.server.connection.treq()
        headers = Headers({"Impersonate-User": ["alice"], "Impersonate-Group": ["team-shop"]})
        path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        for namespace, listed in (("shop", True), ("default", False)):
            response = await client.post(path, json={"spec": {"namespace": namespace}}, headers=headers)
            status = (await response.json())["status"]
            self.assertEqual((RULE in status["resourceRules"], status["incomplete"]), (listed, False))
