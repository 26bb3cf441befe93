"""
Functions on semantic versions.

See kubernetes/apiserver, C{pkg/cel/library/semverlib.go}.
"""

from __future__ import annotations

from typing import Final

from kubetwist.api.semver import Version, VersionError, parse_normalized, parse_version
from kubetwist.cel.errors import CelError
from kubetwist.cel.functions import Library, function, member, overload
from kubetwist.cel.types import BOOL, INT, STRING, ObjectType
from kubetwist.cel.values import MAX_INT, OpaqueValue, Value

SEMVER_TYPE: Final = ObjectType("kubernetes.Semver")


class Semver(OpaqueValue):
    """A semantic version."""

    __slots__ = ("version",)
    cel_type = SEMVER_TYPE

    def __init__(self, version: Version) -> None:
        self.version = version

    def equals(self, other: Value) -> bool:
        """Compare without build metadata."""
        return isinstance(other, Semver) and self.version.compare(other.version) == 0


def _semver(text: str, normalize: bool = False) -> Semver:
    try:
        return Semver(parse_normalized(text) if normalize else parse_version(text))
    except VersionError as error:
        raise CelError(str(error)) from None


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _semver(text, normalize)
    except CelError:
        return False
    return True


def _signed(number: int) -> int:
    """Convert an unsigned 64-bit number to a signed one, as the conversion in Go does."""
    return number if number <= MAX_INT else number - (1 << 64)


def _major(semver: Semver) -> int:
    return _signed(semver.version.major)


def _minor(semver: Semver) -> int:
    return _signed(semver.version.minor)


def _patch(semver: Semver) -> int:
    return _signed(semver.version.patch)


def _is_greater(semver: Semver, other: Semver) -> bool:
    return semver.version.compare(other.version) == 1


def _is_less(semver: Semver, other: Semver) -> bool:
    return semver.version.compare(other.version) == -1


def _compare(semver: Semver, other: Semver) -> int:
    return semver.version.compare(other.version)


_TWO: Final = (SEMVER_TYPE, SEMVER_TYPE)

VERSIONS: Final = Library(
    "kubernetes.Semver",
    [
        function(
            "semver",
            overload("string_to_semver", (STRING,), SEMVER_TYPE, _semver),
            overload("string_bool_to_semver", (STRING, BOOL), SEMVER_TYPE, _semver),
        ),
        function(
            "isSemver",
            overload("is_semver_string", (STRING,), BOOL, _is_semver),
            overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver),
        ),
        function("isGreaterThan", member("semver_is_greater_than", _TWO, BOOL, _is_greater)),
        function("isLessThan", member("semver_is_less_than", _TWO, BOOL, _is_less)),
        function("compareTo", member("semver_compare_to", _TWO, INT, _compare)),
        function("major", member("semver_major", (SEMVER_TYPE,), INT, _major)),
        function("minor", member("semver_minor", (SEMVER_TYPE,), INT, _minor)),
        function("patch", member("semver_patch", (SEMVER_TYPE,), INT, _patch)),
    ],
)
