"""Tests of L{kubetwist.registry.runtimeconfig}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.runtimeconfig import BadRuntimeConfig, check_runtime_config

from .test_kinds import served


class RuntimeConfigTests(SynchronousTestCase):
    """Tests of enabled and disabled versions and resources."""

    def refusal(self, text: str) -> str:
        """Return the error for a bad value."""
        return str(self.assertRaises(BadRuntimeConfig, served, 36, text))

    def test_old_betas(self) -> None:
        """Beta versions from before 1.24 are enabled until their removal, and api/beta disables them."""
        key = ("storage.k8s.io", "csistoragecapacities")
        self.assertEqual(served(26)[key].versions, ("v1", "v1beta1"))
        self.assertEqual(served(26, "api/beta=false")[key].versions, ("v1",))

    def test_all(self) -> None:
        """api/all=true enables alpha and beta versions."""
        infos = served(36, "api/all=true")
        self.assertEqual(infos["networking.k8s.io", "servicecidrs"].versions, ("v1", "v1beta1"))
        self.assertIn(("internal.apiserver.k8s.io", "storageversions"), infos)

    def test_gates(self) -> None:
        """Some resources need a feature gate, too."""
        gates = {
            "ClusterTrustBundle": {("certificates.k8s.io", "clustertrustbundles")},
            "PodCertificateRequest": {("certificates.k8s.io", "podcertificaterequests")},
            "StorageVersionMigrator": {("storagemigration.k8s.io", "storageversionmigrations")},
            "GenericWorkload": {("scheduling.k8s.io", "workloads"), ("scheduling.k8s.io", "podgroups")},
        }
        without = served(36, "api/all=true").keys()
        for gate, resources in gates.items():
            self.assertEqual(served(36, "api/all=true", gate).keys() - without, resources)
            self.assertEqual(served(36, "", gate).keys(), served(36).keys(), gate)
        self.assertIn(("certificates.k8s.io", "clustertrustbundles"), served(37))

    def test_gated_subresources(self) -> None:
        """Pods can be resized since 1.33, and in 1.32 with the feature gate."""
        for minor, gates, expected in (
            (31, ("InPlacePodVerticalScaling",), False),
            (32, (), False),
            (32, ("InPlacePodVerticalScaling",), True),
            (33, (), True),
        ):
            names = [one.name for one in served(minor, "", *gates)["", "pods"].subresources]
            self.assertEqual("resize" in names, expected, (minor, gates))

    def test_level_and_version(self) -> None:
        """A setting of a version has precedence over one of its level."""
        infos = served(36, "api/all=false,apps/v1=true")
        self.assertEqual({info.group for info in infos.values()}, {"apps"})

    def test_single_resource(self) -> None:
        """A resource can be enabled in a disabled version, and disabled in an enabled one."""
        settings = "certificates.k8s.io/v1beta1/clustertrustbundles=true,batch/v1/cronjobs=false"
        infos = served(36, settings, "ClusterTrustBundle", "PodCertificateRequest")
        self.assertEqual(infos["certificates.k8s.io", "clustertrustbundles"].versions, ("v1beta1",))
        self.assertNotIn(("certificates.k8s.io", "podcertificaterequests"), infos)
        self.assertNotIn(("batch", "cronjobs"), infos)
        self.assertIn(("batch", "jobs"), infos)

    def test_core_group(self) -> None:
        """The core group has an empty name, and older spellings, which stand for all of it."""
        for key in ("/v1", "v1", "api/v1", "v1/pods", "api/v1/pods"):
            self.assertNotIn(("", "nodes"), served(36, f"{key}=false"))

    def test_legacy(self) -> None:
        """api/legacy is ignored, and so are versions and resources that the reference registers but does not serve."""
        for key in ("api/legacy=false", "extensions/v1beta1=true", "apps/v1beta1", "apps/v1/nothings=true"):
            self.assertEqual(served(36, key).keys(), served(36).keys())

    def test_missing_value_is_true(self) -> None:
        """A version without a value is enabled."""
        self.assertIn(
            ("internal.apiserver.k8s.io", "storageversions"), served(36, "internal.apiserver.k8s.io/v1alpha1")
        )

    def test_refusals(self) -> None:
        """Invalid keys and values are rejected with the messages of the reference."""
        for text, words in {
            "api/all=false": "invalid runtime-config with only api/all=false",
            "api/all=maybe": "invalid value api/all=maybe",
            "apps=true": "runtime-config invalid key apps",
            "=true": "runtime-config invalid key ",
            "a/b/c/d=true": "runtime-config invalid key a/b/c/d",
            "nowhere.io/v1=true,api/foo=true": "unknown api groups api/foo,nowhere.io/v1",
            "APPS/v1": "unknown api groups APPS/v1",
            "/v2=true": "group version v2 that has not been registered",
            "apps/v9=true": "group version apps/v9 that has not been registered",
            "apps/v1=maybe": 'invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
            "apps/v1/Deployments=true": (
                "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, "
                'not "Deployments"'
            ),
        }.items():
            self.assertEqual(self.refusal(text), words)

    def test_checked_early(self) -> None:
        """Keys are checked without type definitions; all problems are reported at once."""
        for config, fairness, words in (
            ({"apps/v1": "maybe", "apps/v9": "true"}, True, None),
            ({"nowhere.io/v1": "", "apps": "true"}, True, "runtime-config invalid key apps"),
            ({"v1": "false", "api/legacy": "x"}, True, None),
            ({"api/all": "false"}, False, "invalid runtime-config with only api/all=false"),
            (
                {"api/all": "false"},
                True,
                "[--runtime-config=api/all=false conflicts with --enable-priority-and-fairness=true, invalid "
                "runtime-config with only api/all=false]",
            ),
            (
                {"api/all": "false", "apps/v1": "true"},
                True,
                "--runtime-config=api/all=false conflicts with --enable-priority-and-fairness=true",
            ),
            ({"api/all": "false", "apps/v1": "true"}, False, None),
            ({"api/all": "false", "api/ga": "true"}, True, None),
        ):
            if words is None:
                check_runtime_config(config, fairness=fairness)
            else:
                error = self.assertRaises(BadRuntimeConfig, check_runtime_config, config, fairness=fairness)
                self.assertEqual(str(error), words)
