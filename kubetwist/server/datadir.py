"""
The data directory: all state that the server keeps between starts.

F{kubetwist.json} marks it as a data directory, F{pki/} contains keys and certificates, F{admin.kubeconfig} is for the
admin, and storage backends write their files beside them. F{pki/} is written under another name and then renamed, so
that it is complete or absent after a power failure.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from twisted.logger import Logger

from ..api.flagvalues import FlagValues
from ..api.users import MASTERS
from .credentials.certificates import (
    BadCertificate,
    CertConfig,
    CertificateAuthority,
    CertKeyPair,
    service_account_key,
    serving_names,
)
from .credentials.kubeconfig import kubeconfig, refresh
from .credentials.rotation import drop_expired_keys
from .errors import StartError
from .files import sync_directory, write_file
from .hostaddress import advertised_address

MARKER = "kubetwist.json"
FORMAT = 1
#: Names the process that uses the directory; valid only while the marker is locked.
PID_FILE = "kubetwist.pid"
#: Exists while a restore replaces the content.
RESTORE_MARKER = ".restoring"

ADMIN = CertConfig("kubernetes-admin", organization=MASTERS)
#: As L{kubetwist.controllers.clusterauthenticationtrust} publishes it.
FRONT_PROXY = CertConfig("front-proxy-client")


class DataDirectory:
    """
    One data directory.

    @ivar path: Absolute.
    @ivar pki: The directory of keys and certificates.
    """

    _log = Logger()

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        """
        @param durable: Whether written files must survive a power failure.
        """
        self.path = path.absolute()
        self._durable = durable
        self.pki = self.path / "pki"
        self._lock: int | None = None

    @property
    def kubeconfig(self) -> Path:
        """The path of the admin's kubeconfig."""
        return self.path / "admin.kubeconfig"

    def write(self, path: Path, content: bytes, mode: int = 0o600) -> None:
        """Write a file into the directory, or beside it, atomically."""
        write_file(path, content, mode, durable=self._durable)

    # Opening.

    def open(self) -> None:
        """
        Create the directory if it does not exist, and lock it for this process.

        @raise StartError: It is not a data directory, damaged, used by another process, or cannot be written.
        """
        self.lock()
        with self._closed_on_error():
            self.check_restored()
            self._make_pki()
            drop_expired_keys(self.pki)

    def lock(self) -> None:
        """
        Lock the directory for this process, and create only its marker.

        @raise StartError: It is not a data directory, damaged, used by another process, or cannot be written.
        """
        with self._closed_on_error():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check()
            self._flock()

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.close()
            reason = "not a directory" if isinstance(error, FileExistsError) else error.strerror or error
            raise StartError(f"cannot use the data directory {self.path}: {reason}") from error
        except BaseException:
            self.close()
            raise

    def check_restored(self) -> None:
        """
        Check that no restore into the directory was interrupted.

        @raise StartError: A restore is incomplete.
        """
        if (self.path / RESTORE_MARKER).exists():
            raise StartError(
                f"the data directory {self.path} is incomplete: a restore was interrupted; run twist kubeapi-restore"
                " again"
            )

    def close(self) -> None:
        """Unlock the directory. Idempotent."""
        if self._lock is not None:
            with suppress(OSError):
                (self.path / PID_FILE).unlink()
            os.close(self._lock)
            self._lock = None

    def _check(self) -> None:
        marker = self.path / MARKER
        try:
            marker_content: Any = json.loads(marker.read_bytes())
        except FileNotFoundError:
            if any(not entry.name.startswith(f".{MARKER}.") for entry in self.path.iterdir()):
                raise StartError(
                    f"{self.path} is not a data directory of kubetwist: it is not empty and has no {MARKER}"
                ) from None
            self.path.chmod(0o700)
            self.write(marker, json.dumps({"format": FORMAT}).encode() + b"\n")
            return
        except ValueError:
            raise StartError(f"the data directory {self.path} is damaged: {MARKER} in it cannot be read") from None
        if not isinstance(marker_content, dict) or not isinstance(marker_content.get("format"), int):
            raise StartError(f"the data directory {self.path} is damaged: {MARKER} in it cannot be read")
        if marker_content["format"] > FORMAT:
            raise StartError(f"the data directory {self.path} was created by a newer version of kubetwist")

    def _flock(self) -> None:
        descriptor = os.open(self.path / MARKER, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise StartError(f"the data directory {self.path} is in use by {self._holder()}") from None
        self._lock = descriptor
        # On a full disk the owner is not recorded, which must not prevent the start.
        with suppress(OSError):
            (self.path / PID_FILE).write_text(f"{os.getpid()}\n")

    def _holder(self) -> str:
        try:
            return f"another server (process {int((self.path / PID_FILE).read_text())})"
        except (OSError, ValueError):
            return "another server"

    def _make_pki(self) -> None:
        for leftover in self.path.glob(".pki.*"):
            shutil.rmtree(leftover)
        if self.pki.exists():
            return
        new = self.path / f".pki.{os.getpid()}"
        new.mkdir(mode=0o700)
        private, public = service_account_key()
        files = {"sa.key": (private, 0o600), "sa.pub": (public, 0o644)}
        for name, common_name in (("ca", "kubetwist-ca"), ("front-proxy-ca", "kubetwist-front-proxy-ca")):
            pair = CertificateAuthority.make(common_name).pair
            files[f"{name}.crt"] = (pair.certificate, 0o644)
            files[f"{name}.key"] = (pair.key, 0o600)
        for name, (content, mode) in files.items():
            self.write(new / name, content, mode)
        new.rename(self.pki)
        if self._durable:
            sync_directory(self.path)

    # Content.

    def authority(self, name: str = "ca") -> CertificateAuthority:
        """
        Return the authority of the server's certificates, or of the front proxy's.

        @raise StartError: It is damaged.
        """
        try:
            chain = self.pki / f"{name}-cross.crt"
            return CertificateAuthority(self._pair(self.pki, name), chain.read_bytes() if chain.exists() else b"")
        except (OSError, BadCertificate) as error:
            reason = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else f"{name}.crt: {error}"
            raise StartError(f"the data directory {self.path} is damaged: {reason}") from error

    def ensure_certificate(
        self, folder: Path, name: str, authority: CertificateAuthority, subject: CertConfig
    ) -> CertKeyPair:
        """
        Return a certificate of the server: the one of an earlier start, or a new one.

        @raise StartError: It cannot be written.
        """
        try:
            pair = self._pair(folder, name)
            if authority.is_valid_for(pair, subject):
                return pair
            self._log.info("reissuing {name}: it is about to expire or its names changed", name=f"{name}.crt")
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StartError(f"cannot read {error.filename}: {error.strerror}") from error
        pair = authority.issue(subject)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Write the key first: a certificate without its key would be issued again.
            self.write(folder / f"{name}.key", pair.key)
            self.write(folder / f"{name}.crt", pair.certificate, 0o644)
        except OSError as error:
            raise StartError(f"cannot write {folder / name}.crt: {error.strerror or error}") from error
        return pair

    def service_account_keys(self) -> tuple[Path, Path]:
        """
        Return the private and the public key for service account tokens.

        @raise StartError: They do not exist.
        """
        for name in ("sa.key", "sa.pub"):
            if not (self.pki / name).is_file():
                raise StartError(f"the data directory {self.path} is damaged: {self.pki / name} is missing")
        return self.pki / "sa.key", self.pki / "sa.pub"

    @staticmethod
    def _pair(folder: Path, name: str) -> CertKeyPair:
        return CertKeyPair((folder / f"{name}.crt").read_bytes(), (folder / f"{name}.key").read_bytes())


class Credentials:
    """
    The certificates of the server, and of its admin.

    @ivar serving: The serving certificate with its chain, and its key.
    @ivar issued_files: The files of the serving certificate and its key, if the server issues it; otherwise C{()}.
    @ivar serving_files: The files of the serving certificate and its key, if they belong to the operator: the server
        never writes them, and reads them again when they change. C{()} if the server issues its certificate.
    @ivar authority_certificate: The authority of client certificates, PEM.
    @ivar ca_bundle: The authorities that clients verify it with.
    @ivar ca_bundle_listeners: Called when C{ca_bundle} has changed and new connections get the new certificate.
    @ivar front_proxy: The client certificate for extension API servers.
    @ivar front_proxy_files: The files of that certificate and its key.
    @ivar front_proxy_authority: The authority of that certificate, PEM; followed by the previous one during a rotation.
    @ivar front_proxy_listeners: Called when C{front_proxy_authority} has changed.
    """

    def __init__(self, data: DataDirectory, options: FlagValues, names: Sequence[str] = ()) -> None:
        """
        Read the certificates and keys, and create missing ones.

        @param names: The names of the server; by default the names of a Kubernetes API server.
        @raise StartError: A file cannot be read, used or written.
        """
        self._data = data
        self.ca_bundle_listeners: list[Callable[[], object]] = []
        self.front_proxy_listeners: list[Callable[[], object]] = []
        authority = data.authority()
        self.authority_certificate = self.ca_bundle = authority.pair.certificate
        folder = Path(options["cert-dir"]) if options["cert-dir"] else data.pki
        self.serving_files: tuple[str, ...] = ()
        self.issued_files: tuple[str, ...] = ()
        self._serving_subject: CertConfig | None = None
        self._folder = folder
        if options["tls-cert-file"]:
            self.serving_files = (options["tls-cert-file"], options["tls-private-key-file"])
            self.set_serving_certificate(_read_pair("--tls-cert-file", *self.serving_files))
        elif options["cert-dir"] and (files := _given_files(folder, authority)):
            self.serving_files = files
            self.set_serving_certificate(_read_pair("--cert-dir:", *files))
        else:
            names = tuple(names) or serving_names(
                socket.gethostname(),
                options["service-cluster-ip-range"],
                (options["bind-address"], advertised_address(options["bind-address"], options["advertise-address"])),
                options["external-hostname"],
            )
            self._serving_subject = CertConfig("kube-apiserver", names=names, server=True)
            self.issued_files = (str(folder / "apiserver.crt"), str(folder / "apiserver.key"))
        self.front_proxy_files = (data.pki / "front-proxy-client.crt", data.pki / "front-proxy-client.key")
        self.renew()
        self.front_proxy_authority = data.authority("front-proxy-ca").pair.certificate
        data.service_account_keys()

    @property
    def authority_file(self) -> Path:
        """The file of the authority of the data directory, with further ones during a rotation."""
        return self._data.pki / "ca.crt"

    @property
    def front_proxy_authority_file(self) -> Path:
        """The file of L{front_proxy_authority}."""
        return self._data.pki / "front-proxy-ca.crt"

    @property
    def admin_files(self) -> tuple[Path, Path]:
        """The files of the admin's certificate and its key."""
        return self._data.pki / "admin.crt", self._data.pki / "admin.key"

    def renew(self) -> None:
        """
        Issue each certificate that is missing, due for renewal, or of a previous authority. Blocking.

        @raise StartError: A file cannot be read, used or written.
        """
        data = self._data
        authority = data.authority()
        if self._serving_subject is not None:
            self.serving = data.ensure_certificate(self._folder, "apiserver", authority, self._serving_subject)
        self.admin = data.ensure_certificate(data.pki, "admin", authority, ADMIN)
        proxies = data.authority("front-proxy-ca")
        self.front_proxy = data.ensure_certificate(data.pki, "front-proxy-client", proxies, FRONT_PROXY)

    def set_authority_certificates(self, certificates: bytes) -> None:
        """
        Replace the content of L{authority_file}.

        @param certificates: PEM.
        """
        own = self.ca_bundle[len(self.authority_certificate) :]
        self.authority_certificate = certificates
        self.ca_bundle = certificates + own

    def set_serving_certificate(self, serving: CertKeyPair) -> None:
        """Replace the serving certificate by one of another issuer."""
        self.serving = serving
        self.ca_bundle = self.authority_certificate + serving.certificate

    def write_kubeconfig(self, url: str) -> Path:
        """Write the admin's kubeconfig if it is missing or outdated; return its path."""
        content = kubeconfig(url, self.ca_bundle, self.admin)
        path = self._data.kubeconfig
        try:
            existing = path.read_bytes() if path.exists() else content
            if existing != content:
                content = refresh(existing, content)
            if existing != content or not path.exists():
                self._data.write(path, content)
            elif path.stat().st_mode & 0o777 != 0o600:
                path.chmod(0o600)
        except OSError as error:
            raise StartError(f"cannot write {path}: {error.strerror or error}") from error
        return path


def _given_files(folder: Path, authority: CertificateAuthority) -> tuple[str, str] | None:
    """
    Return the files of a serving certificate in C{--cert-dir} that another authority issued.

    As in the reference (apiserver/pkg/server/options/serving.go: MaybeDefaultWithSelfSignedCerts), existing files are
    used as they are. A certificate that an authority of a kubetwist server issued is not of this kind.

    @raise StartError: They cannot be read.
    """
    files = folder / "apiserver.crt", folder / "apiserver.key"
    try:
        if not all(file.exists() for file in files):
            return None
        content = files[0].read_bytes()
    except OSError as error:
        raise StartError(f"cannot read {error.filename}: {error.strerror}") from error
    return None if authority.has_issued(content) else (str(files[0]), str(files[1]))


def _read_pair(flag: str, certificate: str, key: str) -> CertKeyPair:
    contents: Sequence[bytes] = []
    try:
        contents = [Path(path).read_bytes() for path in (certificate, key)]
    except OSError as error:
        raise StartError(f"cannot read {error.filename}: {error.strerror}") from error
    pair = CertKeyPair(*contents)
    try:
        pair.parsed()
    except BadCertificate as error:
        raise StartError(f"cannot use {flag} {certificate} with {key}: {error}") from error
    return pair
