"""Tests for L{kubetwist.registry.rbac.store}, over HTTP in memory."""

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
    """Allows everything but what the two verbs that are made for this allow."""

    name = "WithoutEscalation"

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """Decide by the verb."""
        escalates = attributes.verb in ("escalate", "bind")
        return Verdict(Decision.NO_OPINION if escalates else Decision.ALLOW)


class EscalationTestCase(SynchronousTestCase):
    """A test with a user who may write roles and bindings, and read ConfigMaps."""

    def setUp(self) -> None:
        """Let her."""
        self.server = RBACServer()
        kinds = "roles rolebindings clusterroles clusterrolebindings"
        self.grant("writer", rule(" ".join(ALL), kinds, [GROUP]), rule("get list", "configmaps"))

    def grant(self, name: str, *rules: Any) -> None:
        """Give Alice a cluster role everywhere."""
        self.server.make(CLUSTER_ROLES, role(name, *rules))
        self.server.make(CLUSTER_BINDINGS, binding(name, f"ClusterRole/{name}", "User/alice"))

    def alice(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """What the server answers to Alice."""
        return self.server.ask("alice", method, path, body)

    def assertRefused(self, answer: tuple[int, Any], *missing: str) -> None:
        """She is told that she does not hold these rules."""
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
    """Tests for L{RoleStore}."""

    def test_held(self) -> None:
        """Whoever holds rules can put them in roles."""
        for path in (ROLES, CLUSTER_ROLES):
            self.assertEqual(self.alice("POST", path, role("small", rule("get", "configmaps")))[0], 201)

    def test_not_held(self) -> None:
        """Rules that the writer does not hold are refused, also in a dry run."""
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
        """What may not be given away is not looked at any further."""
        self.assertEqual(self.alice("POST", ROLES, role("a/b", rule("get", "secrets")))[0], 403)
        self.assertEqual(self.alice("POST", ROLES, role("a/b", rule("get", "configmaps")))[0], 422)

    def test_updates(self) -> None:
        """Updates must not add what the writer does not hold, by PUT or PATCH, or PUT where nothing is."""
        self.server.make(ROLES, role("small", rule("get", "configmaps")))
        big = role("small", rule("get", "secrets"))
        missing = '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
        self.assertRefused(self.alice("PUT", f"{ROLES}/small", big), missing)
        self.assertRefused(self.alice("PATCH", f"{ROLES}/small", {"rules": big["rules"]}), missing)
        self.assertRefused(self.alice("PUT", f"{ROLES}/new", {**big, "metadata": {"name": "new"}}), missing)
        self.assertEqual(self.alice("PATCH", f"{ROLES}/small", {"metadata": {"labels": {"a": "b"}}})[0], 200)

    def test_garbage_collection(self) -> None:
        """Whoever changes nothing but finalizers and owners needs not hold the rules."""
        self.server.make(ROLES, role("big", rule("*", "*")))
        self.assertEqual(self.alice("PATCH", f"{ROLES}/big", {"metadata": {"finalizers": ["a.b/c"]}})[0], 200)
        answer = self.alice("PATCH", f"{ROLES}/big", {"metadata": {"labels": {"a": "b"}}})
        self.assertRefused(answer, '{APIGroups:[""], Resources:["*"], Verbs:["*"]}')

    def test_escalate(self) -> None:
        """The verb C{escalate} lets its owner write any role."""
        self.grant("escalator", rule("escalate", "roles", [GROUP]))
        self.assertEqual(self.alice("POST", ROLES, role("big", rule("*", "*")))[0], 201)
        self.assertEqual(self.alice("POST", CLUSTER_ROLES, role("big", rule("*", "*")))[0], 403)

    def test_escalate_named(self) -> None:
        """C{escalate} on a name is good for updates of that role, and not for creating, where there is no name."""
        self.grant("escalator", rule("escalate", "roles", [GROUP], resourceNames=["big"]))
        big = role("big", rule("*", "*"))
        self.assertEqual(self.alice("POST", ROLES, big)[0], 403)
        self.assertEqual(self.alice("PUT", f"{ROLES}/big", big)[0], 201)
        self.assertEqual(self.alice("PUT", f"{ROLES}/other", {**big, "metadata": {"name": "other"}})[0], 403)

    def test_aggregation(self) -> None:
        """Only who may do everything can let a role gather rules, or change one that does."""
        gathering = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
        code, status = self.alice("POST", CLUSTER_ROLES, {**role("sum"), **gathering})
        self.assertEqual(code, 403)
        self.assertTrue(status["message"].endswith("must have cluster-admin privileges to use the aggregationRule"))
        self.server.make(CLUSTER_ROLES, {**role("sum"), **gathering})
        self.assertEqual(self.alice("PATCH", f"{CLUSTER_ROLES}/sum", {"aggregationRule": None})[0], 403)
        self.grant("everything", rule("*", "*", ["*"]), {"verbs": ["*"], "nonResourceURLs": ["*"]})
        self.assertEqual(self.alice("PATCH", f"{CLUSTER_ROLES}/sum", {"aggregationRule": None})[0], 200)

    def test_repeated(self) -> None:
        """What a role names twice is told twice."""
        answer = self.alice("POST", ROLES, role("big", rule("get", "secrets secrets")))
        self.assertRefused(answer, '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "get"]}')

    def test_missing_roles(self) -> None:
        """A refusal tells which of the writer's roles were not found, by the name of what she writes."""
        self.server.make(BINDINGS, binding("a", "Role/none", "User/alice"))
        _, status = self.alice("POST", ROLES, role("big", rule("get", "secrets")))
        self.assertTrue(status["message"].endswith(f'; resolution errors: [roles.{GROUP} "none" not found]'))

    def test_other_authorizers(self) -> None:
        """The rules are compared whoever authorized the request."""
        self.server = RBACServer(WithoutEscalation())
        self.assertEqual(self.alice("POST", ROLES, role("big", rule("get", "secrets")))[0], 403)


class BindingTests(EscalationTestCase):
    """Tests for L{BindingStore}."""

    def setUp(self) -> None:
        """Two roles, of which she holds one."""
        super().setUp()
        self.server.make(CLUSTER_ROLES, role("big", rule("get", "secrets")))
        self.server.make(CLUSTER_ROLES, role("small", rule("get", "configmaps")))

    def test_held(self) -> None:
        """A role whose rules the writer holds can be bound to anyone."""
        for path in (BINDINGS, CLUSTER_BINDINGS):
            self.assertEqual(self.alice("POST", path, binding("a", "ClusterRole/small", "User/bob"))[0], 201)

    def test_not_held(self) -> None:
        """Any other role can not, not even to more people than have it already."""
        missing = '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
        for path in (BINDINGS, CLUSTER_BINDINGS):
            self.assertRefused(self.alice("POST", path, binding("a", "ClusterRole/big", "User/bob")), missing)
        self.server.make(BINDINGS, binding("a", "ClusterRole/big", "User/bob"))
        subjects = {"subjects": [{"kind": "User", "name": "alice"}]}
        self.assertRefused(self.alice("PATCH", f"{BINDINGS}/a", subjects), missing)
        self.assertRefused(self.alice("PUT", f"{BINDINGS}/b", binding("b", "ClusterRole/big", "User/bob")), missing)

    def test_bind(self) -> None:
        """The verb C{bind} on a role, in the namespace of the binding, lets its owner bind it."""
        self.server.make(ROLES, role("binder", rule("bind", "clusterroles", [GROUP], resourceNames=["big"])))
        self.server.make(BINDINGS, binding("binder", "Role/binder", "User/alice"))
        self.assertEqual(self.alice("POST", BINDINGS, binding("a", "ClusterRole/big", "User/bob"))[0], 201)
        self.assertEqual(self.alice("POST", CLUSTER_BINDINGS, binding("a", "ClusterRole/big", "User/bob"))[0], 403)

    def test_no_such_role(self) -> None:
        """A role that is not there is not found; what can be the name of none is a bad request."""
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
        """Who may C{bind} can do so before there is a role; who may not is told that it is not there."""
        code, status = self.alice("POST", BINDINGS, binding("a", "Role/none", "User/bob"))
        self.assertEqual((code, status["message"]), (404, f'rolebindings.{GROUP} "none" not found'))
        self.grant("binder", rule("bind", "roles", [GROUP]))
        self.assertEqual(self.alice("POST", BINDINGS, binding("a", "Role/none", "User/bob"))[0], 201)

    def test_rules_in_namespace(self) -> None:
        """Rules that are held in a namespace can be given away there, and nowhere else."""
        self.server.make(BINDINGS, binding("mine", "ClusterRole/big", "User/alice"))
        self.assertEqual(self.alice("POST", BINDINGS, binding("a", "ClusterRole/big", "User/bob"))[0], 201)
        other = f"{API}/namespaces/other/rolebindings"
        self.assertEqual(self.alice("POST", other, binding("a", "ClusterRole/big", "User/bob"))[0], 403)
        self.assertEqual(self.alice("POST", CLUSTER_BINDINGS, binding("a", "ClusterRole/big", "User/bob"))[0], 403)

    def test_role_stays(self) -> None:
        """What a binding binds can not be changed, by the administrator neither."""
        self.server.make(BINDINGS, binding("a", "ClusterRole/small", "User/bob"))
        code, status = self.server.ask("admin", "PATCH", f"{BINDINGS}/a", {"roleRef": {"name": "big"}})
        self.assertEqual((code, status["details"]["causes"][0]["field"]), (422, "roleRef"))
        self.assertIn("cannot change roleRef", status["message"])

    def test_masters(self) -> None:
        """Members of system:masters can give away everything."""
        self.assertEqual(self.server.ask("admin", "POST", ROLES, role("all", rule("*", "*")))[0], 201)
