"""Tests for L{kubetwist.storage.etcd.address}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.etcd.address import Address


class AddressTests(SynchronousTestCase):
    """Tests for L{Address}."""

    def test_forms(self) -> None:
        """A member has a host and a port; without a scheme it is used without TLS."""
        for url, host, port, tls, authority in (
            ("https://etcd.example.com:2380", "etcd.example.com", 2380, True, "etcd.example.com:2380"),
            ("http://10.0.0.1", "10.0.0.1", 2379, False, "10.0.0.1:2379"),
            ("10.0.0.1:1", "10.0.0.1", 1, False, "10.0.0.1:1"),
            ("https://[::1]:2379/", "::1", 2379, True, "[::1]:2379"),
            ("https://bücher.example", "bücher.example", 2379, True, "xn--bcher-kva.example:2379"),
        ):
            address = Address.parse(url)
            self.assertEqual((address.host, address.port, address.tls), (host, port, tls), url)
            self.assertEqual(address.authority, authority)

    def test_refused(self) -> None:
        """Other schemes, paths, queries, invalid ports and missing hosts are rejected with the text."""
        for url in ("ftp://a", "https://a/path", "https://a?x=1", "https://a:99999", "https://", "https://a:x"):
            error = self.assertRaises(ValueError, Address.parse, url)
            self.assertIn(f"{url!r} is not the URL of an etcd server", str(error))

    @given(st.text(max_size=20))
    def test_any_text(self, text: str) -> None:
        """Any text is an address or is rejected with one kind of error."""
        try:
            address = Address.parse(text)
        except ValueError:
            return
        self.assertTrue(address.host and 0 < address.port < 65536)
