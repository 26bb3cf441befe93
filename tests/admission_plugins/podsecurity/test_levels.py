"""Tests for L{kubetwist.admission_plugins.podsecurity.levels}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.podsecurity.levels import (
    BASELINE,
    LEVELS,
    PREFIX,
    PRIVILEGED,
    RESTRICTED,
    LevelVersion,
    Policy,
    level_problem,
    parse_version,
    policy_to_evaluate,
    stricter,
)


class VersionTests(SynchronousTestCase):
    """Tests of versions and levels."""

    @given(st.integers(0, (1 << 63) - 1))
    def test_round_trip(self, minor: int) -> None:
        """A version is parsed as it is written."""
        self.assertEqual(parse_version(str(LevelVersion(BASELINE, minor)).partition(":")[2]), minor)

    def test_versions(self) -> None:
        """Anything but C{latest} and C{v1.x} is rejected."""
        self.assertIsNone(parse_version("latest"))
        for text in ("", "1.2", "v1", "v1.01", "v2.0", "v1.-1", "v1.1.1", f"v1.{1 << 63}", None, 1):
            error = self.assertRaises(ValueError, parse_version, text)
            self.assertEqual(str(error), 'must be "latest" or "v1.x"')

    def test_levels(self) -> None:
        """Each level is stricter than the previous ones; other texts are not levels."""
        self.assertTrue(stricter(RESTRICTED, BASELINE) and stricter(BASELINE, PRIVILEGED))
        self.assertFalse(any(stricter(level, level) for level in LEVELS))
        self.assertEqual([level_problem(level) for level in LEVELS], ["", "", ""])
        self.assertEqual(level_problem("strict"), "must be one of privileged, baseline, restricted")

    def test_equivalent(self) -> None:
        """The version is irrelevant for the level privileged."""
        self.assertTrue(LevelVersion(PRIVILEGED, 1).equivalent(LevelVersion(PRIVILEGED, 2)))
        self.assertFalse(LevelVersion(BASELINE, 1).equivalent(LevelVersion(BASELINE, 2)))


class PolicyTests(SynchronousTestCase):
    """Tests for L{policy_to_evaluate}."""

    def policy(self, **labels: str) -> tuple[Policy, list[str]]:
        """Return the policy of labels and the fields of its causes; C{_} in a name stands for a hyphen."""
        written = {f"{PREFIX}{name.replace('_', '-')}": text for name, text in labels.items()}
        policy, causes = policy_to_evaluate(written, Policy())
        return policy, [cause.field for cause in causes]

    def test_no_labels(self) -> None:
        """Without labels the policy is the object of the defaults."""
        defaults = Policy(LevelVersion(BASELINE, 3))
        self.assertIs(policy_to_evaluate({"other": "x"}, defaults)[0], defaults)

    def test_enforced_is_warned_of(self) -> None:
        """The enforce level is also the warn level in the same version, unless the labels set a warn level."""
        level = LevelVersion(BASELINE, 20)
        self.assertEqual(self.policy(enforce="baseline", enforce_version="v1.20"), (Policy(level, warn=level), []))
        policy, _ = self.policy(enforce="baseline", enforce_version="v1.20", warn="privileged")
        self.assertEqual(policy.warn.level, PRIVILEGED)
        policy, _ = self.policy(enforce="baseline", enforce_version="v1.20", warn_version="v1.5")
        self.assertEqual(policy.warn, LevelVersion(BASELINE, 5))

    def test_invalid_labels(self) -> None:
        """An invalid level is restricted for enforce and privileged for warn and audit."""
        policy, fields = self.policy(enforce="x", audit="y", warn="z")
        self.assertEqual(policy, Policy(LevelVersion(RESTRICTED)))
        self.assertEqual(fields, [f"metadata.labels[{PREFIX}{mode}]" for mode in ("enforce", "audit", "warn")])

    def test_fully_privileged(self) -> None:
        """A policy with any level above privileged is not fully privileged."""
        self.assertTrue(self.policy(enforce="privileged", audit_version="v1.1")[0].fully_privileged)
        for mode in ("enforce", "audit", "warn"):
            self.assertFalse(self.policy(**{mode: "baseline"})[0].fully_privileged)
