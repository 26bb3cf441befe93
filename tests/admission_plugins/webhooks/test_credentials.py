"""Tests for L{kubetwist.admission_plugins.webhooks.credentials}."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.webhooks.credentials import AuthenticationInfoResolver, read_credentials
from kubetwist.client.restconfig import RESTConfig

HEAD = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration"}


def known_as(token: str) -> RESTConfig:
    """Return client settings of a user."""
    return RESTConfig(url="", token=token)


class NameTests(SynchronousTestCase):
    """Tests of the matching of names."""

    def token_for(self, target: str, *names: str, default: str = "") -> str:
        """Return the token of the user that matches; C{""} for none."""
        credentials = AuthenticationInfoResolver({name: known_as(name) for name in names}, default)
        settings = credentials.client_config_for(RESTConfig(url="https://x", ca=b"ca"), target)
        self.assertEqual((settings.url, settings.ca), ("https://x", b"ca"))
        return settings.token

    def test_order(self) -> None:
        """The full name is matched before suffixes, with the port before without, and C{*} last."""
        names = ["hook.ns.svc:443", "*.ns.svc:443", "*.svc:443", "hook.ns.svc", "*.ns.svc", "*.svc", "*"]
        while names:
            self.assertEqual(self.token_for("hook.ns.svc:443", *reversed(names)), names.pop(0))
        self.assertEqual(self.token_for("hook.ns.svc:443"), "")

    def test_ports(self) -> None:
        """Only port 443 can be omitted."""
        self.assertEqual(self.token_for("hook.ns.svc:8443", "hook.ns.svc", "*.svc"), "")
        self.assertEqual(self.token_for("hook.ns.svc:8443", "*.svc:8443", "*"), "*.svc:8443")

    def test_default(self) -> None:
        """The user of the current context is used if no name matches."""
        self.assertEqual(self.token_for("a.example.org:443", "me", default="me"), "me")
        self.assertEqual(self.token_for("a.example.org:443", "me", "*", default="me"), "*")


class ReadingTests(SynchronousTestCase):
    """Tests for L{read_credentials}."""

    def problem(self, configuration: Any) -> str:
        """Return the error for a configuration."""
        with self.assertRaises(ValueError) as caught:
            read_credentials(configuration)
        return str(caught.exception)

    def test_none(self) -> None:
        """Without a configuration or a kubeconfig there are no credentials."""
        for configuration in (None, HEAD, {**HEAD, "kubeConfigFile": ""}):
            self.assertEqual(read_credentials(configuration), AuthenticationInfoResolver({}))

    def test_file(self) -> None:
        """The users are read from the kubeconfig."""
        path = Path(self.mktemp()).absolute()
        user = {"username": "u", "password": "p"}
        contexts = [{"name": "c", "context": {"user": "*.example.org"}}]
        config = {"users": [{"name": "*.example.org", "user": user}], "contexts": contexts, "current-context": "c"}
        path.write_text(json.dumps(config))
        credentials = read_credentials({**HEAD, "kubeConfigFile": str(path)})
        self.assertEqual(credentials.default, "*.example.org")
        self.assertEqual(credentials.users["*.example.org"].basic_auth, ("u", "p"))

    def test_invalid(self) -> None:
        """An invalid configuration is rejected."""
        self.assertIn('no kind "Other" is registered', self.problem({**HEAD, "kind": "Other"}))
        self.assertIn("Object 'Kind' is missing", self.problem({}))
        self.assertIn('unknown field "x"', self.problem({**HEAD, "x": 1}))
        relative = 'kubeConfigFile: Invalid value: "a": must be an absolute file path'
        self.assertEqual(self.problem({**HEAD, "kubeConfigFile": "a"}), relative)
        self.assertIn("/absent", self.problem({**HEAD, "kubeConfigFile": "/absent"}))
        self.assertTrue(self.problem([]))
        self.assertTrue(self.problem({**HEAD, "kubeConfigFile": 5}))
