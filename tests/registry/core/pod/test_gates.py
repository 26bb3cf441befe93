"""Tests of L{kubetwist.registry.core.pod.gates}, through the strategies of pods and templates."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates, Release
from kubetwist.registry.core.pod.gates import disabled_pod_fields, disabled_status_fields, drop_of_template
from tests.registry.gatetools import created, features, gated, updated, with_status
from tests.registry.strategytools import copy


def in_container(**parts: Any) -> dict[str, Any]:
    """Return a spec whose container has some fields."""
    return {"containers": [{"name": "c", **parts}]}


def in_init_container(**parts: Any) -> dict[str, Any]:
    """Return a spec whose init container has some fields."""
    return {"initContainers": [{"name": "i", **parts}]}


def affinity(**keys: Any) -> dict[str, Any]:
    """Return a spec with a required and a preferred term of pod affinity."""
    term = {"topologyKey": "k", "labelSelector": {}, **keys}
    return {
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]
            },
        }
    }


def projected(**source: Any) -> dict[str, Any]:
    """Return a spec with a projected volume."""
    return {"volumes": [{"name": "v", "projected": {"sources": [{**source, "secret": {}}]}}]}


@frozen
class Case:
    """
    A field of a spec.

    @ivar gate: Its gate.
    @ivar release: A release in which the gate can have both values.
    @ivar spec: A spec with the field.
    @ivar without: The same spec after the field is dropped.
    """

    gate: str
    release: Release
    spec: dict[str, Any]
    without: dict[str, Any]


_IMAGE = {"name": "i", "image": {"reference": "r"}}
_SLEEP = {"preStop": {"sleep": {"seconds": 1}}}
CASES = (
    Case("UserNamespacesSupport", (1, 35), {"hostUsers": False}, {}),
    Case(
        "SupplementalGroupsPolicy",
        (1, 34),
        {"securityContext": {"supplementalGroupsPolicy": "Strict"}},
        {"securityContext": {}},
    ),
    Case("PodLevelResources", (1, 36), {"resources": {"limits": {"cpu": "1"}}}, {}),
    Case(
        "ProcMountType",
        (1, 35),
        in_container(securityContext={"procMount": "Unmasked"}),
        in_container(securityContext={"procMount": "Default"}),
    ),
    Case(
        "NodeInclusionPolicyInPodTopologySpread",
        (1, 32),
        {"topologySpreadConstraints": [{"nodeTaintsPolicy": "Honor"}]},
        {"topologySpreadConstraints": [{}]},
    ),
    Case(
        "NodeInclusionPolicyInPodTopologySpread",
        (1, 32),
        {"topologySpreadConstraints": [{"nodeAffinityPolicy": "Honor"}]},
        {"topologySpreadConstraints": [{}]},
    ),
    Case(
        "MatchLabelKeysInPodTopologySpread",
        (1, 36),
        {"topologySpreadConstraints": [{"matchLabelKeys": ["a"]}]},
        {"topologySpreadConstraints": [{}]},
    ),
    Case("MatchLabelKeysInPodAffinity", (1, 32), affinity(matchLabelKeys=["a"]), affinity()),
    Case("MatchLabelKeysInPodAffinity", (1, 32), affinity(mismatchLabelKeys=["a"]), affinity()),
    Case(
        "DynamicResourceAllocation",
        (1, 34),
        {"resourceClaims": [{"name": "r"}], **in_container(resources={"claims": [{"name": "r"}]})},
        in_container(resources={}),
    ),
    Case("ClusterTrustBundleProjection", (1, 36), projected(clusterTrustBundle={}), projected()),
    Case("PodCertificateRequest", (1, 36), projected(podCertificate={}), projected()),
    Case("GenericWorkload", (1, 36), {"schedulingGroup": {"podGroupName": "g"}}, {}),
    Case("GenericWorkload", (1, 35), {"workloadRef": {"name": "w"}}, {}),
    Case(
        "InPlacePodVerticalScaling",
        (1, 34),
        in_container(resizePolicy=[{"resourceName": "cpu"}]),
        in_container(),
    ),
    Case("SidecarContainers", (1, 32), in_init_container(restartPolicy="Always"), in_init_container()),
    Case("ContainerRestartRules", (1, 36), in_container(restartPolicy="Never"), in_container()),
    Case(
        "ContainerRestartRules",
        (1, 36),
        in_init_container(restartPolicy="Always", restartPolicyRules=[{}]),
        in_init_container(restartPolicy="Always"),
    ),
    Case("ContainerRestartRules", (1, 36), in_init_container(restartPolicy="Never"), in_init_container()),
    Case(
        "RecursiveReadOnlyMounts",
        (1, 32),
        in_container(volumeMounts=[{"name": "v", "recursiveReadOnly": "Enabled"}]),
        in_container(volumeMounts=[{"name": "v"}]),
    ),
    Case("HostnameOverride", (1, 36), {"hostnameOverride": "h"}, {}),
    Case(
        "EnvFiles",
        (1, 36),
        in_container(env=[{"name": "E", "valueFrom": {"fileKeyRef": {"key": "k"}}}]),
        in_container(env=[{"name": "E", "valueFrom": {}}]),
    ),
    Case("PodLifecycleSleepAction", (1, 33), in_container(lifecycle=_SLEEP), in_container()),
    Case(
        "PodLifecycleSleepAction",
        (1, 33),
        in_container(lifecycle={"postStart": {"exec": {}, "sleep": {}}, **_SLEEP}),
        in_container(lifecycle={"postStart": {"exec": {}}}),
    ),
    Case(
        "ImageVolume",
        (1, 35),
        {"volumes": [_IMAGE], **in_container(volumeMounts=[{"name": "i"}])},
        in_container(),
    ),
    Case(
        "ImageVolume",
        (1, 35),
        {"volumes": [_IMAGE, {"name": "v"}], **in_container(volumeMounts=[{"name": "i"}, {"name": "v"}])},
        {"volumes": [{"name": "v"}], **in_container(volumeMounts=[{"name": "v"}])},
    ),
    Case(
        "SELinuxChangePolicy",
        (1, 35),
        {"securityContext": {"seLinuxChangePolicy": "Recursive"}},
        {"securityContext": {}},
    ),
    Case("ContainerStopSignals", (1, 36), in_container(lifecycle={"stopSignal": "SIGUSR1"}), in_container()),
    Case(
        "AtomicWriteVolumeUserFields",
        (1, 37),
        {"volumes": [{"name": "v", "secret": {"defaultUser": 1, "items": [{"key": "k", "user": 1}]}}]},
        {"volumes": [{"name": "v", "secret": {"items": [{"key": "k"}]}}]},
    ),
    Case(
        "AtomicWriteVolumeUserFields",
        (1, 37),
        {
            "volumes": [
                {
                    "name": "v",
                    "projected": {
                        "defaultUser": 1,
                        "sources": [
                            {"serviceAccountToken": {"path": "p", "user": 1}},
                            {"configMap": {"items": [{"key": "k", "user": 1}]}},
                        ],
                    },
                }
            ]
        },
        {
            "volumes": [
                {
                    "name": "v",
                    "projected": {
                        "sources": [{"serviceAccountToken": {"path": "p"}}, {"configMap": {"items": [{"key": "k"}]}}]
                    },
                }
            ]
        },
    ),
    Case(
        "EmptyDirVolumeMode",
        (1, 37),
        {"volumes": [{"name": "v", "emptyDir": {"mode": 448}}]},
        {"volumes": [{"name": "v", "emptyDir": {}}]},
    ),
    Case(
        "VolumeBindMountOptions",
        (1, 37),
        in_container(volumeMounts=[{"name": "v", "bindMountOptions": ["noexec"]}]),
        in_container(volumeMounts=[{"name": "v"}]),
    ),
    Case(
        "GRPCContainerProbeTLS",
        (1, 37),
        in_container(livenessProbe={"grpc": {"port": 1, "mode": "TLS"}}),
        in_container(livenessProbe={"grpc": {"port": 1}}),
    ),
    Case(
        "H2CContainerProbe",
        (1, 37),
        in_container(startupProbe={"httpGet": {"port": 1, "protocol": "H2C"}}),
        in_container(startupProbe={"httpGet": {"port": 1}}),
    ),
    Case("EvictionRequestAPI", (1, 37), {"evictionResponders": [{"name": "r"}]}, {}),
    Case(
        "ContainerStopSignals",
        (1, 36),
        in_container(lifecycle={"stopSignal": "SIGUSR1", "preStop": {}}),
        in_container(lifecycle={"preStop": {}}),
    ),
)


class SpecTests(SynchronousTestCase):
    """Tests of L{disabled_pod_fields}."""

    def dropped(self, case: Case, enabled: bool, old: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the spec of a case on a server with or without its gate."""
        spec: dict[str, Any] = copy(case.spec)
        disabled_pod_fields(features(case.release, **{case.gate: enabled})).drop(spec, old)
        return spec

    def test_disabled(self) -> None:
        """The field of a disabled gate is dropped, also if the stored object does not use it."""
        for case in CASES:
            self.assertEqual(self.dropped(case, False), case.without, case)
            self.assertEqual(self.dropped(case, False, case.without), case.without, case)

    def test_enabled(self) -> None:
        """The field of an enabled gate is kept."""
        for case in CASES:
            self.assertEqual(self.dropped(case, True), case.spec, case)

    def test_in_use(self) -> None:
        """The field of a disabled gate is kept if the stored object uses it."""
        for case in CASES:
            self.assertEqual(self.dropped(case, False, case.spec), case.spec, case)

    def test_not_in_use(self) -> None:
        """Empty values of a stored object do not count as a use of the field."""
        for case, old in (
            (CASES[2], {"resources": {}}),
            (CASES[3], in_container(securityContext={"procMount": "Default"})),
        ):
            self.assertEqual(self.dropped(case, False, old), case.without)

    def test_older_release(self) -> None:
        """A release without the gate drops no restart policies: its validation rejects them."""
        spec = in_container(restartPolicy="Never")
        disabled_pod_fields(FeatureGates((1, 33))).drop(spec)
        self.assertEqual(spec, in_container(restartPolicy="Never"))

    def test_kinds(self) -> None:
        """All kinds with pods or templates drop the fields on creation, and keep used ones on updates."""
        spec = {"containers": [{"name": "c", "image": "i"}], "hostnameOverride": "h"}
        template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
        kinds: tuple[tuple[str, str, dict[str, Any], tuple[str, ...]], ...] = (
            ("", "Pod", {"spec": spec}, ("spec",)),
            ("", "PodTemplate", {"template": template}, ("template", "spec")),
            ("", "ReplicationController", {"spec": {"template": template}}, ("spec", "template", "spec")),
            *(
                (group, kind, {"spec": {"template": template}}, ("spec", "template", "spec"))
                for group, kind in (
                    ("apps", "Deployment"),
                    ("apps", "ReplicaSet"),
                    ("apps", "DaemonSet"),
                    ("apps", "StatefulSet"),
                    ("batch", "Job"),
                )
            ),
            (
                "batch",
                "CronJob",
                {"spec": {"jobTemplate": {"spec": {"template": template}}}},
                ("spec", "jobTemplate", "spec", "template", "spec"),
            ),
        )
        for group, kind, parts, path in kinds:
            on, off = (gated(group, kind, HostnameOverride=value) for value in (True, False))

            def has_field(obj: Any, path: tuple[str, ...] = path) -> bool:
                for name in path:
                    obj = obj[name]
                return "hostnameOverride" in obj

            used = created(on, **parts)
            unused = created(off, **parts)
            self.assertTrue(has_field(used), kind)
            self.assertFalse(has_field(unused), kind)
            self.assertTrue(has_field(updated(off, used, **parts)), kind)
            self.assertFalse(has_field(updated(off, unused, **parts)), kind)

    def test_templates(self) -> None:
        """A template without a spec is unchanged."""
        disabled = disabled_pod_fields(FeatureGates())
        drop_of_template(None, None, disabled)
        template: dict[str, Any] = {}
        drop_of_template(template, None, disabled)
        self.assertEqual(template, {})


def statuses(**parts: Any) -> dict[str, Any]:
    """Return a status of a container with some fields."""
    return {"containerStatuses": [{"name": "c", **parts}]}


@frozen
class StatusCase:
    """
    A field of a status.

    @ivar gate: Its gate.
    @ivar release: A release in which the gate can have both values.
    @ivar status: A status with the field.
    @ivar without: The same status after the field is dropped.
    @ivar using: The spec and status of a stored pod that uses the field.
    """

    gate: str
    release: Release
    status: dict[str, Any]
    without: dict[str, Any]
    using: dict[str, Any]


_RESIZABLE = in_container(resizePolicy=[{"resourceName": "cpu"}])
_HEALTH = statuses(allocatedResourcesStatus=[{"name": "r", "resources": [{"resourceID": "i", "message": "m"}]}])
STATUS_CASES = (
    StatusCase(
        "InPlacePodLevelResourcesVerticalScaling",
        (1, 36),
        {"resources": {}, "allocatedResources": {}},
        {},
        {"status": {"allocatedResources": {}}},
    ),
    StatusCase(
        "InPlacePodVerticalScaling",
        (1, 34),
        statuses(resources={}, allocatedResources={}),
        statuses(),
        {"spec": _RESIZABLE},
    ),
    StatusCase(
        "DynamicResourceAllocation",
        (1, 34),
        {"resourceClaimStatuses": [{"name": "r"}]},
        {},
        {"spec": {"resourceClaims": [{"name": "r"}]}},
    ),
    StatusCase(
        "DRAExtendedResource",
        (1, 36),
        {"extendedResourceClaimStatus": {}},
        {},
        {"status": {"extendedResourceClaimStatus": {}}},
    ),
    StatusCase(
        "ResourceHealthStatus",
        (1, 36),
        _HEALTH,
        statuses(),
        {"status": _HEALTH},
    ),
    StatusCase(
        "ResourceHealthStatusMessage",
        (1, 36),
        _HEALTH,
        statuses(allocatedResourcesStatus=[{"name": "r", "resources": [{"resourceID": "i"}]}]),
        {"status": _HEALTH},
    ),
    StatusCase(
        "SupplementalGroupsPolicy",
        (1, 34),
        statuses(user={}),
        statuses(),
        {"spec": {"securityContext": {"supplementalGroupsPolicy": "Strict"}}},
    ),
    StatusCase(
        "PodObservedGenerationTracking",
        (1, 34),
        {"observedGeneration": 1, "conditions": [{"type": "t", "observedGeneration": 1}]},
        {"conditions": [{"type": "t"}]},
        {"status": {"conditions": [{"observedGeneration": 2}]}},
    ),
    StatusCase(
        "ImageVolumeWithDigest",
        (1, 36),
        statuses(volumeMounts=[{"name": "v", "volumeStatus": {}}]),
        statuses(volumeMounts=[{"name": "v"}]),
        {"status": statuses(volumeMounts=[{"name": "v", "volumeStatus": {}}])},
    ),
    StatusCase(
        "DRANodeAllocatableResources",
        (1, 36),
        {"nodeAllocatableResourceClaimStatuses": [{}]},
        {},
        {"status": {"nodeAllocatableResourceClaimStatuses": [{}]}},
    ),
)


class StatusTests(SynchronousTestCase):
    """Tests of L{disabled_status_fields}."""

    def dropped(self, case: StatusCase, enabled: bool, **old: Any) -> Any:
        """Return the status of a case on a server with or without its gate."""
        pod = copy({"spec": {}, "status": case.status})
        stored = {"spec": {}, "status": {}, **old}
        disabled_status_fields(features(case.release, **{case.gate: enabled})).drop(pod, stored)
        return pod["status"]

    def test_positions(self) -> None:
        """The field of a disabled gate is dropped, unless the stored pod uses it."""
        for case in STATUS_CASES:
            self.assertEqual(self.dropped(case, True), case.status, case)
            self.assertEqual(self.dropped(case, False), case.without, case)
            self.assertEqual(self.dropped(case, False, **case.using), case.status, case)

    def test_health(self) -> None:
        """Until 1.35, the health of devices was dropped even if the stored pod had it."""
        case = StatusCase("ResourceHealthStatus", (1, 35), _HEALTH, statuses(), {})
        self.assertEqual(self.dropped(case, False, status=_HEALTH), statuses())

    def test_old_release(self) -> None:
        """Updates of the status dropped no fields until 1.32."""
        case = StatusCase("SupplementalGroupsPolicy", (1, 32), statuses(user={}), {}, {})
        self.assertEqual(self.dropped(case, False), statuses(user={}))

    def test_update(self) -> None:
        """An update of the status drops fields of disabled gates."""
        spec = {"containers": [{"name": "c", "image": "i"}]}
        for enabled in (True, False):
            strategy = gated("", "Pod", DRAExtendedResource=enabled)
            pod = with_status(strategy, created(strategy, spec=spec), {"extendedResourceClaimStatus": {}})
            self.assertEqual("extendedResourceClaimStatus" in pod["status"], enabled)


class LabelKeyTests(SynchronousTestCase):
    """Tests of the label selectors of new pods."""

    def selectors(self, release: Release, **gates: bool) -> list[Any]:
        """Return the expressions that a new pod gets, in its affinity and in its spread constraint."""
        spec = {
            **affinity(matchLabelKeys=["a"]),
            "containers": [],
            "topologySpreadConstraints": [{"labelSelector": {}, "matchLabelKeys": ["a"]}],
        }
        strategy = gated("", "Pod", release, **gates)
        obj = copy({"metadata": {"labels": {"a": "1"}}, "spec": spec})
        strategy.default(obj)
        strategy.prepare_for_create(obj)
        terms = obj["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        holders = (terms[0], obj["spec"]["topologySpreadConstraints"][0])
        return ["matchExpressions" in holder["labelSelector"] for holder in holders]

    def test_gates(self) -> None:
        """Label keys are merged if their gates are enabled; into spread constraints since 1.34."""
        self.assertEqual(self.selectors((1, 36)), [True, True])
        self.assertEqual(self.selectors((1, 33)), [True, False])
        self.assertEqual(self.selectors((1, 32), MatchLabelKeysInPodAffinity=False), [False, False])
        self.assertEqual(self.selectors((1, 36), MatchLabelKeysInPodTopologySpread=False), [True, False])
        self.assertEqual(self.selectors((1, 36), MatchLabelKeysInPodTopologySpreadSelectorMerge=False), [True, False])


class WarningTests(SynchronousTestCase):
    """Tests of warnings."""

    def test_git_repositories(self) -> None:
        """The warning about volumes of Git repositories depends on their gate."""
        for release, gates, text in (
            ((1, 36), {}, "deprecated in v1.11, and disabled by default in v1.33+"),
            ((1, 33), {"GitRepoVolumeDriver": True}, "deprecated in v1.11"),
            ((1, 32), {}, "deprecated in v1.11"),
        ):
            strategy = gated("", "Pod", release, **gates)
            obj = created(strategy, spec={"containers": [], "volumes": [{"name": "v", "gitRepo": {}}]})
            self.assertEqual(list(strategy.warnings(obj, None)), [f"spec.volumes[0].gitRepo: {text}"])


class ReleaseTests(SynchronousTestCase):
    """Tests of changes to pods that depend on the release."""

    def test_generation(self) -> None:
        """Pods have generations since 1.33."""
        self.assertEqual([gated("", "Pod", (1, minor)).has_generation for minor in (32, 33)], [False, True])

    def test_status(self) -> None:
        """An update of the status keeps the quality of service since 1.32, and observed generations since 1.33."""
        status = {"qosClass": "BestEffort", "observedGeneration": 1}
        for minor, kept in ((31, []), (32, ["qosClass"]), (33, ["qosClass", "observedGeneration"])):
            strategy = gated("", "Pod", (1, minor))
            old = {**created(strategy, spec={"containers": []}), "status": status}
            self.assertEqual(list(with_status(strategy, old, {})["status"]), kept)

    def test_profiles(self) -> None:
        """Until 1.33, the AppArmor fields of new pods are copied to annotations."""
        prefix = "container.apparmor.security.beta.kubernetes.io/"
        spec = {
            "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {"name": "a"},
                {"name": "b", "securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
                {
                    "name": "c",
                    "securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "p"}},
                },
                {"name": "d", "securityContext": {"appArmorProfile": {"type": "Localhost"}}},
            ],
        }
        annotations = {f"{prefix}a": "runtime/default", f"{prefix}b": "unconfined", f"{prefix}c": "localhost/p"}
        old = gated("", "Pod", (1, 33))
        self.assertEqual(created(old, spec=spec)["metadata"]["annotations"], annotations)
        self.assertNotIn("annotations", created(gated("", "Pod", (1, 34)), spec=spec)["metadata"])
        self.assertNotIn("annotations", created(old, spec={**spec, "os": {"name": "windows"}})["metadata"])
        obj = copy({"metadata": {"name": "x", "annotations": {f"{prefix}a": "unconfined"}}, "spec": spec})
        old.default(obj)
        old.prepare_for_create(obj)
        self.assertEqual(obj["metadata"]["annotations"], {**annotations, f"{prefix}a": "unconfined"})
