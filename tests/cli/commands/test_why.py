# mypy: allow-untyped-calls
"""Tests for L{kubetwist.cli.commands.why}; F{tests/e2e/test_kubetwist.py} has the answers of a server."""

from __future__ import annotations

from unittest.mock import patch
from urllib.parse import parse_qs

import click
import orjson
from click.testing import CliRunner, Result

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.jsontypes import JSONObject
from kubetwist.api.resource import UserInfo
from kubetwist.cli.commands import why
from kubetwist.server.endpoints.why import parse_question

ANSWER: JSONObject = {
    "kind": "Why",
    "allowed": True,
    "asked": {"user": "bob", "groups": [], "verb": "get", "path": "/x"},
    "authorizers": [{"name": "RBAC", "decision": "allow"}],
}


class WhyTests(SynchronousTestCase):
    """C{kubetwist why}."""

    def run_command(self, answer: JSONObject, *arguments: str) -> Result:
        """Run the command with an answer of the server."""
        with patch.object(why, "call_server", lambda *arguments, **named: answer):
            return CliRunner().invoke(why.command, list(arguments))

    def test_question(self) -> None:
        """The server reads what the command line means."""
        values = {"namespace": "demo", "user": "b&b", "uid": "7", "subresource": "", "labelSelector": "a=b,c"}
        query = why.query_of("list", "pods/log", "x", values, ["g1", "g 2"])
        question = parse_question(parse_qs(query, strict_parsing=True), UserInfo("admin"))
        self.assertEqual((question.user.name, question.user.uid, question.user.groups[:2]), ("b&b", "7", ("g1", "g 2")))
        self.assertEqual(
            (question.verb, question.resource, question.subresource, question.namespace, question.name),
            ("list", "pods", "log", "demo", "x"),
        )
        self.assertEqual(len(question.label_terms), 2)
        question = parse_question(parse_qs(why.query_of("get", "/metrics", "", {}, [])), UserInfo("admin"))
        self.assertEqual((question.path, question.user.name), ("/metrics", "admin"))

    def test_usage(self) -> None:
        """Groups without a user, and paths with a name, are usage errors."""
        for resource, name, values, groups in (
            ("pods", "", {}, ["g"]),
            ("pods", "", {"uid": "7"}, []),
            ("/x", "name", {}, []),
            ("/x", "", {"namespace": "n"}, []),
        ):
            self.assertRaises(click.UsageError, why.query_of, "get", resource, name, values, groups)

    def test_allowed(self) -> None:
        """The exit code of an allowed request is 0, of a denied one 1; both are printed."""
        result = self.run_command(ANSWER, "get", "/x")
        self.assertEqual(result.exit_code, 0)
        self.assertIn('User "bob" with groups [] may "get"', result.stdout)
        result = self.run_command({**ANSWER, "allowed": False}, "get", "/x")
        self.assertEqual(result.exit_code, why.DENIED)
        self.assertIn("may not", result.stdout)

    def test_json(self) -> None:
        """The answer can be printed as JSON."""
        result = self.run_command(ANSWER, "get", "/x", "-o", "json")
        self.assertEqual((result.exit_code, orjson.loads(result.stdout)), (0, ANSWER))

    def test_other_server(self) -> None:
        """An answer of another server is an error."""
        self.assertIn("another object than Why", str(self.run_command({"kind": "X"}, "get", "/x").exception))
