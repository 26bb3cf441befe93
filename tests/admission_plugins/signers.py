"""Certificate requests and their signers."""

from __future__ import annotations

from typing import Any

from kubetwist.api.resource import JSONObject

SIGNER = "example.com/signer"


def request(signer: str = SIGNER, **status: Any) -> JSONObject:
    """Return a CertificateSigningRequest."""
    return {"metadata": {"name": "csr"}, "spec": {"signerName": signer}, "status": status}
