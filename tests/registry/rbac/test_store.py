"""Tests of L{kubetwist.registry.rbac.store}, over HTTP in memory."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.interfaces import IAuthorizer
from kubetwist.registry.rbac.ruleresolver import GROUP
from tests.registry.rbac.rbacserver import API, RBACServer, binding, role, rule

NS = f"{API}/namespaces/default"
ROLES, BINDINGS = f"{NS}/roles", f"{NS}/rolebindings"
CLUSTER_ROLES, CLUSTER_BINDINGS = f"{API}/clusterroles", f"{API}/clusterrolebindings"
ALL = ("create", "get", "update", "patch")


@implementer(IAuthorizer)
class WithoutEscalation:
    """An authorizer that allows all verbs except C{escalate} and C{bind}."""

    name = "WithoutEscalation"

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """Decide by the verb."""
        escalates = attributes.verb in ("escalate", "bind")
        return Verdict(Decision.NO_OPINION if escalates else Decision.ALLOW)


class EscalationTestCase(SynchronousTestCase):
    """Base class of tests with a user who may write roles and bindings, and read ConfigMaps."""

    def setUp(self) -> None:
        """Create the user's roles."""
        self.server = RBACServer()
        kinds = "roles rolebindings clusterroles clusterrolebindings"
        self.grant("writer", rule(" ".join(ALL), kinds, [GROUP]), rule("get list", "configmaps"))

    def grant(self, name: str, *rules: Any) -> None:
        """Bind a ClusterRole to Alice."""
        self.server.make(CLUSTER_ROLES, role(name, *rules))
        self.server.make(CLUSTER_BINDINGS, binding(name, f"ClusterRole/{name}", "User/alice"))

    def alice(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the response to a request of Alice."""
        return self.server.ask("alice", method, path, body)

    def assertRefused(self, answer: tuple[int, Any], *missing: str) -> None:
        """Assert that the response rejects the request, and names the missing rules."""
        code, status = answer
        self.assertEqual((code, status["reason"]), (403, "Forbidden"), status)
        message = status["message"]
        self.assertIn(
            'is forbidden: user "alice" (groups=["developers" "qa" "system:authenticated"]) is attempting to grant'
            " RBAC permissions not currently held:\n",
            message,
        )
        self.assertEqual(message.split("held:\n")[1].split("\n"), list(missing))


class RoleTests(EscalationTestCase):
    """Tests of L{RoleStore}."""

    def test_rules_of_user(self) -> None:
        """A user can write roles with rules that the user has."""
        for path in (ROLES, CLUSTER_ROLES):
            self.assertEqual(self.alice("POST", path, role("small", rule("get", "configmaps")))[0], 201)

    def test_rules_not_of_user(self) -> None:
        """Rules that the user lacks are rejected, also in a dry run."""
        big = role("big", rule("get delete", "configmaps secrets"))
        for path in (ROLES, CLUSTER_ROLES, f"{ROLES}?dryRun=All"):
            answer = self.alice("POST", path, big)
            self.assertRefused(
                answer,
                '{APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}',
                '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}',
            )
        self.assertEqual(answer[1]["details"], {"name": "big", "group": GROUP, "kind": "roles"})
        self.assertEqual(self.server.ask("admin", "GET", f"{ROLES}/big")[0], 404)

    def test_invalid(self) -> None:
        """The escalation check precedes validation."""
        self.assertEqual(self.alice("POST", ROLES, role("a/b", rule("get", "secrets")))[0], 403)
        self.assertEqual(self.alice("POST", ROLES, role("a/b", rule("get", "configmaps")))[0], 422)

    def test_updates(self) -> None:
        """Updates must not add rules that the user lacks, by PUT, PATCH, or PUT that creates."""
        self.server.make(ROLES, role("small", rule("get", "configmaps")))
        big = role("small", rule("get", "secrets"))
        missing = '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
        self.assertRefused(self.alice("PUT", f"{ROLES}/small", big), missing)
        self.assertRefused(self.alice("PATCH", f"{ROLES}/small", {"rules": big["rules"]}), missing)
        self.assertRefused(self.alice("PUT", f"{ROLES}/new", {**big, "metadata": {"name": "new"}}), missing)
        self.assertEqual(self.alice("PATCH", f"{ROLES}/small", {"metadata": {"labels": {"a": "b"}}})[0], 200)

    def test_garbage_collection(self) -> None:
        """A change of finalizers and owners alone needs no rules."""
        self.server.make(ROLES, role("big", rule("*", "*")))
        self.assertEqual(self.alice("PATCH", f"{ROLES}/big", {"metadata": {"finalizers": ["a.b/c"]}})[0], 200)
        answer = self.alice("PATCH", f"{ROLES}/big", {"metadata": {"labels": {"a": "b"}}})
        self.assertRefused(answer, '{APIGroups:[""], Resources:["*"], Verbs:["*"]}')

    def test_escalate(self) -> None:
        """A user with the verb C{escalate} can write any role."""
        self.grant("escalator", rule("escalate", "roles", [GROUP]))
        self.assertEqual(self.alice("POST", ROLES, role("big", rule("*", "*")))[0], 201)
        self.assertEqual(self.alice("POST", CLUSTER_ROLES, role("big", rule("*", "*")))[0], 403)

    def test_escalate_named(self) -> None:
        """C{escalate} for a name allows updates of that role, but no creation, which has no name."""
        self.grant("escalator", rule("escalate", "roles", [GROUP], resourceNames=["big"]))
        big = role("big", rule("*", "*"))
        self.assertEqual(self.alice("POST", ROLES, big)[0], 403)
        self.assertEqual(self.alice("PUT", f"{ROLES}/big", big)[0], 201)
        self.assertEqual(self.alice("PUT", f"{ROLES}/other", {**big, "metadata": {"name": "other"}})[0], 403)

    def test_aggregation(self) -> None:
        """Only users with all permissions can write aggregating roles."""
        gathering = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
        code, status = self.alice("POST", CLUSTER_ROLES, {**role("sum"), **gathering})
        self.assertEqual(code, 403)
        self.assertTrue(status["message"].endswith("must have cluster-admin privileges to use the aggregationRule"))
        self.server.make(CLUSTER_ROLES, {**role("sum"), **gathering})
        self.assertEqual(self.alice("PATCH", f"{CLUSTER_ROLES}/sum", {"aggregationRule": None})[0], 403)
        self.grant("everything", rule("*", "*", ["*"]), {"verbs": ["*"], "nonResourceURLs": ["*"]})
        self.assertEqual(self.alice("PATCH", f"{CLUSTER_ROLES}/sum", {"aggregationRule": None})[0], 200)

    def test_repeated(self) -> None:
        """Duplicate rules of a role are reported twice."""
        answer = self.alice("POST", ROLES, role("big", rule("get", "secrets secrets")))
        self.assertRefused(answer, '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "get"]}')

    def test_missing_roles(self) -> None:
        """The error lists missing roles of the user, with the resource that is written."""
        self.server.make(BINDINGS, binding("a", "Role/none", "User/alice"))
        _, status = self.alice("POST", ROLES, role("big", rule("get", "secrets")))
        self.assertTrue(status["message"].endswith(f'; resolution errors: [roles.{GROUP} "none" not found]'))

    def test_other_authorizers(self) -> None:
        """The rules are checked with any authorizer."""
        self.server = RBACServer(WithoutEscalation())
        self.assertEqual(self.alice("POST", ROLES, role("big", rule("get", "secrets")))[0], 403)


class BindingTests(EscalationTestCase):
    """Tests of L{BindingStore}."""

    def setUp(self) -> None:
        """Create two roles, one with rules that the user has."""
        super().setUp()
        self.server.make(CLUSTER_ROLES, role("big", rule("get", "secrets")))
        self.server.make(CLUSTER_ROLES, role("small", rule("get", "configmaps")))

    def test_rules_of_user(self) -> None:
        """A role with rules that the user has can be bound to any subject."""
        for path in (BINDINGS, CLUSTER_BINDINGS):
            self.assertEqual(self.alice("POST", path, binding("a", "ClusterRole/small", "User/bob"))[0], 201)

    def test_rules_not_of_user(self) -> None:
        """Another role cannot be bound, and subjects cannot be added to its binding."""
        missing = '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
        for path in (BINDINGS, CLUSTER_BINDINGS):
            self.assertRefused(self.alice("POST", path, binding("a", "ClusterRole/big", "User/bob")), missing)
        self.server.make(BINDINGS, binding("a", "ClusterRole/big", "User/bob"))
        subjects = {"subjects": [{"kind": "User", "name": "alice"}]}
        self.assertRefused(self.alice("PATCH", f"{BINDINGS}/a", subjects), missing)
        self.assertRefused(self.alice("PUT", f"{BINDINGS}/b", binding("b", "ClusterRole/big", "User/bob")), missing)

    def test_bind(self) -> None:
        """The verb C{bind} for a role, in the namespace of the binding, allows binding it."""
        self.server.make(ROLES, role("binder", rule("bind", "clusterroles", [GROUP], resourceNames=["big"])))
        self.server.make(BINDINGS, binding("binder", "Role/binder", "User/alice"))
        self.assertEqual(self.alice("POST", BINDINGS, binding("a", "ClusterRole/big", "User/bob"))[0], 201)
        self.assertEqual(self.alice("POST", CLUSTER_BINDINGS, binding("a", "ClusterRole/big", "User/bob"))[0], 403)

    def test_no_such_role(self) -> None:
        """A missing role is a 404, a name that no role can have a 400."""
        for path, reference, code, text in (
            (BINDINGS, "Role/none", 404, f'rolebindings.{GROUP} "none" not found'),
            (BINDINGS, "Role/", 400, "Name parameter required."),
            (BINDINGS, "Role/a%b", 400, "Name parameter invalid: \"a%b\": may not contain '%'"),
            (CLUSTER_BINDINGS, "Role/none", 400, "Namespace parameter required."),
            (CLUSTER_BINDINGS, "ClusterRole/..", 400, "Name parameter invalid: \"..\": may not be '..'"),
        ):
            got, status = self.alice("POST", path, binding("a", reference, "User/bob"))
            self.assertEqual((got, status["message"]), (code, text))

    def test_bind_ahead(self) -> None:
        """A user with C{bind} can bind a role that does not exist; other users get a 404."""
        code, status = self.alice("POST", BINDINGS, binding("a", "Role/none", "User/bob"))
        self.assertEqual((code, status["message"]), (404, f'rolebindings.{GROUP} "none" not found'))
        self.grant("binder", rule("bind", "roles", [GROUP]))
        self.assertEqual(self.alice("POST", BINDINGS, binding("a", "Role/none", "User/bob"))[0], 201)

    def test_rules_in_namespace(self) -> None:
        """Rules of a namespace can be granted in that namespace only."""
        self.server.make(BINDINGS, binding("mine", "ClusterRole/big", "User/alice"))
        self.assertEqual(self.alice("POST", BINDINGS, binding("a", "ClusterRole/big", "User/bob"))[0], 201)
        other = f"{API}/namespaces/other/rolebindings"
        self.assertEqual(self.alice("POST", other, binding("a", "ClusterRole/big", "User/bob"))[0], 403)
        self.assertEqual(self.alice("POST", CLUSTER_BINDINGS, binding("a", "ClusterRole/big", "User/bob"))[0], 403)

    def test_role_stays(self) -> None:
        """The role of a binding is immutable, also for the administrator."""
        self.server.make(BINDINGS, binding("a", "ClusterRole/small", "User/bob"))
        code, status = self.server.ask("admin", "PATCH", f"{BINDINGS}/a", {"roleRef": {"name": "big"}})
        self.assertEqual((code, status["details"]["causes"][0]["field"]), (422, "roleRef"))
        self.assertIn("cannot change roleRef", status["message"])

    def test_masters(self) -> None:
        """Members of system:masters can grant everything."""
        self.assertEqual(self.server.ask("admin", "POST", ROLES, role("all", rule("*", "*")))[0], 201)
