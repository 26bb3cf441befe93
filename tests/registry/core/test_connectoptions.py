"""Tests of L{kubetwist.registry.core.connectoptions}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.registry.core.connectoptions import connect_options


class OptionsTests(SynchronousTestCase):
    """Tests of L{connect_options}."""

    def test_proxies(self) -> None:
        """The options of a proxy are the path below it."""
        for resource, kind in (("pods", "PodProxyOptions"), ("nodes", "NodeProxyOptions")):
            found = connect_options(resource, "proxy", {}, "/a")
            self.assertEqual(found, {"kind": kind, "apiVersion": "v1", "path": "/a"})
        self.assertNotIn("path", connect_options("services", "proxy", {}, ""))

    def test_commands(self) -> None:
        """A command is a list, or null; false flags are omitted."""
        query = {"command": ["sh", "-c"], "stdin": ["true"], "tty": ["false"], "container": ["c"]}
        self.assertEqual(
            connect_options("pods", "exec", query, ""),
            {"kind": "PodExecOptions", "apiVersion": "v1", "stdin": True, "container": "c", "command": ["sh", "-c"]},
        )
        self.assertIsNone(connect_options("pods", "exec", {}, "")["command"])
        self.assertNotIn("command", connect_options("pods", "attach", query, ""))

    def test_ports(self) -> None:
        """Ports can be in one parameter or in several."""
        found = connect_options("pods", "portforward", {"ports": ["80,443", "1"]}, "")
        self.assertEqual(found["ports"], [80, 443, 1])

    def test_bad_ports(self) -> None:
        """A port that is not a number of 16 bits is rejected (400) with the message of Go."""
        for text, problem in (("x", "invalid syntax"), ("", "invalid syntax"), ("65536", "value out of range")):
            error = self.assertRaises(APIStatusError, connect_options, "pods", "portforward", {"ports": [text]}, "")
            self.assertEqual(error.code, 400)
            self.assertTrue(error.message.endswith(f'parsing "{text}": {problem}'), error.message)
