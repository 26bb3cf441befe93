"""The interface of credentials to the data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from .certificates import CertConfig, CertificateAuthority, CertKeyPair


class KeyDirectory(Protocol):
    """
    The directory of the server's keys and certificates; L{kubetwist.server.datadir.DataDirectory} implements it.

    @ivar pki: The directory of the files.
    """

    pki: Path

    def authority(self, name: str = "ca") -> CertificateAuthority:
        """
        Return an authority of the server.

        @param name: C{"ca"}, or C{"front-proxy-ca"} for the front proxy's.
        @raise StartError: Its files are damaged.
        """

    def ensure_certificate(
        self, folder: Path, name: str, authority: CertificateAuthority, subject: CertConfig
    ) -> CertKeyPair:
        """
        Return a certificate that is valid for C{subject}: the one in C{folder}, or a new one that is written there.

        @raise StartError: The files cannot be read or written.
        """

    def service_account_keys(self) -> tuple[Path, Path]:
        """
        Return the files of the private and the public key for service account tokens.

        @raise StartError: They do not exist.
        """
