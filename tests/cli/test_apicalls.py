# mypy: allow-untyped-calls
"""Tests for L{kubetwist.cli.apicalls}; F{tests/e2e/test_kubetwist.py} sends requests."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.apicalls import call_server, find_kubeconfig, parse_response
from kubetwist.cli.command import CommandError
from kubetwist.client.httpclient import Response


class KubeconfigTests(SynchronousTestCase):
    """The kubeconfig that a command uses."""

    def test_order(self) -> None:
        """The flag is first, then $KUBECONFIG, and ~/.kube/config last."""
        home = Path(self.mktemp())
        (home / ".kube").mkdir(parents=True)
        (home / ".kube/config").write_text("")
        environment = {"HOME": str(home), "KUBECONFIG": f"{home}/missing{os.pathsep}{home}/other"}
        self.assertEqual(find_kubeconfig("x", environment), Path("x"))
        error = self.assertRaises(CommandError, find_kubeconfig, "", environment)
        self.assertEqual(
            str(error), f"no kubeconfig: --kubeconfig is not set, and none of {home}/missing, {home}/other exists"
        )
        (home / "other").write_text("")
        self.assertEqual(find_kubeconfig("", environment), home / "other")
        self.assertEqual(find_kubeconfig("", {"HOME": str(home)}), home / ".kube/config")

    def test_current_directory(self) -> None:
        """The kubeconfig of a server in the current directory precedes ~/.kube/config."""
        folder = Path(self.mktemp())
        (folder / "kubetwist-data").mkdir(parents=True)
        (folder / "kubetwist-data/admin.kubeconfig").write_text("")
        previous = Path.cwd()
        os.chdir(folder)
        self.addCleanup(os.chdir, previous)
        self.assertEqual(find_kubeconfig("", {}), Path("kubetwist-data/admin.kubeconfig"))

    def test_invalid(self) -> None:
        """A kubeconfig that cannot be read is an error for the user, before anything is sent."""
        error = self.assertRaises(CommandError, call_server, "/nonexistent/file", "GET", "/")
        self.assertEqual(str(error), "cannot read /nonexistent/file: No such file or directory")


class ResponseTests(SynchronousTestCase):
    """Responses of the server."""

    def error_of(self, code: int, body: bytes) -> str:
        """Return the error of a response."""
        return str(self.assertRaises(CommandError, parse_response, Response(code, {}, body)))

    def test_object(self) -> None:
        """A JSON object is returned."""
        self.assertEqual(parse_response(Response(201, {}, b'{"a": 1}')), {"a": 1})

    def test_errors(self) -> None:
        """The message of a Status is one line; without one, the status code is the message."""
        self.assertEqual(self.error_of(403, b'{"message": "no\\nway"}'), "no way")
        self.assertEqual(self.error_of(502, b"<html>"), "the server answered 502")
        self.assertEqual(self.error_of(500, b"[]"), "the server answered 500")
        self.assertEqual(self.error_of(200, b"[]"), "the server answered with something else than a JSON object")
