"""Validation of CertificateSigningRequests; see kubernetes, C{pkg/apis/certificates/validation/validation.go}."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from typing import Final

from cryptography import x509

from ...api.errors import FieldError, duplicate, forbidden, invalid, required
from ...api.objectmeta import UpdateErrors
from ...api.resource import JSONObject
from ..generic.validation.fields import ErrorList, quote, unsupported
from ..generic.validation.signernames import signer_name

VERDICTS: Final = ("Approved", "Denied")
_BLOCK: Final = re.compile(rb"-----BEGIN ([^-\n]+)-----\s*\n((?:[^\n:]+:[^\n]*\n)*)([A-Za-z0-9+/=\s]*)-----END \1-----")
_PERMANENT_CONDITIONS: Final = ("Approved", "Denied", "Failed")
_USAGES: Final = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)


def approval_conditions(obj: JSONObject) -> list[JSONObject]:
    """Return the conditions that approve or deny."""
    return [one for one in (obj.get("status") or {}).get("conditions") or () if one.get("type") in VERDICTS]


def validate_request(obj: JSONObject) -> list[FieldError]:
    """Validate a CertificateSigningRequest: the request in PEM, the signer name and the usages."""
    errors: ErrorList = []
    spec = obj["spec"]
    problem = csr_error(spec.get("request") or "")
    if problem:
        errors.append(invalid("spec.request", spec.get("request"), problem, "[]byte"))
    usages = spec.get("usages") or []
    if not usages:
        errors.append(required("spec.usages"))
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            errors.append(unsupported(f"spec.usages[{index}]", usage, _USAGES))
    taken: set[str] = set()
    for index, usage in enumerate(usages):
        if usage in taken:
            errors.append(duplicate(f"spec.usages[{index}]", usage))
        taken.add(usage)
    signer = spec.get("signerName") or ""
    if signer == "kubernetes.io/legacy-unknown":
        text = "the legacy signerName is not allowed via this API version"
        errors.append(invalid("spec.signerName", signer, text))
    else:
        signer_name(signer, "spec.signerName", errors)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, text))
    errors.extend(_validate_conditions(obj))
    return errors


def csr_error(encoded: str) -> str:
    """Return the error of a base64-encoded PEM request; C{""} if it is valid."""
    try:
        pem = b64decode(encoded)
    except (binascii.Error, ValueError):
        pem = b""
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in pem:
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        request = x509.load_pem_x509_csr(pem)
        return "" if request.is_signature_valid else "x509: ECDSA verification failure"
    except Exception as error:
        return str(error)


def _validate_conditions(obj: JSONObject, old: JSONObject | None = None) -> list[FieldError]:
    """Validate the conditions; some errors that C{old} has already are ignored."""
    errors: ErrorList = []
    seen: set[str] = set()
    before = [one.get("type") or "" for one in ((old or {}).get("status") or {}).get("conditions") or ()]
    duplicates, both = len(set(before)) < len(before), set(before).issuperset(VERDICTS)
    for index, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        path, kind, status = f"status.conditions[{index}]", condition.get("type") or "", condition.get("status") or ""
        if not kind and "" not in before:
            errors.append(required(f"{path}.type"))
        choice = ("True",) if kind in _PERMANENT_CONDITIONS else ("False", "True", "Unknown")
        if not status:
            errors.append(required(f"{path}.status"))
        elif status not in choice:
            errors.append(unsupported(f"{path}.status", status, choice))
        if not both and kind in VERDICTS and seen.intersection(VERDICTS) - {kind}:
            text = "Approved and Denied conditions are mutually exclusive"
            earlier = invalid(f"{path}.type", kind, text)
            errors.append(invalid("status.conditions", kind, text).since(1, 34, earlier))
        if kind in seen and not duplicates:
            errors.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
    return errors


def validate_request_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that approval conditions and the certificate are unchanged."""
    return _validate_update(obj, old, verdicts=True, certificate=False)


def validate_approval_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that only approval conditions are added."""
    return _validate_update(obj, old, verdicts=True, certificate=False)


def validate_request_status_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that only a certificate is added."""
    return _validate_update(obj, old, verdicts=False, certificate=True)


def _validate_update(obj: JSONObject, old: JSONObject, *, verdicts: bool, certificate: bool) -> list[FieldError]:
    errors = _validate_conditions(obj, old)
    status, before = obj.get("status") or {}, old.get("status") or {}
    new, stored = status.get("certificate") or "", before.get("certificate") or ""
    if new != stored and not certificates_error(stored):
        problem = certificates_error(new)
        if problem:
            errors.append(invalid("status.certificate", "<certificate data>", problem))
    now, was = ([one.get("type") for one in side.get("conditions") or ()] for side in (status, before))
    for kind in _PERMANENT_CONDITIONS:
        if now.count(kind) < was.count(kind):
            errors.append(forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"'))
    for kind in VERDICTS:
        if not verdicts and now.count(kind) > was.count(kind):
            errors.append(forbidden("status.conditions", f'updates may not add a condition of type "{kind}"'))
    if new != stored and not certificate:
        errors.append(forbidden("status.certificate", "updates may not set certificate content"))
    elif new != stored and stored:
        errors.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    return UpdateErrors(errors)


def certificates_error(encoded: str) -> str:
    """Return the error of base64-encoded PEM certificates; C{""} if they are valid or absent."""
    try:
        rest = b64decode(encoded)
    except (binascii.Error, ValueError):
        return "must contain at least one CERTIFICATE PEM block"
    has_certificate = False
    for block in _BLOCK.finditer(rest):
        kind, headers, body = block.group(1), block.group(2), block.group(3)
        if kind != b"CERTIFICATE":
            return f"only CERTIFICATE PEM blocks are allowed, found {quote(kind.decode('utf-8', 'replace'))}"
        if headers:
            return "no PEM block headers are permitted"
        try:
            x509.load_der_x509_certificate(b64decode(body))
        except Exception:
            # Clients get the same message for all parser errors.
            return "x509: malformed certificate"
        has_certificate = True
    if rest and not has_certificate:
        return "must contain at least one CERTIFICATE PEM block"
    return ""
