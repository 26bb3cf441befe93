"""Configuration of the server that controllers read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest, ExtensionType

    from ...api.flagvalues import FlagValues
    from ...registry.core.serviceaccount.tokens import TokenIssuer
    from ..fakeimages import FakeImages


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
        """
        Return a signed certificate, PEM.

        @param request: The certificate signing request.
        @param extensions: The X.509 extensions of the certificate, and whether each is critical.
        @param begin: The start of the validity.
        @param end: The end of the validity.
        """


class AuthoritySource(Protocol):
    """Source of the server's certificate authority."""

    def authority(self) -> CertificateAuthority:
        """Read the certificate authority. Blocks."""


class TrustSource(Protocol):
    """Source of the CA bundle with which clients verify the server."""

    @property
    def ca_bundle(self) -> bytes:
        """The CA bundle, PEM."""

    @property
    def ca_bundle_listeners(self) -> list[Callable[[], object]]:
        """Functions that are called when the CA bundle has changed."""


class ControllerConfig(Protocol):
    """Configuration of the server that controllers read."""

    @property
    def options(self) -> FlagValues:
        """The flag values, by flag name."""

    @property
    def kubernetes_version(self) -> str:
        """The served Kubernetes release: C{"1.36"}."""

    @property
    def images(self) -> FakeImages:
        """The behavior of images on simulated nodes."""

    @property
    def credentials(self) -> TrustSource:
        """The source of the CA bundle with which clients verify the server."""

    @property
    def data(self) -> AuthoritySource:
        """The source of the certificate authority."""

    @property
    def token_issuer(self) -> TokenIssuer | None:
        """The signer of service account tokens."""
