"""Tests of L{kubetwist.cli.commands.health}, with a small server in a thread."""

from __future__ import annotations

import socket
import ssl
import tempfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

from click.testing import CliRunner

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.command import CommandError
from kubetwist.cli.commands.health import HealthError, check_health, command
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.credentials.kubeconfig import kubeconfig

ANSWERS = {
    "/readyz": (200, "ok"),
    "/livez": (500, "[+]ping ok\n[-]etcd failed: reason withheld\n[+]log ok\nlivez check failed\n"),
    "/closed": (401, "Unauthorized\nmore\n"),
}


class Handler(BaseHTTPRequestHandler):
    """Answers by the path, and records the client."""

    def do_GET(self) -> None:
        """See L{BaseHTTPRequestHandler}."""
        assert isinstance(self.connection, ssl.SSLSocket)
        certificate = self.connection.getpeercert() or {}
        self.server.clients.append(certificate.get("subject"))
        code, text = ANSWERS[self.path]
        self.send_response(code)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


class DataDirectoryCase(SynchronousTestCase):
    """Base of tests with a data directory and a server."""

    def setUp(self) -> None:
        """Create a data directory."""
        self.authority = CertificateAuthority.make("kubetwist-ca")
        self.folder = Path(tempfile.mkdtemp())
        self.pki = self.folder / "pki"
        self.pki.mkdir()
        self.admin = self.authority.issue(CertConfig("kubernetes-admin", organization="system:masters"))
        (self.pki / "admin.crt").write_bytes(self.admin.certificate)
        (self.pki / "admin.key").write_bytes(self.admin.key)

    def write_kubeconfig(self, url: str) -> None:
        """Write the kubeconfig of a server."""
        content = kubeconfig(url, self.authority.pair.certificate, self.admin)
        (self.folder / "admin.kubeconfig").write_bytes(content)

    def serve(self, name: str = "127.0.0.1") -> HTTPServer:
        """Start a server whose certificate has a name, and write its kubeconfig."""
        serving = self.authority.issue(CertConfig("kube-apiserver", server=True, names=(name,)))
        (self.folder / "serving.pem").write_bytes(serving.certificate + serving.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "serving.pem")
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.authority.pair.certificate.decode())
        server = HTTPServer(("127.0.0.1", 0), Handler)
        server.clients = []
        server.handle_error = lambda *arguments: None
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def end() -> None:
            server.shutdown()
            thread.join()
            server.server_close()

        self.addCleanup(end)
        self.write_kubeconfig(f"https://127.0.0.1:{server.server_address[1]}")
        return server


class HealthTests(DataDirectoryCase):
    """L{check_health}."""

    def reason(self, path: str = "/readyz") -> str:
        """Return the reason of a failed check."""
        return str(self.assertRaises(HealthError, check_health, self.folder, path, 30.0))

    def test_healthy(self) -> None:
        """The answer 200 is healthy; the client is the administrator."""
        server = self.serve()
        self.assertEqual("ok", check_health(self.folder, "/readyz", 30.0))
        subject = (((("organizationName", "system:masters"),), (("commonName", "kubernetes-admin"),)),)
        self.assertEqual(list(subject), server.clients)

    def test_anonymous(self) -> None:
        """Without the certificate of the administrator the client is anonymous."""
        (self.pki / "admin.crt").unlink()
        server = self.serve()
        self.assertEqual("ok", check_health(self.folder, "/readyz", 30.0))
        self.assertEqual([None], server.clients)

    def test_unhealthy(self) -> None:
        """The failed checks are the reason, or the first line of another answer."""
        self.serve()
        self.assertEqual("/livez is answered 500: [-]etcd failed: reason withheld", self.reason("/livez"))
        self.assertEqual("/closed is answered 401: Unauthorized", self.reason("/closed"))

    def test_no_server(self) -> None:
        """A refused connection is a failed check."""
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            self.write_kubeconfig(f"https://127.0.0.1:{unused.getsockname()[1]}")
            self.assertIn("no answer from https://127.0.0.1:", self.reason())

    def test_other_certificate(self) -> None:
        """The certificate of the server must be valid for its address, and of its authority."""
        self.serve("127.0.0.9")
        self.assertIn("certificate verify failed", self.reason())

    def test_bad_path(self) -> None:
        """A path that cannot be requested is reported."""
        self.serve()
        for path in ("/ready z", "/ready\nz", "/\u00e9\u20ac"):
            self.assertTrue(self.reason(path).startswith(f"cannot request {path!r}: "))

    def test_bad_files(self) -> None:
        """Missing and damaged files are reported in one line."""
        self.assertEqual(f"cannot read {self.folder}/admin.kubeconfig: No such file or directory", self.reason())
        path = self.folder / "admin.kubeconfig"
        url = "{server: 'https://127.0.0.1', certificate-authority-data: '%s'}"
        entry = f"{{clusters: [{{name: kubetwist, cluster: {url}}}]}}"
        for text in ("", entry % "", "[", "[" * 5000, "{clusters: []}", "{clusters: 1}", entry % "?", entry % "/w=="):
            path.write_text(text)
            self.assertEqual(f"{path} is not the kubeconfig of a server", self.reason())
        path.write_text(entry.replace("https", "http") % "")
        self.assertEqual(f"{path} is not the kubeconfig of a server", self.reason())
        path.write_text(entry % "eA==")
        self.assertIn("cannot use the certificates in", self.reason())


class CommandTests(DataDirectoryCase):
    """The command."""

    def run_command(self, *arguments: str) -> tuple[str, BaseException | None]:
        """Return the output and the exception."""
        result = CliRunner().invoke(command, [f"--data-dir={self.folder}", *arguments], catch_exceptions=True)
        return result.output, result.exception

    def test_command(self) -> None:
        """The answer is printed; a failed check is an error."""
        self.serve()
        self.assertEqual(("ok\n", None), self.run_command())
        output, error = self.run_command("--path=/livez")
        self.assertIsInstance(error, CommandError)
        self.assertEqual(("", "/livez is answered 500: [-]etcd failed: reason withheld"), (output, str(error)))
