"""Tests of L{kubetwist.registry.strategies}: the strategies of all kinds, and their defaults."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.objectmeta import validate_metadata_on_create, validate_metadata_on_update
from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import defaulted


class LookupTests(SynchronousTestCase):
    """Tests of L{strategy_for}."""

    def test_same_instance(self) -> None:
        """A kind always has the same strategy."""
        self.assertIs(strategy_for("", "Pod"), strategy_for("", "Pod"))

    def test_unknown_kind(self) -> None:
        """A kind without a strategy has a spec with a generation and a status."""
        strategy = strategy_for("example.com", "Gadget")
        self.assertTrue(strategy.has_generation and strategy.has_status)

    def test_flags(self) -> None:
        """Strategies determine creation by PUT, required resourceVersions, and the response to DELETE."""
        makes = {kind for group, kind in KINDS if strategy_for(group, kind).allow_create_on_update}
        self.assertEqual(
            makes,
            {
                "Service",
                "Endpoints",
                "Event",
                "LimitRange",
                "Lease",
                "Role",
                "ClusterRole",
                "RoleBinding",
                "ClusterRoleBinding",
            },
        )
        self.assertFalse(strategy_for("coordination.k8s.io", "Lease").allow_unconditional_update)
        self.assertFalse(strategy_for("storage.k8s.io", "CSIDriver").allow_unconditional_update)
        self.assertTrue(strategy_for("", "ServiceAccount").delete_returns_object)
        self.assertTrue(strategy_for("resource.k8s.io", "DeviceTaintRule").delete_returns_object)
        self.assertFalse(strategy_for("storage.k8s.io", "CSIStorageCapacity").delete_returns_object)
        self.assertFalse(strategy_for("", "ConfigMap").delete_returns_object)
        orphan = {kind for group, kind in KINDS if strategy_for(group, kind).default_garbage_collection}
        self.assertEqual(orphan, {"ReplicationController", "Job"})

    def test_names(self) -> None:
        """Names of roles are path segments, those of namespaces DNS labels, those of ConfigMaps DNS subdomains."""
        for group, kind, good, bad in (
            ("rbac.authorization.k8s.io", "Role", "system:Node", "a/b"),
            ("", "Namespace", "a-b", "a.b"),
            ("", "Service", "a-b", "a.b"),
            ("apps", "StatefulSet", "a-b", "a.b"),
            ("policy", "PodDisruptionBudget", "A b", "a/b"),
            ("", "ConfigMap", "a.b", "A"),
            ("networking.k8s.io", "IPAddress", "10.0.0.1", "10.0.0"),
        ):
            strategy = strategy_for(group, kind)
            self.assertEqual(list(strategy.validate_name(good, False)), [], kind)
            self.assertTrue(strategy.validate_name(bad, False), kind)


KINDS = [
    ("", "Pod"),
    ("", "Service"),
    ("", "Endpoints"),
    ("", "Event"),
    ("", "LimitRange"),
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "ReplicationController"),
    ("", "PodTemplate"),
    ("", "ResourceQuota"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "DaemonSet"),
    ("apps", "StatefulSet"),
    ("apps", "ControllerRevision"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("policy", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("apiregistration.k8s.io", "APIService"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("resource.k8s.io", "ResourceClaim"),
]


class DefaultingTests(SynchronousTestCase):
    """Tests of C{default}."""

    @settings(max_examples=60, deadline=None)
    @given(kind=st.sampled_from(KINDS))
    def test_idempotent(self, kind: tuple[str, str]) -> None:
        """Setting defaults twice equals setting them once, even for an empty object."""
        once = defaulted(*kind)
        again = {**once}
        strategy_for(*kind).default(again)
        self.assertEqual(again, once)


class CreationTests(SynchronousTestCase):
    """Tests of C{prepare_for_create}."""

    def test_long_names(self) -> None:
        """Kinds with long names limit their bytes, and do not validate the generateName."""
        for group, kind in (("", "ReplicationController"), ("resource.k8s.io", "DeviceClass")):
            strategy = strategy_for(group, kind)
            self.assertEqual(strategy.validate_name("x" * 254, False), ["must be no more than 253 bytes"])
            self.assertEqual(strategy.validate_name("a.", True), [])
            self.assertTrue(strategy.validate_name("a.", False))


class UpdateTests(SynchronousTestCase):
    """Tests of the preparation of updates, and of generations."""

    def test_generation(self) -> None:
        """A change of the spec increments the generation, unlike metadata and status; labels of a slice do, too."""
        old = {"metadata": {}, "spec": {"replicas": 1}, "status": {}}
        strategy = strategy_for("apps", "Deployment")
        self.assertFalse(strategy.generation_changes({**old, "metadata": {"labels": {}}, "status": {"a": 1}}, old))
        self.assertTrue(strategy.generation_changes({**old, "spec": {"replicas": 2}}, old))
        piece = {"metadata": {"labels": {"a": "1"}}, "endpoints": None}
        other = {"metadata": {"labels": {"a": "2"}}, "endpoints": None}
        self.assertTrue(strategy_for("discovery.k8s.io", "EndpointSlice").generation_changes(piece, other))
        self.assertFalse(strategy_for("scheduling.k8s.io", "PriorityClass").generation_changes({"value": 1}, {}))


class MetadataTests(SynchronousTestCase):
    """Tests of the number of validations of metadata."""

    def test_update(self) -> None:
        """The registry validates the metadata of updates twice, and kinds once to three times."""
        old = {"name": "x", "namespace": "ns", "uid": "u"}
        new = {**old, "labels": {"a b": ""}}
        for kind, times in (
            ("Event", 2),
            ("Service", 3),
            ("Namespace", 4),
            ("Node", 4),
            ("Endpoints", 4),
            ("PersistentVolume", 4),
            ("PersistentVolumeClaim", 4),
        ):
            strategy = strategy_for("", kind)
            causes = validate_metadata_on_update(
                new, old, True, strategy.validate_name, rules=strategy.metadata_update_rules
            )
            self.assertEqual([cause.field for cause in causes], ["metadata.labels"] * times, kind)

    def test_generated_names(self) -> None:
        """Kinds that validate changed objects as new ones validate the generateName."""
        old = {"name": "x", "uid": "u"}
        new = {**old, "generateName": "A/b"}
        for group, kind, times in (
            ("storage.k8s.io", "StorageClass", 2),
            ("storage.k8s.io", "VolumeAttachment", 2),
            ("storage.k8s.io", "CSIDriver", 1),
            ("node.k8s.io", "RuntimeClass", 2),
            ("rbac.authorization.k8s.io", "ClusterRole", 2),
            ("resource.k8s.io", "DeviceClass", 1),
            ("flowcontrol.apiserver.k8s.io", "FlowSchema", 2),
        ):
            strategy = strategy_for(group, kind)
            causes = validate_metadata_on_update(
                new, old, False, strategy.validate_name, rules=strategy.metadata_update_rules
            )
            self.assertEqual([cause.field for cause in causes], ["metadata.generateName"] * times, kind)

    def test_finalizers(self) -> None:
        """Some kinds accept any finalizer."""
        for group, kind, standard in (
            ("coordination.k8s.io", "Lease", False),
            ("node.k8s.io", "RuntimeClass", False),
            ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", False),
            ("storage.k8s.io", "CSINode", True),
        ):
            self.assertEqual(strategy_for(group, kind).standard_finalizers, standard, kind)

    def test_names_in_order(self) -> None:
        """Errors of the name precede those of labels."""
        strategy = strategy_for("apiregistration.k8s.io", "APIService")
        obj = {"metadata": {"name": "x", "labels": {"a b": ""}}, "spec": {"version": "v1", "group": "g"}}
        causes = validate_metadata_on_create(obj["metadata"], False, strategy.name_validator(obj))
        self.assertEqual([cause.field for cause in causes], ["metadata.name", "metadata.labels"])

    def test_status(self) -> None:
        """Most kinds compare the metadata of a status update; some do not validate it."""
        self.assertEqual(strategy_for("policy", "PodDisruptionBudget").metadata_update_rules, ())
        for group, kind, rules in (
            ("flowcontrol.apiserver.k8s.io", "FlowSchema", ()),
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", ()),
            ("storage.k8s.io", "VolumeAttachment", ("whole",)),
            ("apps", "Deployment", ("compare",)),
            ("policy", "PodDisruptionBudget", ()),
            ("batch", "CronJob", ()),
        ):
            self.assertEqual(strategy_for(group, kind).status_metadata_update_rules, rules)

    def test_creation(self) -> None:
        """Some kinds leave metadata to the registry, which validates it if the kind finds no errors."""
        for group, kind, expected in (
            ("", "Event", False),
            ("events.k8s.io", "Event", True),
            ("policy", "PodDisruptionBudget", False),
        ):
            self.assertEqual(strategy_for(group, kind).checks_metadata, expected, kind)
