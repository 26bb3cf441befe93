"""Validation of certificates and keys in objects, with the messages of Go's C{crypto/tls}."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from ....api.resource import JSONObject

_BLOCK: Final = re.compile(rb"-----BEGIN ([^-\n]+)-----.*?-----END \1-----", re.DOTALL)


def tls_problem(data: JSONObject) -> str:
    """Return the reason why the certificate and key of a Secret do not match; C{""} if they match."""
    certificate, key = _bytes(data.get("tls.crt")), _bytes(data.get("tls.key"))
    kinds = [kind.decode("utf-8", "replace") for kind in _BLOCK.findall(certificate)]
    if not kinds:
        return "tls: failed to find any PEM data in certificate input"
    if "CERTIFICATE" not in kinds:
        if len(kinds) == 1 and kinds[0].endswith("PRIVATE KEY"):
            return (
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
                "PEM inputs may have been switched"
            )
        listed = " ".join(kinds)
        return (
            'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the '
            f"following types: [{listed}]"
        )
    kinds = [kind.decode("utf-8", "replace") for kind in _BLOCK.findall(key)]
    if not kinds:
        return "tls: failed to find any PEM data in key input"
    if not any(kind.endswith("PRIVATE KEY") for kind in kinds):
        if kinds == ["CERTIFICATE"]:
            return "tls: found a certificate rather than a key in the PEM for the private key"
        listed = " ".join(kinds)
        return (
            'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks '
            f"of the following types: [{listed}]"
        )
    try:
        public = x509.load_pem_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "x509: malformed certificate"
    try:
        private = load_pem_private_key(key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls: failed to parse private key"
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if type(public).__name__.removesuffix("PublicKey") != type(private).__name__.removesuffix("PrivateKey"):
        return "tls: private key type does not match public key type"
    if private.public_key().public_bytes(*form) != public.public_bytes(*form):
        return "tls: private key does not match public key"
    return ""


def bundle_problem(text: str | None) -> str:
    """Return the error of a C{caBundle} in base64 without a valid certificate; C{""} if it is valid or empty."""
    bundle = _bytes(text)
    if not bundle:
        return ""
    has_malformed = has_valid = False
    for block in _BLOCK.finditer(bundle):
        if block[1] != b"CERTIFICATE":
            continue
        try:
            x509.load_pem_x509_certificate(block[0])
        except ValueError:
            has_malformed = True
        else:
            has_valid = True
    if has_valid:
        return ""
    reason = "no valid certificate authority data seen"
    if has_malformed:
        reason = "failed to parse certificate: x509: malformed certificate"
    elif _BLOCK.search(bundle) is None:
        reason = "unable to parse bytes as PEM block"
    return f"unable to load root certificates: {reason}"


def _bytes(text: str | None) -> bytes:
    try:
        return b64decode(text or "")
    except (binascii.Error, ValueError):
        return b""
