"""
A control plane as envtest of controller-runtime runs it: the same files, command lines, polls and signals.

The sources are pkg/internal/testing/controlplane, process and certs of controller-runtime.
"""

from __future__ import annotations

import http.client
import ipaddress
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: Seconds that programs have to stop. envtest gives them as long to start; a busy machine needs more.
TIMEOUT = 20.0
START_TIMEOUT = 60.0
POLL_INTERVAL = 0.1


def free_port() -> int:
    """Return a port that was free a moment ago, which envtest also relies on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class TinyCA:
    """An authority, which issues certificates for a week."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "envtest"),
                x509.NameAttribute(NameOID.COMMON_NAME, "envtest-environment"),
            ]
        )
        self.certificate = (
            self._builder(self.name, self.key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(self._usage(authority=True), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("envtest-environment")]), critical=False)
            .sign(self.key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        """Return the certificate of the authority."""
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """Return the key of the authority."""
        return private_pem(self.key)

    def serving(self) -> tuple[bytes, bytes]:
        """Return a certificate and a key for this machine."""
        names = [x509.DNSName("localhost"), *(x509.IPAddress(ipaddress.ip_address(ip)) for ip in ("127.0.0.1", "::1"))]
        subject = [("envtest",), "localhost"]
        return self._issue(*subject, ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(names))

    def client(self, name: str, *groups: str) -> tuple[bytes, bytes]:
        """Return a certificate and a key of a user."""
        return self._issue(groups, name, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(self, organizations: Any, name: Any, purpose: Any, *extensions: Any) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations),
                x509.NameAttribute(NameOID.COMMON_NAME, name),
            ]
        )
        builder = self._builder(subject, key).add_extension(self._usage(authority=False), critical=True)
        for extension in (x509.ExtendedKeyUsage([purpose]), *extensions):
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM), private_pem(key)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(seconds=5))
            .not_valid_after(now + timedelta(hours=168))
        )

    @staticmethod
    def _usage(*, authority: bool) -> x509.KeyUsage:
        names = (
            "content_commitment",
            "data_encipherment",
            "key_agreement",
            "crl_sign",
            "encipher_only",
            "decipher_only",
        )
        return x509.KeyUsage(
            digital_signature=True, key_encipherment=True, key_cert_sign=authority, **dict.fromkeys(names, False)
        )


def private_pem(key: Any) -> bytes:
    """Return a key in PKCS 8."""
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem


class Program:
    """A program of the assets that runs until it is stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.output = b""
        self._process: subprocess.Popen[bytes] | None = None
        self._log: Any = None

    def has_flag(self, name: str) -> bool:
        """Return whether the help has a flag at the start of a line."""
        done = subprocess.run([self.path, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT)
        assert done.returncode == 0, done.stdout
        return re.search(rf"(?m)^\s*--{name}\b".encode(), done.stdout) is not None

    def start(self, arguments: list[str], health: str) -> None:
        """Start, and poll a URL until it answers 200."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 # it is closed with the process
        self._process = subprocess.Popen(
            [self.path, *arguments], stdout=self._log, stderr=self._log, process_group=0, stdin=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_TIMEOUT
        while not healthy(health):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"{self.path.name} did not start: {self.output.decode()}")
            time.sleep(POLL_INTERVAL)

    def stop(self) -> int:
        """Send SIGTERM to the group of the process; return its exit code."""
        process = self._process
        if process is None:
            return 0
        os.killpg(process.pid, signal.SIGTERM)
        try:
            return process.wait(TIMEOUT)
        finally:
            self.kill()

    def kill(self) -> None:
        """End the process if it runs, and keep its output."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.kill()
            process.wait()
        self._log.seek(0)
        self.output = self._log.read()
        self._log.close()


def healthy(url: str) -> bool:
    """Poll once, without the verification of certificates."""
    parts = urlsplit(url)
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context, timeout=TIMEOUT)
    else:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


class ControlPlane:
    """Starts etcd and kube-apiserver of a directory with the command lines of envtest; a context manager."""

    def __init__(self, assets: Path, *, etcd: Path | None = None, flags: Mapping[str, str] | None = None) -> None:
        """
        @param etcd: The program instead of the one of the assets, as C{TEST_ASSET_ETCD}.
        @param flags: Flags that a suite sets, as C{APIServer.Configure()}.
        """
        self.assets = assets
        self.flags = dict(flags or {})
        self.etcd = Program(etcd or assets / "etcd")
        self.api_server = Program(assets / "kube-apiserver")
        self.folders: list[Path] = []

    def start(self) -> ControlPlane:
        """Start both."""
        try:
            self._start_etcd()
            self._write_certificates()
            self.start_api_server()
        except BaseException:
            self.stop()
            raise
        return self

    def _folder(self) -> Path:
        self.folders.append(Path(tempfile.mkdtemp(prefix="k8s_test_framework_")))
        return self.folders[-1]

    def _start_etcd(self) -> None:
        self.etcd_url = f"http://127.0.0.1:{free_port()}"
        flags = {
            "advertise-client-urls": self.etcd_url,
            "data-dir": str(self._folder()),
            "listen-client-urls": self.etcd_url,
            "listen-peer-urls": f"http://127.0.0.1:{free_port()}",
        }
        if self.etcd.has_flag("unsafe-no-fsync"):
            flags["unsafe-no-fsync"] = "true"
        self.etcd.start([f"--{name}={value}" for name, value in sorted(flags.items())], f"{self.etcd_url}/health")

    def _write_certificates(self) -> None:
        self.port = free_port()
        self.cert_dir = self._folder()
        self.ca, signer, self.users = TinyCA(), TinyCA(), TinyCA()
        certificate, key = self.ca.serving()
        contents = {"apiserver.crt": certificate, "apiserver.key": key}
        contents |= {"sa-signer.crt": signer.pem, "sa-signer.key": signer.key_pem}
        for name, content in contents.items():
            (self.cert_dir / name).write_bytes(content)

    def start_api_server(self) -> None:
        """Start kube-apiserver, again after its end."""
        folder = self.cert_dir
        flags = {
            "allow-privileged": "true",
            "authorization-mode": "RBAC",
            "bind-address": "127.0.0.1",
            "cert-dir": str(folder),
            "client-ca-file": f"{folder}/client-cert-auth-ca.crt",
            "disable-admission-plugins": "ServiceAccount",
            "etcd-servers": self.etcd_url,
            "secure-port": str(self.port),
            "service-account-issuer": f"https://127.0.0.1:{self.port}/",
            "service-account-key-file": f"{folder}/sa-signer.crt",
            "service-account-signing-key-file": f"{folder}/sa-signer.key",
            "service-cluster-ip-range": "10.0.0.0/24",
        }
        if self.api_server.has_flag("insecure-port"):
            flags["insecure-port"] = "0"
        flags |= self.flags
        (folder / "client-cert-auth-ca.crt").write_bytes(self.users.pem)
        arguments = [f"--{name}={value}" for name, value in sorted(flags.items())]
        self.api_server.start(arguments, f"https://127.0.0.1:{self.port}/healthz")

    def stop(self) -> tuple[int, int]:
        """Stop both, and remove their files; return the exit codes."""
        try:
            return self.api_server.stop(), self.etcd.stop()
        finally:
            for program in (self.api_server, self.etcd):
                program.kill()
            for folder in self.folders:
                shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> ControlPlane:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def kubeconfig(self, name: str = "admin", *groups: str) -> Path:
        """Write the kubeconfig of a user (C{ControlPlane.AddUser}), by default of an administrator."""
        certificate, key = self.users.client(name, *(groups or (["system:masters"] if name == "admin" else [])))
        cluster = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority-data": self.ca.pem}
        user = {"client-certificate-data": certificate, "client-key-data": key}

        def encode(entry: Mapping[str, Any]) -> dict[str, str]:
            return {key: b64encode(one).decode() if isinstance(one, bytes) else one for key, one in entry.items()}

        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "envtest", "cluster": encode(cluster)}],
            "users": [{"name": "envtest", "user": encode(user)}],
            "contexts": [{"name": "envtest", "context": {"cluster": "envtest", "user": "envtest"}}],
            "current-context": "envtest",
        }
        path = self.cert_dir / f"{name}.kubecfg"
        path.write_text(yaml.safe_dump(content))
        return path

    def kubectl(
        self, *arguments: str, stdin: str | None = None, user: str = "admin"
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl of the assets as a user."""
        return subprocess.run(
            [self.assets / "kubectl", f"--kubeconfig={self.kubeconfig(user)}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )
