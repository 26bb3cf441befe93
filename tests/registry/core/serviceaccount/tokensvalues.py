"""Keys for tests of tokens."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)


def pem(key: Any) -> bytes:
    """Return a private key in PEM."""
    made: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made


def public(key: bytes) -> bytes:
    """Return the public key of a private key."""
    return load_pem_private_key(key, None).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
