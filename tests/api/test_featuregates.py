"""Tests for feature gates and releases."""

from __future__ import annotations

from itertools import pairwise

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates, known_gates, parse_release

RELEASES = st.sampled_from([(1, minor) for minor in range(31, 38)])


class FeatureGatesTests(SynchronousTestCase):
    """Gates of a server."""

    def test_defaults(self) -> None:
        """A gate has the default of the release; it is disabled before its first release."""
        self.assertTrue(FeatureGates((1, 36)).enabled("ConstrainedImpersonation"))
        self.assertFalse(FeatureGates((1, 35)).enabled("ConstrainedImpersonation"))
        self.assertFalse(FeatureGates((1, 33)).enabled("ConstrainedImpersonation"))
        self.assertIsNone(FeatureGates((1, 33)).state("ConstrainedImpersonation"))

    def test_unknown(self) -> None:
        """A gate that no release has cannot be asked; one that the release does not have cannot be set."""
        with self.assertRaises(KeyError):
            FeatureGates().enabled("NoSuchGate")
        for name in ("NoSuchGate", "ConstrainedImpersonation"):
            with self.assertRaisesRegex(ValueError, f"^unrecognized feature gate: {name}$"):
                FeatureGates((1, 33), {name: True})

    def test_locked(self) -> None:
        """A locked gate can be set to its value only."""
        self.assertTrue(FeatureGates((1, 36), {"APIServerTracing": True}).enabled("APIServerTracing"))
        with self.assertRaisesRegex(
            ValueError, "^cannot set feature gate APIServerTracing to false, feature is locked to true$"
        ):
            FeatureGates((1, 36), {"APIServerTracing": False})

    def test_stages(self) -> None:
        """AllAlpha and AllBeta set the gates of a stage that are not set by name."""
        features = FeatureGates((1, 36), {"AllAlpha": True, "AllBeta": False, "CBORServingAndStorage": False})
        self.assertTrue(features.enabled("ContainerStopSignals"))
        self.assertFalse(features.enabled("CBORServingAndStorage"))
        self.assertFalse(features.enabled("ConstrainedImpersonation"))

    def test_emulation(self) -> None:
        """Gates follow the emulated release; rules without a gate follow the release."""
        features = FeatureGates((1, 36), emulated=(1, 35))
        self.assertFalse(features.enabled("ConstrainedImpersonation"))
        self.assertTrue(features.since(1, 36))
        self.assertFalse(features.since(1, 37))

    def test_from_options(self) -> None:
        """The same flags give the same instance."""
        options = {"kubernetes-version": "1.35", "feature-gates": {"ComponentFlagz": True}}
        features = FeatureGates.from_options(options)
        self.assertIs(features, FeatureGates.from_options(dict(options)))
        self.assertEqual((features.release, features.enabled("ComponentFlagz")), ((1, 35), True))

    @given(RELEASES)
    def test_existing(self, release: tuple[int, int]) -> None:
        """The existing gates are sorted, and can be set to their defaults."""
        features = FeatureGates(release)
        names = [name for name, _ in features.existing()]
        self.assertEqual(names, sorted(set(names)))
        same = FeatureGates(release, {name: state.default for name, state in features.existing()})
        for name in known_gates():
            self.assertEqual(same.enabled(name), features.enabled(name))


class TableTests(SynchronousTestCase):
    """The table of gates."""

    def test_rows(self) -> None:
        """A gate has one state for each release in which it changed; further ones are before or after the gate."""
        for name, states in known_gates().items():
            releases = [state.since for state in states]
            self.assertEqual(releases, sorted(set(releases)), name)
            named = [state for state in states if state.exists]
            self.assertEqual(tuple(named), states[states[0].stage == "UNGATED" :][: len(named)], name)
            self.assertLessEqual(len(states) - len(named), 2, name)
            for earlier, later in pairwise(states):
                self.assertNotEqual(evolve(earlier, since=later.since), later, name)

    def test_stages(self) -> None:
        """A gate never returns to an earlier stage, and a locked one stays locked until it is removed."""
        order = ["UNGATED", "ALPHA", "BETA", "GA", "DEPRECATED", "REMOVED"]
        for name, states in known_gates().items():
            stages = [order.index(state.stage) for state in states]
            self.assertEqual(stages, sorted(stages), name)
            locks = [state.locked for state in states if state.exists]
            self.assertEqual(locks, sorted(locks), name)

    def test_names(self) -> None:
        """Names are sorted and in camel case, without AllAlpha and AllBeta."""
        names = list(known_gates())
        self.assertEqual(names, sorted(names))
        for name in names:
            self.assertRegex(name, r"\A[A-Z][A-Za-z0-9]+\Z")
        self.assertFalse({"AllAlpha", "AllBeta"} & set(names))

    def test_releases(self) -> None:
        """Each release has as many gates as kube-apiserver, which also counts AllAlpha and AllBeta."""
        numbers = [len(list(FeatureGates((1, minor)).existing())) for minor in range(31, 37)]
        self.assertEqual(numbers, [167, 179, 189, 206, 216, 239])

    def test_ungated(self) -> None:
        """Behaviour that a gate made optional later is not disabled before."""
        self.assertTrue(FeatureGates((1, 30)).enabled("AllowDNSOnlyNodeCSR"))
        self.assertFalse(FeatureGates((1, 31)).enabled("AllowDNSOnlyNodeCSR"))
        self.assertIsNone(FeatureGates((1, 30)).state("AllowDNSOnlyNodeCSR"))

    def test_release(self) -> None:
        """Releases are compared as numbers."""
        self.assertLess(parse_release("1.9"), parse_release("1.36"))
