"""Tests for L{kubetwist.authorization.reload}."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import maybeDeferred
from twisted.internet.task import Clock
from zope.interface.verify import verifyObject

from kubetwist.api.authorization import AuthorizerAttributes, Decision
from kubetwist.api.resource import UserInfo
from kubetwist.authorization import always
from kubetwist.authorization.reload import ReloadableAuthorizer
from kubetwist.client.factory import ClientFactory
from kubetwist.interfaces import IAuthorizer, IRuleResolver
from kubetwist.server.watchedfiles import POLL_INTERVAL, FileReloader
from tests.authorization.configurationcase import KNOWN, KUBECONFIG, ConfigurationCase


class ReloadTests(ConfigurationCase):
    """Tests for L{ReloadableAuthorizer}."""

    def setUp(self) -> None:
        """Create the files and the server."""
        super().setUp()
        self.clock = Clock()
        self.path = self.folder / "config"
        self.files = FileReloader(self.clock, in_thread=lambda call: maybeDeferred(call))
        self.lines: list[str] = []
        self.files._log = self  # type: ignore[assignment]
        self.files.start()
        self.addCleanup(self.files.stop)
        self.made: list[str] = []

    def error(self, text: str, **fields: Any) -> None:
        """Record an error."""
        self.lines.append(text.format(**fields))

    def info(self, text: str, **fields: Any) -> None:
        """Ignore an information."""

    def make(self, kind: str) -> Any:
        """Return an authorizer of a type other than webhook."""
        self.made.append(kind)
        return always.make_allow({}, None) if kind == "AlwaysAllow" else always.make_deny({}, None)

    def start(self, *authorizers: Any) -> ReloadableAuthorizer:
        """Read a file at the start."""
        self.path.write_bytes(self.document(*authorizers))
        authorizer = ReloadableAuthorizer(self.clock, ClientFactory(self.clock, lambda *_: None), KNOWN, self.make)
        authorizer.read(self.files, str(self.path))
        return authorizer

    def change(self, *authorizers: Any) -> None:
        """Change the file."""
        self.path.write_bytes(self.document(*authorizers))
        self.clock.advance(POLL_INTERVAL)

    def names(self, authorizer: ReloadableAuthorizer) -> list[str]:
        """Return the names of the authorizers."""
        return [one.name for one in authorizer.authorizers]

    def test_interfaces(self) -> None:
        """The authorizer implements its interfaces."""
        authorizer = self.start({"type": "RBAC", "name": "rbac"})
        verifyObject(IAuthorizer, authorizer)
        verifyObject(IRuleResolver, authorizer)

    def test_reload(self) -> None:
        """A new file affects the next request; authorizers other than webhooks are kept."""
        rbac = {"type": "RBAC", "name": "rbac"}
        authorizer = self.start(rbac)
        before = authorizer.authorizers[1]
        attributes = AuthorizerAttributes(UserInfo("jane"), "get", resource="pods")
        self.assertIs(authorizer.authorize(attributes).decision, Decision.NO_OPINION)  # type: ignore[union-attr]
        self.change(rbac, {"type": "AlwaysAllow", "name": "alwaysallow"})
        self.assertIs(authorizer.authorizers[1], before)
        self.assertIs(authorizer.authorize(attributes).decision, Decision.ALLOW)  # type: ignore[union-attr]
        self.change(self.webhook(), rbac)
        self.assertEqual(self.names(authorizer), ["PrivilegedGroup", "Webhook", "AlwaysDeny"])

    def test_bad_change(self) -> None:
        """An invalid new file is ignored, and the reason is logged."""
        rbac = {"type": "RBAC", "name": "rbac"}
        authorizer = self.start(rbac)
        before = authorizer.authorizers
        for authorizers, message in (
            ([], "at least one authorization mode must be defined"),
            ([self.webhook()], "missing required types: [RBAC]"),
            (
                [rbac, {"type": "Node", "name": "node"}],
                "authorizer type Node is not allowed if it was not enabled at initial server startup",
            ),
            ([rbac, self.webhook(timeout="1h")], "must be > 0s and <= 30s"),
        ):
            self.lines.clear()
            self.change(*authorizers)
            self.assertEqual(len(self.lines), 1)
            self.assertIn(message, self.lines[0])
            self.assertIs(authorizer.authorizers, before)

    def test_kubeconfig(self) -> None:
        """A changed kubeconfig of a webhook is used from the next request on."""
        authorizer = self.start(self.webhook())
        before = authorizer._clients[0]
        self.kubeconfig.write_text(json.dumps(KUBECONFIG).replace("127.0.0.1:1/", "127.0.0.1:2/"))
        self.clock.advance(POLL_INTERVAL)
        self.assertEqual(authorizer._clients[0].settings.url, "https://127.0.0.1:2/authorize")
        self.assertIsNot(authorizer._clients[0], before)

    def test_no_file(self) -> None:
        """Without the file the server does not start."""
        authorizer = ReloadableAuthorizer(self.clock, ClientFactory(self.clock, lambda *_: None), KNOWN, self.make)
        error = self.assertRaises(ValueError, authorizer.read, self.files, "/nowhere")
        self.assertEqual(str(error), "open /nowhere: no such file or directory")
