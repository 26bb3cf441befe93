"""Credentials of connections to kubelets: files of the command line, or a certificate of the data directory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from ...api.times import utc_now
from ...api.users import MASTERS
from ...resources.proxy.upstreamclients import KubeletTLS
from ..errors import StartError
from .certificates import CertConfig, CertKeyPair, renewal_time

if TYPE_CHECKING:
    from ...api.flagvalues import FlagValues
    from ...interfaces import IServerReactor
    from ..watchedfiles import FileReloader
    from .keydirectory import KeyDirectory

#: The user name of the server at kubelets that trust its authority, as in kubeadm.
KUBELET_CLIENT: Final = CertConfig("kube-apiserver-kubelet-client", organization=MASTERS)
NAME: Final = "apiserver-kubelet-client"
_FLAGS: Final = ("kubelet-client-certificate", "kubelet-client-key", "kubelet-certificate-authority")


class KubeletCredentials:
    """
    The current credentials for kubelets.

    A certificate of the data directory is issued or read in a thread when the first kubelet is called, and again
    before it expires.
    """

    _log = Logger()

    def __init__(self, options: FlagValues, reactor: IServerReactor, data: KeyDirectory, files: FileReloader) -> None:
        """
        @param options: The parsed command line, with the flags that begin with C{--kubelet-}.
        @param data: Issues a certificate if the command line names none.
        @param files: Watches the files that the command line names.
        @raise StartError: The files cannot be used.
        """
        self._reactor = reactor
        self._data = data
        self._files = KubeletTLS()
        self._issued: CertKeyPair | None = None
        self._issuing = Lock()
        self._renewed = utc_now()
        if (data.pki / f"{NAME}.crt").is_file():
            self._watch_issued(files, [data.pki / f"{NAME}.crt", data.pki / f"{NAME}.key"])
        self._last = b""
        self._presented: set[bytes] = set()
        self._configured = options["kubelet-client-certificate"] != ""
        if self._configured != (options["kubelet-client-key"] != ""):
            raise StartError("--kubelet-client-certificate and --kubelet-client-key must be set together")
        names = [name for name in _FLAGS if options[name]]
        if names:
            self._watch(files, names, [Path(options[name]) for name in names])

    def _watch(self, files: FileReloader, names: Sequence[str], paths: Sequence[Path]) -> None:
        def load(contents: Sequence[bytes]) -> KubeletTLS:
            contents_by_flag = dict(zip(names, contents, strict=True))
            loaded = KubeletTLS(*(contents_by_flag.get(name, b"") for name in _FLAGS))
            loaded.check()
            return loaded

        flags = ", ".join(f"--{name}" for name in names)
        try:
            self._files = files.watch(paths, load, self._use, flags)
        except OSError as error:
            raise StartError(f"cannot read {error.filename}: {error.strerror}") from error
        except ValueError as error:
            raise StartError(f"cannot use {flags}: {error}") from error

    def _watch_issued(self, files: FileReloader, paths: Sequence[Path]) -> None:
        """Use the certificate of the data directory again when a command has renewed it."""

        def load(contents: Sequence[bytes]) -> CertKeyPair:
            pair = CertKeyPair(*contents)
            pair.parsed()
            return pair

        def use(pair: CertKeyPair) -> None:
            self._issued = None

        # A damaged one is issued again by the first call.
        with suppress(OSError, ValueError):
            files.watch(paths, load, use, "kubelet client certificate")

    def _use(self, files: KubeletTLS) -> None:
        self._files = files

    async def current(self) -> KubeletTLS:
        """Return the current credentials; without a certificate if none can be issued, which is logged."""
        credentials = self._files
        if not self._configured:
            issued = self._issued
            if issued is None or utc_now() > self._renewed:
                try:
                    issued = await deferToThreadPool(self._reactor, self._reactor.getThreadPool(), self._issue)
                except StartError as error:
                    self._log.error("cannot issue the kubelet client certificate: {error}", error=str(error))
                    return credentials
                self._issued, self._renewed = issued, renewal_time(_parsed(issued.certificate))
            credentials = KubeletTLS(issued.certificate, issued.key, credentials.ca)
        if credentials.certificate is not self._last:
            self._last = credentials.certificate
            self._presented.add(_parsed(credentials.certificate).fingerprint(SHA256()))
        return credentials

    def is_client_certificate(self, certificate: x509.Certificate) -> bool:
        """Return whether a certificate is the one presented to kubelets, which no other client should have."""
        return bool(self._presented) and certificate.fingerprint(SHA256()) in self._presented

    def _issue(self) -> CertKeyPair:
        # Concurrent callers wait here and find the certificate issued.
        with self._issuing:
            return self._data.ensure_certificate(self._data.pki, NAME, self._data.authority(), KUBELET_CLIENT)


def _parsed(content: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificates(content)[0]
