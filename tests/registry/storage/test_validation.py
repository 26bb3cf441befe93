"""Tests for L{kubetwist.registry.storage.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.apps.test_validation import QUALIFIED_RULE, status_problems
from tests.registry.strategytools import LONG, SUBDOMAIN_RULE, change_problems, copy, problems


class StorageClassTests(SynchronousTestCase):
    """Tests for StorageClasses."""

    def test_storage_class(self) -> None:
        """The provisioner of a storage class is immutable."""
        self.assertEqual(
            change_problems("storage.k8s.io", "StorageClass", {"provisioner": "a/b"}, {"provisioner": "c/d"}),
            ['provisioner: Invalid value: "c/d": field is immutable'],
        )


class StorageTests(SynchronousTestCase):
    """Tests for StorageClasses, CSI objects and attachments."""

    GROUP = "storage.k8s.io"

    def test_tokens(self) -> None:
        """A token request with a duplicate audience has no further errors."""
        requests = [{"audience": "a"}, {"audience": "a", "expirationSeconds": 1}]
        self.assertEqual(
            problems(self.GROUP, "CSIDriver", spec={"tokenRequests": requests}),
            ['spec.tokenRequests[1].audience: Duplicate value: "a"'],
        )

    def test_node(self) -> None:
        """Empty driver names are reported, too, before the errors of topology keys."""
        drivers = [{"name": "", "nodeID": "x"}, {"name": "", "nodeID": LONG, "topologyKeys": [""]}]
        self.assertEqual(
            problems(self.GROUP, "CSINode", spec={"drivers": drivers}),
            [
                "spec.drivers[0].name: Required value",
                "spec.drivers[1].name: Required value",
                f'spec.drivers[1].nodeID: Invalid value: "{LONG}": must be 256 characters or less',
                'spec.drivers[1].name: Duplicate value: ""',
                "spec.drivers[1]: Required value",
                'spec.drivers[1]: Invalid value: "": name part must be non-empty',
                f'spec.drivers[1]: Invalid value: "": {QUALIFIED_RULE}',
            ],
        )

    def test_node_update(self) -> None:
        """The allocatable count of a driver may change, but not its identity."""
        old = {"spec": {"drivers": [{"name": "b.x", "nodeID": "1"}, {"name": "a.x", "nodeID": "1"}]}}
        more = {"spec": {"drivers": [{"name": "a.x", "nodeID": "1", "allocatable": {"count": 3}}]}}
        self.assertEqual(change_problems(self.GROUP, "CSINode", old, more), [])
        new = {"spec": {"drivers": [{"name": name, "nodeID": "2"} for name in ("a.x", "b.x")]}}
        self.assertEqual(
            change_problems(self.GROUP, "CSINode", old, new),
            [
                f'spec.drivers: Invalid value: {{"Name":"{name}","NodeID":"2","TopologyKeys":null,"Allocatable":null}}'
                ": field is immutable"
                for name in ("b.x", "a.x")
            ],
        )

    def test_capacity(self) -> None:
        """A topology is shown in the order of its struct, after the errors of the whole object."""
        topology = {"matchExpressions": [{"operator": "Exists", "key": "a"}], "matchLabels": {"z": "y"}}
        new = {"storageClassName": "s", "nodeTopology": topology, "capacity": "-1"}
        self.assertEqual(
            change_problems(self.GROUP, "CSIStorageCapacity", {"storageClassName": "s"}, new),
            [
                'capacity: Invalid value: "-1": must be greater than or equal to 0',
                'nodeTopology: Invalid value: {"matchLabels":{"z":"y"},"matchExpressions":[{"key":"a","operator":'
                '"Exists"}]}: field is immutable',
            ],
        )
        odd = {"storageClassName": "s", "nodeTopology": {"matchExpressions": [{"key": "a", "operator": "In"}]}}
        odd["nodeTopology"]["matchExpressions"][0]["values"] = ["a b"]
        self.assertEqual(change_problems(self.GROUP, "CSIStorageCapacity", odd, odd), [])

    def test_attachment(self) -> None:
        """The volume name is not empty; errors of the inline volume precede errors of the node."""
        spec = {"attacher": "a.x", "nodeName": "N", "source": {"persistentVolumeName": ""}}
        node = f'spec.nodeName: Invalid value: "N": {SUBDOMAIN_RULE}'
        self.assertEqual(
            problems(self.GROUP, "VolumeAttachment", spec=spec),
            [
                "spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName",
                node,
                f'spec.source.persistentVolumeName: Invalid value: "": {SUBDOMAIN_RULE}',
            ],
        )
        inline = problems(self.GROUP, "VolumeAttachment", spec={**spec, "source": {"inlineVolumeSpec": {}}})
        self.assertEqual(inline[-1], node)
        self.assertGreater(len(inline), 1)

    def test_inline_volume(self) -> None:
        """An inline volume has a CSI source, and no other field is validated."""
        volume = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "a.x", "volumeHandle": "h"}}
        spec = {"attacher": "a.x", "nodeName": "n", "source": {"inlineVolumeSpec": volume}}
        self.assertEqual(problems(self.GROUP, "VolumeAttachment", spec=spec), [])
        more = {
            "claimRef": {},
            "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Delete",
            "nodeAffinity": {},
            "storageClassName": "s",
            "volumeMode": "Block",
        }
        bad = {**spec, "source": {"inlineVolumeSpec": {**volume, **more}}}
        path, field = "spec.source.inlineVolumeSpec", "in the context of inline volumes"
        self.assertEqual(
            problems(self.GROUP, "VolumeAttachment", spec=bad),
            [
                f"{path}.claimRef: Forbidden: may not be specified {field}",
                f"{path}.capacity: Forbidden: may not be specified {field}",
                f"{path}.persistentVolumeReclaimPolicy: Forbidden: may only be Retain {field}",
                f"{path}.nodeAffinity: Forbidden: may not be specified {field}",
                f"{path}.storageClassName: Forbidden: may not be specified {field}",
                f"{path}.volumeMode: Forbidden: may not specify volumeMode other than Filesystem {field}",
            ],
        )
        disk = {"accessModes": ["ReadWriteOnce"], "rbd": {"monitors": ["m"], "image": "i"}}
        (error,) = problems(self.GROUP, "VolumeAttachment", spec={**spec, "source": {"inlineVolumeSpec": disk}})
        self.assertEqual(error, f"{path}.csi: Required value: has to be specified {field}")

    def test_attachment_update(self) -> None:
        """A change is validated as a whole, and shown with all fields of the volume source."""
        source = {"inlineVolumeSpec": {"accessModes": ["x"], "csi": {"driver": "a.x", "volumeHandle": "h"}}}
        old = {"spec": {"attacher": "a.x", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}
        errors = change_problems(self.GROUP, "VolumeAttachment", old, {"spec": {**old["spec"], "source": source}})
        self.assertEqual(len(errors), 2)
        self.assertTrue(errors[0].startswith("spec.source.inlineVolumeSpec.accessModes: Unsupported value"), errors[0])
        start = (
            'spec: Invalid value: {"Attacher":"a.x","Source":{"PersistentVolumeName":null,"InlineVolumeSpec":'
            '{"Capacity":null,"GCEPersistentDisk":null,'
        )
        self.assertTrue(errors[1].startswith(start), errors[1])
        end = '"NodeAffinity":null,"VolumeAttributesClassName":null}},"NodeName":"n"}: field is immutable'
        self.assertTrue(errors[1].endswith(end), errors[1])

    def test_attachment_status(self) -> None:
        """The metadata and errors of an attachment are limited in size."""
        spec = {"attacher": "a.x", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
        status = {
            "attached": True,
            "attachmentMetadata": {"a": "x" * 256 * 1024},
            "attachError": {"message": "m" * 1025},
            "detachError": {"errorCode": -1},
        }
        self.assertEqual(
            status_problems(self.GROUP, "VolumeAttachment", {}, status, spec=spec),
            [
                "status.attachmentMetadata: Too long: may not be more than 262144 bytes",
                "status.attachError.message: Too long: may not be more than 262144 bytes",
                "status.detachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            ],
        )

    def test_attributes(self) -> None:
        """An update of a VolumeAttributesClass is validated as a whole."""
        old, new = {"driverName": "a.x", "parameters": {"a": "b"}}, {"driverName": "a.x"}
        self.assertEqual(
            change_problems(self.GROUP, "VolumeAttributesClass", old, new),
            [
                "parameters: Forbidden: updates to parameters are forbidden.",
                "parameters: Required value: must contain at least one key/value pair",
            ],
        )

    def test_topologies(self) -> None:
        """Terms are duplicates in any order of their values."""
        one = {"key": "a", "values": ["x", "y"]}
        two = {"key": "b", "values": ["z"]}
        terms = [{"matchLabelExpressions": [one, two]}, {"matchLabelExpressions": [two, one]}]
        self.assertEqual(
            problems(self.GROUP, "StorageClass", provisioner="p", allowedTopologies=terms),
            ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
        )

    def test_empty_topologies(self) -> None:
        """An empty term is reported once for each term, and once for each empty term before it."""
        for count, times in ((1, 1), (2, 5)):
            errors = problems(self.GROUP, "StorageClass", provisioner="p", allowedTopologies=[{}] * count)
            self.assertEqual(len(errors), times)
            self.assertEqual(errors[0], 'allowedTopologies[0].matchLabelExpressions: Duplicate value: ""')

    def test_class_update(self) -> None:
        """Errors of a class as a whole precede errors of immutable fields."""
        old = {"provisioner": "p", "parameters": {"a": "b"}}
        self.assertEqual(
            change_problems(self.GROUP, "StorageClass", old, {"parameters": {"a": "c"}}),
            [
                "provisioner: Required value",
                'parameters: Invalid value: {"a":"c"}: field is immutable',
                'provisioner: Invalid value: "": field is immutable',
            ],
        )

    def test_tokens_in_secrets(self) -> None:
        """The place of tokens can be set only with token requests."""
        self.assertEqual(
            problems(self.GROUP, "CSIDriver", spec={"serviceAccountTokenInSecrets": False}),
            [
                "spec.serviceAccountTokenInSecrets: Invalid value: false: serviceAccountTokenInSecrets is set but no "
                "tokenRequests are specified"
            ],
        )

    def test_lenient(self) -> None:
        """An empty policy and long driver names are accepted."""
        self.assertEqual(problems(self.GROUP, "StorageClass", provisioner="p", reclaimPolicy=""), [])
        driver = {"metadata": {"name": "x" * 64}, "spec": {}}
        strategy = strategy_for(self.GROUP, "CSIDriver")
        strategy.default(driver)
        self.assertEqual(strategy.validate(driver), [])

    def test_driver_changes(self) -> None:
        """Any change of the spec increments the generation; changed token requests give a warning."""
        strategy = strategy_for(self.GROUP, "CSIDriver")
        old = {"metadata": {"name": "a.x"}, "spec": {"tokenRequests": [{"audience": "a"}]}}
        strategy.default(old)
        new = copy(old)
        new["spec"]["nodeAllocatableUpdatePeriodSeconds"] = 60
        new["spec"]["preventPodSchedulingIfMissing"] = True
        strategy.prepare_for_update(new, old)
        self.assertNotIn("preventPodSchedulingIfMissing", new["spec"])
        self.assertTrue(strategy.generation_changes(new, old))
        self.assertFalse(strategy.generation_changes(copy(old), old))
        self.assertEqual(strategy.warnings(new, old), ())
        new["spec"]["tokenRequests"].append({"audience": "b"})
        self.assertEqual(len(strategy.warnings(new, old)), 1)
