"""Tests of L{kubetwist.server.credentials.frontproxy}."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority, CertKeyPair
from kubetwist.server.credentials.frontproxy import configure_proxy_client_certificate
from kubetwist.server.errors import StartError


class Caller:
    """A caller that records its certificates."""

    def __init__(self) -> None:
        self.presented: list[CertKeyPair] = []

    def use_identity(self, certificate: bytes, key: bytes) -> None:
        """Record the certificate."""
        self.presented.append(CertKeyPair(certificate, key))


class Files:
    """A fake watcher of files, which reads them again on request."""

    def watch(
        self, paths: Sequence[str], load: Callable[[Sequence[bytes]], Any], use: Callable[[Any], object], what: str
    ) -> Any:
        """See L{kubetwist.api.filewatcher.FileWatcher.watch}."""
        self.again = lambda: use(load([Path(path).read_bytes() for path in paths]))
        return load([Path(path).read_bytes() for path in paths])


class FrontProxyTests(SynchronousTestCase):
    """L{configure_proxy_client_certificate}."""

    def setUp(self) -> None:
        """Create a default certificate, and one in files."""
        authority = CertificateAuthority.make("proxies")
        self.default_certificate, self.given, self.later = (
            authority.issue(CertConfig(name)) for name in ("own", "given", "later")
        )
        self.certificate, self.key = (Path(self.mktemp()) for _ in range(2))
        self.write(self.given)
        self.default_files = [Path(self.mktemp()) for _ in range(2)]
        self.write_default(self.default_certificate)
        self.caller, self.files = Caller(), Files()

    def write(self, pair: CertKeyPair) -> None:
        """Write a certificate to the files."""
        self.certificate.write_bytes(pair.certificate)
        self.key.write_bytes(pair.key)

    def write_default(self, pair: CertKeyPair) -> None:
        """Write the certificate of the data directory."""
        self.default_files[0].write_bytes(pair.certificate)
        self.default_files[1].write_bytes(pair.key)

    def show(self, *paths: str) -> None:
        """Configure the certificate for some flags."""
        names = ("proxy-client-cert-file", "proxy-client-key-file")
        options = dict.fromkeys(names, "") | dict(zip(names, paths, strict=False))
        configure_proxy_client_certificate(self.caller, cast(Any, options), self.default_files, cast(Any, self.files))

    def test_own(self) -> None:
        """Without flags the certificate of the data directory is presented, also after it was renewed."""
        self.show()
        self.assertEqual(self.caller.presented, [self.default_certificate])
        self.write_default(self.later)
        self.files.again()
        self.assertEqual(self.caller.presented, [self.default_certificate, self.later])

    def test_given(self) -> None:
        """With flags the certificate of the files is presented, also after a change."""
        self.show(str(self.certificate), str(self.key))
        self.write(self.later)
        self.files.again()
        self.assertEqual(self.caller.presented, [self.given, self.later])

    def test_unusable(self) -> None:
        """Missing or mismatched files fail the start."""
        error = self.assertRaises(StartError, self.show, str(self.certificate), "/no/such/file")
        self.assertEqual(str(error), "cannot read /no/such/file: No such file or directory")
        self.key.write_bytes(self.later.key)
        error = self.assertRaises(StartError, self.show, str(self.certificate), str(self.key))
        self.assertIn("cannot use the certificate for other API servers", str(error))
        self.assertEqual(self.caller.presented, [])
