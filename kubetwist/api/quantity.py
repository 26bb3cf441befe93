"""
Quantities, such as C{500m} and C{1Gi}: their amount and canonical form.

See kubernetes/apimachinery, C{pkg/api/resource}. A quantity is stored in the shortest form of its suffix family (C{0.5}
as C{500m}, C{1024Mi} as C{1Gi}), rounded up to a multiple of 10^-9.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, total_ordering
from typing import TYPE_CHECKING, Final, Literal

from .jsontypes import JSONValue
from .renamed import renamed_attributes
from .writtennumbers import WrittenNumber

Family = Literal["decimal", "binary", "exponent"]

_FORMAT_PROBLEM: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_SUFFIX_PROBLEM: Final = "unable to parse quantity's suffix"
_NUMERIC_PROBLEM: Final = "unable to parse numeric part of quantity"

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {0: "", **{exponent: suffix for suffix, exponent in _BINARY.items()}}

_split = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)").fullmatch
_exponent = re.compile("[eE]([-+]?[0-9]{1,18})").fullmatch
_plain = re.compile("[1-9][0-9]{0,2}(?:m|k|M|G|)|[1-9][0-9]{0,2}(?:Ki|Mi|Gi)").fullmatch

#: Arithmetic uses integers in units of 10^-9.
_UNIT: Final = 10**9
#: Binary quantities are capped here.
_MAX_BINARY: Final = ((1 << 63) - 1) * _UNIT
#: Maximum exponent, to bound memory and time.
_MAX_EXPONENT: Final = 1000
#: Maximum number of digits, to bound memory and time.
_MAX_DIGITS: Final = 1000


@total_ordering
class Quantity:
    """
    An immutable amount.

    @ivar nanos: The amount in units of 10**-9.
    @ivar family: The family of its suffix.
    """

    __slots__ = ("_text", "family", "nanos")

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes("Quantity", {"billionths": "nanos", "scaled": "scaled_value"})

    def __init__(self, nanos: int, family: Family = "decimal", text: str = "") -> None:
        self.nanos = nanos
        self.family: Family = family
        self._text = text

    @classmethod
    def parse(cls, value: JSONValue) -> Quantity:
        """
        Parse a quantity, a string or a number.

        @raise ValueError: The value is invalid.
        """
        return _parse(value if isinstance(value, str) else _number_text(value))

    @property
    def value(self) -> Fraction:
        """Return the exact amount."""
        return Fraction(self.nanos, _UNIT)

    def sign(self) -> int:
        """Return 1, 0 or -1."""
        return (self.nanos > 0) - (self.nanos < 0)

    def scaled_value(self, exponent: int = 0) -> int:
        """Return the amount in units of 10**C{exponent} (-3 for thousandths), rounded away from zero."""
        amount, unit = abs(self.nanos), 10 ** (9 + exponent) if exponent > -9 else 1
        rounded = -(-amount // unit) * (10 ** (-9 - exponent) if exponent < -9 else 1)
        return rounded if self.nanos >= 0 else -rounded

    def __add__(self, other: Quantity) -> Quantity:
        # The family of zero is ignored: the sum of zero and 1Gi is 1Gi.
        family = self.family if self.nanos else other.family
        return Quantity(self.nanos + other.nanos, family)

    def __sub__(self, other: Quantity) -> Quantity:
        family = self.family if self.nanos else other.family
        return Quantity(self.nanos - other.nanos, family)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.family)

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __str__(self) -> str:
        if self._text:
            return self._text
        if not self.nanos:
            return "0"
        # Small binary amounts, and those with a fraction, are formatted as decimal.
        if self.family == "binary" and abs(self.nanos) >= 1024 * _UNIT and not self.nanos % _UNIT:
            return _binary(self.nanos // _UNIT)
        return _decimal(self.nanos, -9, self.family == "exponent")

    def __repr__(self) -> str:
        return f"Quantity.parse({str(self)!r})"


def _binary(number: int) -> str:
    exponent = 0
    while exponent < 60 and not number % 1024:
        number //= 1024
        exponent += 10
    return f"{number}{_BINARY_SUFFIX[exponent]}"


def _decimal(number: int, exponent: int, exponential: bool) -> str:
    limit = _MAX_EXPONENT * 2 if exponential else 18
    while not number % 1000 and exponent + 3 <= limit:
        number //= 1000
        exponent += 3
    if not exponential:
        return f"{number}{_DECIMAL_SUFFIX[exponent]}"
    return f"{number}e{exponent}" if exponent else str(number)


def _number_text(value: JSONValue) -> str:
    """Return the text of a JSON number, exact or as an encoder would write it."""
    if isinstance(value, WrittenNumber):
        return value.text
    if value is None:
        return "0"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(_FORMAT_PROBLEM)
    if isinstance(value, float) and 1e-6 <= abs(value) < 1e21:
        # The format of Go's JSON encoder.
        return f"{Decimal(repr(value)).normalize():f}"
    return repr(value)


#: Maximum length of cached texts, to bound the memory of the cache.
_CACHED_LENGTH: Final = 32


def _parse(text: str) -> Quantity:
    return _cached(text) if len(text) <= _CACHED_LENGTH else _read(text)


@lru_cache(maxsize=4096)
def _cached(text: str) -> Quantity:
    return _read(text)


def _read(text: str) -> Quantity:
    # The JSON decoder of the reference strips blanks.
    text = text.strip(" \t\r\n")
    match = _split(text) if text else None
    if match is None:
        raise ValueError(_FORMAT_PROBLEM)
    sign, whole, fraction, suffix = match.groups()
    fraction = fraction or ""
    family: Family
    if suffix in _DECIMAL:
        base, exponent, family = 10, _DECIMAL[suffix], "decimal"
    elif suffix in _BINARY:
        base, exponent, family = 2, _BINARY[suffix], "binary"
    else:
        exponent_match = _exponent(suffix)
        if exponent_match is None:
            raise ValueError(_SUFFIX_PROBLEM)
        base, exponent, family = 10, int(exponent_match[1]), "exponent"
    whole = whole.lstrip("0")
    if len(whole) + len(fraction) > _MAX_DIGITS or exponent > _MAX_EXPONENT:
        raise ValueError(_NUMERIC_PROBLEM)
    digits = int((whole + fraction) or "0")
    shift = 9 - len(fraction) + (exponent if base == 10 else 0)
    if base == 2:
        digits <<= exponent
    if not digits:
        nanos = 0
    elif shift >= 0:
        nanos = digits * 10**shift
    elif -shift > _MAX_DIGITS + 9:
        nanos = 1  # far below the representable precision, but not zero
    else:
        nanos = -(-digits // 10**-shift)
    canonical_text = text if _stays(whole, fraction, exponent, family) else ""
    if family == "binary":
        nanos = min(nanos, _MAX_BINARY)
        if 0 < nanos < _UNIT:
            family = "decimal"
    return Quantity(-nanos if sign == "-" else nanos, family, canonical_text)


def _stays(whole: str, fraction: str, exponent: int, family: Family) -> bool:
    """
    Return whether the reference keeps the text of a quantity.

    It does if it considers the text canonical, by a test that accepts C{1.500}, C{+5} and C{1E3}.
    """
    digits = (whole or "0") + fraction
    if family == "binary":
        places = 14 - len(digits) - exponent * 3 // 10
        return not fraction and places >= 0 and int(digits) & 7 != 0
    scale = exponent - len(fraction)
    return (
        len(digits) <= 18
        and scale >= -9
        and not scale % 3
        and not digits.endswith("000")
        and not digits.startswith("0")
    )


def int64_amount(text: str) -> tuple[int, int] | None:
    """
    Return a quantity as an C{int64Amount}, which the reference uses instead of a big decimal if possible.

    @param text: A quantity.
    @return: An integer of 64 bits and an exponent of ten; L{None} for a big decimal.
    """
    match = _split(text)
    assert match is not None, "it is a quantity"
    sign, whole, fraction, suffix = match.groups()
    whole, fraction = whole.lstrip("0") or "0", fraction or ""
    if suffix in _BINARY:
        exponent = _BINARY[suffix]
        number, scale = int(whole) << exponent if len(whole) < 20 else 0, 0
        fits = not fraction and len(whole) + exponent * 3 // 10 <= 14 and number < 1 << 63
    else:
        exponent_match = _exponent(suffix)
        scale = (int(exponent_match[1]) if exponent_match else _DECIMAL[suffix]) - len(fraction)
        fits = len(whole) + len(fraction) <= 18 and scale >= -9
        number = int(whole + fraction) if fits else 0
    return (-number if sign == "-" else number, scale) if fits else None


def canonical(value: JSONValue) -> str:
    """
    Return the form in which a quantity, a string or a number, is stored.

    @raise ValueError: The value is invalid.
    """
    if isinstance(value, str) and _plain(value):
        return value
    return str(Quantity.parse(value))


def parse_quantity(value: JSONValue) -> Fraction:
    """
    Return the exact amount of a quantity, a string or a number.

    @raise ValueError: The value is invalid.
    """
    return Quantity.parse(value).value
