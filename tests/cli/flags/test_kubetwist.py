"""Tests for L{kubetwist.cli.flags.kubetwist}."""

from __future__ import annotations

import os

from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.flags.kubetwist import parse_workers
from kubetwist.cli.kubeapi import Options


class WorkersTests(SynchronousTestCase):
    """Tests for the value of C{--workers}."""

    def test_number(self) -> None:
        """A number is the number of fronts; 0 is one process."""
        self.assertEqual([parse_workers(text) for text in ("0", "1", "64")], [0, 1, 64])

    def test_auto(self) -> None:
        """C{auto} is one front per CPU of the process but one, at least one and at most 64."""
        for cpus, count in ((1, 1), (2, 1), (8, 7), (200, 64)):
            self.patch(os, "sched_getaffinity", lambda process, cpus=cpus: set(range(cpus)))
            self.assertEqual(parse_workers("auto"), count)

    def test_invalid(self) -> None:
        """Other texts and numbers are refused."""
        for text in ("", "-1", "65", "1.5", "many"):
            error = self.assertRaises(ValueError, parse_workers, text)
            self.assertEqual(str(error), "it must be auto, or a number between 0 and 64")


class UITests(SynchronousTestCase):
    """Tests for the flags of the web UI."""

    issuer = ("--oidc-issuer-url=https://issuer", "--oidc-client-id=me")

    def refusal(self, *arguments: str) -> str:
        """Return why a command line is refused; C{""} if it is valid."""
        try:
            Options().parseOptions(list(arguments))
        except UsageError as error:
            return str(error)
        return ""

    def test_oidc(self) -> None:
        """Sign-in with OpenID Connect needs an issuer, the UI, and a client ID."""
        self.assertEqual(self.refusal(*self.issuer, "--ui-oidc-client-id=me", "--ui-oidc-scopes=a,b:c"), "")
        self.assertIn("needs --oidc-issuer-url", self.refusal("--ui-oidc-client-id=me"))
        self.assertIn("need --ui-oidc-client-id", self.refusal(*self.issuer, "--ui-oidc-scopes=email"))
        given = (*self.issuer, "--ui-oidc-client-id=me")
        self.assertIn("needs --enable-ui", self.refusal(*given, "--enable-ui=false"))
        self.assertIn("must not be empty", self.refusal(*given, "--ui-oidc-button= "))
        self.assertIn("is not a scope", self.refusal(*given, "--ui-oidc-scopes=a b"))

    def test_external_url(self) -> None:
        """The external URL is an origin of https."""
        for url in ("https://k8s.example.com", "https://k8s.example.com:6443/", "https://[::1]:1"):
            self.assertEqual(self.refusal(f"--ui-external-url={url}"), "")
        for url in (
            "http://k8s.example.com",
            "https://k8s.example.com/ui",
            "k8s",
            "https://a@b",
            "https://a?b",
            "https://",
        ):
            self.assertIn("--ui-external-url must be", self.refusal(f"--ui-external-url={url}"))
