"""Tests of L{kubetwist.filters.impersonationmodes}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.api.users import split_service_account
from kubetwist.filters.authorization import forbidden
from kubetwist.filters.impersonationmodes import (
    Impersonated,
    ImpersonationDenied,
    ImpersonationModesTracker,
    constrained_modes,
    impersonation_checks,
    with_implied_groups,
)
from tests.filters.requesters import BOSS
from tests.registry.rbac.rbacserver import API, RBACServer, binding, role, rule


class ImpliedGroupsTests(SynchronousTestCase):
    """L{with_implied_groups}."""

    def groups(self, name: str, *groups: str) -> tuple[str, ...]:
        """Return the groups of a user, including the implied ones."""
        return with_implied_groups(UserInfo(name, groups=groups)).groups

    def test_users(self) -> None:
        """Users are in system:authenticated unless they are in system:unauthenticated."""
        self.assertEqual(self.groups("a"), ("system:authenticated",))
        self.assertEqual(self.groups("a", "b"), ("b", "system:authenticated"))
        self.assertEqual(self.groups("a", "system:authenticated"), ("system:authenticated",))
        self.assertEqual(self.groups("a", "system:unauthenticated"), ("system:unauthenticated",))

    def test_anonymous(self) -> None:
        """The anonymous user is in system:unauthenticated."""
        self.assertEqual(self.groups("system:anonymous"), ("system:unauthenticated",))

    def test_service_accounts(self) -> None:
        """A service account is in its default groups unless groups are given."""
        name = "system:serviceaccount:ns:robot"
        own = ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
        self.assertEqual(self.groups(name), own)
        self.assertEqual(self.groups(name, "only"), ("only", "system:authenticated"))

    def test_no_service_account(self) -> None:
        """A name that is not a valid service account belongs to a user."""
        for name in ("ns", "ns:", ":robot", "ns:a:b", "Ns:robot"):
            self.assertIsNone(split_service_account(f"system:serviceaccount:{name}"))


class CheckTests(SynchronousTestCase):
    """L{impersonation_checks}."""

    def test_each_part(self) -> None:
        """Each part of an identity requires a check."""
        target = UserInfo("dave", "u", ("a", "b"), {"k": ("v", "w")})
        result = [(ask.group, ask.resource, ask.subresource, ask.name) for ask in impersonation_checks(BOSS, target)]
        authentication = "authentication.k8s.io"
        self.assertEqual(
            result,
            [
                ("", "users", "", "dave"),
                (authentication, "uids", "", "u"),
                ("", "groups", "", "a"),
                ("", "groups", "", "b"),
                (authentication, "userextras", "k", "v"),
                (authentication, "userextras", "k", "w"),
            ],
        )
        for ask in impersonation_checks(BOSS, target):
            self.assertEqual((ask.user, ask.verb), (BOSS, "impersonate"))

    def test_service_account(self) -> None:
        """A service account is checked in its namespace."""
        (ask,) = impersonation_checks(BOSS, UserInfo("system:serviceaccount:ns:robot"))
        self.assertEqual((ask.resource, ask.namespace, ask.name), ("serviceaccounts", "ns", "robot"))


class ModeTests(SynchronousTestCase):
    """L{ImpersonationModesTracker}; the test case is the authorizer."""

    name = "Rules"
    robot = UserInfo(
        "system:serviceaccount:ns:agent",
        groups=("system:authenticated",),
        extra={"authentication.kubernetes.io/node-name": ("n1",), "authentication.kubernetes.io/pod-name": ("p",)},
    )

    def setUp(self) -> None:
        """Deny all requests."""
        self.authorized: list[AuthorizerAttributes] = []
        self.allowed: set[tuple[str, str, str]] = set()
        self.modes = ImpersonationModesTracker(self, True)

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """Allow the requests in C{allowed}, by verb, resource and name; an empty name matches all."""
        self.authorized.append(attributes)
        verb, resource = attributes.verb, attributes.resource
        allowed = {(verb, resource, attributes.name), (verb, resource, "")} & self.allowed
        return Verdict(Decision.ALLOW if allowed else Decision.NO_OPINION)

    def find(self, target: UserInfo, by: UserInfo = BOSS) -> Impersonated:
        """Return the impersonated user of a request that lists pods."""
        attributes = AuthorizerAttributes(by, "list", version="v1", resource="pods", namespace="ns")
        return self.successResultOf(Deferred.fromCoroutine(self.modes.get_impersonated_user(attributes, target)))  # type: ignore[no-any-return]

    def refused(self, target: UserInfo, by: UserInfo = BOSS) -> str:
        """Return the message for a denied impersonation."""
        attributes = AuthorizerAttributes(by, "list", version="v1", resource="pods", namespace="ns")
        failure = self.failureResultOf(
            Deferred.fromCoroutine(self.modes.get_impersonated_user(attributes, target)), ImpersonationDenied
        )
        refused = failure.value
        assert isinstance(refused, ImpersonationDenied)
        return forbidden(refused.attributes, refused.verdict.reason).message

    def test_constrained(self) -> None:
        """Constrained impersonation requires permission for the user and for the action."""
        self.allowed = {("impersonate-on:user-info:list", "pods", ""), ("impersonate:user-info", "users", "dave")}
        result = self.find(UserInfo("dave"))
        self.assertEqual(result, Impersonated(UserInfo("dave", groups=("system:authenticated",)), "user-info"))
        self.assertEqual(
            [(ask.verb, ask.group, ask.resource, ask.namespace, ask.name) for ask in self.authorized],
            [
                ("impersonate-on:user-info:list", "", "pods", "ns", ""),
                ("impersonate:user-info", "authentication.k8s.io", "users", "", "dave"),
            ],
        )

    def test_refused(self) -> None:
        """The error names the first check; all modes are tried."""
        text = 'User "boss" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "ns"'
        self.assertEqual(self.refused(UserInfo("dave")), f"pods is forbidden: {text}")
        self.assertEqual([ask.verb for ask in self.authorized], ["impersonate-on:user-info:list", "impersonate"])

    def test_legacy_mode(self) -> None:
        """The legacy mode allows every action; it is tried first the next time."""
        self.allowed = {("impersonate", "users", "")}
        for tried in (2, 1):
            self.authorized.clear()
            self.assertEqual(self.find(UserInfo("dave")).constraint, "")
            self.assertEqual(len(self.authorized), tried)
        self.allowed = set()
        text = 'User "boss" cannot impersonate resource "users" in API group "" at the cluster scope'
        self.assertEqual(self.refused(UserInfo("dave")), f'users "dave" is forbidden: {text}')

    def test_off(self) -> None:
        """Without the feature only the legacy mode is tried."""
        self.modes = ImpersonationModesTracker(self, False)
        self.refused(UserInfo("dave"))
        self.assertEqual([ask.verb for ask in self.authorized], ["impersonate"])

    def test_masters(self) -> None:
        """The groups system:masters and the empty group cannot be impersonated in constrained modes."""
        self.allowed = {
            (verb, what, "")
            for verb, what in (
                ("impersonate-on:user-info:list", "pods"),
                ("impersonate:user-info", "users"),
                ("impersonate:user-info", "groups"),
            )
        }
        for group, reason in (
            ("system:masters", "impersonating the system:masters group is not allowed"),
            ("", "impersonating the empty string group is not allowed"),
        ):
            self.assertTrue(self.refused(UserInfo("dave", groups=(group,))).endswith(f"at the cluster scope: {reason}"))
        self.allowed |= {("impersonate", "users", ""), ("impersonate", "groups", "")}
        self.assertEqual(self.find(UserInfo("dave", groups=("system:masters",))).constraint, "")

    def test_many(self) -> None:
        """Four or more groups are checked with a wildcard first, and one by one if it is denied."""
        groups = ("a", "b", "c", "d")
        base = {("impersonate-on:user-info:list", "pods", ""), ("impersonate:user-info", "users", "")}
        for names in (("*",), groups):
            self.allowed = base | {("impersonate:user-info", "groups", name) for name in names}
            self.assertEqual(self.find(UserInfo("dave", groups=groups)).user.groups[:4], groups)
        self.allowed.discard(("impersonate:user-info", "groups", "c"))
        self.assertIn('groups.authentication.k8s.io "c" is forbidden', self.refused(UserInfo("dave", groups=groups)))

    def test_extra(self) -> None:
        """In constrained modes extra values need keys with a domain, and non-empty values."""
        self.allowed = {
            (verb, what, "")
            for verb, what in (
                ("impersonate-on:user-info:list", "pods"),
                ("impersonate:user-info", "users"),
                ("impersonate:user-info", "userextras"),
            )
        }
        for extra, reason in (
            ({"k": ("v",)}, 'extra.key: Invalid value: "k": must be a domain-prefixed path (such as "acme.io/foo")'),
            ({"": ("v",)}, "impersonating the empty string key in extra is not allowed"),
            ({"acme.io/k": ()}, "impersonating empty values in extra is not allowed"),
            ({"acme.io/k": ("",)}, "impersonating the empty string value in extra is not allowed"),
            ({"acme.io/K": ("v",)}, 'impersonating a non-lowercase key in extra is not allowed: "acme.io/K"'),
        ):
            self.assertIn(reason, self.refused(UserInfo("dave", extra=extra)))
        self.find(UserInfo("dave", extra={"acme.io/k": ("v", "w")}))
        self.assertEqual([ask.name for ask in self.authorized[-2:]], ["v", "w"])

    def test_accounts(self) -> None:
        """A service account is impersonated with its default groups only."""
        name = "system:serviceaccount:ns:robot"
        self.allowed = {
            ("impersonate-on:serviceaccount:list", "pods", ""),
            ("impersonate:serviceaccount", "serviceaccounts", "robot"),
        }
        result = self.find(UserInfo(name))
        self.assertEqual(result.constraint, "impersonate:serviceaccount")
        self.assertIn("system:serviceaccounts:ns", result.user.groups)
        self.assertIn("cannot impersonate resource", self.refused(UserInfo(name, groups=("a",))))

    def test_nodes(self) -> None:
        """An impersonated node is in the group system:nodes."""
        self.allowed = {
            ("impersonate-on:arbitrary-node:list", "pods", ""),
            ("impersonate:arbitrary-node", "nodes", "n1"),
        }
        result = self.find(UserInfo("system:node:n1"))
        user = UserInfo("system:node:n1", groups=("system:nodes", "system:authenticated"))
        self.assertEqual(result, Impersonated(user, "arbitrary-node"))
        self.refused(UserInfo("system:node:n2"))

    def test_associated_node(self) -> None:
        """A service account can be allowed to impersonate the node that it runs on."""
        self.allowed = {
            ("impersonate-on:associated-node:list", "pods", ""),
            ("impersonate:associated-node", "nodes", "*"),
        }
        result = self.find(UserInfo("system:node:n1"), self.robot)
        self.assertEqual((result.user.name, result.constraint), ("system:node:n1", "impersonate:associated-node"))
        keys = ("authentication.kubernetes.io/node-name", "authentication.kubernetes.io/pod-name")
        for ask in self.authorized:
            self.assertEqual(ask.user.extra, {"authentication.kubernetes.io/associated-node-keys": keys})
        self.assertIn("impersonate-on:arbitrary-node:list", self.refused(UserInfo("system:node:n2"), self.robot))
        self.assertIn("impersonate-on:arbitrary-node:list", self.refused(UserInfo("system:node:n1")))

    def test_applicable(self) -> None:
        """The applicable modes depend on the kind of the user name."""
        for name, modes in (
            ("dave", ["user-info"]),
            ("system:node:", ["user-info"]),
            ("system:node:N1", ["user-info"]),
            ("system:serviceaccount:ns:", ["user-info"]),
            ("system:node:n1", ["associated-node", "arbitrary-node"]),
            ("system:serviceaccount:ns:a", ["serviceaccount"]),
        ):
            self.assertEqual(list(constrained_modes(self.robot, UserInfo(name))), modes, name)


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


AUTHENTICATION = "authentication.k8s.io"


class ConstrainedImpersonationTests(SynchronousTestCase):
    """Constrained impersonation with RBAC: bob impersonates dave, who may read config maps and secrets."""

    def setUp(self) -> None:
        """Grant dave's permissions."""
        self.server = RBACServer()
        self.grant("dave", "User/dave", rule("get list create", "configmaps secrets"))

    def grant(self, name: str, who: str, *rules: Any) -> None:
        """Grant permissions in all namespaces."""
        self.server.make(f"{API}/clusterroles", role(name, *rules))
        self.server.make(f"{API}/clusterrolebindings", binding(name, f"ClusterRole/{name}", who))

    def list(self, path: str = CONFIG_MAPS, **headers: str) -> tuple[int, Any]:
        """List objects as bob who impersonates dave."""
        return self.server.ask("bob", "GET", path, Impersonate_User="dave", **headers)

    def test_one_action(self) -> None:
        """bob may be allowed to list config maps as dave, and no other resource."""
        self.grant(
            "bob",
            "User/bob",
            rule("impersonate-on:user-info:list", "configmaps"),
            rule("impersonate:user-info", "users", [AUTHENTICATION], resourceNames=["dave"]),
        )
        self.assertEqual(self.list()[0], 200)
        code, answer = self.list(CONFIG_MAPS.replace("configmaps", "secrets"))
        scope = 'in API group "" in the namespace "default"'
        reason = f'User "bob" cannot impersonate-on:user-info:list resource "secrets" {scope}'
        self.assertEqual((code, answer["message"]), (403, f"secrets is forbidden: {reason}"))
        code, answer = self.server.ask("bob", "POST", CONFIG_MAPS, {"metadata": {"name": "x"}}, Impersonate_User="dave")
        self.assertIn("impersonate-on:user-info:create", answer["message"])

    def test_denied_to_target(self) -> None:
        """bob may not do as dave what dave may not do."""
        self.grant(
            "bob",
            "User/bob",
            rule("impersonate-on:user-info:list", "*"),
            rule("impersonate:user-info", "users", [AUTHENTICATION]),
        )
        code, answer = self.list("/api/v1/namespaces")
        self.assertEqual(code, 403)
        self.assertIn('User "dave" cannot list resource "namespaces"', answer["message"])

    def test_other_target(self) -> None:
        """Permission to impersonate eve does not include dave."""
        self.grant(
            "bob",
            "User/bob",
            rule("impersonate-on:user-info:list", "configmaps"),
            rule("impersonate:user-info", "users", [AUTHENTICATION], resourceNames=["eve"]),
        )
        code, answer = self.list()
        self.assertEqual(code, 403)
        scope = f'in API group "{AUTHENTICATION}" at the cluster scope'
        reason = f'User "bob" cannot impersonate:user-info resource "users" {scope}'
        self.assertEqual(answer["message"], f'users.{AUTHENTICATION} "dave" is forbidden: {reason}')

    def test_legacy(self) -> None:
        """The legacy permission allows everything that dave may do."""
        self.grant("bob", "User/bob", rule("impersonate", "users", resourceNames=["dave"]))
        self.assertEqual(self.list()[0], 200)
        self.assertEqual(self.list(CONFIG_MAPS.replace("configmaps", "secrets"))[0], 200)
        self.assertEqual(self.list("/api/v1/namespaces")[0], 403)

    def test_repeated(self) -> None:
        """Two user names are refused before authorization."""
        client = self.server.client()
        names = b"Impersonate-User: dave\r\nImpersonate-User: root\r\n"
        head = f"GET {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n".encode()
        client.send(head + names + b"\r\n")
        (answer,) = client.answers()
        self.assertEqual(answer.code, 400)
