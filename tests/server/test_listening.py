"""Tests for L{kubetwist.server.listening}."""

from __future__ import annotations

import socket

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.errors import StartError
from kubetwist.server.listening import BoundAddress


class BoundAddressTests(SynchronousTestCase):
    """Tests for L{BoundAddress}."""

    def bind(self, port: int = 0) -> BoundAddress:
        """Bind a port, and release it after the test."""
        bound = BoundAddress("127.0.0.1", port)
        self.addCleanup(bound.close)
        return bound

    def test_bound(self) -> None:
        """Nobody is answered before the server listens, and nobody else can listen there."""
        bound = self.bind()
        self.assertNotEqual(bound.port, 0)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", bound.port), 5)
        with socket.create_server(("127.0.0.1", 0)) as other:
            error = self.assertRaises(StartError, BoundAddress, "127.0.0.1", other.getsockname()[1])
        self.assertIn("cannot listen on 127.0.0.1 port ", str(error))

    def test_closed(self) -> None:
        """What is released is free for others; releasing it twice does no harm."""
        bound = self.bind()
        bound.close()
        bound.close()
        self.assertEqual(self.bind(bound.port).port, bound.port)
