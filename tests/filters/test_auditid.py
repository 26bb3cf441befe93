"""Tests of L{kubetwist.filters.auditid}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.request import KubeRequest
from tests.http.harness import Client, filtered_site


class AuditIDTests(SynchronousTestCase):
    """C{with_audit_id}."""

    def test_generated(self) -> None:
        """Each response has a different audit id."""
        client = Client(filtered_site())
        ids = {client.request("GET", "/").header("audit-id") for _ in range(10)}
        self.assertEqual(len(ids), 10)

    def test_of_client(self) -> None:
        """The audit id of a client is used."""
        seen: list[str] = []

        def handle(request: KubeRequest) -> None:
            """Keep the user, and answer."""
            seen.append(request.audit_id)
            request.respond(200, b"", b"text/plain")

        answer = Client(filtered_site(handle)).request("GET", "/", Audit_ID="mine")
        self.assertEqual((answer.headers["audit-id"], seen), (["mine"], ["mine"]))
