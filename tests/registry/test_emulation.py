"""Tests of L{kubetwist.registry.emulation}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.emulation import ForwardCompatibility
from kubetwist.registry.kinds import kinds_for
from kubetwist.registry.runtimeconfig import BadRuntimeConfig, version_rank

from .test_kinds import definitions, served

CLAIMS = ("resource.k8s.io", "resourceclaims")
MIGRATIONS = ("storagemigration.k8s.io", "storageversionmigrations")
CANDIDATES = ("coordination.k8s.io", "leasecandidates")


class EmulationTests(SynchronousTestCase):
    """Versions that a server serves when it emulates an older release."""

    def test_newer_versions(self) -> None:
        """Versions that are newer than the emulated release are not served; older ones are, if they are enabled."""
        self.assertEqual(served(36)[CLAIMS].versions, ("v1",))
        self.assertNotIn(CLAIMS, served(36, emulated=33))
        enabled = served(36, "api/all=true", emulated=33)
        self.assertEqual(enabled[CLAIMS].versions, ("v1beta2", "v1beta1"))

    def test_storage_version(self) -> None:
        """Objects are stored in a version that the release before the emulated one knows."""
        self.assertEqual(served(36)[CLAIMS].storage_version, "v1")
        self.assertEqual(served(36, "api/all=true", emulated=34)[CLAIMS].storage_version, "v1beta2")

    def test_forward(self) -> None:
        """Newer versions are served beside older ones, but not alone."""
        forward = ForwardCompatibility(versions=True)
        infos = served(36, "resource.k8s.io/v1beta1=true", emulated=33, forward=forward)
        self.assertEqual(infos[CLAIMS].versions, ("v1", "v1beta2", "v1beta1"))
        self.assertNotIn(CLAIMS, served(36, emulated=33, forward=forward))
        disabled = served(36, "resource.k8s.io/v1beta1=true,resource.k8s.io/v1=false", emulated=33, forward=forward)
        self.assertEqual(disabled[CLAIMS].versions, ("v1beta2", "v1beta1"))
        single = served(36, "resource.k8s.io/v1beta1/resourceclaims=true", emulated=33, forward=forward)
        self.assertEqual(single[CLAIMS].versions, ("v1", "v1beta2", "v1beta1"))

    def test_explicit(self) -> None:
        """A newer API that --runtime-config names is an error, or served."""
        for settings, message in (
            (
                "storagemigration.k8s.io/v1beta1=true",
                "cannot enable version storagemigration.k8s.io/v1beta1 in runtime-config because all the resources have"
                " been introduced after the current version 1.34. Consider setting"
                " --runtime-config-emulation-forward-compatible=true",
            ),
            (
                "storagemigration.k8s.io/v1beta1/storageversionmigrations=true",
                "cannot enable resource storagemigration.k8s.io/v1beta1, Resource=storageversionmigrations in"
                " runtime-config because it is introduced at 1.35 after the current version 1.34. Consider setting"
                " --runtime-config-emulation-forward-compatible=true",
            ),
        ):
            error = self.assertRaises(BadRuntimeConfig, served, 36, settings, "StorageVersionMigrator", emulated=34)
            self.assertEqual(str(error), message)
            infos = served(
                36, settings, "StorageVersionMigrator", emulated=34, forward=ForwardCompatibility(explicit=True)
            )
            self.assertEqual(infos[MIGRATIONS].versions, ("v1beta1",))
        # A level names no version.
        self.assertNotIn(MIGRATIONS, served(36, "api/all=true", "StorageVersionMigrator", emulated=34))

    @given(st.integers(32, 37), st.integers(1, 3))
    def test_same_as_release(self, minor: int, older: int) -> None:
        """No version is served that the emulated release does not have."""
        emulated = max(31, minor - older)
        if emulated == minor:
            return
        before = served(emulated, "api/all=true")
        for key, info in served(minor, "api/all=true", emulated=emulated).items():
            self.assertLessEqual(set(info.versions), set(before[key].versions), key)

    def test_warnings(self) -> None:
        """Alpha versions in an emulated release are warned of."""
        warnings: list[str] = []
        config = {"api/all": "true"}
        kinds_for(definitions(36), FeatureGates((1, 36), emulated=(1, 35)), config, warn=warnings.append)
        self.assertIn(
            "alpha api enabled with emulated version 1.35 instead of the binary's version 1.36, this is unsupported,"
            " proceed at your own risk: api=internal.apiserver.k8s.io/v1alpha1",
            warnings,
        )
        self.assertIn("workloads storage is disabled because the GenericWorkload feature gate is disabled", warnings)
        warnings.clear()
        kinds_for(definitions(36), FeatureGates((1, 36)), warn=warnings.append)
        self.assertEqual(warnings, [])

    def test_ranks(self) -> None:
        """Stable versions precede beta and alpha versions, and higher numbers lower ones."""
        ordered = ["v1alpha1", "v2alpha1", "v2alpha3", "v1beta1", "v1beta10", "v2beta1", "v1", "v10"]
        self.assertEqual(sorted(set(ordered), key=version_rank), ordered)
