"""Acting as somebody else over HTTP, where RBAC says what is allowed."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.rbac.rbacserver import API, RBACServer, binding, role, rule

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
AUTHENTICATION = "authentication.k8s.io"


class ConstrainedImpersonationTests(SynchronousTestCase):
    """bob may act as dave, who may read config maps and secrets."""

    def setUp(self) -> None:
        """What dave may do."""
        self.server = RBACServer()
        self.grant("dave", "User/dave", rule("get list create", "configmaps secrets"))

    def grant(self, name: str, who: str, *rules: Any) -> None:
        """Allow somebody something, everywhere."""
        self.server.make(f"{API}/clusterroles", role(name, *rules))
        self.server.make(f"{API}/clusterrolebindings", binding(name, f"ClusterRole/{name}", who))

    def list(self, path: str = CONFIG_MAPS, **headers: str) -> tuple[int, Any]:
        """List something as bob who acts as dave."""
        return self.server.ask("bob", "GET", path, Impersonate_User="dave", **headers)

    def test_some_things(self) -> None:
        """He may be allowed to list config maps as dave, and nothing else that dave may do."""
        self.grant(
            "bob",
            "User/bob",
            rule("impersonate-on:user-info:list", "configmaps"),
            rule("impersonate:user-info", "users", [AUTHENTICATION], resourceNames=["dave"]),
        )
        self.assertEqual(self.list()[0], 200)
        code, answer = self.list(CONFIG_MAPS.replace("configmaps", "secrets"))
        where = 'in API group "" in the namespace "default"'
        why = f'User "bob" cannot impersonate-on:user-info:list resource "secrets" {where}'
        self.assertEqual((code, answer["message"]), (403, f"secrets is forbidden: {why}"))
        code, answer = self.server.ask("bob", "POST", CONFIG_MAPS, {"metadata": {"name": "x"}}, Impersonate_User="dave")
        self.assertIn("impersonate-on:user-info:create", answer["message"])

    def test_no_more_than_the_other(self) -> None:
        """What dave may not do bob may not do as him, whatever bob may do as others."""
        self.grant(
            "bob",
            "User/bob",
            rule("impersonate-on:user-info:list", "*"),
            rule("impersonate:user-info", "users", [AUTHENTICATION]),
        )
        code, answer = self.list("/api/v1/namespaces")
        self.assertEqual(code, 403)
        self.assertIn('User "dave" cannot list resource "namespaces"', answer["message"])

    def test_somebody_else(self) -> None:
        """He is not allowed to act as anybody else by that."""
        self.grant(
            "bob",
            "User/bob",
            rule("impersonate-on:user-info:list", "configmaps"),
            rule("impersonate:user-info", "users", [AUTHENTICATION], resourceNames=["eve"]),
        )
        code, answer = self.list()
        self.assertEqual(code, 403)
        where = f'in API group "{AUTHENTICATION}" at the cluster scope'
        why = f'User "bob" cannot impersonate:user-info resource "users" {where}'
        self.assertEqual(answer["message"], f'users.{AUTHENTICATION} "dave" is forbidden: {why}')

    def test_everything(self) -> None:
        """Who may impersonate as it has always been may do all that the other may."""
        self.grant("bob", "User/bob", rule("impersonate", "users", resourceNames=["dave"]))
        self.assertEqual(self.list()[0], 200)
        self.assertEqual(self.list(CONFIG_MAPS.replace("configmaps", "secrets"))[0], 200)
        self.assertEqual(self.list("/api/v1/namespaces")[0], 403)

    def test_repeated(self) -> None:
        """Two names are refused before anybody is asked."""
        client = self.server.client()
        names = b"Impersonate-User: dave\r\nImpersonate-User: root\r\n"
        head = f"GET {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n".encode()
        client.send(head + names + b"\r\n")
        (answer,) = client.answers()
        self.assertEqual(answer.code, 400)
