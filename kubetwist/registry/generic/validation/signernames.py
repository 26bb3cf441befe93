"""Validation of signer names; see kubernetes, C{pkg/apis/certificates/validation/validation.go}."""

from __future__ import annotations

from typing import Final

from ....api.errors import invalid, required, too_long
from ....api.names import byte_length
from .fields import ErrorList, Problems, dns_label, dns_subdomain, quote

_MAX_DOMAIN_LENGTH: Final = 253
#: The maximum length of a domain, a namespace and a name, with separators.
_MAX_SIGNER_LENGTH: Final = 253 + 1 + 63 + 1 + 253


def signer_name(name: str, path: str, errors: ErrorList) -> None:
    """Validate the name of a signer: a domain and a path."""
    if not name:
        errors.append(required(path))
        return
    domain, _, rest = name.partition("/")
    if name.count("/") != 1:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errors.append(invalid(path, name, text))
        return
    if byte_length(domain) > _MAX_DOMAIN_LENGTH:
        errors.append(too_long(path, _MAX_DOMAIN_LENGTH))
    _parts(domain, path, dns_label, errors)
    if "." not in domain:
        errors.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    _parts(rest, path, dns_subdomain, errors)
    if byte_length(name) > _MAX_SIGNER_LENGTH:
        errors.append(too_long(path, _MAX_SIGNER_LENGTH))


def _parts(dotted: str, path: str, problems: Problems, errors: ErrorList) -> None:
    """Validate the parts between dots; only the first error is reported."""
    for part in dotted.split("."):
        messages = problems(part)
        for text in messages:
            errors.append(invalid(path, dotted, f"validating label {quote(part)}: {text}"))
        if messages:
            return
