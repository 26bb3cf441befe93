"""Tests of L{kubetwist.filters.panicrecovery}."""

from __future__ import annotations

import json

from twisted.internet.defer import fail
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.request import KubeRequest
from tests.filters.answers import FixedResult
from tests.http.harness import Client, filtered_site


class PanicRecoveryTests(SynchronousTestCase):
    """C{with_panic_recovery}."""

    def test_exception(self) -> None:
        """An uncaught exception is answered with 500; the connection continues."""

        def handle(request: KubeRequest) -> None:
            """Keep the user, and answer."""
            if request.path == b"/bug":
                raise RuntimeError("secret")
            request.respond(200, b"", b"text/plain")

        client = Client(filtered_site(handle))
        answer = client.request("GET", "/bug")
        self.assertEqual((answer.code, json.loads(answer.body)["reason"]), (500, "InternalError"))
        self.assertNotIn(b"secret", answer.body)
        self.assertEqual(client.request("GET", "/fine").code, 200)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)

    def test_exception_of_authorizer(self) -> None:
        """An exception of an authorizer is answered with 500."""
        answer = Client(filtered_site(authorizer=FixedResult(fail(RuntimeError("oops"))))).request("GET", "/")
        self.assertEqual(answer.code, 500)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
