"""Tests for L{kubetwist.resources.proxy.reverseproxy} and L{kubetwist.resources.proxy.relay}: upgraded connections."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor as installed_reactor

from tests.wires import Wire

from .proxied import SWITCHED, UPGRADE, Flood, Proxied

reactor: Any = installed_reactor
MB = 1024 * 1024


class UpgradeTests(Proxied):
    """SECURITY, CVE-2018-1002105: connections are spliced after a backend's 101, and never otherwise."""

    async def upgraded(self) -> tuple[Wire, Wire]:
        """Return a client and a backend with an upgraded connection."""
        wire, there, head = await self.ask(UPGRADE)
        lines = head.lower().split(b"\r\n")
        for line in (b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-key: k"):
            self.assertEqual(lines.count(line), 1)
        there.send(SWITCHED)
        answer = (await wire.until(b"\r\n\r\n")).lower()
        self.assertTrue(answer.startswith(b"http/1.1 101 switching protocols\r\n"))
        for line in (b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-accept: a"):
            self.assertEqual(answer.split(b"\r\n").count(line), 1)
        return wire, there

    async def test_spliced(self) -> None:
        """All data is relayed in both directions after the upgrade."""
        wire, there = await self.upgraded()
        for _ in range(3):
            wire.send(b"\x00ping\r\n\r\n")
            self.assertEqual(await there.take(9), b"\x00ping\r\n\r\n")
            there.send(b"\xffpong")
            self.assertEqual(await wire.take(5), b"\xffpong")
        wire.close()
        await there.end()
        await self.wait_until_idle()
        self.assertEqual(self.client.idle, 0)

    async def test_ahead(self) -> None:
        """Data that a side sends before the other side is connected is relayed in order."""
        wire, there, _ = await self.ask(UPGRADE + b"early")
        there.send(SWITCHED + b"first")
        self.assertTrue((await wire.until(b"first")).endswith(b"\r\n\r\nfirst"))
        self.assertEqual(await there.take(5), b"early")
        wire.send(b"later")
        self.assertEqual(await there.take(5), b"later")

    async def test_large(self) -> None:
        """Large amounts of data are relayed in both directions, and data before a close arrives."""
        wire, there = await self.upgraded()
        wire.send(b"x" * 8 * MB)
        there.send(b"y" * 8 * MB)
        wire.total = there.total = 0
        await there.arrived(8 * MB)
        await wire.arrived(8 * MB)
        there.send(b"z" * MB)
        there.close()
        await wire.arrived(9 * MB)
        await wire.end()
        await self.wait_until_idle()

    async def test_refused(self) -> None:
        """Another response than 101 is passed back, then both connections close without relaying further data."""
        wire, there, _ = await self.ask(UPGRADE + b"GET /secret HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
        answer = await wire.until(b"\r\n\r\nno")
        self.assertIn(b"Connection: close", answer)
        await wire.end()
        await there.end()
        self.assertNotIn(b"secret", there.data)
        self.assertEqual(len(self.requests), 1)
        await self.wait_until_idle()
        self.assertEqual(self.client.idle, 0)

    async def test_no_upgrade_asked(self) -> None:
        """An unrequested 101 is an error."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(SWITCHED + b"more")
        self.assertIn(b" 503 ", await wire.until(b"\r\n\r\n"))
        await there.end()

    async def test_success_instead(self) -> None:
        """Any other response below 400 is an error."""
        wire, there, _ = await self.ask(UPGRADE)
        there.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await wire.until(b"invalid upgrade response: status code 200")
        await there.end()

    async def test_other_protocol(self) -> None:
        """A backend that switches to another protocol is an error."""
        wire, there, _ = await self.ask(UPGRADE)
        there.send(SWITCHED.replace(b"WebSocket\r", b"h2c\r"))
        self.assertIn(b" 502 ", await wire.until(b"\r\n\r\n"))
        await there.end()

    async def test_unknown_protocols(self) -> None:
        """Only WebSocket and SPDY/3.1 are requested from a backend."""
        for expected in (b"h2c", b"SPDY/3", b"websocket, h2c", b"websocket\r\nUpgrade: h2c", b""):
            wire = await self.connect()
            wire.send(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %b\r\n\r\n" % expected)
            self.assertIn(b" 400 ", await wire.until(b"\r\n\r\n"))
        self.assertEqual(self.backend.wires, [])

    async def test_with_a_body(self) -> None:
        """An upgrade request with a body is rejected."""
        for framing in (b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
            wire = await self.connect()
            wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" + framing)
            self.assertIn(b" 400 ", await wire.until(b"\r\n\r\n"))
        self.assertEqual(self.backend.wires, [])

    async def test_dead_backend(self) -> None:
        """The loss of a backend before its response is an error."""
        wire, there, _ = await self.ask(UPGRADE)
        there.close()
        await wire.until(b'"message":"error dialing backend: EOF"')
        await self.wait_until_idle()

    async def test_required(self) -> None:
        """Where an upgrade is required, other requests are rejected."""
        self.options = {"upgrade_required": True}
        wire = await self.connect()
        wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await wire.until(b"Upgrade request required")

    async def test_stop(self) -> None:
        """When the server stops, spliced connections are closed and do not delay it."""
        wire, there = await self.upgraded()
        finished = self.site.requests_finished()
        self.assertTrue(finished.called)
        self.site.end_long_running()
        await wire.end()
        await there.end()
        await self.wait_until_idle()

    async def test_slow_reader(self) -> None:
        """A side that does not read pauses the other side."""
        wire, there = await self.upgraded()
        for reader, writer in ((wire, there), (there, wire)):
            reader.transport.pauseProducing()
            flood = Flood(writer.transport)
            await flood.stuck
            reader.total = 0
            flood.stop()
            reader.transport.resumeProducing()
            await reader.arrived(flood.written)


class TLSUpgradeTests(UpgradeTests):
    """The same over TLS."""

    tls = True
