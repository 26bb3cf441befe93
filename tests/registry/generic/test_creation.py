"""Tests of C{--allow-privileged} in stores."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.resources.server import Server, pod


class PrivilegeTests(SynchronousTestCase):
    """Tests of privileged containers."""

    def create(self, server: Server) -> tuple[int, Any]:
        """Create a pod with a privileged container."""
        obj = pod("p")
        obj["spec"]["containers"][0]["securityContext"] = {"privileged": True}
        return server.client().ask("POST", "/api/v1/namespaces/default/pods", obj)

    def test_two_servers(self) -> None:
        """The option of each of two servers in one process applies to its creations and updates."""
        strict, lenient = Server("pods", allow_privileged=False), Server("pods")
        for _ in range(2):
            code, answer = self.create(strict)
            self.assertEqual(code, 422)
            self.assertIn(
                "spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy",
                answer["message"],
            )
            code, answer = self.create(lenient)
            self.assertIn(code, (201, 409), answer)

    def test_templates(self) -> None:
        """The option applies to templates, too, and to updates."""
        server = Server("replicationcontrollers", allow_privileged=False)
        template: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
        path = "/api/v1/namespaces/default/replicationcontrollers"
        controller = {"metadata": {"name": "c"}, "spec": {"selector": {"a": "b"}, "template": template}}
        code, made = server.client().ask("POST", path, controller)
        self.assertEqual(code, 201, made)
        made["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
        code, answer = server.client().ask("PUT", f"{path}/c", made)
        self.assertEqual(code, 422)
        self.assertIn("securityContext.privileged: Forbidden", answer["message"])
