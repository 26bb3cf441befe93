"""Tests for L{kubetwist.server.plugins}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.plugin import getPlugins
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.api.authorization import AuthorizerAttributes, Decision
from kubetwist.api.resource import UserInfo
from kubetwist.interfaces import IAuthenticatorFactory, IAuthorizer, IAuthorizerFactory, IStorageBackendFactory
from kubetwist.server.errors import StartError
from kubetwist.server.plugins import AuthenticatorFactory, AuthorizerFactory, choose_controllers, make_authorizer, named

ALICE = UserInfo("alice", groups=("system:authenticated",))
MASTER = UserInfo("root", groups=("system:masters",))


class InstalledTests(SynchronousTestCase):
    """The drop-ins of this package."""

    def test_names(self) -> None:
        """The built-in ones are found as those of others are, each once."""
        for interface, names in (
            (
                IAuthenticatorFactory,
                {
                    "FrontProxy",
                    "ClientCertificates",
                    "TokenFile",
                    "ServiceAccountTokens",
                    "UnclaimedTokens",
                    "Anonymous",
                },
            ),
            (IAuthorizerFactory, {"AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "ABAC", "Webhook"}),
            (IStorageBackendFactory, {"sqlite", "memory"}),
        ):
            factories = named(getPlugins(interface), interface, "test")
            self.assertLessEqual(names, set(factories))
            for factory in factories.values():
                verifyObject(interface, factory)

    def test_twice(self) -> None:
        """Two plugins of the same name are refused."""
        twice = [AuthorizerFactory("Mine", "a:b"), AuthorizerFactory("Mine", "c:d")]
        error = self.assertRaises(StartError, named, twice, IAuthorizerFactory, "authorizer")
        self.assertEqual(str(error), "two authorizer plugins are called Mine")

    def test_incomplete(self) -> None:
        """A plugin that lacks a part of its interface stops the start with one line that names the part."""

        @implementer(IAuthorizer)
        class Incomplete:
            name = "Incomplete"

        @implementer(IAuthorizerFactory)
        class Factory:
            name = "Incomplete"

            def make(self, options: Any, server: Any) -> Any:
                return Incomplete()

        @implementer(IAuthorizerFactory)
        class Nameless:
            def make(self, options: Any, server: Any) -> Any:
                return Incomplete()

        options = {"authorization-mode": ("Incomplete",)}
        error = self.assertRaises(StartError, make_authorizer, options, None, [Factory()])
        self.assertEqual(
            str(error), "the authorizer Incomplete cannot be used: Incomplete lacks the method authorize of IAuthorizer"
        )
        error = self.assertRaises(StartError, make_authorizer, options, None, [Nameless()])
        self.assertEqual(
            str(error),
            "an installed authorizer factory cannot be used: Nameless lacks the attribute name of IAuthorizerFactory"
            " (As in --authorization-mode.)",
        )


class ChosenControllersTests(SynchronousTestCase):
    """Tests for L{choose_controllers}."""

    def names(self, nodes: int, *words: str) -> set[str]:
        """What is chosen."""
        return {factory.name for factory in choose_controllers({"controllers": words, "pretend-nodes": nodes})}

    def test_pretend_nodes(self) -> None:
        """Pretend nodes imply their agent and the scheduler, and nothing else; the user may say otherwise."""
        self.assertEqual(self.names(0), set())
        self.assertEqual(self.names(3), {"pretend-nodes", "kube-scheduler"})
        self.assertEqual(self.names(3, "-kube-scheduler"), {"pretend-nodes"})
        self.assertEqual(self.names(3, "*") - self.names(0, "*"), {"pretend-nodes", "kube-scheduler"})
        self.assertLessEqual({"job-controller", "cronjob-controller"}, self.names(0, "+workloads"))
        error = self.assertRaises(StartError, self.names, 1001)
        self.assertEqual(str(error), "--pretend-nodes: the limit is 1000")


class AuthenticatorFactoryTests(SynchronousTestCase):
    """Tests for L{AuthenticatorFactory}."""

    def test_off(self) -> None:
        """What no option asks for is not even imported."""
        factory = AuthenticatorFactory("Mine", 1, "no.such.module:make", ("a", "b"))
        self.assertIsNone(factory.make({"a": "", "b": ()}, None))
        self.assertRaises(ImportError, factory.make, {"a": "", "b": ("x",)}, None)


class AuthorizationModeTests(SynchronousTestCase):
    """Tests for L{make_authorizer}."""

    def allows(self, user: UserInfo, *modes: str) -> bool:
        """Whether these modes let a user list pods; Node and RBAC allow nothing here."""
        installed: list[Any] = [
            AuthorizerFactory("AlwaysAllow", "kubetwist.authorization.always:make_allow"),
            *(
                AuthorizerFactory(name, "kubetwist.authorization.always:make_deny")
                for name in ("AlwaysDeny", "Node", "RBAC")
            ),
        ]
        authorizer = make_authorizer({"authorization-mode": modes}, None, installed)
        question = AuthorizerAttributes(user, "list", version="v1", resource="pods", path="/api/v1/pods")
        return authorizer.authorize(question).decision is Decision.ALLOW

    def test_default(self) -> None:
        """Without any mode Node and RBAC decide."""
        self.assertFalse(self.allows(ALICE))
        authorizer: Any = make_authorizer(
            {"authorization-mode": (), "feature-gates": {}}, SimpleNamespace(grants=None, stores=None, reactor=None)
        )
        self.assertEqual([one.name for one in authorizer.authorizers], ["PrivilegedGroup", "Node", "RBAC"])

    def test_order(self) -> None:
        """A mode with an opinion counts before those behind it."""
        self.assertTrue(self.allows(ALICE, "AlwaysDeny", "AlwaysAllow"))
        self.assertFalse(self.allows(ALICE, "AlwaysDeny"))

    def test_masters(self) -> None:
        """Members of system:masters may do everything in every mode."""
        for modes in ((), ("AlwaysDeny",), ("RBAC",)):
            self.assertTrue(self.allows(MASTER, *modes))

    def test_refusals(self) -> None:
        """Modes that there are none of, and those that are named twice, are refused."""
        self.assertRaises(StartError, self.allows, ALICE, "Nobody")
        self.assertRaises(StartError, self.allows, ALICE, "AlwaysAllow", "AlwaysAllow")

    def test_policy_file(self) -> None:
        """A policy file goes with the mode ABAC, and that mode with a policy file."""
        options: dict[str, Any] = {"authorization-mode": ("RBAC",), "authorization-policy-file": "/x"}
        error = self.assertRaises(StartError, make_authorizer, options, None)
        self.assertEqual(str(error), "cannot specify --authorization-policy-file without mode ABAC")
        options = {"authorization-mode": ("ABAC",), "authorization-policy-file": ""}
        error = self.assertRaises(StartError, make_authorizer, options, None)
        self.assertEqual(str(error), "authorization-mode ABAC's authorization policy file not passed")
