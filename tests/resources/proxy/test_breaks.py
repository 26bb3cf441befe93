"""Tests for L{kubetwist.resources.proxy.reverseproxy}: what becomes of both sides when one of them goes, or is slow."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor as installed_reactor
from twisted.internet.error import ConnectionDone

from kubetwist.api.errors import APIStatusError
from kubetwist.http.connection.connections import STALLED
from kubetwist.http.connection.flow import is_peer_closed
from kubetwist.resources.proxy.reverseproxy import proxy_request

from .proxied import SWITCHED, UPGRADE, Flood, Proxied

reactor: Any = installed_reactor


class BrokenTests(Proxied):
    """Whichever side goes in the middle of something takes the other along, and nothing stays behind."""

    async def test_backend_killed_in_a_download(self) -> None:
        """An answer that breaks off is cut off for the client: what has come is there, the end is not."""
        for framing in (b"Content-Length: 100", b"Transfer-Encoding: chunked"):
            wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
            there.send(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n5\r\nhello\r\n")
            await wire.until(b"hello")
            there.kill()
            self.assertNotIn(b"0\r\n\r\n", await wire.end())
            await self.all_over()
            self.assertEqual(self.client.idle, 0)

    async def test_backend_closes_in_a_download(self) -> None:
        """That a backend takes its leave in good order does not make half an answer a whole one."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await wire.until(b"hello\r\n")
        there.close()
        self.assertEqual(await wire.end(), b"")
        await self.all_over()

    async def test_old_client(self) -> None:
        """A client that takes the end of the connection for the end of an answer sees it reset instead."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.0\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await wire.until(b"\r\n\r\nhello")
        there.kill()
        await wire.end()
        assert wire.lost is not None
        self.assertIsNone(wire.lost.check(ConnectionDone))
        await self.all_over()

    async def test_malformed_end(self) -> None:
        """An answer that cannot be understood to its end is cut off."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await wire.until(b"hello\r\n")
        there.send(b"nonsense\r\n0\r\n\r\n")
        self.assertEqual(await wire.end(), b"")
        await there.end()
        await self.all_over()

    async def test_backend_killed_in_an_upload(self) -> None:
        """A client whose backend goes while it sends is told so."""
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 100\r\n\r\nhello")
        await there.until(b"hello")
        there.kill()
        answer = await wire.until(b"error trying to reach service: ")
        self.assertIn(b" 503 ", answer)
        self.assertIn(b"Connection: close", answer)
        wire.send(b"x" * 95)
        await wire.end()
        await self.all_over()

    async def test_backend_killed_after_an_upgrade(self) -> None:
        """A client whose backend goes after an upgrade gets what was sent, and goes, too."""
        wire, there, _ = await self.ask(UPGRADE)
        there.send(SWITCHED + b"last words")
        await wire.until(b"last words")
        there.kill()
        await wire.end()
        await self.all_over()

    async def test_client_killed_while_nothing_comes(self) -> None:
        """A backend that has not answered yet is left when the client goes."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        wire.kill()
        await there.end()
        await self.all_over()

    async def test_client_killed_before_it_begins(self) -> None:
        """For a client that has gone before it was known where to turn to, nobody is called."""
        wire = await self.connect()
        self.options = None
        wire.send(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        await self.settled(lambda: self.requests)
        wire.kill()
        await self.settled(lambda: not self.site.connections.channels)
        await proxy_request(self.requests[0], self.client, b"/")
        self.assertEqual((self.client.idle, self.client.busy, self.backend.wires), (0, 0, []))

    async def test_client_killed_while_connecting(self) -> None:
        """A client that goes while its backend is being called leaves nothing behind."""
        wire = await self.connect()
        wire.send(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        wire.kill()
        await wire.end()
        await self.settled(lambda: not self.site.connections.channels)
        await self.all_over()

    async def test_client_killed_in_a_watch(self) -> None:
        """A client that goes in the middle of an answer takes its backend's connection along."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await wire.until(b"hello")
        wire.kill()
        await there.end()
        await self.all_over()

    async def test_client_killed_in_an_upload(self) -> None:
        """The body of a client that goes does not end for the backend as if it were whole."""
        wire, there, _ = await self.ask(
            b"PUT / HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        )
        await there.until(b"5\r\nhello\r\n")
        wire.kill()
        self.assertEqual(await there.end(), b"")
        await self.all_over()

    async def test_malformed_upload(self) -> None:
        """Neither does a body that cannot be understood to its end; its client is told."""
        wire, there, _ = await self.ask(
            b"PUT / HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        )
        await there.until(b"5\r\nhello\r\n")
        wire.send(b"nonsense\r\n0\r\n\r\n")
        self.assertTrue((await wire.until(b"\r\n")).startswith(b"HTTP/1.1 400 "))
        self.assertEqual(await there.end(), b"")
        await self.all_over()

    async def test_client_killed_after_an_upgrade(self) -> None:
        """A client that goes after an upgrade takes its backend's connection along."""
        wire, there, _ = await self.ask(UPGRADE)
        there.send(SWITCHED)
        await wire.until(b"\r\n\r\n")
        wire.kill()
        await there.end()
        await self.all_over()

    async def test_client_killed_during_an_upgrade(self) -> None:
        """A backend whose client has gone before it answers an upgrade is left alone with its answer."""
        wire, there, _ = await self.ask(UPGRADE)
        wire.kill()
        await there.end()
        await self.all_over()

    async def test_slow_reader(self) -> None:
        """A client that does not read holds up its backend, not our memory; then it gets all of it."""
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
        await self.all_over()

    async def test_slow_reader_leaves(self) -> None:
        """A client that says goodbye while it does not read is let go, and takes its backend's connection along."""
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
        await self.all_over()

    async def test_slow_backend_leaves(self) -> None:
        """A backend that says goodbye while it does not read what it is sent is let go."""
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
        await self.all_over()

    async def test_slow_reader_killed(self) -> None:
        """A client that goes while it does not read takes its backend's connection along."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        await wire.until(b"\r\n\r\n")
        wire.transport.pauseProducing()
        flood = Flood(there.transport)
        await flood.stuck
        wire.kill()
        await there.end()
        flood.stop()
        await self.all_over()

    async def test_slow_backend(self) -> None:
        """A backend that does not read holds up the client, not our memory; then it gets all of it."""
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 1000000000000\r\n\r\n")
        there.total = 0
        there.transport.pauseProducing()
        flood = Flood(wire.transport)
        await flood.stuck
        flood.stop()
        there.transport.resumeProducing()
        await there.arrived(flood.written)

    async def test_killed_behind_a_slow_backend(self) -> None:
        """A client that goes while its backend does not read is missed at last, though it is not read from."""
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 1000000000000\r\n\r\n")
        there.transport.pauseProducing()
        flood = Flood(wire.transport)
        await flood.stuck
        flood.stop()
        (channel,) = self.site.connections.channels
        self.assertFalse(is_peer_closed(channel.transport))
        wire.kill()
        await self.settled(lambda: is_peer_closed(channel.transport))
        # It may yet be read what it has sent.
        self.site.look_around()
        self.assertEqual(self.site.connections.channels, {channel})
        self.site.connections.now = lambda: reactor.seconds() + STALLED
        self.site.look_around()
        await self.settled(lambda: not self.site.connections.channels)
        there.transport.resumeProducing()
        await self.all_over()
        self.assertEqual(self.site.connections.stalled, {})

    async def test_deadline(self) -> None:
        """A request that is not long-running is answered in time; its backend is not waited for any longer."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        self.requests[0].fail(APIStatusError.timeout("request did not complete within the allotted timeout"))
        self.assertIn(b" 504 ", await wire.until(b"\r\n\r\n"))
        await there.end()
        await self.all_over()

    async def test_head_timeout(self) -> None:
        """A backend that accepts a request and says nothing is given up after the time that it has."""
        self.options = {"response_header_timeout": 0.01}
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        await wire.until(b"net/http: timeout awaiting response headers")
        await there.end()


class TLSBrokenTests(BrokenTests):
    """The same over TLS."""

    tls = True
