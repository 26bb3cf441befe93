"""Warnings about IP addresses."""

from __future__ import annotations

import ipaddress

from .fields import quote


def ambiguous_text(strict: bool) -> str:
    """
    Return the verdict of a warning about an ambiguous notation.

    @param strict: Whether new values with it are errors; see L{kubetwist.registry.generic.validation.fields.ip}.
    """
    return "is invalid" if strict else "will be considered invalid in a future Kubernetes release"


def address_warnings(text: str, path: str, *, strict: bool = True) -> list[str]:
    """Return warnings for an IP address in a non-canonical form; see L{ambiguous_text}."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        parts = text.split(".")
        if len(parts) != 4 or len(text) > 64:
            return []
        if not all(part.isascii() and part.isdigit() and int(part) < 256 for part in parts):
            return []
        canonical = ".".join(str(int(part)) for part in parts)
    else:
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        if mapped is None:
            if address.version == 6 and str(address) != text:
                return [
                    f"{path}: IPv6 address {quote(text)} should be in RFC 5952 canonical format ({quote(str(address))})"
                ]
            return []
        canonical = str(mapped)
    return [f"{path}: non-standard IP address {quote(text)} {ambiguous_text(strict)}: use {quote(canonical)}"]
