"""Tests for L{kubetwist.streams.handlers}: streaming requests from a client through the server to a kubelet."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from twisted.internet import reactor as installed_reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol, wrapClientTLS
from twisted.internet.protocol import Protocol
from twisted.internet.ssl import Certificate, optionsForClientTLS, trustRootFromCertificates
from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.client.factory import ClientFactory
from kubetwist.client.restconfig import RESTConfig
from kubetwist.filters.requestinfo import with_request_info
from kubetwist.http.request import KubeRequest
from kubetwist.http.site import KubeSite
from kubetwist.metrics.registry import Counter, Registry
from kubetwist.metrics.streams import StreamMetrics
from kubetwist.resources.proxy.reverseproxy import proxy_request, run_proxy
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.credentials.tlscontext import ServingContextFactory
from kubetwist.streams.channels import BASE64_V4, V4, V5
from kubetwist.streams.commands import Command
from kubetwist.streams.handlers import NODE_WEBSOCKETS_FEATURE, StreamHandlers, StreamMode
from kubetwist.streams.kubeletserver import Session, TunnelTransport, serve_command, serve_port_forward
from kubetwist.streams.spdy import SPDYConnection, StreamEnded
from kubetwist.streams.upgrades import spdy_upgrade_fields
from kubetwist.streams.websocket import WebSocketConnection

reactor: Any = installed_reactor

TUNNEL = "SPDY/3.1+portforward.k8s.io"


class SelectModeTests(SynchronousTestCase):
    """Selection of the mode of a request."""

    def select_mode(
        self, subresource: str, protocols: str, features: Any = (), upgrade: bytes = b"websocket", **gates: bool
    ) -> StreamMode:
        """Return the selected mode."""
        fields = {
            b"connection": [b"Upgrade"],
            b"upgrade": [upgrade],
            b"sec-websocket-protocol": [protocols.encode()],
        }
        request: Any = SimpleNamespace(fields=fields)
        return StreamHandlers(StreamMetrics(Registry()), FeatureGates(settings=gates)).select_mode(
            request, subresource, features
        )

    def test_commands(self) -> None:
        """Commands over v5.channel.k8s.io are translated; older protocols are proxied."""
        for subresource in ("exec", "attach"):
            self.assertEqual(StreamMode.TRANSLATE, self.select_mode(subresource, f"x, {V5}"))
            self.assertEqual(StreamMode.PROXY, self.select_mode(subresource, f"x, {V4}"))
            self.assertEqual(StreamMode.PROXY, self.select_mode(subresource, TUNNEL))
            self.assertEqual(StreamMode.PROXY, self.select_mode(subresource, V5, upgrade=b"SPDY/3.1"))

    def test_ports(self) -> None:
        """Port forwarding over SPDY inside a WebSocket is tunneled."""
        self.assertEqual(StreamMode.TUNNEL, self.select_mode("portforward", TUNNEL))
        self.assertEqual(StreamMode.PROXY, self.select_mode("portforward", V5))
        self.assertEqual(StreamMode.PROXY, self.select_mode("portforward", "portforward.k8s.io", upgrade=b"SPDY/3.1"))

    def test_new_nodes(self) -> None:
        """Requests for a node that declares WebSocket support are proxied."""
        self.assertEqual(StreamMode.PROXY, self.select_mode("exec", V5, ["Other", NODE_WEBSOCKETS_FEATURE]))
        self.assertEqual(StreamMode.PROXY, self.select_mode("portforward", TUNNEL, [NODE_WEBSOCKETS_FEATURE]))

    def test_gates(self) -> None:
        """With disabled feature gates requests are proxied."""
        self.assertEqual(StreamMode.PROXY, self.select_mode("exec", V5, TranslateStreamCloseWebsocketRequests=False))
        self.assertEqual(StreamMode.PROXY, self.select_mode("portforward", TUNNEL, PortForwardWebsockets=False))
        self.assertEqual(
            StreamMode.TRANSLATE,
            self.select_mode("exec", V5, [NODE_WEBSOCKETS_FEATURE], ExtendWebSocketsToKubelet=False),
        )


class _Upgraded(Protocol):
    """A client that upgrades its connection to another protocol."""

    def __init__(self, head: bytes, speaks: Any) -> None:
        self._head = head
        self._speaks = speaks
        self._got = b""
        self._switched = False
        self.lost = False
        self.answered: Deferred[tuple[int, dict[str, str], bytes]] = Deferred()

    def connectionMade(self) -> None:
        self.transport.write(self._head)  # type: ignore[union-attr]

    def dataReceived(self, data: bytes) -> None:
        if self._switched:
            self._speaks.dataReceived(data)
            return
        self._got += data
        head, separator, rest = self._got.partition(b"\r\n\r\n")
        if not separator or self.answered.called:
            return
        status, *lines = head.decode().split("\r\n")
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        code = int(status.split(" ")[1])
        if code != 101:
            if len(rest) >= int(fields.get("content-length", "0")):
                self.answered.callback((code, fields, rest))
            return
        self._switched = True
        self._speaks.makeConnection(self.transport)
        self.answered.callback((code, fields, b""))
        if rest:
            self._speaks.dataReceived(rest)

    def connectionLost(self, reason: Any = None) -> None:
        self.lost = True
        if self._switched:
            self._speaks.connectionLost(reason)


class _Messages:
    """Records the messages of a WebSocket, and lets tests wait for them."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.ends: list[bool] = []
        self._partial = b""
        self.changed = lambda: None

    def message_received(self, data: bytes, finished: bool) -> None:
        self._partial += data
        if finished:
            self.messages.append(self._partial)
            self._partial = b""
        self.changed()

    def closed(self, clean: bool) -> None:
        self.ends.append(clean)
        self.changed()


class _Collected:
    """Records the data of a stream."""

    def __init__(self) -> None:
        self.data = b""
        self.ended: Deferred[bytes] = Deferred()

    def data_received(self, data: bytes) -> None:
        self.data += data

    def remote_finished(self) -> None:
        self._end()

    def lost(self, reason: StreamEnded) -> None:
        self._end()

    def _end(self) -> None:
        if not self.ended.called:
            self.ended.callback(self.data)


class OverHTTP(TestCase):
    """Streaming requests over TCP connections."""

    timeout = 20
    tls = False

    async def setUp(self) -> None:
        """Start an API server with one kubelet."""
        self.sessions: list[Session] = []
        self.features: list[str] = []
        self.registry = Registry()
        self.streams = StreamHandlers(StreamMetrics(self.registry), FeatureGates())
        self.on_start: Any = self._echo
        self.kubelet = KubeSite(self._kubelet, reactor)
        self.site = KubeSite(with_request_info(self._answer), reactor)
        self.outgoing = ClientFactory(reactor, lambda namespace, name: None)
        self.connections: list[Any] = []
        authority = CertificateAuthority.make("all")
        self.pair = authority.issue(CertConfig("one", names=("127.0.0.1",), server=True))
        self.ca = authority.pair.certificate
        self.ports = [self._listen(site) for site in (self.kubelet, self.site)]
        address = self.ports[0].getHost()
        scheme = "https" if self.tls else "http"
        self.url = f"{scheme}://127.0.0.1:{address.port}"
        self.client = self.outgoing.stream_client(RESTConfig(url=self.url, ca=self.ca if self.tls else b""))

    def _listen(self, site: KubeSite) -> Any:
        if self.tls:
            return reactor.listenSSL(0, site, ServingContextFactory(self.pair, "VersionTLS12"), interface="127.0.0.1")
        return reactor.listenTCP(0, site, interface="127.0.0.1")

    async def tearDown(self) -> None:
        """Close all connections."""
        for port in self.ports:
            await port.stopListening()
        for connection in self.connections:
            if not connection.lost:
                connection.transport.abortConnection()
        self.site.end_long_running()
        self.kubelet.end_long_running()
        await self.settled(
            lambda: not (self.site.connections.channels or self.kubelet.connections.channels or self.client.busy)
        )
        await self.outgoing.close()

    async def settled(self, condition: Any) -> None:
        """Run the reactor until the condition is true; the test's timeout limits the time."""
        while not condition():
            turn: Deferred[None] = Deferred()
            reactor.callLater(0.001, turn.callback, None)
            await turn

    # The kubelet.

    def _kubelet(self, request: KubeRequest) -> None:
        if request.path.startswith(b"/portForward"):
            serve_port_forward(request, self._dial, reactor=reactor)
        else:
            serve_command(request, self._start, reactor=reactor)

    def _start(self, session: Session) -> None:
        self.sessions.append(session)
        self.on_start(session)

    def _echo(self, session: Session) -> None:
        def on_stdin(data: bytes | None) -> None:
            if data is None:
                session.exit(5)
            else:
                session.write(data.upper())

        session.on_stdin = on_stdin

    def _dial(self, port: int, write: Any, end: Any) -> Any:
        if port == 1:
            raise ConnectionRefusedError("connection refused on port 1")

        def receiver(data: bytes | None) -> None:
            if data is None:
                end()
            else:
                write(b"%d:" % port + data)

        return receiver

    # The API server.

    def _answer(self, request: KubeRequest) -> None:
        run_proxy(self._stream(request), request)

    async def _stream(self, request: KubeRequest) -> None:
        subresource = request.path.decode().strip("/")
        switches = {name: name in request.query for name in ("input", "output", "error", "tty")}
        query = "&".join(f"{name}=1" for name, on in switches.items() if on)
        target = f"/{'portForward' if subresource == 'portforward' else subresource}/d/p/c?{query}".encode()
        chosen = self.streams.select_mode(request, subresource, self.features)
        if chosen is StreamMode.TRANSLATE:
            await self.streams.translate(request, self.client, target, Command(*switches.values()))
            return
        tunnel = self.streams.tunnel(request) if chosen is StreamMode.TUNNEL else None
        if chosen is StreamMode.PROXY or tunnel is not None:
            await proxy_request(request, self.client, target, upgrade_required=True, tunnel=tunnel)
        if tunnel is not None:
            tunnel.answered()

    def counted(self) -> dict[tuple[str, ...], float]:
        """Return the metrics, by the end of their names and their labels."""
        return {
            (family.name.split("_")[2], *labels): child.value
            for family in self.registry.families()
            for labels, child in family.children()
            if isinstance(child, Counter)
        }

    # Clients.

    async def ask(
        self, target: str, speaks: Any, fields: Any, method: str = "GET"
    ) -> tuple[int, dict[str, str], bytes]:
        """Request an upgrade."""
        address = self.ports[1].getHost()
        head = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", *(f"{name}: {value}" for name, value in fields)]
        client = _Upgraded("\r\n".join([*head, "", ""]).encode(), speaks)
        endpoint: Any = TCP4ClientEndpoint(reactor, "127.0.0.1", address.port)
        if self.tls:
            trust = trustRootFromCertificates([Certificate.loadPEM(self.ca)])
            endpoint = wrapClientTLS(optionsForClientTLS("127.0.0.1", trust), endpoint)
        await connectProtocol(endpoint, client)
        self.connections.append(client)
        return await client.answered

    async def websocket(self, target: str, *protocols: str) -> tuple[WebSocketConnection, _Messages, dict[str, str]]:
        """Return a WebSocket client."""
        received = _Messages()
        connection = WebSocketConnection(reactor, received, client=True)
        code, fields, body = await self.ask(target, connection, websocket_fields(*protocols))
        self.assertEqual(101, code, body)
        return connection, received, fields

    async def spdy(self, target: str, *protocols: str) -> tuple[SPDYConnection, dict[str, str]]:
        """Return a SPDY client."""
        connection = SPDYConnection(reactor)
        fields = [(name.decode(), value.decode()) for name, value in spdy_upgrade_fields(protocols)]
        code, answered, body = await self.ask(target, connection, fields, "POST")
        self.assertEqual(101, code, body)
        return connection, answered

    # Tests.

    async def test_translated(self) -> None:
        """A command over WebSocket runs at a kubelet that supports only SPDY."""
        connection, received, fields = await self.websocket("/exec?input&output&error", V5)
        self.assertEqual(V5, fields["sec-websocket-protocol"])
        for _ in range(3):
            connection.send(b"\0abc")
        connection.send(b"\xff\0")
        await self.settled(lambda: received.ends)
        self.assertEqual(V4, self.sessions[0].version)
        self.assertEqual(b"\1", received.messages[0])
        self.assertEqual(b"ABC" * 3, b"".join(message[1:] for message in received.messages if message[0] == 1))
        status = json.loads(received.messages[-1][1:])
        self.assertEqual([{"reason": "ExitCode", "message": "5"}], status["details"]["causes"])
        self.assertEqual([True], received.ends)
        self.assertEqual(
            {("translator", "200"): 1, ("streaming", "exec", "translated_at_apiserver"): 1}, self.counted()
        )

    async def test_proxied_websocket(self) -> None:
        """WebSockets with older protocols, and for nodes that declare WebSocket support, are proxied unchanged."""
        for protocol, features in ((V4, []), (BASE64_V4, []), (V5, [NODE_WEBSOCKETS_FEATURE])):
            self.features = features
            connection, received, fields = await self.websocket("/exec?input&output", protocol)
            self.assertEqual(protocol, fields["sec-websocket-protocol"])
            message = b"0YWJj" if protocol == BASE64_V4 else b"\0abc"
            connection.send(message)
            await self.settled(lambda received=received: len(received.messages) == 2)
            self.assertEqual(b"1QUJD" if protocol == BASE64_V4 else b"\1ABC", received.messages[1])
            self.assertEqual(protocol, self.sessions[-1].version)
            self.sessions[-1].exit(0)
            await self.settled(lambda received=received: received.ends)

    async def test_proxied_spdy(self) -> None:
        """SPDY requests are proxied unchanged."""
        connection, fields = await self.spdy("/exec?input&output", V4)
        self.assertEqual(V4, fields["x-stream-protocol-version"])
        errors, output = _Collected(), _Collected()
        await connection.create_stream({"streamtype": "error"}, errors)
        stdin = await connection.create_stream({"streamtype": "stdin"}, _Collected())
        await connection.create_stream({"streamtype": "stdout"}, output)
        stdin.write(b"abc")
        stdin.finish()
        self.assertEqual(b"ABC", await output.ended)
        self.assertIn(b"NonZeroExitCode", await errors.ended)

    async def forward(self, connection: SPDYConnection) -> None:
        """Forward ports over SPDY."""
        for number, (port, expected) in enumerate([(80, b"80:abc"), (1, b""), (81, b"81:abc")]):
            headers = {"port": str(port), "requestid": str(number)}
            errors, data = _Collected(), _Collected()
            (await connection.create_stream({**headers, "streamtype": "error"}, errors)).finish()
            stream = await connection.create_stream({**headers, "streamtype": "data"}, data)
            stream.write(b"abc")
            stream.finish()
            self.assertEqual(expected, await data.ended)
            self.assertEqual(b"connection refused on port 1" if port == 1 else b"", await errors.ended)
        connection.close()

    async def test_ports(self) -> None:
        """Port forwarding over SPDY is proxied unchanged."""
        connection, _ = await self.spdy("/portforward", "portforward.k8s.io")
        await self.forward(connection)

    async def tunnel(self) -> None:
        """Forward ports through a WebSocket."""
        inner = SPDYConnection(reactor)
        received = _Messages()
        connection = WebSocketConnection(reactor, received, client=True)
        code, fields, _ = await self.ask("/portforward", connection, websocket_fields(TUNNEL))
        self.assertEqual((101, TUNNEL), (code, fields["sec-websocket-protocol"]))
        received.message_received = lambda data, finished: inner.dataReceived(data)  # type: ignore[method-assign]
        inner.makeConnection(TunnelTransport(connection))
        await self.forward(inner)
        await self.settled(lambda: not self.kubelet.connections.channels)

    async def test_tunnel(self) -> None:
        """Ports are forwarded over SPDY inside a WebSocket, with a kubelet that supports only SPDY."""
        await self.tunnel()
        self.assertEqual(1, self.counted()["tunnel", "101"])

    async def test_proxied_tunnel(self) -> None:
        """A node that declares WebSocket support receives the tunnel's WebSocket unchanged."""
        self.features = [NODE_WEBSOCKETS_FEATURE]
        await self.tunnel()
        self.assertEqual({("streaming", "portforward", "proxied_to_kubelet"): 1}, self.counted())

    async def test_refused(self) -> None:
        """A kubelet's response to a failed upgrade is forwarded to the client, or becomes the status of the command."""
        self.kubelet.handler = lambda request: request.respond_text(404, "no such container")
        code, _, body = await self.ask("/exec", None, [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")], "POST")
        self.assertEqual((404, b"no such container"), (code, body))
        code, _, body = await self.ask("/portforward", None, websocket_fields(TUNNEL))
        self.assertEqual((404, b"no such container"), (code, body))
        _, received, _ = await self.websocket("/exec?output", V5)
        await self.settled(lambda: received.ends)
        status = json.loads(received.messages[-1][1:])
        self.assertEqual("unable to upgrade connection: no such container", status["details"]["causes"][0]["message"])
        await self.settled(lambda: not self.site.connections.channels)
        self.assertEqual((1, 1), (self.counted()["tunnel", "404"], self.counted()["translator", "500"]))

    async def test_bad_requests(self) -> None:
        """Invalid requests are rejected without a request to the kubelet."""
        self.kubelet.handler = lambda request: self.fail("asked")
        for target, protocol in (("/exec", V5), ("/portforward", TUNNEL)):
            fields = [field for field in websocket_fields(protocol) if field[0] != "Sec-WebSocket-Key"]
            code, _, body = await self.ask(target, None, fields)
            self.assertEqual((400, b"mismatch challenge/response"), (code, body))
            code, _, body = await self.ask(target, None, websocket_fields(protocol), "POST")
            self.assertEqual((405, b"bad method"), (code, body))
            fields = [*fields, ("Sec-WebSocket-Key", "x")]
            fields.remove(("Sec-WebSocket-Version", "13"))
            code, answered, _ = await self.ask(target, None, fields)
            self.assertEqual((400, "13"), (code, answered["sec-websocket-version"]))
        code, _, body = await self.ask("/exec", None, [])
        self.assertEqual((400, "Upgrade request required"), (code, json.loads(body)["message"]))

    async def test_client_disconnects(self) -> None:
        """Disconnecting the client closes the kubelet's connection in every mode."""
        disconnected: list[bool] = []
        self.on_start = lambda session: setattr(session, "on_connection_lost", lambda: disconnected.append(True))
        for protocol in (V5, V4):
            connection, _, _ = await self.websocket("/exec?input&output", protocol)
            await self.settled(lambda: self.sessions)
            self.sessions.clear()
            connection.abort()
        await self.settled(lambda: len(disconnected) == 2)

    async def test_kubelet_lost(self) -> None:
        """The loss of the kubelet is reported to the client, or closes its connection, in every mode."""
        self.on_start = lambda session: session.write(b"ready")
        for protocol in (V5, V4):
            _, received, _ = await self.websocket("/exec?input&output", protocol)
            await self.settled(lambda received=received: b"\1ready" in received.messages)
            self.kubelet.connections.abort_all()
            await self.settled(lambda received=received: received.ends)
            self.assertEqual([protocol == V5], received.ends)
            if protocol == V5:
                self.assertIn(b"unexpected EOF", received.messages[-1])

    async def test_slow_client(self) -> None:
        """A client that does not read pauses the command, and gets all data when it reads again."""
        full: list[bool] = []

        def start(session: Session) -> None:
            session.on_backpressure = full.append
            while not full:
                session.write(b"x" * 50_000)
                written.append(50_000)
                if len(written) > 2000:
                    break
            reactor.callLater(0, more, session)

        def more(session: Session) -> None:
            # Write until the buffers between both sides are full, too.
            if not full[-1]:
                session.write(b"x" * 50_000)
                written.append(50_000)
                reactor.callLater(0, more, session)
            else:
                rounds.append(len(written))
                if len(rounds) > 50 and rounds[-1] == rounds[-50]:
                    session.exit(0)
                else:
                    reactor.callLater(0.001, more, session)

        written: list[int] = []
        rounds: list[int] = []
        self.on_start = start
        connection, received, _ = await self.websocket("/exec?output", V5)
        connection.pause_reading("the test")
        await self.settled(lambda: len(rounds) > 50 and rounds[-1] == rounds[-50])
        connection.resume_reading("the test")
        await self.settled(lambda: received.ends)
        self.assertEqual(sum(written), sum(len(message) - 1 for message in received.messages if message[0] == 1))
        self.assertIn(b"Success", received.messages[-1])

    async def test_stop(self) -> None:
        """Stopping the server sends close frames to its clients."""
        _, received, _ = await self.websocket("/exec?input&output", V5)
        await self.settled(lambda: self.sessions)
        self.site.end_long_running()
        await self.settled(lambda: received.ends and not self.site.connections.channels)
        self.assertEqual([False], received.ends)


class OverTLS(OverHTTP):
    """The same tests with TLS on both connections."""

    tls = True


def websocket_fields(*protocols: str) -> list[tuple[str, str]]:
    """Return the header of a WebSocket request."""
    return [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Protocol", ", ".join(protocols)),
    ]
