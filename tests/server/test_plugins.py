"""Tests of L{kubetwist.server.plugins}."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from twisted.plugin import getPlugins
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.api.authorization import AuthorizerAttributes, Decision
from kubetwist.api.resource import UserInfo
from kubetwist.interfaces import (
    IAuthenticatorFactory,
    IAuthorizer,
    IAuthorizerFactory,
    IConversionPlugin,
    IStorageBackendFactory,
)
from kubetwist.server.errors import StartError
from kubetwist.server.plugins import (
    AuthenticatorFactory,
    AuthorizerFactory,
    ConversionPlugin,
    choose_controllers,
    make_authorizer,
    named,
)

ALICE = UserInfo("alice", groups=("system:authenticated",))
MASTER = UserInfo("root", groups=("system:masters",))


class InstalledTests(SynchronousTestCase):
    """Installed plugins."""

    def test_names(self) -> None:
        """All built-in plugins are found, once each."""
        for interface, names in (
            (
                IAuthenticatorFactory,
                {
                    "FrontProxy",
                    "ClientCertificates",
                    "TokenFile",
                    "UserTokens",
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
        """Two plugins with the same name are refused."""
        twice = [AuthorizerFactory("Mine", "a:b"), AuthorizerFactory("Mine", "c:d")]
        error = self.assertRaises(StartError, named, twice, IAuthorizerFactory, "authorizer")
        self.assertEqual(str(error), "two authorizer plugins are called Mine")

    def test_incomplete(self) -> None:
        """A plugin that lacks a part of its interface fails the start with an error that names the part."""

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
            " (The name in --authorization-mode.)",
        )


class ChosenControllersTests(SynchronousTestCase):
    """L{choose_controllers}."""

    def names(self, nodes: int, *words: str) -> set[str]:
        """Return the names of the chosen controllers."""
        return {factory.name for factory in choose_controllers({"controllers": words, "fake-nodes": nodes})}

    def test_fake_nodes(self) -> None:
        """Pretend nodes enable their controller and the scheduler, unless the user disables them."""
        self.assertEqual(self.names(0), set())
        implied = {"pretend-nodes", "kube-scheduler", "node-lifecycle-controller", "taint-eviction-controller"}
        self.assertEqual(self.names(3), implied)
        self.assertEqual(
            self.names(3, "-kube-scheduler", "-nodelifecycle"),
            {*implied} - {"kube-scheduler", "node-lifecycle-controller"},
        )
        self.assertEqual(self.names(3, "*") - self.names(0, "*"), implied)
        self.assertLessEqual({"job-controller", "cronjob-controller"}, self.names(0, "+workloads"))
        error = self.assertRaises(StartError, self.names, 1001)
        self.assertEqual(str(error), "--fake-nodes: the limit is 1000")


class ConversionPluginTests(SynchronousTestCase):
    """L{ConversionPlugin}."""

    def test_lazy(self) -> None:
        """The module of a conversion is imported by its first call."""
        plugin = ConversionPlugin("reversed", "tests.server.lazyconversion:convert")
        verifyObject(IConversionPlugin, plugin)
        self.assertNotIn("tests.server.lazyconversion", sys.modules)
        self.assertEqual(plugin.convert([{"kind": "Kite"}], "a/v2"), [{"kind": "Kite", "apiVersion": "a/v2"}])


class AuthenticatorFactoryTests(SynchronousTestCase):
    """L{AuthenticatorFactory}."""

    def test_off(self) -> None:
        """A module is imported only if one of its options is set."""
        factory = AuthenticatorFactory("Mine", 1, "no.such.module:make", ("a", "b"))
        self.assertIsNone(factory.make({"a": "", "b": ()}, None))
        self.assertRaises(ImportError, factory.make, {"a": "", "b": ("x",)}, None)


class AuthorizationModeTests(SynchronousTestCase):
    """L{make_authorizer}."""

    def allows(self, user: UserInfo, *modes: str) -> bool:
        """Return whether a user may list pods with some modes; Node and RBAC deny here."""
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
        """The default modes are Node and RBAC."""
        self.assertFalse(self.allows(ALICE))
        authorizer: Any = make_authorizer(
            {"authorization-mode": (), "feature-gates": {}}, SimpleNamespace(grants=None, stores=None, reactor=None)
        )
        self.assertEqual([one.name for one in authorizer.authorizers], ["PrivilegedGroup", "Node", "RBAC"])

    def test_order(self) -> None:
        """The first mode with an opinion decides."""
        self.assertTrue(self.allows(ALICE, "AlwaysDeny", "AlwaysAllow"))
        self.assertFalse(self.allows(ALICE, "AlwaysDeny"))

    def test_masters(self) -> None:
        """Members of system:masters are allowed everything in every mode."""
        for modes in ((), ("AlwaysDeny",), ("RBAC",)):
            self.assertTrue(self.allows(MASTER, *modes))

    def test_refusals(self) -> None:
        """Unknown and repeated modes are refused."""
        self.assertRaises(StartError, self.allows, ALICE, "Nobody")
        self.assertRaises(StartError, self.allows, ALICE, "AlwaysAllow", "AlwaysAllow")

    def test_policy_file(self) -> None:
        """A policy file requires the mode ABAC, and the mode requires the file."""
        options: dict[str, Any] = {"authorization-mode": ("RBAC",), "authorization-policy-file": "/x"}
        error = self.assertRaises(StartError, make_authorizer, options, None)
        self.assertEqual(str(error), "cannot specify --authorization-policy-file without mode ABAC")
        options = {"authorization-mode": ("ABAC",), "authorization-policy-file": ""}
        error = self.assertRaises(StartError, make_authorizer, options, None)
        self.assertEqual(str(error), "authorization-mode ABAC's authorization policy file not passed")
