"""Tests of L{kubetwist.registry.core.serviceaccount.tokens}."""

from __future__ import annotations

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.serviceaccount.tokens import BadSigningKey, TokenIssuer
from tests.registry.core.serviceaccount.tokensvalues import pem, public


class TokenIssuerTests(SynchronousTestCase):
    """Tests of L{TokenIssuer}."""

    def test_keys(self) -> None:
        """RSA keys and keys on supported curves sign tokens, whose header has the key id and algorithm."""
        for key, algorithm in (
            (rsa.generate_private_key(65537, 2048), "RS256"),
            (ec.generate_private_key(ec.SECP256R1()), "ES256"),
            (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        ):
            issuer = TokenIssuer.load(pem(key), "https://here", ["https://here"])
            token = issuer.sign({"sub": "x"})
            header = jwt.get_unverified_header(token)
            self.assertEqual(header["alg"], algorithm)
            self.assertEqual(len(header["kid"]), 43)
            claims = jwt.decode(token, public(pem(key)), algorithms=[algorithm])
            self.assertEqual(claims, {"iss": "https://here", "sub": "x"})

    def test_other_keys(self) -> None:
        """Keys that cannot sign tokens are rejected when they are loaded."""
        secret = ec.generate_private_key(ec.SECP256R1()).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
        )
        for key, why in (
            (b"nonsense", "no private key can be read from it"),
            (secret, "its private key is encrypted"),
            (
                pem(ed25519.Ed25519PrivateKey.generate()),
                "only RSA keys and those on the curves P-256, P-384 and P-521 can sign tokens",
            ),
        ):
            error = self.assertRaises(BadSigningKey, TokenIssuer.load, key, "i", [])
            self.assertEqual(str(error), why)
