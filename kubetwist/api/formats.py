"""
Validation of the C{format} of strings in OpenAPI schemas.

See kubernetes/kube-openapi, C{pkg/validation/strfmt}, and kubernetes/apiextensions-apiserver,
C{pkg/apiserver/validation/formats.go}, which defines the formats that CustomResourceDefinitions may use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from email.utils import parseaddr
from functools import cache
from ipaddress import AddressValueError, IPv6Address
from typing import Final

from .featuregates import DEFAULT_RELEASE, Release
from .go.durations import parse_duration
from .go.url import (
    URLError,
    parse_request_uri,
)

Check = Callable[[str], bool]


def _matches(pattern: str, flags: re.RegexFlag = re.RegexFlag.ASCII) -> Check:
    # These patterns are constants and linear. Few schemas use them, so the first check compiles them.
    @cache
    def compiled() -> re.Pattern[str]:
        return re.compile(pattern, flags)

    return lambda text: compiled().fullmatch(text) is not None


def _uuid(version: str = "", variant: str = "[0-9a-f]") -> Check:
    third = f"{version}[0-9a-f]{{3}}" if version else "[0-9a-f]{4}"
    return _matches(
        rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}-?{variant}[0-9a-f]{{3}}-?[0-9a-f]{{12}}",
        re.RegexFlag.IGNORECASE | re.RegexFlag.ASCII,
    )


def _date(text: str) -> bool:
    if len(text) != 10 or not text.isascii() or text[4] != "-" or text[7] != "-":
        return False
    try:
        date(int(text[:4]) or 4, int(text[5:7]), int(text[8:]))
    except ValueError:
        return False
    return True


_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})", re.ASCII)


def _date_time(text: str) -> bool:
    day, separator, time = text.lower().partition("t")
    match = _TIME.fullmatch(time.partition("t")[0])
    return bool(separator) and _date(day) and match is not None and match[1] <= "23" and max(match[2], match[3]) <= "59"


_DURATION_PARTS: Final = re.compile(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII)
#: Units that must match exactly. For _UNIT_STARTS a prefix is sufficient, such as for plurals.
_UNITS: Final = frozenset(("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"))
_UNIT_STARTS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")


def _duration(text: str) -> bool:
    try:
        parse_duration(text)
    except ValueError:
        pass
    else:
        return True
    units = [unit.lower() for _, unit in _DURATION_PARTS.findall(text)]
    return any(unit in _UNITS or unit.startswith(_UNIT_STARTS) for unit in units)


def _host_name(text: str) -> bool:
    labels = text.split(".")
    if len(text.encode()) > 255 or not all(0 < len(label.encode()) <= 63 for label in labels):
        return False
    if not all(
        all(one == "-" or one.isalnum() or not one.isascii() for one in label)
        and not label.startswith("-")
        and not label.endswith("-")
        for label in labels
    ):
        return False
    return len(labels) == 1 or (len(labels[-1]) > 1 and all(one.isalpha() for one in labels[-1]))


def _ipv4(text: str) -> bool:
    # The reference reads leading zeros as decimal here.
    parts = text.rpartition(":")[2].split(".") if "." in text else []
    if len(parts) != 4 or not all(part.isascii() and part.isdigit() and int(part) < 256 for part in parts):
        return False
    return ":" not in text or _ipv6(text)


def _ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return "%" not in text


def _cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not slash or not bits.isascii() or not bits.isdigit() or len(bits) > 3:
        return False
    if ":" in address:
        return _ipv6(address) and int(bits) <= 128
    return _ipv4(address) and int(bits) <= 32


_MAC: Final = _matches(
    r"(?:[0-9a-f]{2}(?P<s>[:-])(?:[0-9a-f]{2}(?P=s)){4}(?:[0-9a-f]{2})"
    r"|[0-9a-f]{2}(?P<t>[:-])(?:[0-9a-f]{2}(?P=t)){6}[0-9a-f]{2}"
    r"|[0-9a-f]{2}(?P<u>[:-])(?:[0-9a-f]{2}(?P=u)){18}[0-9a-f]{2}"
    r"|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){3}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){9}"
    r"|[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{40})",
    re.RegexFlag.IGNORECASE | re.RegexFlag.ASCII,
)


def _uri(text: str) -> bool:
    try:
        parse_request_uri(text)
    except URLError:
        return False
    return True


def _email(text: str) -> bool:
    _, address = parseaddr(text)
    local, at, domain = address.rpartition("@")
    return bool(at and local and domain) and " " not in address and "\n" not in text


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits, re.ASCII) is None:
        return False
    total = sum((index + 1) * (10 if one == "X" else int(one)) for index, one in enumerate(digits))
    return total % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{13}", digits, re.ASCII) is None:
        return False
    return sum((1, 3)[index % 2] * int(one) for index, one in enumerate(digits)) % 10 == 0


_CARD: Final = _matches(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)


def _credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not _CARD(digits):
        return False
    total = 0
    for index, one in enumerate(reversed(digits)):
        doubled = int(one) * (1 + index % 2)
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


_COLOUR: Final = r"\s*(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_NAME: Final = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_short_name: Final = _matches(_NAME)
_long_name: Final = _matches(rf"{_NAME}(?:\.{_NAME})*")

#: Every format that is checked, by its name without dashes.
FORMATS: Final[Mapping[str, Check]] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "uri": _uri,
    "email": _email,
    "hostname": _host_name,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "cidr": _cidr,
    "mac": _MAC,
    "uuid": _uuid(),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": _credit_card,
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_COLOUR},{_COLOUR},{_COLOUR}\)"),
    "byte": _matches(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda text: True,
    "date": _date,
    "duration": _duration,
    "datetime": _date_time,
    "k8sshortname": lambda text: len(text) <= 63 and _short_name(text),
    "k8slongname": lambda text: len(text) <= 253 and _long_name(text),
}

_NUMBER_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {"integer": ("int32", "int64"), "number": ("float", "double")}


#: Formats of texts that not all releases validate, with their first release (C{pkg/apiserver/validation/formats.go}).
_FIRST_RELEASES: Final[Mapping[str, Release]] = {"k8s-short-name": (1, 34), "k8s-long-name": (1, 34)}


def is_recognized(type_name: str, format_name: str, release: Release = DEFAULT_RELEASE) -> bool:
    """
    Return whether a release validates a format of values of a type.

    @param type_name: The type; C{""} if it is not unique.
    """
    if release < _FIRST_RELEASES.get(format_name, release):
        return False
    if type_name in ("", "string"):
        return format_name.replace("-", "") in FORMATS
    return format_name in _NUMBER_FORMATS.get(type_name, ())
