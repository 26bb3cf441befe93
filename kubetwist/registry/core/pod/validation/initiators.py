"""Validation of iSCSI initiator names; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_letters, digits
from typing import Final

_not_in_initiators: Final = re.compile("[,;*&$|\t\n\f\r ]")
_IN_AUTHORITIES: Final = f"{ascii_letters}{digits}.-"
_authority: Final = re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\..").search
_eui: Final = re.compile("eui.[0-9A-Za-z]{16}").fullmatch
_naa: Final = re.compile("naa.[0-9A-Za-z]{32}").fullmatch


def validate_initiator(name: str) -> Sequence[str]:
    """Return the errors of an iSCSI initiator name in one of the three formats."""
    good = _is_qualified(name) if name.startswith("iqn") else _eui(name) or _naa(name)
    return () if good else ("must be valid format",)


def _is_qualified(name: str) -> bool:
    """
    Return whether C{name} contains C{iqn.}, a month, an authority, a colon and further text.

    A single regular expression could take quadratic time for long names.
    """
    *pieces, _ = _not_in_initiators.split(name)[-1][:-1].split(":")
    return any(_authority(piece[len(piece.rstrip(_IN_AUTHORITIES)) :]) for piece in pieces)
