"""Tests for L{kubetwist.testing.authorization}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, ensureDeferred, succeed
from twisted.internet.task import deferLater
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.interfaces import IAuthorizer
from kubetwist.server.errors import StartError
from kubetwist.server.plugins import AuthorizerFactory
from kubetwist.testing.authorization import AuthorizerHarness
from kubetwist.testing.memory import NoResult

ALLOW = Verdict(Decision.ALLOW, "it is Monday")
ROLES = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]
"""


@implementer(IAuthorizer)
class Stub:
    """Returns the result of a function."""

    name = "Stub"

    def __init__(self, decide: Any) -> None:
        self._decide = decide
        self.seen: list[AuthorizerAttributes] = []

    def authorize(self, attributes: AuthorizerAttributes) -> Any:
        """Call the function."""
        self.seen.append(attributes)
        return self._decide(attributes)


def make(options: Any, server: Any) -> Stub:
    """Return an authorizer that compares a flag and an object with the request."""

    def decide(attributes: AuthorizerAttributes) -> Verdict:
        known = server.stores.get_decoded("", "namespaces", "", attributes.namespace) is not None
        return Verdict(Decision.ALLOW if known and options["profiling"] else Decision.DENY)

    return Stub(decide)


class HarnessTests(SynchronousTestCase):
    """L{AuthorizerHarness}."""

    def test_decisions(self) -> None:
        """The outcome has the decision, the reason, and the error of the client."""
        outcome = AuthorizerHarness(Stub(lambda attributes: ALLOW)).authorize("alice", "get", "pods")
        self.assertEqual((outcome.allowed, outcome.decision, outcome.reason), (True, Decision.ALLOW, "it is Monday"))
        self.assertIsNone(outcome.error)
        denial = Verdict(Decision.DENY, "never")
        outcome = AuthorizerHarness(Stub(lambda attributes: denial)).authorize("alice", "get", "pods", namespace="n")
        self.assertEqual((outcome.allowed, outcome.decision), (False, Decision.DENY))
        assert outcome.error is not None
        self.assertEqual(outcome.error.code, 403)
        text = 'User "alice" cannot get resource "pods" in API group "" in the namespace "n": never'
        self.assertIn(text, outcome.error.message)

    def test_attributes(self) -> None:
        """Attributes have the parts of the request; a name of a user stands for an authenticated user."""
        stub = Stub(lambda attributes: ALLOW)
        harness = AuthorizerHarness(stub)
        harness.authorize(
            "alice",
            "list",
            "deployments.apps",
            subresource="scale",
            namespace="n",
            name="d",
            field_selector="metadata.name=d",
            label_selector="a=b",
        )
        harness.authorize(UserInfo("bob"), "get", path="/healthz")
        first, second = stub.seen
        self.assertEqual(first.user, UserInfo("alice", groups=("system:authenticated",)))
        self.assertEqual(
            (first.group, first.version, first.resource, first.subresource, first.namespace, first.name),
            ("apps", "v1", "deployments", "scale", "n", "d"),
        )
        self.assertEqual(list(first.field_terms), [("metadata.name", "d", True)])
        self.assertEqual(len(first.label_terms), 1)
        self.assertEqual((second.is_resource_request, second.path, second.resource), (False, "/healthz", ""))
        self.assertRaises(ValueError, harness.authorize, "alice", "get")
        self.assertRaises(ValueError, harness.authorize, "alice", "get", "pods", path="/x")

    def test_privileged(self) -> None:
        """Members of system:masters are allowed before the authorizer is called, as in the server."""
        stub = Stub(lambda attributes: Verdict(Decision.DENY))
        user = UserInfo("root", groups=("system:masters",))
        self.assertTrue(AuthorizerHarness(stub).authorize(user, "get", "pods").allowed)
        self.assertEqual(stub.seen, [])

    def test_make(self) -> None:
        """A factory gets the flags and the objects."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
        factory = AuthorizerFactory("Stub", "tests.testing.test_authorization:make")
        for plugin in (make, factory):
            harness = AuthorizerHarness(plugin, objects=[namespace])
            self.assertTrue(harness.authorize("a", "get", "pods", namespace="n").allowed)
            self.assertFalse(harness.authorize("a", "get", "pods", namespace="m").allowed)
            harness = AuthorizerHarness(plugin, "--profiling=false", objects=[namespace])
            self.assertFalse(harness.authorize("a", "get", "pods", namespace="n").allowed)

    def test_installed(self) -> None:
        """An installed authorizer is found by its name: RBAC reads the roles among the objects."""
        harness = AuthorizerHarness("RBAC", objects=ROLES)
        self.assertTrue(harness.authorize("alice", "list", "pods").allowed)
        self.assertFalse(harness.authorize("bob", "list", "pods").allowed)
        self.assertRaises(ValueError, AuthorizerHarness, "Unknown")

    def test_unusable(self) -> None:
        """An object that is no authorizer stops the test as it stops the server."""

        class Nothing:
            name = "Nothing"

        error = self.assertRaises(StartError, AuthorizerHarness, Nothing())
        self.assertIn("the authorizer Nothing cannot be used", str(error))

    def test_deferred(self) -> None:
        """A Deferred is awaited, and the clock advances while the authorizer waits for it."""
        self.assertTrue(AuthorizerHarness(Stub(lambda _: succeed(ALLOW))).authorize("a", "get", "pods").allowed)
        waiting = Stub(lambda _: deferLater(harness.server.clock, 7, lambda: ALLOW))  # type: ignore[arg-type]
        harness = AuthorizerHarness(waiting)
        self.assertTrue(harness.authorize("a", "get", "pods").allowed)

    def test_never(self) -> None:
        """An authorizer that waits for something other than the clock is an error, or awaited."""
        never = Deferred[Verdict]()
        harness = AuthorizerHarness(Stub(lambda _: never))
        self.assertRaises(NoResult, harness.authorize, "a", "get", "pods")
        later = Deferred[Verdict]()
        outcome = ensureDeferred(AuthorizerHarness(Stub(lambda _: later)).authorize_async("a", "get", "pods"))
        later.callback(ALLOW)
        self.assertTrue(self.successResultOf(outcome).allowed)

    def test_wrong_types(self) -> None:
        """A result that is no verdict is an error, also later: True must not be taken for permission."""

        async def coroutine() -> Verdict:
            return ALLOW

        for result in (lambda _: True, lambda _: None, lambda _: succeed(True)):
            with self.assertRaises(TypeError) as caught:
                AuthorizerHarness(Stub(result)).authorize("a", "get", "pods")
            self.assertIn("Stub.authorize returned", str(caught.exception))
        running = coroutine()
        self.assertRaises(TypeError, AuthorizerHarness(Stub(lambda _: running)).authorize, "a", "get", "pods")
        running.close()

    def test_exception(self) -> None:
        """An exception of the authorizer is raised."""

        def fail(attributes: AuthorizerAttributes) -> Verdict:
            raise KeyError("k")

        self.assertRaises(KeyError, AuthorizerHarness(Stub(fail)).authorize, "a", "get", "pods")
