"""Tests for L{kubetwist.api.semver}."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis.strategies import SearchStrategy, builds, from_regex, integers, lists, one_of, text, tuples

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.semver import Version, VersionError, parse_normalized, parse_version

_NUMBERS = integers(0, 2**64 - 1)
_WORDS = from_regex("[a-z-][a-z0-9-]{0,3}", fullmatch=True)


def versions() -> SearchStrategy[Version]:
    """Return a strategy for versions."""
    words: SearchStrategy[tuple[str, ...]] = lists(_WORDS, max_size=2).map(tuple)
    parts: SearchStrategy[tuple[int | str, ...]] = lists(one_of(_NUMBERS, _WORDS), max_size=3).map(tuple)
    return builds(Version, _NUMBERS, _NUMBERS, _NUMBERS, parts, words)


class VersionTests(SynchronousTestCase):
    """Tests for parsing and comparing versions."""

    @given(versions())
    def test_round_trip(self, version: Version) -> None:
        """A formatted version is parsed to the same version."""
        self.assertEqual(parse_version(str(version)), version)
        self.assertEqual(version.compare(version), 0)

    @given(tuples(versions(), versions(), versions()))
    def test_order(self, three: tuple[Version, Version, Version]) -> None:
        """The order of versions is total."""
        low, middle, high = sorted(three, key=lambda version: version.order)
        self.assertEqual(low.compare(middle), -middle.compare(low))
        self.assertLessEqual(low.compare(middle), 0)
        self.assertLessEqual(middle.compare(high), 0)
        self.assertLessEqual(low.compare(high), 0)

    def test_precedence(self) -> None:
        """The order is semver.org's, and metadata is ignored."""
        names = "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0"
        ordered = [parse_version(name) for name in names.split()]
        for low, high in itertools.pairwise(ordered):
            self.assertEqual((low.compare(high), high.compare(low)), (-1, 1))
        self.assertEqual(parse_version("1.0.0+a").compare(parse_version("1.0.0+b")), 0)

    def test_problems(self) -> None:
        """An invalid version is rejected with the message of the reference's library."""
        for bad, reason in {
            "": "Version string empty",
            "1": "No Major.Minor.Patch elements found",
            "1.2": "No Major.Minor.Patch elements found",
            "v1.2.3": 'Invalid character(s) found in major number "v1"',
            "1.x.3": 'Invalid character(s) found in minor number "x"',
            "1.2.3.4": 'Invalid character(s) found in patch number "3.4"',
            "01.2.3": 'Major number must not contain leading zeroes "01"',
            "1.02.3": 'Minor number must not contain leading zeroes "02"',
            "1.2.03": 'Patch number must not contain leading zeroes "03"',
            ".2.3": 'strconv.ParseUint: parsing "": invalid syntax',
            "18446744073709551616.0.0": 'strconv.ParseUint: parsing "18446744073709551616": value out of range',
            "1.2.3-": "Prerelease is empty",
            "1.2.3-01": 'Numeric PreRelease version must not contain leading zeroes "01"',
            "1.2.3-a_b": 'Invalid character(s) found in prerelease "a_b"',
            "1.2.3+": "Build meta data is empty",
            "1.2.3+a_b": 'Invalid character(s) found in build meta data "a_b"',
        }.items():
            with self.assertRaises(VersionError) as raised:
                parse_version(bad)
            self.assertEqual(str(raised.exception), reason)

    def test_normalized(self) -> None:
        """A leading C{v}, missing numbers and leading zeros are accepted by L{parse_normalized} only."""
        for loose, strict in {
            "v1.2.3": "1.2.3",
            "1": "1.0.0",
            "v1.2": "1.2.0",
            "01.02.03": "1.2.3",
            "00.0.000": "0.0.0",
            "1.2.0-rc.1": "1.2.0-rc.1",
            "1.2.00-rc": "1.2.0-rc",
        }.items():
            self.assertEqual(str(parse_normalized(loose)), strict)
        for bad in ("", "vv1", "1-rc", "1.2+a", " 1.2.3", "V1"):
            self.assertRaises(VersionError, parse_normalized, bad)

    @given(text("0123456789.+-vab"))
    def test_any_text(self, anything: str) -> None:
        """Any version is the same version when normalized."""
        try:
            version = parse_version(anything)
        except VersionError:
            return
        self.assertEqual(parse_normalized(anything).compare(version), 0)
