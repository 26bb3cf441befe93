"""Tests for the rules of storage, certificates, devices and runtime classes."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.certificates.validation import validate_approval_update, validate_request_status_update
from kubetwist.registry.generic.validation.fields import Causes
from kubetwist.registry.generic.validation.signernames import signer_name
from kubetwist.registry.strategies import strategy_for

from .apps.test_validation import LABEL_RULE, QUALIFIED_RULE, status_problems
from .test_strategies_validation import change_problems, copy, problems

#: Of less than 256 characters, and more than 256 bytes.
LONG = "\u00e4" * 129
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


class RuntimeTests(SynchronousTestCase):
    """Tests for runtime classes and leases."""

    def test_update(self) -> None:
        """A change is looked at as a whole; a toleration is there once, whatever its time."""
        tolerations = [
            {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": n} for n in (1, 2)
        ]
        self.assertEqual(
            change_problems(
                "node.k8s.io", "RuntimeClass", {"handler": "h"}, {"scheduling": {"tolerations": tolerations}}
            ),
            [
                "handler: Required value",
                'scheduling.tolerations[1]: Duplicate value: {"Key":"k","Operator":"Exists","Value":"","Effect":'
                '"NoExecute","TolerationSeconds":2}',
                'handler: Invalid value: "": field is immutable',
            ],
        )

    def test_preemption(self) -> None:
        """A policy that is there is a text."""
        self.assertEqual(
            problems("scheduling.k8s.io", "PriorityClass", preemptionPolicy=""), ["preemptionPolicy: Required value"]
        )

    def test_elections(self) -> None:
        """Leases have no strategies, but those that are there may be changed."""
        strategy = strategy_for("coordination.k8s.io", "Lease")
        given = {"metadata": {"name": "l"}, "spec": {"strategy": "OldestEmulationVersion", "preferredHolder": "h"}}
        lease = copy(given)
        strategy.prepare_for_create(lease)
        self.assertEqual(lease["spec"], {})
        again = copy(given)
        strategy.prepare_for_update(again, lease)
        self.assertEqual(again["spec"], {})
        strategy.prepare_for_update(changed := copy(given), {"spec": {"strategy": "x.y/z"}})
        self.assertEqual(changed["spec"], {"strategy": "OldestEmulationVersion"})


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


class CertificateTests(SynchronousTestCase):
    """Tests for certificate signing requests."""

    def test_no_request(self) -> None:
        """A request that is missing is shown as nothing."""
        found = problems("certificates.k8s.io", "CertificateSigningRequest", spec={})
        self.assertEqual(found[0], "spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST")

    def signer(self, name: str) -> list[str]:
        """What is wrong with the name of a signer."""
        causes: Causes = []
        signer_name(name, "s", causes)
        return [str(cause) for cause in causes]

    def test_signer(self) -> None:
        """The labels of a signer's domain, and of what comes after it."""
        self.assertEqual(self.signer("example.com/a.b"), [])
        self.assertEqual(
            self.signer("Ex_.com/B.c"),
            [
                f's: Invalid value: "Ex_.com": validating label "Ex_": {LABEL_RULE}',
                f's: Invalid value: "B.c": validating label "B": {SUBDOMAIN_RULE}',
            ],
        )
        self.assertEqual(
            self.signer("host/x"),
            ['s: Invalid value: "host": should be a domain with at least two segments separated by dots'],
        )
        self.assertEqual(
            self.signer(f"{'a.' * 127}b/x"),
            ["s: Too long: may not be more than 253 bytes"],
        )
        self.assertEqual(self.signer(f"a.b/{'c.' * 300}d"), ["s: Too long: may not be more than 571 bytes"])

    def test_conditions_that_stay(self) -> None:
        """What was odd about the conditions may stay."""
        first: list[dict[str, Any]] = [
            {"type": kind, "status": "True"} for kind in ("Approved", "Denied", "", "X", "X")
        ]
        old = {"spec": {}, "status": {"conditions": first}}
        self.assertEqual(validate_approval_update(old, old), [])
        fresh = {"spec": {}, "status": {}}
        self.assertEqual(
            [str(cause) for cause in validate_approval_update(old, fresh)],
            [
                'status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive',
                "status.conditions[2].type: Required value",
                'status.conditions[4].type: Duplicate value: "X"',
            ],
        )

    def test_certificate_that_is_none(self) -> None:
        """Where what was there was no certificate, what comes need not be one."""
        old, new = ({"spec": {}, "status": {"certificate": text}} for text in ("bm8=", "bm9wZQ=="))
        self.assertEqual(
            [str(cause) for cause in validate_request_status_update(new, old)],
            ["status.certificate: Forbidden: updates may not modify existing certificate content"],
        )

    def test_condition_without_time(self) -> None:
        """A condition whose time nobody knows gets one."""
        obj = {"metadata": {}, "spec": {}, "status": {"conditions": [{"type": "Approved", "status": "True"}]}}
        after = copy(obj)
        strategy: Any = strategy_for("certificates.k8s.io", "CertificateSigningRequest")
        strategy.prepare_for_approval(after, obj)
        self.assertTrue(after["status"]["conditions"][0]["lastTransitionTime"])


class DeviceTests(SynchronousTestCase):
    """Tests for claims of devices and the slices that offer them."""

    POOL: ClassVar = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    RESULT: ClassVar = {"request": "g", "driver": "d.x", "pool": "p", "device": "a"}
    REQUEST: ClassVar = {"name": "g", "exactly": {"deviceClassName": "c"}}

    def claim(self, **devices: Any) -> list[str]:
        """What is wrong with a claim."""
        return problems("resource.k8s.io", "ResourceClaim", spec={"devices": {"requests": [self.REQUEST], **devices}})

    def slice_spec(self, *devices: Any, **spec: Any) -> dict[str, Any]:
        """The spec of a slice."""
        spec = {"driver": "d.x", "pool": self.POOL, "nodeName": "n", **spec}
        return {"spec": {**spec, "devices": list(devices)} if devices else spec}

    def offered(self, *devices: Any, **spec: Any) -> list[str]:
        """What is wrong with a slice."""
        return problems("resource.k8s.io", "ResourceSlice", **self.slice_spec(*devices, **spec))

    def status(self, old: Any, new: Any) -> list[str]:
        """What is wrong with a change of a claim's status."""
        spec = {"devices": {"requests": [self.REQUEST]}}
        return status_problems("resource.k8s.io", "ResourceClaim", old, new, spec=spec)

    def test_too_many(self) -> None:
        """Of a list that is too long, nothing else is told."""
        self.assertEqual(
            self.claim(requests=[{}] * 33), ["spec.devices.requests: Too many: 33: must have at most 32 items"]
        )
        self.assertEqual(
            self.claim(config=[{}] * 33), ["spec.devices.config: Too many: 33: must have at most 32 items"]
        )

    def test_duplicates(self) -> None:
        """What is there twice is told after what is wrong with each."""
        constraint = {"requests": ["g", "g", "h"], "matchAttribute": "x.y/z"}
        path = "spec.devices.constraints[0].requests"
        self.assertEqual(
            self.claim(constraints=[constraint]),
            [
                f'{path}[2]: Invalid value: "h": must be the name of a request in the claim or the name of a request '
                "and a subrequest separated by '/'",
                f'{path}[1]: Duplicate value: "g"',
            ],
        )

    def test_names_of_attributes(self) -> None:
        """The domain of an attribute, and what is below it."""
        texts = [
            ("z", 'Invalid value: "z": a fully qualified name must be a domain and a name separated by a slash'),
            ("/z", 'Invalid value: "": the domain must not be empty'),
            ("x/", 'Invalid value: "": the name must not be empty'),
        ]
        for name, text in texts:
            found = self.claim(constraints=[{"requests": ["g"], "matchAttribute": name}])
            self.assertEqual(found, [f"spec.devices.constraints[0].matchAttribute: {text}"])
        self.assertEqual(self.claim(constraints=[{"requests": ["g"], "matchAttribute": "a/b/c"}]), [])

    def test_long_parameters(self) -> None:
        """Configuration is not long, unless it was before."""
        config = [{"opaque": {"driver": "d.x", "parameters": {"a": "x" * 10240}}}]
        text = "config[0].opaque.parameters: Too long: may not be more than 10240 bytes"
        self.assertEqual(self.claim(config=config), [f"spec.devices.{text}"])
        old, new = {"spec": {}}, {"spec": {"config": config}}
        self.assertEqual(change_problems("resource.k8s.io", "DeviceClass", old, new), [f"spec.{text}"])
        self.assertEqual(change_problems("resource.k8s.io", "DeviceClass", new, new), [])

    def test_metadata_of_templates(self) -> None:
        """Claims get labels and annotations from a template, and nothing else."""
        metadata = {"name": "x", "annotations": {"a b": ""}, "labels": {"a": "b c"}}
        found = problems("resource.k8s.io", "ResourceClaimTemplate", spec={"metadata": metadata})
        self.assertEqual(
            [text.partition(":")[0] for text in found],
            ["spec.metadata.annotations", "spec.metadata.labels", "spec.metadata.name"],
        )
        self.assertEqual(found[-1], "spec.metadata.name: Forbidden: cannot be set")

    def test_allocation(self) -> None:
        """What is allocated: shares, conditions, configuration and nodes."""
        result = {**self.RESULT, "shareID": "X", "bindingConditions": ["a"]}
        config = {"source": "FromAfar", "requests": ["h"], "opaque": {"driver": "d.x", "parameters": {}}}
        allocation = {"devices": {"results": [result], "config": [config, {}]}, "nodeSelector": {}}
        path = "status.allocation.devices"
        reference = (
            "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
        )
        self.assertEqual(
            self.status({}, {"allocation": allocation}),
            [
                f"{path}.results[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are "
                "required to use bindingConditions",
                f'{path}.results[0].shareID: Invalid value: "X": uid must be in RFC 4122 normalized form, '
                "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters",
                f'{path}.config[0].source: Unsupported value: "FromAfar": supported values: "FromClaim", "FromClass"',
                f'{path}.config[0].requests[0]: Invalid value: "h": {reference}',
                f"{path}.config[1].source: Required value",
                f"{path}.config[1].opaque: Required value",
                "status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have at least one node "
                "selector term",
            ],
        )

    def test_states_of_devices(self) -> None:
        """What drivers say is about devices of the claim, and goes with them."""
        state = {name: self.RESULT[name] for name in ("driver", "pool", "device")}
        allocation = {"devices": {"results": [self.RESULT]}}
        given = {"allocation": allocation, "devices": [state]}
        self.assertEqual(self.status({}, given), [])
        self.assertEqual(self.status(given, {"devices": [state]}), [])
        ips = ["1.2.3.4/8", "1.2.3.4/8", "1.2.3.4", "FE80::1/64"]
        network = {"interfaceName": "i" * 257, "hardwareAddress": "h" * 129, "ips": ips}
        bad = {**state, "device": "b", "conditions": [{}] * 9, "data": 1, "networkData": network}
        found = self.status({}, {"allocation": allocation, "devices": [bad, bad]})
        self.assertEqual(
            found[:2],
            [
                'status.devices[0]: Invalid value: {"Driver":"d.x","Pool":"p","Device":"b","ShareID":""}: must be an '
                "allocated device in the claim",
                "status.devices[0].conditions: Too many: 9: must have at most 8 items",
            ],
        )
        self.assertEqual(
            [text for text in found if "[0].data" in text or "[0].networkData" in text],
            [
                'status.devices[0].data: Invalid value: "<value omitted>": must be a valid JSON object',
                "status.devices[0].networkData.interfaceName: Too long: may not be more than 256 bytes",
                "status.devices[0].networkData.hardwareAddress: Too long: may not be more than 128 bytes",
                'status.devices[0].networkData.ips[2]: Invalid value: "1.2.3.4": must be a valid address in CIDR form, '
                "(e.g. 10.9.8.7/24 or 2001:db8::1/64)",
                'status.devices[0].networkData.ips[3]: Invalid value: "FE80::1/64": must be in canonical form '
                '("fe80::1/64")',
                'status.devices[0].networkData.ips[1]: Duplicate value: "1.2.3.4/8"',
            ],
        )
        self.assertIn("status.devices[1]: Duplicate value", found[-1])

    def test_slice_update(self) -> None:
        """What may not change is told before the rest; taints may stay."""
        taints = {"name": "a", "taints": [{"key": "k"}]}
        old, new = self.slice_spec(taints), self.slice_spec(taints, driver="e.x", allNodes=False)
        self.assertEqual(
            change_problems("resource.k8s.io", "ResourceSlice", old, new),
            [
                'spec.driver: Invalid value: "e.x": field is immutable',
                "spec.allNodes: Invalid value: false: must be either unset or set to true",
            ],
        )
        self.assertEqual(self.offered(taints), ["spec.devices[0].taints[0].effect: Required value"])

    def test_nodes(self) -> None:
        """A slice is for nodes of one term, a device for nodes of any."""
        wrong = {"nodeSelectorTerms": []}
        path = "nodeSelector.nodeSelectorTerms"
        none = f"{path}: Required value: must have at least one node selector term"
        self.assertEqual(
            self.offered(nodeName=None, nodeSelector=wrong),
            [f"spec.{none}", f"spec.{path}: Invalid value: []: must have exactly one node selector term"],
        )
        several = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}] * 2}
        self.assertEqual(
            self.offered(
                {"name": "a", "nodeSelector": wrong},
                {"name": "b", "nodeSelector": several},
                {"name": "c", "nodeName": "", "allNodes": True},
                nodeName=None,
                perDeviceNodeSelection=True,
            ),
            [
                f"spec.devices[0].{none}",
                'spec.devices[2].nodeName: Invalid value: "": must not be empty',
            ],
        )

    def test_attributes(self) -> None:
        """An attribute is one value, and a version one of semver.org's."""
        attributes = {"a": {"int": 1, "bool": True}, "b": {"version": "1.0.0-01"}, "c": {"version": "x" * 65}}
        path = "spec.devices[0].attributes"
        semver = "must be a string compatible with semver.org spec 2.0.0"
        self.assertEqual(
            self.offered({"name": "a", "attributes": attributes}),
            [
                f'{path}[a]: Invalid value: {{"IntValue":1,"BoolValue":true,"StringValue":null,"VersionValue":null,'
                '"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}: exactly one value must '
                "be specified",
                f'{path}[b].version: Invalid value: "1.0.0-01": {semver}',
                f'{path}[c].version: Invalid value: "{"x" * 65}": {semver}',
                f"{path}[c].version: Too long: may not be more than 64 bytes",
            ],
        )

    def test_device(self) -> None:
        """Taints, counters, policies and conditions of a device."""
        device = {
            "name": "a",
            "capacity": {"m": {"value": "1", "requestPolicy": {}}},
            "taints": [{}] * 17,
            "consumesCounters": [{"counterSet": "", "counters": {"B": {"value": "1"}}}, {"counterSet": ""}],
            "bindingConditions": ["a", "a"],
            "bindingFailureConditions": ["a"],
        }
        path = "spec.devices[0]"
        self.assertEqual(
            self.offered(device),
            [
                f"{path}.capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true",
                f"{path}.taints: Too many: 17: must have at most 16 items",
                f"{path}.consumesCounters[0].counterSet: Required value",
                f'{path}.consumesCounters[0].counters: Invalid value: "B": {LABEL_RULE}',
                f"{path}.consumesCounters[1].counterSet: Required value",
                f"{path}.consumesCounters[1].counters: Required value",
                f'{path}.consumesCounters[1]: Duplicate value: ""',
                f'{path}.bindingConditions[1]: Duplicate value: "a"',
                f'{path}.bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap '
                "with bindingConditions",
            ],
        )

    def test_counters(self) -> None:
        """Sets of counters have names, and so have the counters."""
        many = {f"c{number}": {"value": "1"} for number in range(33)}
        sets = [{"name": "A"}, {"name": "b", "counters": many}, {"name": "b", "counters": {"x" * 64: {"value": "1"}}}]
        path = "spec.sharedCounters"
        found = self.offered(sharedCounters=sets)
        self.assertEqual(
            found[:3],
            [
                f'{path}[0].name: Invalid value: "A": {LABEL_RULE}',
                f"{path}[0].counters: Required value",
                f"{path}[1].counters: Too many: 33: must have at most 32 items",
            ],
        )
        self.assertTrue(found[3].startswith(f'{path}[2].counters: Invalid value: "{"x" * 64}"'), found[3])
        self.assertEqual(found[-1], f'{path}[2]: Duplicate value: "b"')
