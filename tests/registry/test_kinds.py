"""Tests of L{kubetwist.registry.kinds}."""

from __future__ import annotations

from functools import cache

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.emulation import ForwardCompatibility
from kubetwist.registry.generic.capabilities import UnopenedResource
from kubetwist.registry.generic.resourceinfo import ResourceInfo, storage_version_hash
from kubetwist.registry.kinds import groups_in_order, kinds_for
from kubetwist.registry.kindtable import KINDS
from kubetwist.schema.releasefiles import read

RELEASES = range(25, 38)


@cache
def definitions(minor: int) -> frozenset[tuple[str, str, str]]:
    """Return the kinds with type definitions in a release."""
    return frozenset((group, version, kind) for group, version, kind, _ in read(f"1.{minor}").kinds)


def served(
    minor: int = 36,
    runtime_config: str = "",
    *gates: str,
    emulated: int | None = None,
    forward: ForwardCompatibility | None = None,
) -> dict[tuple[str, str], ResourceInfo]:
    """
    Return the resources that a release serves, by group and resource.

    @param gates: The enabled feature gates.
    """
    config = dict((*pair.split("=", 1), "")[:2] for pair in runtime_config.split(",") if pair)
    release = (1, minor)
    features = FeatureGates(release, dict.fromkeys(gates, True), (1, emulated) if emulated else None)
    infos = kinds_for(definitions(minor), features, config, forward)
    return {(info.group, info.resource): info for info in infos}


class KindsTests(SynchronousTestCase):
    """Tests of the served resources."""

    def test_default_groups(self) -> None:
        """The default groups of 1.36 are in the order of the reference, without alpha and beta groups."""
        groups = groups_in_order(info.group for info in served().values())
        self.assertEqual(groups[:4], ["apiregistration.k8s.io", "", "apps", "events.k8s.io"])
        self.assertEqual(
            groups[-7:],
            [
                "apiextensions.k8s.io",
                "scheduling.k8s.io",
                "coordination.k8s.io",
                "node.k8s.io",
                "discovery.k8s.io",
                "resource.k8s.io",
                "flowcontrol.apiserver.k8s.io",
            ],
        )
        self.assertNotIn("internal.apiserver.k8s.io", groups)

    def test_only_stable_versions(self) -> None:
        """By default 1.36 serves stable versions only; only HorizontalPodAutoscalers have two."""
        several = {key: info.versions for key, info in served().items() if info.versions != ("v1",)}
        self.assertEqual(several, {("autoscaling", "horizontalpodautoscalers"): ("v2", "v1")})

    def test_every_release(self) -> None:
        """Every release serves pods and deployments, each resource once and in versions with type definitions."""
        for minor in RELEASES:
            infos = kinds_for(definitions(minor), FeatureGates((1, minor)))
            keys = [(info.group, info.resource) for info in infos]
            self.assertEqual(len(keys), len(set(keys)))
            self.assertIn(("", "pods"), keys)
            self.assertIn(("apps", "deployments"), keys)
            for info in infos:
                for version in (*info.versions, *info.known_versions):
                    self.assertIn((info.group, version, info.kind), definitions(minor))
                self.assertIn(info.storage_version, info.known_versions)

    def test_no_kind_is_missing(self) -> None:
        """Every type that could be a resource is in the table, for every release."""
        known = {(kind.group, kind.kind) for kind in KINDS}
        parts = {
            ("", "Status"),
            ("", "APIGroup"),
            ("", "APIVersions"),
            ("autoscaling", "Scale"),
            ("policy", "Eviction"),
            ("authentication.k8s.io", "TokenRequest"),
            ("resource.k8s.io", "Status"),
        }
        for minor in RELEASES:
            kinds = {(group, kind) for group, _, kind in definitions(minor)}
            unknown = {
                (group, kind)
                for group, kind in kinds - known - parts
                if kind not in ("DeleteOptions", "WatchEvent") and not kind.endswith("List")
            }
            self.assertEqual(unknown, set(), f"in 1.{minor}")

    def test_ages_of_versions(self) -> None:
        """No release has type definitions for a version that the table introduces later."""
        for minor in RELEASES:
            for kind in KINDS:
                for version, since in kind.versions:
                    if since > minor:
                        self.assertNotIn((kind.group, version, kind.kind), definitions(minor))

    def test_storage_prefixes(self) -> None:
        """Storage keys have the prefixes of kube-apiserver, and no two kinds share one."""
        infos = served(36, "api/all=true")
        for (group, resource), prefix in {
            ("", "pods"): "pods",
            ("", "services"): "services/specs",
            ("", "endpoints"): "services/endpoints",
            ("", "nodes"): "minions",
            ("", "replicationcontrollers"): "controllers",
            ("networking.k8s.io", "ingresses"): "ingress",
            ("events.k8s.io", "events"): "events",
            ("apiextensions.k8s.io", "customresourcedefinitions"): "apiextensions.k8s.io/customresourcedefinitions",
            ("apiregistration.k8s.io", "apiservices"): "apiregistration.k8s.io/apiservices",
        }.items():
            self.assertEqual(infos[group, resource].key_prefix, prefix)
        prefixes = [info.key_prefix for info in infos.values() if info.stored and info.group != "events.k8s.io"]
        self.assertEqual(len(prefixes), len(set(prefixes)))

    def test_storage_version_hash(self) -> None:
        """The storage version hashes of discovery are those of the reference."""
        self.assertEqual(storage_version_hash("", "v1", "Pod"), "xPOwRZ+Yhw8=")
        infos = served()
        for key, expected in {
            ("", "events"): "r2yiGXH7wu8=",
            ("events.k8s.io", "events"): "r2yiGXH7wu8=",
            ("autoscaling", "horizontalpodautoscalers"): "qwQve8ut294=",
            ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): "LYmCf+UMVdg=",
            ("apiextensions.k8s.io", "customresourcedefinitions"): "jfWCUB31mvA=",
        }.items():
            resource = UnopenedResource(infos[key])
            self.assertEqual(storage_version_hash(*resource.storage_version), expected)

    def test_new_version_is_not_stored_yet(self) -> None:
        """A version is stored from the release after its introduction, if there is an earlier one."""
        key = ("flowcontrol.apiserver.k8s.io", "flowschemas")
        versions = [served(minor)[key].storage_version for minor in (25, 26, 27, 29, 30)]
        self.assertEqual(versions, ["v1beta2", "v1beta2", "v1beta3", "v1beta3", "v1"])

    def test_subresources(self) -> None:
        """Subresources are in the order of discovery, with their kinds."""
        pods = served()["", "pods"]
        names = [subresource.name for subresource in pods.subresources]
        self.assertEqual(names, sorted(names))
        eviction = pods.subresource("eviction")
        assert eviction is not None
        self.assertEqual((eviction.kind, eviction.group, eviction.version), ("Eviction", "policy", "v1"))
        self.assertIsNone(pods.subresource("scale"))

    def test_subresources_by_release(self) -> None:
        """Pods have the subresource resize since 1.33, and NetworkPolicies had a status until 1.27."""
        self.assertIsNone(served(32)["", "pods"].subresource("resize"))
        self.assertIsNotNone(served(33)["", "pods"].subresource("resize"))
        self.assertIsNotNone(served(27)["networking.k8s.io", "networkpolicies"].subresource("status"))
        self.assertIsNone(served(28)["networking.k8s.io", "networkpolicies"].subresource("status"))
