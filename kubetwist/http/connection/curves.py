"""
The groups of the key exchange of TLS: numbers of Go's C{tls.CurveID} are translated to names of OpenSSL.

pyOpenSSL has no public method that selects them, so the function of OpenSSL is called.

@see: kubernetes/component-base, C{cli/flag}; the numbers are in IANA's registry of TLS Supported Groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from OpenSSL import SSL

#: OpenSSL's names of the groups that Go supports. Those with ML-KEM need OpenSSL 3.5.
_GROUPS: Final = {
    23: "P-256",
    24: "P-384",
    25: "P-521",
    29: "X25519",
    4587: "SecP256r1MLKEM768",
    4588: "X25519MLKEM768",
    4589: "SecP384r1MLKEM1024",
}


def curves_supported() -> bool:
    """Return whether the installed cryptography exports the function of OpenSSL; 45.0 does not."""
    return hasattr(vars(SSL).get("_lib"), "SSL_CTX_set1_curves_list")


def parse_curves(texts: Sequence[str]) -> tuple[int, ...]:
    """
    Return numbers of groups.

    @param texts: The numbers, in decimal.
    @raise ValueError: A number is unknown or repeated, or OpenSSL does not support its group.
    """
    numbers: list[int] = []
    for text in texts:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
        if number not in _GROUPS:
            raise ValueError(f"{text[:20]} is not the number of a curve: {', '.join(map(str, _GROUPS))}")
        if number in numbers:
            raise ValueError(f"the curve {number} is repeated")
        set_curves(SSL.Context(SSL.TLS_METHOD), (number,))
        numbers.append(number)
    return tuple(numbers)


def set_curves(context: SSL.Context, numbers: Sequence[int]) -> None:
    """
    Select the groups of the key exchange, the preferred one first.

    @param context: The context of connections that are not open yet.
    @param numbers: The numbers of the groups.
    @raise ValueError: OpenSSL does not support a group, or pyOpenSSL does not export the function.
    """
    names = [_GROUPS[number] for number in numbers]
    handle, select = (
        getattr(context, "_context", None),
        getattr(vars(SSL).get("_lib"), "SSL_CTX_set1_curves_list", None),
    )
    if select is None or handle is None or select(handle, ":".join(names).encode()) != 1:
        raise ValueError(f"the installed OpenSSL does not support the curve {', '.join(names)}")
