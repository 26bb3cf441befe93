"""Tests of L{kubetwist.http.failures}."""

from __future__ import annotations

from kubetwist.api.errors import APIStatusError
from kubetwist.http import responses as respond
from kubetwist.http.request import KubeRequest
from tests.http.pieces import ErrorTestCase


class FailureTests(ErrorTestCase):
    """L{kubetwist.http.failures}."""

    def test_after_start(self) -> None:
        """An error after the start of the response aborts the connection."""

        def handle(request: KubeRequest) -> None:
            request.write(b"half")
            respond.respond_error(request, APIStatusError.bad_request("no"))

        client = self.client(handle)
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertTrue(client.transport.disconnected)
        self.assertNotIn(b"BadRequest", client.transport.value())

    def test_disconnected(self) -> None:
        """An error after the client has disconnected is not answered."""
        waiting: list[KubeRequest] = []
        client = self.client(waiting.append)
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        client.channel.connectionLost(RuntimeError("gone"))
        respond.respond_error(waiting[0], APIStatusError.bad_request("no"))
        self.assertEqual(client.transport.value(), b"")
