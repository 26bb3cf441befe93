"""Tests for what L{kubetwist.filters.authorization} tells the log."""

from __future__ import annotations

from typing import Any

from twisted.logger import LogEvent, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import Decision, Verdict
from kubetwist.api.resource import UserInfo
from tests.server.harness import Client, Everyone, filtered_site


class Refuse:
    """Has no opinion."""

    name = "Refuse"

    def authorize(self, attributes: Any) -> Verdict:
        """Say why."""
        return Verdict(Decision.NO_OPINION, "because")


class DenialTests(SynchronousTestCase):
    """A denial is one line in the log that says what was looked for."""

    def denial(self, method: str, path: str) -> str:
        """The line for a request."""
        events: list[LogEvent] = []
        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        user = UserInfo("eve\n", groups=("a", "b"))
        client = Client(filtered_site(authenticator=Everyone(user), authorizer=Refuse()))
        answer = client.request(method, path, Audit_Id="id-1", Authorization="Bearer secret-token")
        self.assertEqual(answer.code, 403)
        (line,) = [formatEvent(event) for event in events if "audit_id" in event]
        self.assertNotIn("secret-token", repr(events))
        return line

    def test_resource(self) -> None:
        """The line names user, groups, verb, resource, subresource, name and scope, and the audit id."""
        start = 'forbidden (id-1): nothing allows user "eve\\n" with groups ["a" "b"] to '
        self.assertEqual(
            self.denial("PUT", "/apis/apps/v1/namespaces/ns/deployments/web/scale"),
            f'{start}"update" the resource "deployments.apps/scale" named "web" in the namespace "ns" (because)',
        )
        self.assertEqual(
            self.denial("GET", "/api/v1/nodes"), f'{start}"list" the resource "nodes" cluster-wide (because)'
        )

    def test_path(self) -> None:
        """For a path that is no resource it names verb and path."""
        self.assertTrue(self.denial("GET", "/metrics").endswith(' to "get" the path "/metrics" (because)'))
