"""Tests of L{kubetwist.storage.etcdhttp}."""

from __future__ import annotations

import gc
import socket
import struct

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.etcdhttp import Address, Member

from .etcdcase import TurningReactor


class BrokenTests(SynchronousTestCase):
    """Connections that break while nobody looks."""

    def test_broken_before_stream(self) -> None:
        """A stream over a connection that turns out to be broken is over at once, and no error is left over."""
        reactor = TurningReactor()
        self.addCleanup(reactor.close)
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        member = Member(Address.parse(f"http://127.0.0.1:{server.getsockname()[1]}"), reactor)
        self.addCleanup(member.close)
        answer = member.post(b"/", b"", 10.0)
        server.setblocking(False)
        accepted: list[socket.socket] = []

        def accept() -> bool:
            try:
                accepted.append(server.accept()[0])
            except BlockingIOError:
                return False
            return True

        reactor.turn_until(accept)
        (connection,) = accepted
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        self.assertEqual(reactor.run(answer), (200, b"{}"))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        request = member.stream(b"/", b"", self.fail, 10.0)
        self.assertIsNone(request.answer)
        gc.collect()
        self.assertEqual(self.flushLoggedErrors(), [])
