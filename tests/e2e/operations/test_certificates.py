"""Tests for the rotation of keys and certificates of a running server, over HTTPS."""

from __future__ import annotations

import json
import os
import signal
import ssl
import time
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Callable
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509

from kubetwist.testing import SubprocessServer

from .commands import block, fail, run_block, start_server, succeed

FLAGS = ("--controllers=root-ca-certificate-publisher-controller",)
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


class Client:
    """A connection that stays open, with the trust and the certificate of a kubeconfig as it was when it was opened."""

    def __init__(self, server: SubprocessServer, folder: Path) -> None:
        config = yaml.safe_load(server.kubeconfig.read_bytes())
        user, cluster = config["users"][0]["user"], config["clusters"][0]["cluster"]
        folder.mkdir()
        for name, data in (
            ("ca", cluster["certificate-authority-data"]),
            ("crt", user["client-certificate-data"]),
            ("key", user["client-key-data"]),
        ):
            (folder / name).write_bytes(b64decode(data))
        self.context = ssl.create_default_context(cafile=str(folder / "ca"))
        self.context.load_cert_chain(str(folder / "crt"), str(folder / "key"))
        host, _, port = cluster["server"].removeprefix("https://").partition(":")
        self._connection = HTTPSConnection(host, int(port), context=self.context, timeout=60)
        # A lost connection is not opened again.
        self._connection.auto_open = 0
        self._connection.connect()

    @property
    def serving(self) -> x509.Certificate:
        """The certificate of the server on this connection."""
        der = self._connection.sock.getpeercert(binary_form=True)
        assert der is not None
        return x509.load_der_x509_certificate(der)

    def open(self, path: str) -> HTTPResponse:
        """Send a GET, and return the response with its body unread."""
        self._connection.request("GET", path)
        response = self._connection.getresponse()
        assert response.status == 200
        return response

    def get(self, path: str) -> Any:
        """Return the body of a GET, on the connection that was opened first."""
        return json.loads(self.open(path).read())

    def status_of_new_connection(self) -> int:
        """Return the status of a request on a new connection."""
        self._connection.close()
        self._connection.connect()
        self._connection.request("GET", "/api/v1/namespaces/default")
        response = self._connection.getresponse()
        response.read()
        return response.status

    def again(self) -> x509.Certificate:
        """Return the serving certificate of a new connection with the same trust and client certificate."""
        assert self.status_of_new_connection() == 200
        return self.serving


def wait_until(server: SubprocessServer, condition: Callable[[], bool]) -> None:
    """Let the server read changed files immediately, not at the next poll, and wait for a condition."""
    os.kill(server.pid, signal.SIGHUP)
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, server.output()
        time.sleep(0.05)


def wait_for_reload(server: SubprocessServer, source: str) -> None:
    """Wait until the server has read changed files."""
    wait_until(server, lambda: f"reloaded files source={source}" in server.output())


def test_renewal(tmp_path: Path) -> None:
    """
    Renewed certificates are used by new connections, while an open connection and an open watch go on.

    Certificates that are due, here because they end soon, are renewed by the running server.
    """
    with start_server(tmp_path / "data", *FLAGS) as server:
        client, watcher = Client(server, tmp_path / "client"), Client(server, tmp_path / "watcher")
        first = client.serving
        watch = watcher.open("/api/v1/namespaces/default/configmaps?watch=1&fieldSelector=metadata.name=seen")
        kubeconfig = server.kubeconfig.read_bytes()
        output = succeed("certs", "renew", f"--data-dir={server.data_dir}")
        assert output.splitlines() == ["renewed apiserver", "renewed admin", "renewed front-proxy-client"]
        wait_for_reload(server, "serving certificate")
        assert client.serving == first
        assert client.get("/api/v1/namespaces/default")["metadata"]["name"] == "default"
        made = {"metadata": {"name": "seen"}}
        assert server.request("POST", "/api/v1/namespaces/default/configmaps", made)[0] == 201
        assert json.loads(watch.readline())["object"]["metadata"]["name"] == "seen"
        renewed = client.again()
        assert renewed.serial_number != first.serial_number
        wait_until(server, lambda: server.kubeconfig.read_bytes() != kubeconfig)
        assert Client(server, tmp_path / "new").serving == renewed


def test_authority(tmp_path: Path) -> None:
    """
    Clients from before the rotation of the authority connect during it; new kubeconfigs and kube-root-ca.crt have both.

    After its end, certificates of the previous authority are refused.
    """
    with start_server(tmp_path / "data", *FLAGS) as server:
        old = Client(server, tmp_path / "old")
        published = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
        flag = f"--data-dir={server.data_dir}"
        succeed("certs", "rotate-ca", flag)
        assert "end the rotation before with --retire" in fail("certs", "rotate-ca", flag)
        wait_for_reload(server, "serving certificate")
        wait_for_reload(server, "certificate authority")
        wait_for_reload(server, "admin's certificate")
        assert old.again().issuer.rfc4514_string().startswith("CN=kubetwist-ca-2")
        bundle = (server.data_dir / "pki" / "ca.crt").read_text()
        assert bundle.count("BEGIN CERTIFICATE") == 2
        wait_until(server, lambda: bool(old.get(published)["data"]["ca.crt"] == bundle))
        new = Client(server, tmp_path / "new")
        succeed("certs", "rotate-ca", flag, "--retire")
        wait_until(server, lambda: bool(new.get(published)["data"]["ca.crt"] != bundle))
        new.again()
        assert old.status_of_new_connection() == 401


def test_service_account_keys(tmp_path: Path) -> None:
    """Tokens of the previous key are valid during the overlap, and refused after it; both keys are published."""
    with start_server(tmp_path / "data", *FLAGS) as server:

        def issue() -> str:
            code, issued = server.request("POST", f"{ACCOUNT}/robot/token", {"spec": {}})
            assert code == 201
            return str(issued["status"]["token"])

        def valid(token: str) -> bool:
            code, reviewed = server.request("POST", REVIEWS, {"spec": {"token": token}})
            assert code == 201
            return bool(reviewed["status"].get("authenticated"))

        client = Client(server, tmp_path / "client")

        def key_ids() -> list[str]:
            return [key["kid"] for key in client.get("/openid/v1/jwks")["keys"]]

        assert server.request("POST", ACCOUNT, {"metadata": {"name": "robot"}})[0] == 201
        old, first = issue(), key_ids()
        flag = f"--data-dir={server.data_dir}"
        assert "are valid until the overlap has passed" in succeed("certs", "rotate-sa-key", flag, "--overlap=1h")
        wait_for_reload(server, "service account signing key")
        new = issue()
        assert valid(old) and valid(new)
        assert len(key_ids()) == 2 and set(first) < set(key_ids())
        header = json.loads(urlsafe_b64decode(new.partition(".")[0] + "=="))
        assert header["kid"] not in first
        succeed("certs", "rotate-sa-key", flag, "--end-overlap")
        wait_until(server, lambda: not valid(old))
        assert valid(new)
        assert key_ids() == [header["kid"]]


def test_check(tmp_path: Path) -> None:
    """The list has all certificates, and the exit code is 1 if one ends soon; mistakes are errors of one line."""
    with start_server(tmp_path / "data", *FLAGS) as server:
        flag = f"--data-dir={server.data_dir}"
        output = succeed("certs", "check", flag)
        for text in ("apiserver ", "CN=kube-apiserver", "front-proxy-client", "SERVICE ACCOUNT KEY", "signs"):
            assert text in output
        assert "apiserver ends at 2" in fail("certs", "check", flag, "--within=9000h")
    assert "is not a data directory" in fail("certs", "check", f"--data-dir={tmp_path}")


def test_page(tmp_path: Path) -> None:
    """The blocks of the page work."""
    with start_server(tmp_path / "data", *FLAGS) as server:
        replaced = {"/var/lib/kubetwist": str(server.data_dir)}
        for first in ("kubetwist certs check", "kubetwist certs renew", "kubetwist certs rotate-sa-key"):
            assert block("certificates.md", first, replaced)
            assert run_block(tmp_path, "certificates.md", first, replaced)
        output = run_block(tmp_path, "certificates.md", "kubetwist certs rotate-ca", replaced)
        assert "new authority: CN=kubetwist-ca-2" in output and "CN=kubetwist-ca is not trusted any more" in output
