"""The configuration of the server, as controllers use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest, ExtensionType

    from ...api.flagvalues import FlagValues
    from ...registry.core.serviceaccount.tokens import TokenIssuer


class CertificateAuthority(Protocol):
    """A certificate authority."""

    def certify(
        self,
        request: CertificateSigningRequest,
        extensions: Sequence[tuple[ExtensionType, bool]],
        begin: datetime,
        end: datetime,
        /,
    ) -> bytes:
        """Return a certificate, PEM."""


class AuthoritySource(Protocol):
    """Where the certificate authority of the server is read from."""

    def authority(self) -> CertificateAuthority:
        """Read the authority. Blocks."""


class TrustSource(Protocol):
    """The certificates by which clients verify the server."""

    @property
    def ca_bundle(self) -> bytes:
        """These certificates, PEM."""

    @property
    def ca_bundle_listeners(self) -> list[Callable[[], object]]:
        """Called when C{trust} has changed."""


class ControllerConfig(Protocol):
    """The configuration of the server, as controllers use it."""

    @property
    def options(self) -> FlagValues:
        """The values of flags, by name."""

    @property
    def kubernetes_version(self) -> str:
        """The release that is served: C{"1.36"}."""

    @property
    def credentials(self) -> TrustSource:
        """The certificates by which clients verify the server."""

    @property
    def data(self) -> AuthoritySource:
        """Where the certificate authority is."""

    @property
    def token_issuer(self) -> TokenIssuer | None:
        """Signs tokens of service accounts."""
