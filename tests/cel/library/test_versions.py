"""Tests for L{kubetwist.cel.library.versions}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import text

from tests.cel.library.support import ExpressionTestCase


class SemverTests(ExpressionTestCase):
    """Tests for semantic versions."""

    def test_versions(self) -> None:
        """Versions have accessors and comparisons, and are normalized on request."""
        self.assertHolds(
            (
                "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
                "semver('1.2.3').compareTo(semver('2.0.0')) == -1 && semver('1.2.3').compareTo(semver('1.2.3')) == 0",
                "semver('1.2.3').isGreaterThan(semver('1.2.3-rc.1')) && semver('1.2.3').isLessThan(semver('1.2.4'))",
                "semver('1.2.3+a') == semver('1.2.3+b') && semver('1.2.3') != semver('1.2.4')",
                "isSemver('0.1.0-alpha.1') && !isSemver('v1.0') && !isSemver('200K') && !isSemver('')",
                "isSemver('v1.0', true) && !isSemver('v1.0', false) && semver('01.1', true) == semver('1.1.0')",
            )
        )
        self.assertFails(
            {
                "semver('v1.0.0')": 'Invalid character(s) found in major number "v1"',
                "semver('1.0-rc', true)": "short version cannot contain PreRelease/Build meta data",
            }
        )

    @given(text("0123456789.-+v", max_size=12))
    def test_any_text(self, one: str) -> None:
        """C{isSemver} is true exactly if C{semver} succeeds."""
        self.assertIs(self.evaluate("isSemver(x) ? semver(x) == semver(x) : true", x=one), True)

    def test_costs(self) -> None:
        """Parsing costs a tenth of the length, other functions 1."""
        self.assertCosts({"semver('1.2.3-alpha.1')": 2, "semver('1.2.3').major()": 2, "isSemver('1')": 1})
