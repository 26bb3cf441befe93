"""Tests of L{kubetwist.server.listening}."""

from __future__ import annotations

import socket

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.errors import StartError
from kubetwist.server.listening import BoundAddress


class BoundAddressTests(SynchronousTestCase):
    """L{BoundAddress}."""

    def bind(self, port: int = 0) -> BoundAddress:
        """Bind a port; it is released at the end of the test."""
        bound = BoundAddress("127.0.0.1", port)
        self.addCleanup(bound.close)
        return bound

    def test_bound(self) -> None:
        """Connections are refused before the server listens, and the port cannot be bound again."""
        bound = self.bind()
        self.assertNotEqual(bound.port, 0)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", bound.port), 5)
        with socket.create_server(("127.0.0.1", 0)) as other:
            error = self.assertRaises(StartError, BoundAddress, "127.0.0.1", other.getsockname()[1])
        self.assertIn("cannot listen on 127.0.0.1 port ", str(error))

    def test_closed(self) -> None:
        """A released port can be bound again; releasing is idempotent."""
        bound = self.bind()
        bound.close()
        bound.close()
        self.assertEqual(self.bind(bound.port).port, bound.port)

    def test_shared(self) -> None:
        """Servers that share a port can listen on it at the same time; another one cannot."""
        first = BoundAddress("127.0.0.1", 0, shared=True)
        with first.take() as listening:
            listening.listen()
            second = BoundAddress("127.0.0.1", first.port, shared=True)
            self.addCleanup(second.close)
            self.assertEqual(second.port, first.port)
            self.assertRaises(StartError, BoundAddress, "127.0.0.1", first.port)
