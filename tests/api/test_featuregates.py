"""Tests for feature gates and releases."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates, dependencies, known_gates, parse_release

RELEASES = st.sampled_from([(1, minor) for minor in range(31, 38)])


class FeatureGatesTests(SynchronousTestCase):
    """Gates of a server."""

    def assert_wrong(self, message: str, release: tuple[int, int], settings: dict[str, bool], **more: Any) -> None:
        """Assert that gates cannot be set."""
        error = self.assertRaises(ValueError, FeatureGates, release, settings, **more)
        self.assertEqual(str(error), message)

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
        features = FeatureGates((1, 36), {"AllAlpha": True, "CBORServingAndStorage": False})
        self.assertTrue(features.enabled("ContainerStopSignals"))
        self.assertFalse(features.enabled("CBORServingAndStorage"))
        self.assertTrue(features.enabled("ConstrainedImpersonation"))
        self.assertTrue(features.enabled("AllAlpha"))
        self.assertFalse(FeatureGates((1, 36), {"AllBeta": False}).enabled("ConstrainedImpersonation"))

    def test_requirements(self) -> None:
        """Since 1.35 an enabled gate can require further ones; all errors are reported."""
        message = "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]"
        self.assert_wrong(message, (1, 36), {"GangScheduling": True})
        self.assertTrue(
            FeatureGates((1, 36), {"GangScheduling": True, "GenericWorkload": True}).enabled("GangScheduling")
        )
        self.assert_wrong(
            "[PodLevelResourceManagers is enabled, but depends on features that are disabled: [PodLevelResources], "
            "StorageVersionAPI is enabled, but depends on features that are disabled: [APIServerIdentity], "
            "UserNamespacesHostNetworkSupport is enabled, but depends on features that are disabled: "
            "[NodeDeclaredFeatures]]",
            (1, 36),
            {"AllAlpha": True, "AllBeta": False},
        )
        # The gate DRADeviceTaints existed, but nothing was required.
        FeatureGates((1, 33), {"DynamicResourceAllocation": False, "DRADeviceTaints": True})

    def test_conditions(self) -> None:
        """A condition names releases and gates, which must all hold."""
        old, new = FeatureGates((1, 33)), FeatureGates((1, 34))
        for condition, in_old, in_new in (
            ("", True, True),
            (">=1.34", False, True),
            ("<1.34", True, False),
            ("DynamicResourceAllocation", False, True),
            ("DynamicResourceAllocation,<1.34", False, False),
            ("AnonymousAuthConfigurableEndpoints,>=1.33", True, True),
        ):
            self.assertEqual((old.meets(condition), new.meets(condition)), (in_old, in_new), condition)

    def test_emulation(self) -> None:
        """Gates follow the emulated release; rules without a gate follow the release."""
        features = FeatureGates((1, 36), emulated=(1, 35))
        self.assertFalse(features.enabled("ConstrainedImpersonation"))
        self.assertTrue(features.since(1, 36))
        self.assertFalse(features.since(1, 37))

    def test_emulated_gates(self) -> None:
        """A gate that is newer than the emulated release is known, but cannot be set."""
        message = "cannot set feature gate GenericWorkload to true, feature is PreAlpha at emulated version 1.34"
        self.assert_wrong(
            f"{message}, min compatibility version 1.33", (1, 36), {"GenericWorkload": True}, emulated=(1, 34)
        )
        message = "cannot set feature gate EnvFiles to false, feature is PreAlpha at emulated version 1.33"
        self.assert_wrong(message, (1, 34), {"EnvFiles": False}, emulated=(1, 33))
        # The gate is unknown to a release that removed it, also if an older one is emulated.
        self.assert_wrong("unrecognized feature gate: CPUManager", (1, 33), {"CPUManager": True}, emulated=(1, 32))
        self.assertTrue(FeatureGates((1, 33), emulated=(1, 32)).enabled("CPUManager"))
        # A gate that makes former behaviour optional is GA before.
        state = FeatureGates((1, 36), emulated=(1, 35)).state("ServiceCIDRStatusFieldWiping")
        self.assertEqual(state and state.stage, "GA")

    def test_minimum(self) -> None:
        """A state can need a minimum compatibility version."""
        gate = "DRAFractionalCapacityRange"
        self.assertFalse(FeatureGates((1, 37)).enabled(gate))
        self.assertTrue(FeatureGates((1, 37), minimum=(1, 37)).enabled(gate))
        self.assertIn(
            f"{gate}=true|false (BETA - default=false), or {gate}=true|false (BETA - default=true) if"
            " --min-compatibility-version>=1.37",
            FeatureGates((1, 37)).described(),
        )
        described = FeatureGates((1, 37), minimum=(1, 37)).described()
        self.assertIn(f"{gate}=true|false (BETA - default=true)", described)

    def test_versions(self) -> None:
        """The emulated version is one of the last three releases, and the minimum one is not newer."""
        for emulated, minimum, message in (
            ("1.35", "", ""),
            ("kube=1.33", "", ""),
            ("", "1.36", ""),
            ("1.37", "", "emulation version 1.37 is not between [1.33, 1.36.0]"),
            (
                "1.32",
                "",
                "[emulation version 1.32 is not between [1.33, 1.36.0], minCompatibilityVersion version 1.33 is not"
                " between [1.33, 1.32]]",
            ),
            ("1.34", "1.35", "minCompatibilityVersion version 1.35 is not between [1.33, 1.34]"),
        ):
            options = {
                "emulated-version": (emulated,) if emulated else (),
                "min-compatibility-version": (minimum,) if minimum else (),
            }
            if message:
                error = self.assertRaises(ValueError, FeatureGates.from_options, options)
                self.assertEqual(str(error), message)
            else:
                FeatureGates.from_options(options)
        features = FeatureGates.from_options({"emulated-version": ("1.33",)})
        self.assertEqual((features.emulated, features.minimum), ((1, 33), (1, 33)))
        self.assertEqual(FeatureGates((1, 36)).minimum, (1, 35))

    def test_described(self) -> None:
        """The help lists alpha and beta gates, sorted."""
        lines = FeatureGates((1, 36)).described()
        self.assertEqual(lines, sorted(lines))
        self.assertEqual(
            [line for line in lines if line.startswith("All")],
            [
                "AllAlpha=true|false (ALPHA - default=false)",
                "AllBeta=true|false (BETA - default=false)",
                "AllowParsingUserUIDFromCertAuth=true|false (BETA - default=true)",
                "AllowUnsafeMalformedObjectDeletion=true|false (ALPHA - default=false)",
            ],
        )

    def test_warnings(self) -> None:
        """Set gates that will be removed are warned of, and alpha gates while an older release is emulated."""
        settings = {"VolumeAttributesClass": True, "AllowDNSOnlyNodeCSR": False, "CBORServingAndStorage": True}
        setting = "Setting {} feature gate {}. It will be removed in a future release."
        warnings = [
            setting.format("deprecated", "AllowDNSOnlyNodeCSR=false"),
            setting.format("GA", "VolumeAttributesClass=true"),
        ]
        self.assertEqual(list(FeatureGates((1, 36), settings).warnings()), warnings)
        self.assertEqual(
            list(FeatureGates((1, 36), settings, emulated=(1, 35)).warnings()),
            [
                *warnings,
                "component has alpha features enabled in emulated version, this is unsupported:"
                " features=[CBORServingAndStorage]",
            ],
        )

    def test_from_options(self) -> None:
        """The same flags give the same instance."""
        options = {"kubernetes-version": "1.35", "feature-gates": {"kube": ("ComponentFlagz=true",)}}
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
            releases = [(state.since, state.minimum) for state in states]
            self.assertEqual(releases, sorted(set(releases)), name)
            named = [state for state in states if state.exists]
            self.assertEqual(tuple(named), states[states[0].stage == "UNGATED" :][: len(named)], name)
            self.assertLessEqual(len(states) - len(named), 2, name)
            for earlier, later in pairwise(states):
                self.assertNotEqual(earlier._replace(since=later.since), later, name)

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
        """Each release has as many gates as kube-apiserver, with AllAlpha and AllBeta."""
        numbers = [len(list(FeatureGates((1, minor)).existing())) for minor in range(31, 37)]
        self.assertEqual(numbers, [169, 181, 191, 208, 218, 241])

    def test_ungated(self) -> None:
        """Behaviour that a gate made optional later is not disabled before."""
        self.assertTrue(FeatureGates((1, 30)).enabled("AllowDNSOnlyNodeCSR"))
        self.assertFalse(FeatureGates((1, 31)).enabled("AllowDNSOnlyNodeCSR"))
        self.assertIsNone(FeatureGates((1, 30)).state("AllowDNSOnlyNodeCSR"))

    def test_dependencies(self) -> None:
        """Every requirement is a gate; gates require none that is less stable."""
        stages = ["PRE-ALPHA", "ALPHA", "BETA", "GA"]
        for minor in range(35, 38):
            features = FeatureGates((1, minor))
            for name, requirements in dependencies().items():
                state = features.state(name)
                for required, since in requirements:
                    self.assertIn(required, known_gates())
                    needed = features.state(required)
                    if state is None or needed is None or since > (1, minor) or "DEPRECATED" in state.stage:
                        continue
                    self.assertLessEqual(stages.index(state.stage), stages.index(needed.stage), (name, required))

    def test_release(self) -> None:
        """Releases are compared as numbers."""
        self.assertLess(parse_release("1.9"), parse_release("1.36"))
