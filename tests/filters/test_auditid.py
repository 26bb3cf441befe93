"""Tests of L{kubetwist.filters.auditid}."""

from __future__ import annotations

import os
import re

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.filters.auditid import random_uuid
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

    def test_random_uuid(self) -> None:
        """Generated ids are random UUIDs."""
        pattern = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
        ids = [random_uuid() for _ in range(200)]
        for one in ids:
            self.assertRegex(one, pattern)
        self.assertEqual(len(set(ids)), len(ids))

    def test_forked(self) -> None:
        """A forked process generates other ids than its parent."""
        random_uuid()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.write(writing, "".join(random_uuid() for _ in range(70)).encode())
            os._exit(0)
        os.waitpid(child, 0)
        child_ids = os.read(reading, 1 << 16).decode()
        os.close(reading)
        os.close(writing)
        self.assertEqual(len(child_ids), 70 * 36)
        self.assertEqual([one for one in (random_uuid() for _ in range(70)) if one in child_ids], [])
