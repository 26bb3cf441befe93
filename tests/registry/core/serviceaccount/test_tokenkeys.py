"""Tests of L{kubetwist.registry.core.serviceaccount.tokenkeys}."""

from __future__ import annotations

import json

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.serviceaccount.tokenkeys import BadVerificationKey, load_token_keys
from kubetwist.registry.core.serviceaccount.tokens import TokenIssuer
from kubetwist.server.credentials.certificates import CertificateAuthority
from tests.tokenkeys import private_pem, public_pem


class TokenKeyTests(SynchronousTestCase):
    """Tests of L{load_token_keys} and L{TokenKey}."""

    def test_several(self) -> None:
        """A file can have several public keys, private keys and certificates."""
        one, other = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())
        keys = load_token_keys(
            b"# ours\n" + public_pem(one) + private_pem(other) + CertificateAuthority.make("x").pair.certificate
        )
        self.assertEqual([key.algorithm for key in keys], ["RS256", "ES384", "ES256"])

    def test_key_id(self) -> None:
        """The key id is that in the header of tokens."""
        for private in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP521R1())):
            token = TokenIssuer.load(private_pem(private), "i", []).sign({})
            (key,) = load_token_keys(private_pem(private))
            header = jwt.get_unverified_header(token)
            self.assertEqual((key.key_id, key.algorithm), (header["kid"], header["alg"]))

    def test_jwk(self) -> None:
        """The JSON Web Key of a key verifies its tokens."""
        for private in (
            rsa.generate_private_key(65537, 2048),
            ec.generate_private_key(ec.SECP256R1()),
            ec.generate_private_key(ec.SECP521R1()),
        ):
            token = TokenIssuer.load(private_pem(private), "i", []).sign({"sub": "x"})
            (key,) = load_token_keys(private_pem(private))
            jwk = jwt.PyJWK.from_json(json.dumps(dict(key.as_jwk())))
            self.assertEqual(jwt.decode(token, jwk.key, algorithms=[key.algorithm])["sub"], "x")
            self.assertEqual(jwk.key_id, key.key_id)
            self.assertEqual(jwk.public_key_use, "sig")

    def test_bad(self) -> None:
        """A file without keys, with a damaged key, or a key of another type is rejected."""
        edwards = ed25519.Ed25519PrivateKey.generate().public_key()
        for content in (
            b"",
            b"nonsense",
            b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
            edwards.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        ):
            self.assertRaises(BadVerificationKey, load_token_keys, content)
