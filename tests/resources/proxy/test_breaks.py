"""Tests for L{kubetwist.resources.proxy.reverseproxy}: the loss of a connection, and slow peers."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor as installed_reactor
from twisted.internet.error import ConnectionDone

from kubetwist.api.errors import APIStatusError
from kubetwist.http.connection.connections import STALLED_TIMEOUT
from kubetwist.http.connection.flow import is_peer_closed
from kubetwist.resources.proxy.reverseproxy import proxy_request

from .proxied import SWITCHED, UPGRADE, Flood, Proxied

reactor: Any = installed_reactor


class BrokenTests(Proxied):
    """The loss of either side closes the other side, and nothing remains."""

    async def test_backend_killed_in_a_download(self) -> None:
        """A truncated response of the backend is truncated for the client, too."""
        for framing in (b"Content-Length: 100", b"Transfer-Encoding: chunked"):
            wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
            there.send(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n5\r\nhello\r\n")
            await wire.until(b"hello")
            there.kill()
            self.assertNotIn(b"0\r\n\r\n", await wire.end())
            await self.wait_until_idle()
            self.assertEqual(self.client.idle, 0)

    async def test_backend_closes_in_a_download(self) -> None:
        """A clean close of the backend does not make a truncated response complete."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await wire.until(b"hello\r\n")
        there.close()
        self.assertEqual(await wire.end(), b"")
        await self.wait_until_idle()

    async def test_old_client(self) -> None:
        """
        An HTTP/1.0 client, for which the end of the connection ends a response, gets a reset after a truncated one.
        """
        wire, there, _ = await self.ask(b"GET / HTTP/1.0\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await wire.until(b"\r\n\r\nhello")
        there.kill()
        await wire.end()
        assert wire.lost is not None
        self.assertIsNone(wire.lost.check(ConnectionDone))
        await self.wait_until_idle()

    async def test_malformed_end(self) -> None:
        """A response with a malformed end is truncated."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await wire.until(b"hello\r\n")
        there.send(b"nonsense\r\n0\r\n\r\n")
        self.assertEqual(await wire.end(), b"")
        await there.end()
        await self.wait_until_idle()

    async def test_backend_killed_in_an_upload(self) -> None:
        """A client whose backend is lost during its upload gets an error."""
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 100\r\n\r\nhello")
        await there.until(b"hello")
        there.kill()
        answer = await wire.until(b"error trying to reach service: ")
        self.assertIn(b" 503 ", answer)
        self.assertIn(b"Connection: close", answer)
        wire.send(b"x" * 95)
        await wire.end()
        await self.wait_until_idle()

    async def test_backend_killed_after_an_upgrade(self) -> None:
        """A client whose backend is lost after an upgrade gets the sent data, and is closed."""
        wire, there, _ = await self.ask(UPGRADE)
        there.send(SWITCHED + b"last words")
        await wire.until(b"last words")
        there.kill()
        await wire.end()
        await self.wait_until_idle()

    async def test_client_killed_while_nothing_comes(self) -> None:
        """The request to a backend that has not responded is aborted when the client disconnects."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        wire.kill()
        await there.end()
        await self.wait_until_idle()

    async def test_client_killed_before_it_begins(self) -> None:
        """No backend is called for a client that has disconnected before the target is resolved."""
        wire = await self.connect()
        self.options = None
        wire.send(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        await self.settled(lambda: self.requests)
        wire.kill()
        await self.settled(lambda: not self.site.connections.channels)
        await proxy_request(self.requests[0], self.client, b"/")
        self.assertEqual((self.client.idle, self.client.busy, self.backend.wires), (0, 0, []))

    async def test_client_killed_while_connecting(self) -> None:
        """A client that disconnects while the backend is being connected leaves nothing behind."""
        wire = await self.connect()
        wire.send(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        wire.kill()
        await wire.end()
        await self.settled(lambda: not self.site.connections.channels)
        await self.wait_until_idle()

    async def test_client_killed_in_a_watch(self) -> None:
        """The backend's connection is closed if the client disconnects during the response."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await wire.until(b"hello")
        wire.kill()
        await there.end()
        await self.wait_until_idle()

    async def test_client_killed_in_an_upload(self) -> None:
        """The body of a client that disconnects is truncated for the backend."""
        wire, there, _ = await self.ask(
            b"PUT / HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        )
        await there.until(b"5\r\nhello\r\n")
        wire.kill()
        self.assertEqual(await there.end(), b"")
        await self.wait_until_idle()

    async def test_malformed_upload(self) -> None:
        """A malformed body is truncated for the backend, and the client gets an error."""
        wire, there, _ = await self.ask(
            b"PUT / HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        )
        await there.until(b"5\r\nhello\r\n")
        wire.send(b"nonsense\r\n0\r\n\r\n")
        self.assertTrue((await wire.until(b"\r\n")).startswith(b"HTTP/1.1 400 "))
        self.assertEqual(await there.end(), b"")
        await self.wait_until_idle()

    async def test_client_killed_after_an_upgrade(self) -> None:
        """The backend's connection is closed if the client disconnects after an upgrade."""
        wire, there, _ = await self.ask(UPGRADE)
        there.send(SWITCHED)
        await wire.until(b"\r\n\r\n")
        wire.kill()
        await there.end()
        await self.wait_until_idle()

    async def test_client_killed_during_an_upgrade(self) -> None:
        """The backend's connection is closed if the client disconnects before the response to its upgrade."""
        wire, there, _ = await self.ask(UPGRADE)
        wire.kill()
        await there.end()
        await self.wait_until_idle()

    async def test_slow_reader(self) -> None:
        """A client that does not read pauses its backend, and the server buffers little; it gets all data later."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        await wire.until(b"\r\n\r\n")
        wire.transport.pauseProducing()
        flood = Flood(there.transport)
        await flood.stuck
        flood.stop()
        there.close()
        wire.transport.resumeProducing()
        await wire.until(b"\r\n0\r\n\r\n")
        self.assertGreater(wire.total, flood.written)
        await self.wait_until_idle()

    async def test_slow_reader_leaves(self) -> None:
        """A client that closes while it does not read is closed, together with its backend's connection."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        await wire.until(b"\r\n\r\n")
        wire.transport.pauseProducing()
        flood = Flood(there.transport)
        await flood.stuck
        wire.close()
        wire.transport.resumeProducing()
        await wire.end()
        await there.end()
        flood.stop()
        await self.wait_until_idle()

    async def test_slow_backend_leaves(self) -> None:
        """A backend that closes while it does not read is closed."""
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 1000000000000\r\n\r\n")
        there.transport.pauseProducing()
        flood = Flood(wire.transport)
        await flood.stuck
        flood.stop()
        there.close()
        there.transport.resumeProducing()
        await there.end()
        await wire.until(b"error trying to reach service")
        wire.kill()
        await self.wait_until_idle()

    async def test_slow_reader_killed(self) -> None:
        """A client that is lost while it does not read closes its backend's connection."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        await wire.until(b"\r\n\r\n")
        wire.transport.pauseProducing()
        flood = Flood(there.transport)
        await flood.stuck
        wire.kill()
        await there.end()
        flood.stop()
        await self.wait_until_idle()

    async def test_slow_backend(self) -> None:
        """A backend that does not read pauses the client, and the server buffers little; it gets all data later."""
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 1000000000000\r\n\r\n")
        there.total = 0
        there.transport.pauseProducing()
        flood = Flood(wire.transport)
        await flood.stuck
        flood.stop()
        there.transport.resumeProducing()
        await there.arrived(flood.written)

    async def test_killed_behind_a_slow_backend(self) -> None:
        """
        The loss of a client is detected while its backend does not read, although nothing is read from the client.
        """
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 1000000000000\r\n\r\n")
        # As the connection to a backend does when it is full. A real one may accept more at any time, and then the time
        # without reading begins again.
        streamed = self.requests[0].streamed
        assert streamed is not None
        streamed.pauseProducing()
        wire.send(b"x" * 100_000)
        (channel,) = self.site.connections.channels
        self.assertEqual(list(self.site.connections.stalled), [channel])
        self.assertFalse(is_peer_closed(channel.transport))
        wire.kill()
        await self.settled(lambda: is_peer_closed(channel.transport))
        # It may yet be read what it has sent.
        self.site.check_deadlines()
        self.assertEqual(self.site.connections.channels, {channel})
        self.site.connections.now = lambda: reactor.seconds() + STALLED_TIMEOUT
        self.site.check_deadlines()
        await self.settled(lambda: not self.site.connections.channels)
        await there.end()
        await self.wait_until_idle()
        self.assertEqual(self.site.connections.stalled, {})

    async def test_deadline(self) -> None:
        """A request that is not long-running times out, and the request to its backend is aborted."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        self.requests[0].fail(APIStatusError.timeout("request did not complete within the allotted timeout"))
        self.assertIn(b" 504 ", await wire.until(b"\r\n\r\n"))
        await there.end()
        await self.wait_until_idle()

    async def test_head_timeout(self) -> None:
        """A request fails if the backend does not respond within the header timeout."""
        self.options = {"response_header_timeout": 0.01}
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        await wire.until(b"net/http: timeout awaiting response headers")
        await there.end()


class TLSBrokenTests(BrokenTests):
    """The same over TLS."""

    tls = True
