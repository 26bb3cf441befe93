"""Tests for L{kubetwist.authentication._tokenparts}."""

from __future__ import annotations

from base64 import urlsafe_b64encode

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.authentication._tokenparts import decode_part, expiry_of
from tests.authentication.tokencase import TokenCase


class SpellingTests(TokenCase):
    """Tests of alternative encodings of tokens."""

    def test_one_spelling(self) -> None:
        """A token with padding or other characters outside of base64url, in any part, is refused."""
        token = self.token()
        head, body, signature = token.split(".")
        self.assertIsNotNone(self.user(token))
        for other in (
            f"{token}==",
            f"{token}=",
            f"{token}\n",
            f"{token}==AAAA",
            f"{head}==.{body}.{signature}",
            f"{head}.{body}==.{signature}",
            f"{head}.{body}.{signature[:5]}!{signature[5:]}",
        ):
            self.assertIsNone(self.user(other), other)


class PartTests(SynchronousTestCase):
    """Tests for L{decode_part}."""

    @given(st.binary(max_size=40))
    def test_round_trip(self, data: bytes) -> None:
        """Decoding returns the encoded bytes."""
        self.assertEqual(decode_part(urlsafe_b64encode(data).rstrip(b"=")), data)

    def test_strict(self) -> None:
        """Padding, other alphabets, blanks and invalid lengths are rejected."""
        for part in (b"YQ==", b"YQ=", b"a+b/", b"YW Jj", b"YWJj\n", b"a", b"\xff\xff"):
            self.assertRaises(ValueError, decode_part, part)


class ExpiryTests(TokenCase):
    """Tests for L{expiry_of}."""

    def test_expiry(self) -> None:
        """The expiry is the C{exp} claim."""
        self.assertEqual(expiry_of(self.token(exp=1234)), 1234)
        self.assertEqual(expiry_of(self.token(exp=12.5)), 12.5)

    def test_none(self) -> None:
        """Other tokens, and other values of the claim, have no expiry."""
        for token in (
            "",
            "opaque",
            "a.b",
            "a.b.c",
            "a.e30.c",
            "a.W10.c",
            "a.b.c.d",
            "a.\ud800.c",
            self.token(exp=None),
        ):
            self.assertIsNone(expiry_of(token), token)
        for claims in (b'{"exp":true}', b'{"exp":"1"}', b'{"exp":null}', b'{"exp":1e999}'):
            self.assertIsNone(expiry_of(f"a.{urlsafe_b64encode(claims).rstrip(b'=').decode()}.c"), claims)
