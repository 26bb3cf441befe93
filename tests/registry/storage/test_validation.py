"""Tests for L{kubetwist.registry.storage.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.apps.test_validation import QUALIFIED_RULE, status_problems
from tests.registry.strategytools import LONG, SUBDOMAIN_RULE, change_problems, copy, problems


class StorageClassTests(SynchronousTestCase):
    """StorageClasses."""

    def test_storage_class(self) -> None:
        """A storage class keeps its provisioner."""
        self.assertEqual(
            change_problems("storage.k8s.io", "StorageClass", {"provisioner": "a/b"}, {"provisioner": "c/d"}),
            ['provisioner: Invalid value: "c/d": field is immutable'],
        )


class StorageTests(SynchronousTestCase):
    """Tests for storage classes, CSI objects and attachments."""

    GROUP = "storage.k8s.io"

    def test_tokens(self) -> None:
        """Of a token for whom there is another, nothing more is told."""
        requests = [{"audience": "a"}, {"audience": "a", "expirationSeconds": 1}]
        self.assertEqual(
            problems(self.GROUP, "CSIDriver", spec={"tokenRequests": requests}),
            ['spec.tokenRequests[1].audience: Duplicate value: "a"'],
        )

    def test_node(self) -> None:
        """Names without a text are counted, too, before the keys of topology."""
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
        """How many volumes a driver takes may change, and what it is may not."""
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
        """A topology is shown in the order of its struct, after what is wrong with the whole."""
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
        """A volume's name has a text; what is inline is told of before the node."""
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
        """A volume within an attachment is a CSI one, of which little else is said."""
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
        path, where = "spec.source.inlineVolumeSpec", "in the context of inline volumes"
        self.assertEqual(
            problems(self.GROUP, "VolumeAttachment", spec=bad),
            [
                f"{path}.claimRef: Forbidden: may not be specified {where}",
                f"{path}.capacity: Forbidden: may not be specified {where}",
                f"{path}.persistentVolumeReclaimPolicy: Forbidden: may only be Retain {where}",
                f"{path}.nodeAffinity: Forbidden: may not be specified {where}",
                f"{path}.storageClassName: Forbidden: may not be specified {where}",
                f"{path}.volumeMode: Forbidden: may not specify volumeMode other than Filesystem {where}",
            ],
        )
        disk = {"accessModes": ["ReadWriteOnce"], "rbd": {"monitors": ["m"], "image": "i"}}
        (found,) = problems(self.GROUP, "VolumeAttachment", spec={**spec, "source": {"inlineVolumeSpec": disk}})
        self.assertEqual(found, f"{path}.csi: Required value: has to be specified {where}")

    def test_attachment_update(self) -> None:
        """A change is looked at as a whole, and shown with all that a volume can be."""
        source = {"inlineVolumeSpec": {"accessModes": ["x"], "csi": {"driver": "a.x", "volumeHandle": "h"}}}
        old = {"spec": {"attacher": "a.x", "nodeName": "n", "source": {"persistentVolumeName": "v"}}}
        found = change_problems(self.GROUP, "VolumeAttachment", old, {"spec": {**old["spec"], "source": source}})
        self.assertEqual(len(found), 2)
        self.assertTrue(found[0].startswith("spec.source.inlineVolumeSpec.accessModes: Unsupported value"), found[0])
        start = (
            'spec: Invalid value: {"Attacher":"a.x","Source":{"PersistentVolumeName":null,"InlineVolumeSpec":'
            '{"Capacity":null,"GCEPersistentDisk":null,'
        )
        self.assertTrue(found[1].startswith(start), found[1])
        end = '"NodeAffinity":null,"VolumeAttributesClassName":null}},"NodeName":"n"}: field is immutable'
        self.assertTrue(found[1].endswith(end), found[1])

    def test_attachment_status(self) -> None:
        """What is said of an attachment has its limits."""
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
        """A change of a class of attributes is looked at as a whole."""
        old, new = {"driverName": "a.x", "parameters": {"a": "b"}}, {"driverName": "a.x"}
        self.assertEqual(
            change_problems(self.GROUP, "VolumeAttributesClass", old, new),
            [
                "parameters: Forbidden: updates to parameters are forbidden.",
                "parameters: Required value: must contain at least one key/value pair",
            ],
        )

    def test_topologies(self) -> None:
        """Terms that are alike, in whatever order."""
        one = {"key": "a", "values": ["x", "y"]}
        two = {"key": "b", "values": ["z"]}
        terms = [{"matchLabelExpressions": [one, two]}, {"matchLabelExpressions": [two, one]}]
        self.assertEqual(
            problems(self.GROUP, "StorageClass", provisioner="p", allowedTopologies=terms),
            ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
        )

    def test_empty_topologies(self) -> None:
        """A term that says nothing is told as often as there are terms, and once for each like it before."""
        for count, times in ((1, 1), (2, 5)):
            found = problems(self.GROUP, "StorageClass", provisioner="p", allowedTopologies=[{}] * count)
            self.assertEqual(len(found), times)
            self.assertEqual(found[0], 'allowedTopologies[0].matchLabelExpressions: Duplicate value: ""')

    def test_class_update(self) -> None:
        """What is wrong with a class as a whole comes before what may not change of it."""
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
        """Where tokens are handed over is only said when there are tokens."""
        self.assertEqual(
            problems(self.GROUP, "CSIDriver", spec={"serviceAccountTokenInSecrets": False}),
            [
                "spec.serviceAccountTokenInSecrets: Invalid value: false: serviceAccountTokenInSecrets is set but no "
                "tokenRequests are specified"
            ],
        )

    def test_lenient(self) -> None:
        """A policy may be no text, and a driver have a long name."""
        self.assertEqual(problems(self.GROUP, "StorageClass", provisioner="p", reclaimPolicy=""), [])
        driver = {"metadata": {"name": "x" * 64}, "spec": {}}
        strategy = strategy_for(self.GROUP, "CSIDriver")
        strategy.default(driver)
        self.assertEqual(strategy.validate(driver), [])

    def test_driver_changes(self) -> None:
        """Any change of the spec is a new generation; clients are warned of tokens when these change."""
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
