"""Keys for tests of service account tokens."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


def private_pem(key: Any) -> bytes:
    """Return a private key in PEM."""
    made: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made


def public_pem(key: Any) -> bytes:
    """Return the public key in PEM."""
    made: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return made
