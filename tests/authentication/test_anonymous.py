"""Tests for L{kubetwist.authentication.anonymous}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.resource import UserInfo
from kubetwist.authentication import anonymous
from kubetwist.authentication.anonymous import Anonymous
from kubetwist.authentication.configuration import AnonymousConfiguration, AuthenticationConfiguration
from kubetwist.interfaces import IAuthenticator
from tests.authentication.requests import Request


class AnonymousTests(SynchronousTestCase):
    """Tests for L{Anonymous}."""

    options: ClassVar[dict[str, Any]] = {"anonymous-auth": True, "authentication-config": "", "authorization-mode": ()}

    def test_user(self) -> None:
        """Every request has the user system:anonymous."""
        made = anonymous.make(self.options, None)
        assert made is not None
        verifyObject(IAuthenticator, made)
        self.assertEqual(made.authenticate(Request()), UserInfo("system:anonymous", "", ("system:unauthenticated",)))
        self.assertIsNone(anonymous.make({**self.options, "anonymous-auth": False}, None))

    def test_always_allow(self) -> None:
        """Anonymous authentication is disabled with the authorization mode AlwaysAllow."""
        self.assertIsNone(anonymous.make({**self.options, "authorization-mode": ("AlwaysAllow",)}, None))

    def test_file(self) -> None:
        """The configuration file can disable anonymous requests or restrict their paths; without it the flags apply."""
        options = {**self.options, "authentication-config": "x"}

        def made(anonymous_settings: AnonymousConfiguration | None) -> Anonymous | None:
            server = SimpleNamespace(authentication_configuration=AuthenticationConfiguration((), anonymous_settings))
            return anonymous.make(options, server)

        self.assertIsNone(made(AnonymousConfiguration(False)))
        self.assertIsNotNone(made(None))
        some = made(AnonymousConfiguration(True, ("/healthz", "/a b")))
        assert some is not None
        for path, known in ((b"/healthz", True), (b"/a%20b", True), (b"/healthz/", False), (b"/healthz/x", False)):
            request = Request()
            request.path = path
            self.assertEqual(some.authenticate(request) is not None, known, path)
