"""The client certificate that authenticates this server to extension API servers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ...api.flagvalues import FlagValues
from ..errors import StartError
from ..watchedfiles import FileReloader
from .certificates import CertKeyPair


class Caller(Protocol):
    """Client of other API servers; L{kubetwist.controllers.aggregation.apiservices.Aggregation} implements it."""

    def use_identity(self, certificate: bytes, key: bytes) -> None:
        """Present this certificate from now on; both parameters are PEM."""


def configure_proxy_client_certificate(
    caller: Caller, options: FlagValues, default_files: Sequence[Path], files: FileReloader
) -> None:
    """
    Present a certificate to extension API servers: the current one of C{--proxy-client-cert-file}, or the data
    directory's.

    @param options: The parsed command line.
    @param default_files: The certificate of the data directory, and its key.
    @param files: Watches the files.
    @raise StartError: The files cannot be used.
    """
    paths, source = default_files, "front proxy client certificate"
    if options["proxy-client-cert-file"]:
        paths = [Path(options["proxy-client-cert-file"]), Path(options["proxy-client-key-file"])]
        source = "--proxy-client-cert-file and --proxy-client-key-file"

    def load(contents: Sequence[bytes]) -> CertKeyPair:
        pair = CertKeyPair(*contents)
        pair.parsed()
        return pair

    def use(pair: CertKeyPair) -> None:
        caller.use_identity(pair.certificate, pair.key)

    try:
        use(files.watch(paths, load, use, source))
    except OSError as error:
        raise StartError(f"cannot read {error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise StartError(f"cannot use the certificate for other API servers: {error}") from error
