"""The public keys that verify tokens of service accounts, and their form as JSON Web Keys."""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from cryptography.x509 import load_pem_x509_certificate

from ....api.jsontypes import JSONValue

#: The algorithm, the curve in JSON Web Keys, and the size of a coordinate in bytes, by the name of the curve.
_CURVES: Final = {
    "secp256r1": ("ES256", "P-256", 32),
    "secp384r1": ("ES384", "P-384", 48),
    "secp521r1": ("ES512", "P-521", 66),
}
_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)


class BadVerificationKey(ValueError):
    """The error for a file or key that cannot verify tokens."""


@frozen(eq=False)
class TokenKey:
    """
    A public key.

    @ivar key: The key of the library C{cryptography}.
    @ivar algorithm: The only algorithm of its signatures: C{"RS256"}.
    @ivar key_id: The C{kid} header of tokens: a digest of the public key.
    """

    key: Any
    algorithm: str
    key_id: str

    @classmethod
    def of(cls, key: JSONValue) -> TokenKey:
        """
        Return the token key of an RSA or elliptic curve public key.

        @raise BadVerificationKey: The key has another type.
        """
        if isinstance(key, rsa.RSAPublicKey):
            algorithm = "RS256"
        elif isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
            algorithm = _CURVES[key.curve.name][0]
        else:
            raise BadVerificationKey("only RSA keys and those on the curves P-256, P-384 and P-521 can verify tokens")
        encoded = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return cls(key, algorithm, _base64(hashlib.sha256(encoded).digest()))

    def as_jwk(self) -> Mapping[str, str]:
        """Return the JSON Web Key (RFC 7517)."""
        jwk = {"use": "sig", "kty": "RSA", "kid": self.key_id, "alg": self.algorithm}
        numbers = self.key.public_numbers()
        if isinstance(self.key, rsa.RSAPublicKey):
            return jwk | {"n": _number(numbers.n), "e": _number(numbers.e)}
        _, curve, size = _CURVES[self.key.curve.name]
        return jwk | {"kty": "EC", "crv": curve, "x": _number(numbers.x, size), "y": _number(numbers.y, size)}


def load_token_keys(pem: bytes) -> list[TokenKey]:
    """
    Return the public keys in a file, including those of private keys and certificates.

    @raise BadVerificationKey: The file has no key, or a key that cannot verify tokens.
    """
    keys = []
    for block in _BLOCK.finditer(pem):
        label = block[1]
        try:
            if label.endswith(b"PUBLIC KEY"):
                key: Any = load_pem_public_key(block[0])
            elif label.endswith(b"PRIVATE KEY"):
                key = load_pem_private_key(block[0], None).public_key()
            elif label == b"CERTIFICATE":
                key = load_pem_x509_certificate(block[0]).public_key()
            else:
                # Other blocks are skipped, such as the parameters of a curve before a key.
                continue
        except (ValueError, TypeError) as error:
            raise BadVerificationKey(f"a damaged key: {error}") from error
        keys.append(TokenKey.of(key))
    if not keys:
        raise BadVerificationKey("there is no key in it")
    return keys


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(number: int, size: int = 0) -> str:
    return _base64(number.to_bytes(size or (number.bit_length() + 7) // 8, "big"))
