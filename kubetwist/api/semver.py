"""
Semantic versions, with the error messages of C{github.com/blang/semver}.

The order is defined by semver.org: build metadata is ignored.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from .go.quote import quoted

_numbers = re.compile("[0-9]*").fullmatch
_alphanumeric = re.compile("[a-zA-Z0-9-]*").fullmatch

_MAX_UINT64: Final = (1 << 64) - 1


class VersionError(ValueError):
    """A text that is not a semantic version."""


@frozen
class Version:
    """
    A semantic version.

    @ivar prerelease: Identifiers; numeric ones are integers.
    """

    major: int
    minor: int
    patch: int
    prerelease: tuple[int | str, ...] = ()
    build: tuple[str, ...] = ()

    def compare(self, other: Version) -> int:
        """Return -1, 0 or 1."""
        own_key, other_key = self.order, other.order
        return (own_key > other_key) - (own_key < other_key)

    @property
    def order(self) -> tuple[object, ...]:
        """Return the sort key of a version: prereleases before their release, numbers before words."""
        parts = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in self.prerelease)
        return self.major, self.minor, self.patch, not self.prerelease, parts

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        return text + ("+" + ".".join(self.build) if self.build else "")


def parse_version(text: str) -> Version:
    """
    Parse a version such as C{1.2.3-rc.1+build}.

    @raise VersionError: The value is invalid.
    """
    if not text:
        raise VersionError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise VersionError("No Major.Minor.Patch elements found")
    major = _number(parts[0], "major", "Major")
    minor = _number(parts[1], "minor", "Minor")
    rest, plus, build = parts[2].partition("+")
    rest, dash, prerelease = rest.partition("-")
    patch = _number(rest, "patch", "Patch")
    return Version(
        major,
        minor,
        patch,
        tuple(map(_prerelease, prerelease.split("."))) if dash else (),
        tuple(map(_build, build.split("."))) if plus else (),
    )


def parse_normalized(text: str) -> Version:
    """
    Parse a version with an optional C{v}, optional minor and patch numbers, and leading zeros.

    @raise VersionError: The value is invalid.
    """
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise VersionError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse_version(".".join(parts))


def _without_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in set("0123456789") else f"0{stripped}"


def _number(text: str, name: str, title: str) -> int:
    if not _numbers(text):
        raise VersionError(f"Invalid character(s) found in {name} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise VersionError(f"{title} number must not contain leading zeroes {quoted(text)}")
    return _parsed(text)


def _parsed(digits: str) -> int:
    """Parse an unsigned integer (Go: C{strconv.ParseUint})."""
    if not digits:
        raise VersionError('strconv.ParseUint: parsing "": invalid syntax')
    number = int(digits) if len(digits) <= 20 else _MAX_UINT64 + 1
    if number > _MAX_UINT64:
        raise VersionError(f"strconv.ParseUint: parsing {quoted(digits)}: value out of range")
    return number


def _prerelease(part: str) -> int | str:
    if not part:
        raise VersionError("Prerelease is empty")
    if _numbers(part):
        if len(part) > 1 and part[0] == "0":
            raise VersionError(f"Numeric PreRelease version must not contain leading zeroes {quoted(part)}")
        return _parsed(part)
    if not _alphanumeric(part):
        raise VersionError(f"Invalid character(s) found in prerelease {quoted(part)}")
    return part


def _build(part: str) -> str:
    if not part:
        raise VersionError("Build meta data is empty")
    if not _alphanumeric(part):
        raise VersionError(f"Invalid character(s) found in build meta data {quoted(part)}")
    return part
