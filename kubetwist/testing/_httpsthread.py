"""An HTTPS server in separate threads, which answers with a function: for tests that block, in every mode."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ..api.jsontypes import JSONValue
from ..server.credentials.certificates import CertConfig, CertificateAuthority

#: Maximum size of the body of a request, in bytes: more than the server sends.
MAX_BODY: Final = 64 * 1024 * 1024
#: Seconds until a connection that sends nothing is closed.
IDLE_TIMEOUT: Final = 60.0

#: Called with the path, without the query, and the decoded body of a POST; returns a status code and a body.
Answer = Callable[[str, Any], tuple[int, JSONValue]]


class HTTPSThread:
    """
    The server, on a free port of 127.0.0.1, with a certificate of a new authority.

    @ivar ca: The authority, PEM.
    """

    def __init__(self, answer: Answer) -> None:
        """
        @param answer: Called in a thread of the connection, for several requests at a time.
        """
        self.answer = answer
        authority = CertificateAuthority.make("webhook-ca")
        self.ca = authority.pair.certificate
        pair = authority.issue(CertConfig("webhook", names=("127.0.0.1", "localhost"), server=True))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        with TemporaryDirectory(prefix="kubetwist-") as folder:
            # The ssl module reads certificates from files only.
            path = Path(folder, "webhook.pem")
            path.touch(mode=0o600)
            path.write_bytes(pair.certificate + pair.key)
            context.load_cert_chain(path)
        self._server = _Server(context, self)
        self._thread = threading.Thread(target=self._server.serve_forever, name="kubetwist webhooks", daemon=True)

    @property
    def url(self) -> str:
        """Return the URL, without a path."""
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> HTTPSThread:
        """Start to answer."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop to listen, and close all connections."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server.close_connections()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Requests whose handlers still run must not keep the test from ending.
    block_on_close = False
    request_queue_size = 128

    def __init__(self, context: ssl.SSLContext, owner: HTTPSThread) -> None:
        self._context = context
        self.owner = owner
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_bind(self) -> None:
        """Bind without a look-up of the name of this host, as the base class makes it."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; the thread of the connection makes the handshake."""
        connection, address = self.socket.accept()
        connection.settimeout(IDLE_TIMEOUT)
        wrapped = self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        with self._lock:
            self._open.add(wrapped)
        return wrapped, address

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection at its end."""
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """Close what is open: a client would otherwise send its next request there."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore broken connections: the client reports them."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        """Answer one request."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            self.close_connection = True
            self._send(413, f"Content-Length must be at most {MAX_BODY}")
            return
        try:
            body = json.loads(self.rfile.read(int(length)))
        except ValueError:
            self._send(400, "the body is not JSON")
            return
        # C{self.path} has fewer slashes than the request.
        path = self.requestline.split()[1].partition("?")[0]
        self._send(*self.server.owner.answer(path, body))

    def _send(self, code: int, result: JSONValue) -> None:
        content = json.dumps(result).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""
