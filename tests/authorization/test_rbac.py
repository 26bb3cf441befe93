"""Tests for L{kubetwist.authorization.rbac} and L{kubetwist.registry.rbac.ruleresolver}."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.namespacelifecycle import NamespaceLifecycle
from kubetwist.api.authorization import AuthorizerAttributes, Decision
from kubetwist.api.resource import UserInfo
from kubetwist.authorization import rbac
from kubetwist.interfaces import IAuthorizer, IRuleResolver
from kubetwist.registry.assembly import ResourceRegistry
from kubetwist.registry.rbac.ruleresolver import GROUP
from kubetwist.storage.errors import RevisionCompacted, StorageUnavailable
from kubetwist.storage.memory import MemoryStorage
from tests.registry.rbac.rbacserver import API, USERS, RBACServer, binding, role, rule

MAPS = "/api/v1/namespaces/default/configmaps"
ROLES, BINDINGS = f"{API}/namespaces/default/roles", f"{API}/namespaces/default/rolebindings"


def reading(user: str, resource: str = "configmaps", namespace: str = "default") -> AuthorizerAttributes:
    """Return the attributes of a list of a resource by a user."""
    return AuthorizerAttributes(USERS[user], "list", version="v1", resource=resource, namespace=namespace)


class RBACTestCase(SynchronousTestCase):
    """A test case with a server."""

    def setUp(self) -> None:
        """Create a server without roles."""
        self.server = RBACServer()
        self.rbac = self.server.rbac

    def allowed(self, attributes: AuthorizerAttributes) -> bool:
        """Return the verdict of RBAC."""
        return self.rbac.authorize(attributes).decision is Decision.ALLOW

    def may_list(self, user: str) -> bool:
        """Return the status code of a list over HTTP."""
        code, _ = self.server.ask(user, "GET", MAPS)
        self.assertIn(code, (200, 403))
        return code == 200


class DecisionTests(RBACTestCase):
    """Tests for L{rbac.RBAC}."""

    def test_interfaces(self) -> None:
        """The authorizer decides and lists its rules."""
        verifyObject(IAuthorizer, self.rbac)
        verifyObject(IRuleResolver, self.rbac)

    def test_scopes(self) -> None:
        """
        A RoleBinding grants a role of either kind in its namespace; a ClusterRoleBinding grants a ClusterRole
        everywhere.
        """
        self.server.make(ROLES, role("maps", rule("list", "configmaps")))
        self.server.make(f"{API}/clusterroles", role("secrets", rule("list", "secrets")))
        self.server.make(BINDINGS, binding("a", "Role/maps", "User/bob"))
        self.server.make(BINDINGS, binding("b", "ClusterRole/secrets", "Group/developers"))
        self.server.make(f"{API}/clusterrolebindings", binding("c", "ClusterRole/secrets", "User/bob"))
        self.assertTrue(self.allowed(reading("bob")))
        self.assertFalse(self.allowed(reading("bob", namespace="other")))
        self.assertTrue(self.allowed(reading("bob", "secrets", "other")))
        self.assertTrue(self.allowed(reading("bob", "secrets", "")))
        self.assertTrue(self.allowed(reading("alice", "secrets")))
        self.assertFalse(self.allowed(reading("alice", "secrets", "")))

    def test_service_accounts(self) -> None:
        """A service account is bound by name and namespace; the default is the binding's namespace."""
        self.server.make(ROLES, role("maps", rule("list", "configmaps")))
        self.server.make(BINDINGS, binding("a", "Role/maps", "ServiceAccount/robot"))
        verdict = self.rbac.authorize(reading("robot"))
        self.assertEqual(
            verdict.reason,
            'RBAC: allowed by RoleBinding "a/default" of Role "maps" to ServiceAccount "robot/default"',
        )

    def test_paths(self) -> None:
        """Paths are allowed by ClusterRoles that are bound cluster-wide."""
        paths = {"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}
        self.server.make(f"{API}/clusterroles", role("logs", paths))
        self.server.make(f"{API}/clusterrolebindings", binding("c", "ClusterRole/logs", "User/bob"))
        for path, verb, expected in (("/logs/a", "get", True), ("/logs/a", "post", False), ("/log", "get", False)):
            attributes = AuthorizerAttributes(USERS["bob"], verb, path=path, is_resource_request=False)
            self.assertEqual(self.allowed(attributes), expected, path)

    def test_reason(self) -> None:
        """The reason has the binding, the role and the first subject that matches the user."""
        self.server.make(f"{API}/clusterroles", role("maps", rule("list", "configmaps")))
        self.server.make(
            f"{API}/clusterrolebindings", binding("c", "ClusterRole/maps", "User/eve", "Group/qa", "User/alice")
        )
        self.assertEqual(
            self.rbac.authorize(reading("alice")).reason,
            'RBAC: allowed by ClusterRoleBinding "c" of ClusterRole "maps" to Group "qa"',
        )

    def test_missing_roles(self) -> None:
        """The verdict lists the missing roles of the user once each."""
        self.server.make(BINDINGS, binding("a", "Role/none", "User/bob", "Group/system:authenticated"))
        one = f'role.{GROUP} "none" not found'
        self.assertEqual(self.rbac.authorize(reading("bob")).reason, f"RBAC: {one}")
        self.server.make(BINDINGS, binding("b", "ClusterRole/gone", "User/bob"))
        self.assertEqual(
            self.rbac.authorize(reading("bob")).reason, f'RBAC: [{one}, clusterrole.{GROUP} "gone" not found]'
        )
        self.assertEqual(self.rbac.authorize(reading("bob", namespace="other")).reason, "")

    def test_many_questions(self) -> None:
        """The number of cached decisions is limited."""
        self.patch(rbac, "CACHE_SIZE", 10)
        for number in range(25):
            self.rbac.authorize(AuthorizerAttributes(USERS["bob"], "get", resource="pods", name=str(number)))
        self.assertLessEqual(len(self.rbac._decisions), 10)

    def test_long_questions(self) -> None:
        """Decisions about long attributes are not cached."""
        long = "x" * 50_000
        anonymous = UserInfo("system:anonymous", groups=("system:unauthenticated",))
        for attributes in (
            AuthorizerAttributes(anonymous, "get", version="v1", resource="pods", namespace="default", name=long),
            AuthorizerAttributes(anonymous, "get", version="v1", resource="pods", namespace=long),
            AuthorizerAttributes(anonymous, "get", version="v1", resource=long),
            AuthorizerAttributes(anonymous, long, version="v1", resource="pods"),
            AuthorizerAttributes(anonymous, "get", path=f"/{long}", is_resource_request=False),
            AuthorizerAttributes(UserInfo(long), "get", version="v1", resource="pods"),
            AuthorizerAttributes(UserInfo("a", groups=(long,)), "get", version="v1", resource="pods"),
        ):
            self.assertFalse(self.allowed(attributes))
        self.assertEqual(len(self.rbac._decisions), 0)
        self.assertFalse(self.allowed(reading("bob")))
        self.assertEqual(len(self.rbac._decisions), 1)

    def test_not_synced(self) -> None:
        """Before the caches are synced no decision is made."""
        clock = Clock()
        registry = ResourceRegistry(MemoryStorage(clock), clock, self.server.infos)
        self.assertRaises(StorageUnavailable, registry.grants.sync)

    def test_refilled(self) -> None:
        """While a cache is refilled its old content is used, afterwards its new content."""
        self.server.make(ROLES, role("maps", rule("list", "configmaps")))
        self.server.make(BINDINGS, binding("a", "Role/maps", "User/bob"))
        self.assertTrue(self.allowed(reading("bob")))
        cache = self.server.stores.get(GROUP, "rolebindings").cache
        cache.ended(RevisionCompacted(1, 2))
        self.assertTrue(self.allowed(reading("bob")))
        self.server.clock.advance(60)
        self.assertTrue(cache.ready)
        self.assertTrue(self.allowed(reading("bob")))
        self.server.ask("admin", "DELETE", f"{BINDINGS}/a")
        self.assertFalse(self.allowed(reading("bob")))

    def test_rules_for(self) -> None:
        """The rules of all bindings are listed, with errors for missing roles."""
        self.server.make(ROLES, role("maps", rule("list", "configmaps", resourceNames=["x"])))
        self.server.make(BINDINGS, binding("a", "Role/maps", "User/bob"))
        self.server.make(BINDINGS, binding("b", "Role/none", "User/bob"))
        paths = {"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}
        self.server.make(f"{API}/clusterroles", role("logs", paths))
        self.server.make(f"{API}/clusterrolebindings", binding("c", "ClusterRole/logs", "User/bob"))
        status = self.rbac.rules_for(USERS["bob"], "default")
        self.assertEqual(status["resourceRules"], [rule("list", "configmaps", resourceNames=["x"])])
        self.assertEqual(status["nonResourceRules"], [paths])
        self.assertEqual(status["evaluationError"], f'role.{GROUP} "none" not found')
        self.assertFalse(status["incomplete"])


class ChangeTests(RBACTestCase):
    """Tests of changes of roles and bindings."""

    def test_roles(self) -> None:
        """A created, changed or deleted role affects the next request."""
        self.server.make(BINDINGS, binding("a", "Role/maps", "User/bob"))
        self.assertFalse(self.may_list("bob"))
        self.server.make(ROLES, role("maps", rule("list", "configmaps")))
        self.assertTrue(self.may_list("bob"))
        self.server.ask("admin", "PATCH", f"{ROLES}/maps", {"rules": [rule("get", "configmaps")]})
        self.assertFalse(self.may_list("bob"))
        self.server.ask("admin", "PATCH", f"{ROLES}/maps", {"rules": [rule("*", "*")]})
        self.assertTrue(self.may_list("bob"))
        self.server.ask("admin", "DELETE", f"{ROLES}/maps")
        self.assertFalse(self.may_list("bob"))

    def test_bindings(self) -> None:
        """A created, changed or deleted binding affects the next request."""
        self.server.make(ROLES, role("maps", rule("list", "configmaps")))
        self.assertFalse(self.may_list("bob"))
        self.server.make(BINDINGS, binding("a", "Role/maps", "User/bob"))
        self.assertTrue(self.may_list("bob"))
        self.assertFalse(self.may_list("alice"))
        self.server.ask("admin", "PATCH", f"{BINDINGS}/a", {"subjects": [{"kind": "Group", "name": "qa"}]})
        self.assertFalse(self.may_list("bob"))
        self.assertTrue(self.may_list("alice"))
        self.server.ask("admin", "DELETE", f"{BINDINGS}/a")
        self.assertFalse(self.may_list("alice"))

    def test_cluster_objects(self) -> None:
        """Created, changed and deleted cluster-wide roles and bindings affect the next request."""
        self.server.make(f"{API}/clusterrolebindings", binding("c", "ClusterRole/maps", "User/bob"))
        self.assertFalse(self.may_list("bob"))
        self.server.make(f"{API}/clusterroles", role("maps", rule("list", "configmaps")))
        self.assertTrue(self.may_list("bob"))
        self.server.ask("admin", "DELETE", f"{API}/clusterrolebindings/c")
        self.assertFalse(self.may_list("bob"))

    def test_no_leak(self) -> None:
        """The indexes contain nothing of deleted bindings."""
        grants = self.server.grants
        self.assertFalse(self.may_list("bob"))
        for name in ("a", "b"):
            self.server.make(BINDINGS, binding(name, "Role/maps", "User/bob", "User/bob", "Group/qa"))
        self.assertEqual((len(grants._bindings), len(grants._bound)), (2, 2))
        for name in ("a", "b"):
            self.server.ask("admin", "DELETE", f"{BINDINGS}/{name}")
        self.assertEqual((grants._bindings, grants._bound), ({}, {}))


people = st.builds(
    UserInfo, st.sampled_from(["alice", "bob"]), st.just(""), st.lists(st.sampled_from("gh"), unique=True).map(tuple)
)
places = st.sampled_from(["", "default", "other"])
bound = st.tuples(places, st.sampled_from(["User/alice", "User/bob", "Group/g", "Group/h"]), st.integers(0, 2))


class UnionTests(SynchronousTestCase):
    """Tests of the union of all bindings of a user."""

    @settings(max_examples=25, deadline=None)
    @given(st.lists(bound, max_size=6), people, places)
    def test_union(self, bindings: list[tuple[str, str, int]], user: UserInfo, where: str) -> None:
        """A user may do what any of their bindings allows, in the namespace or cluster-wide."""
        server = RBACServer()
        resources = ("configmaps", "secrets", "pods")
        for number, resource in enumerate(resources):
            server.make(f"{API}/clusterroles", role(f"r{number}", rule("list", resource)))
        for number, (namespace, who, which) in enumerate(bindings):
            path = f"{API}/namespaces/{namespace}/rolebindings" if namespace else f"{API}/clusterrolebindings"
            server.make(path, binding(f"b{number}", f"ClusterRole/r{which}", who))
        mine: set[Any] = {f"User/{user.name}", *(f"Group/{group}" for group in user.groups)}
        for number, resource in enumerate(resources):
            attributes = AuthorizerAttributes(user, "list", resource=resource, namespace=where)
            expected = any(who in mine and place in ("", where) and which == number for place, who, which in bindings)
            self.assertEqual(server.rbac.authorize(attributes).decision is Decision.ALLOW, expected)


class PromptnessTests(RBACTestCase):
    """Tests of the consistency of writes and later requests."""

    def in_flight(self, user: str, method: str, path: str, body: Any) -> Any:
        """Return a connection with a request in flight."""
        client = self.server.client()
        data = orjson.dumps(body)
        client.send(
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {user}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
            + data
        )
        return client

    def lose_place(self, group: str, resource: str, failures: int = 1) -> None:
        """Make the cache of a resource restart its watch, with failures at the first attempts."""
        cache = self.server.stores.get(group, resource).cache
        fill = cache._fill
        left = [None] * failures

        async def fail_first() -> None:
            if left:
                left.pop()
                raise StorageUnavailable("not yet")
            await fill()

        self.patch(cache, "_fill", fail_first)
        assert cache._source is not None
        cache._source.stop()
        cache.ended(RevisionCompacted(1, 2))
        self.assertFalse(cache.ready)

    def test_many_times(self) -> None:
        """After each of many changes, the next request uses the current roles and bindings."""
        for _ in range(50):
            for make in (
                lambda: self.server.make(ROLES, role("maps", rule("list", "configmaps"))),
                lambda: self.server.make(BINDINGS, binding("a", "Role/maps", "User/bob")),
            ):
                self.assertFalse(self.may_list("bob"))
                make()
            self.assertTrue(self.may_list("bob"))
            for path in (f"{BINDINGS}/a", f"{ROLES}/maps"):
                self.server.ask("admin", "DELETE", path)
                self.assertFalse(self.may_list("bob"))

    def test_lost_place(self) -> None:
        """The response to a write is delayed until a cache that restarts its watch has seen it."""
        self.server.make(ROLES, role("maps", rule("list", "configmaps")))
        self.assertFalse(self.may_list("bob"))
        for lost in ("rolebindings", "clusterroles"):
            self.lose_place(GROUP, lost)
            client = self.in_flight("admin", "POST", BINDINGS, binding(lost, "Role/maps", "User/bob"))
            self.assertEqual(client.answers(), [])
            self.server.clock.advance(1)
            (answer,) = client.answers()
            self.assertEqual(answer.code, 201)
            self.assertTrue(self.may_list("bob"))
            self.server.ask("admin", "DELETE", f"{BINDINGS}/{lost}")
            self.assertFalse(self.may_list("bob"))

    def test_cache_does_not_recover(self) -> None:
        """A cache that does not recover delays a write for a few seconds only."""
        self.assertFalse(self.may_list("bob"))
        self.lose_place(GROUP, "rolebindings", 100)
        client = self.in_flight("admin", "POST", BINDINGS, binding("a", "Role/maps", "User/bob"))
        self.server.clock.pump([1.0] * 10)
        (answer,) = client.answers()
        self.assertEqual(answer.code, 201)

    def test_namespaces(self) -> None:
        """A request after the creation of a namespace finds it, even if the cache restarts its watch."""
        self.server.admit(NamespaceLifecycle())
        for number in range(50):
            self.server.make("/api/v1/namespaces", {"metadata": {"name": f"ns-{number}"}})
            self.server.make(f"/api/v1/namespaces/ns-{number}/configmaps", {"metadata": {"name": "x"}})
        self.lose_place("", "namespaces")
        client = self.in_flight("admin", "POST", "/api/v1/namespaces", {"metadata": {"name": "late"}})
        self.assertEqual(client.answers(), [])
        self.server.clock.advance(1)
        self.assertEqual([answer.code for answer in client.answers()], [201])
        self.server.make("/api/v1/namespaces/late/configmaps", {"metadata": {"name": "x"}})
