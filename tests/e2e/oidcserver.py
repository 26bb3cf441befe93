"""An OpenID Connect provider at a port of this machine, with a page on which users sign in."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.oidcprovider import Provider


class _Handler(BaseHTTPRequestHandler):
    """Answers browsers and the API server."""

    provider: Provider

    def do_GET(self) -> None:
        """Send a document, or the page for signing in."""
        parts = urlsplit(self.path)
        if parts.path == "/authorize":
            page = (
                "<!doctype html><title>provider</title><h1>Provider</h1>"
                f'<form method="post" action="{escape(self.path)}"><input name="user" aria-label="User">'
                '<button name="act" value="allow">Allow</button>'
                '<button id="deny" name="act" value="deny">Deny</button></form>'
            )
            self.send(200, page.encode(), "text/html")
        elif parts.path == "/end":
            self.send(200, b"<!doctype html><title>provider</title>Signed out of the provider", "text/html")
        else:
            self.send(*self.provider.answer(parts.path), "application/json")

    def do_POST(self) -> None:
        """Send tokens, or redirect the browser of the user who has signed in."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if urlsplit(self.path).path == "/token":
            self.send(*self.provider.grant(body, self.headers.get("Authorization", "")), "application/json")
            return
        form = parse_qs(body.decode())
        asked = parse_qs(urlsplit(self.path).query)
        if form["act"] == ["deny"]:
            refusal = {"error": "access_denied", "error_description": "<b>No.</b>", "state": asked["state"][0]}
            location = f"{asked['redirect_uri'][0]}?{urlencode(refusal)}"
        else:
            url = f"{self.provider.url}{self.path}"
            location = self.provider.authorize(url, form["user"][0], iss=self.provider.url)
        self.send_response(303)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send(self, code: int, body: bytes, content_type: str) -> None:
        """Send a response."""
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Log nothing."""


@contextmanager
def serve_provider(folder: Path) -> Iterator[tuple[Provider, Path]]:
    """
    Serve a provider while the context is open.

    @param folder: The directory of its certificate.
    @return: The provider, and the file of its certificate.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "provider")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=12))
    builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    both, public = folder / "provider.pem", folder / "provider.crt"
    public.write_bytes(certificate.public_bytes(Encoding.PEM))
    both.write_bytes(
        certificate.public_bytes(Encoding.PEM) + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    provider = Provider(f"https://127.0.0.1:{server.server_address[1]}", time.time)
    provider.issuer_url = provider.url
    handler.provider = provider  # type: ignore[attr-defined] # of a new class
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield provider, public
    finally:
        server.shutdown()
        server.server_close()
