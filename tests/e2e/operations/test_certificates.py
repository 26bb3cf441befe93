"""Tests for the rotation of keys and certificates of a running server, over HTTPS."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import time
from base64 import b64decode, urlsafe_b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from kubetwist.testing import SubprocessServer

from ..test_aggregation import aggregated, thing
from ..test_workers import connected
from . import commands
from .commands import block, fail, run_block, succeed
from .test_doctor import doctor

FLAGS = ("--controllers=root-ca-certificate-publisher-controller",)
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"
AGGREGATED = "/apis/far.example.com/v1/things"
PUBLISHED = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
RELOADED_PROXIES = "reloaded files source=--requestheader-client-ca-file"
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


@pytest.fixture(params=[0, 2], ids=["one process", "workers"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SubprocessServer]:
    """A server of one process, and one with two fronts and a storage process."""
    with commands.start_server(tmp_path / "data", *FLAGS, f"--workers={request.param}") as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


def wait_for_reload(server: SubprocessServer, source: str, times: int = 1) -> None:
    """Wait until all processes of the server have read changed files, this often since their start."""
    processes = server.output().count("Starting reactor...")
    pattern = re.compile(rf"#info( worker=\d+)?\] reloaded files source={source} ")

    def reloaded() -> bool:
        counts = Counter(pattern.findall(server.output()))
        return len(counts) == processes and min(counts.values()) >= times

    wait_until(server, reloaded)


def test_renewal(server: SubprocessServer, tmp_path: Path) -> None:
    """
    Renewed certificates are used by new connections, while an open connection and an open watch go on.

    Certificates that are due, here because they end soon, are renewed by the running server.
    """
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


def test_authority(server: SubprocessServer, tmp_path: Path) -> None:
    """
    Clients from before the rotation of the authority connect during it; new kubeconfigs and kube-root-ca.crt have both.

    After its end, certificates of the previous authority are refused.
    """
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
    wait_for_reload(server, "certificate authority", 2)
    wait_until(server, lambda: bool(new.get(published)["data"]["ca.crt"] != bundle))
    # New connections are distributed to all processes that serve.
    for _ in range(4):
        new.again()
        assert old.status_of_new_connection() == 401


def test_service_account_keys(server: SubprocessServer) -> None:
    """
    Tokens of the previous key are valid during the overlap, and refused after it; both keys are published.

    All processes issue tokens with the new key, and verify the tokens of each process.
    """
    fronts = max(1, server.output().count("Starting reactor...") - 1)
    flag = f"--data-dir={server.data_dir}"
    with connected(server, fronts) as clients:

        def issue() -> list[str]:
            answers = [client.ask("POST", f"{ACCOUNT}/robot/token", {"spec": {}}) for client in clients]
            assert {code for code, _ in answers} == {201}
            return [answer["status"]["token"] for _, answer in answers]

        def valid(tokens: list[str]) -> set[bool]:
            reviews = [client.ask("POST", REVIEWS, {"spec": {"token": one}})[1] for client in clients for one in tokens]
            return {bool(review["status"].get("authenticated")) for review in reviews}

        def key_ids() -> list[str]:
            published = [client.ask("GET", "/openid/v1/jwks")[1] for client in clients]
            assert all(one == published[0] for one in published)
            return [key["kid"] for key in published[0]["keys"]]

        assert clients[0].ask("POST", ACCOUNT, {"metadata": {"name": "robot"}})[0] == 201
        old, first = issue(), key_ids()
        assert "are valid until the overlap has passed" in succeed("certs", "rotate-sa-key", flag, "--overlap=1h")
        wait_for_reload(server, "service account signing key")
        new = issue()
        assert valid(old + new) == {True}
        assert len(key_ids()) == 2 and set(first) < set(key_ids())
        headers = [json.loads(urlsafe_b64decode(one.partition(".")[0] + "==")) for one in new]
        (signing,) = {header["kid"] for header in headers}
        assert signing not in first
        succeed("certs", "rotate-sa-key", flag, "--end-overlap")
        wait_until(server, lambda: valid(old) == {False})
        assert valid(new) == {True}
        assert key_ids() == [signing]


@pytest.mark.parametrize("workers", [0, 2])
def test_front_proxy(start_server: Callable[..., SubprocessServer], tmp_path: Path, workers: int) -> None:
    """
    An extension API server that trusts only the previous authority of the front proxy answers during its rotation.

    After it, it answers when it trusts only the new authority, and the previous certificate is refused.
    """
    front = start_server("--controllers=", "--allow-loopback-proxy", f"--workers={workers}", timeout=180)
    pki, flag = front.data_dir / "pki", f"--data-dir={front.data_dir}"
    trusted, previous = tmp_path / "trusted.crt", tmp_path / "previous.pem"
    trusted.write_bytes((pki / "front-proxy-ca.crt").read_bytes())
    previous.write_bytes((pki / "front-proxy-client.crt").read_bytes() + (pki / "front-proxy-client.key").read_bytes())
    back = aggregated(front, start_server, f"--requestheader-client-ca-file={trusted}")
    objects = iter(range(100))

    def create() -> None:
        """Send requests to all processes, on connections that the aggregator opens with its certificate."""
        with connected(front, max(1, workers)) as clients:
            for client in clients:
                answer = client.ask("POST", AGGREGATED, thing(f"thing-{next(objects)}"))
                assert answer[0] == 201, (answer, back.output())

    def published() -> str:
        code, found = front.request("GET", PUBLISHED)
        return str(found["data"]["requestheader-client-ca-file"]) if code == 200 else ""

    def follow() -> None:
        """Trust what the server publishes, as extension API servers do."""
        before = back.output().count(RELOADED_PROXIES)
        trusted.write_text(published())
        wait_until(back, lambda: back.output().count(RELOADED_PROXIES) > before)

    create()
    output = succeed("certs", "rotate-ca", flag, "--front-proxy").splitlines()
    assert output[0].startswith("new authority: CN=kubetwist-front-proxy-ca-2")
    assert output[1:] == ["renewed front-proxy-client"]
    wait_for_reload(front, "front proxy client certificate")
    create()
    wait_until(front, lambda: published().count("BEGIN CERTIFICATE") == 2)
    follow()
    create()
    output = succeed("certs", "rotate-ca", flag, "--front-proxy", "--retire").splitlines()
    assert output == ["CN=kubetwist-front-proxy-ca is not trusted any more"]
    wait_for_reload(front, "front proxy authority", 2)
    # Authorities in the ConfigMap may belong to another server, so that no server removes one.
    assert PUBLISHED.rpartition("/")[2] in block("certificates.md", "kubectl delete configmap", {})
    assert front.request("DELETE", PUBLISHED)[0] == 200
    wait_until(front, lambda: published().count("BEGIN CERTIFICATE") == 1)
    follow()
    create()
    _, found, report = doctor(flag)
    assert found["certificates/front-proxy-ca"] == found["certificates/front-proxy-client"] == "ok", report
    context = ssl.create_default_context(cadata=back.connection.ca)
    context.load_cert_chain(previous)
    connection = HTTPSConnection("127.0.0.1", back.connection.port, context=context, timeout=60)
    connection.request("GET", AGGREGATED, headers={"X-Remote-User": "admin", "X-Remote-Group": "system:masters"})
    assert connection.getresponse().status == 401
    connection.close()


def test_check(tmp_path: Path) -> None:
    """The list has all certificates, and the exit code is 1 if one ends soon; mistakes are errors of one line."""
    with commands.start_server(tmp_path / "data", *FLAGS) as server:
        flag = f"--data-dir={server.data_dir}"
        output = succeed("certs", "check", flag)
        for text in ("apiserver ", "CN=kube-apiserver", "front-proxy-client", "SERVICE ACCOUNT KEY", "signs"):
            assert text in output
        assert "apiserver ends at 2" in fail("certs", "check", flag, "--within=9000h")
    assert "is not a data directory" in fail("certs", "check", f"--data-dir={tmp_path}")


def test_page(tmp_path: Path) -> None:
    """The blocks of the page work."""
    with commands.start_server(tmp_path / "data", *FLAGS) as server:
        replaced = {"/var/lib/kubetwist": str(server.data_dir)}
        for first in ("kubetwist certs check", "kubetwist certs renew", "kubetwist certs rotate-sa-key"):
            assert block("certificates.md", first, replaced)
            assert run_block(tmp_path, "certificates.md", first, replaced)
        for first, name in (("--data-dir", "kubetwist-ca"), ("--front-proxy", "kubetwist-front-proxy-ca")):
            output = run_block(tmp_path, "certificates.md", f"kubetwist certs rotate-ca {first}", replaced)
            assert f"new authority: CN={name}-2" in output and f"CN={name} is not trusted any more" in output
        assert doctor(f"--data-dir={server.data_dir}")[1]["certificates/apiserver"] == "ok"
