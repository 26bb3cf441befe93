"""Tests for L{kubetwist.registry.generic.validation}: of nodes, volumes, claims, services and endpoints."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.objectmeta import creation_causes, update_causes
from kubetwist.registry.core.namespace.validation import validate_namespace, validate_namespace_finalize
from kubetwist.registry.core.persistentvolumeclaim.validation import validate_claim_status_update
from kubetwist.registry.core.service.validation import drop_type_dependent_fields
from kubetwist.registry.strategies import strategy_for

from .test_strategies_validation import change_problems, copy, made, problems


def status_problems(group: str, kind: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What is wrong with a change of status."""
    return [str(cause) for cause in strategy_for(group, kind).validate_status_update(copy(new), copy(old))]


def told(group: str, kind: str, **parts: Any) -> list[str]:
    """What the client of a new object is warned of."""
    return list(strategy_for(group, kind).warnings(made(group, kind, **parts), None))


class NodeTests(SynchronousTestCase):
    """Nodes."""

    def test_new(self) -> None:
        """What can be wrong with a new node is told in the reference's order."""
        status = {
            "capacity": {"cpu": "-1", "pods": "1500m"},
            "nodeInfo": {"swap": {"capacity": 0}},
            "declaredFeatures": ["Two", "Two", "One", "bad"],
        }
        spec = {"taints": [{"key": "a", "effect": "Never"}], "podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}
        name = "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
        name += "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
        self.assertEqual(
            problems("", "Node", spec=spec, status={**status, "allocatable": {}}),
            [
                'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", '
                '"PreferNoSchedule", "NoExecute"',
                'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
                'status.capacity.pods: Invalid value: "1500m": must be an integer',
                "metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero",
                'status.declaredFeatures[1]: Duplicate value: "Two"',
                'status.declaredFeatures[2]: Invalid value: "One": list must be sorted alphabetically',
                f'status.declaredFeatures[3]: Invalid value: "bad": invalid feature name "bad": {name}',
                'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: '
                "may specify no more than one CIDR for each IP family",
            ],
        )
        long = f"A{'b' * 253}"
        (found,) = problems("", "Node", status={"declaredFeatures": [long]})
        self.assertTrue(found.endswith(f'invalid feature name "{long}": must be no more than 253 characters'), found)

    def test_unreadable_range(self) -> None:
        """A range that is none is no second family either."""
        found = problems("", "Node", spec={"podCIDRs": ["fd00::/64", "junk"]})
        self.assertEqual([one.partition(":")[0] for one in found], ["spec.podCIDRs[1]", *["spec.podCIDRs"] * 2])
        self.assertIn("invalid CIDR[1]: <nil> (invalid CIDR address: junk)", found[1])
        self.assertEqual(problems("", "Node", spec={"podCIDRs": ["fd00::/64", "10.0.0.0/24"]}), [])

    def test_update(self) -> None:
        """The node by itself is looked at in updates of the main resource only; ranges are looked at once."""
        spec = {"taints": [{"key": "", "effect": "NoExecute"}], "podCIDRs": ["junk"], "externalID": "x"}
        found = [one.partition(":")[0] for one in change_problems("", "Node", {}, {"spec": spec})]
        key = ["metadata.taints[0].key"] * 2
        self.assertEqual(found, [*key, "spec.podCIDRs[0]", *key, "spec.externalID"])
        bad = {"spec": spec, "status": {"capacity": {"cpu": "-1"}, "addresses": [{"type": "a", "address": "b"}] * 2}}
        self.assertEqual(
            [one.partition(":")[0] for one in status_problems("", "Node", {"spec": spec}, bad)],
            ["status.capacity.cpu", "status.addresses[1]", *key],
        )

    def test_config(self) -> None:
        """Where kubelets had their configuration from is looked at where it still is."""
        reference = {"name": "n", "namespace": "Ns", "kubeletConfigKey": "a/b", "uid": "u"}
        old = {"spec": {"configSource": {}}, "status": {"config": {}}}
        new = {
            "spec": {"configSource": {"configMap": reference}},
            "status": {"config": {"assigned": {"configMap": reference}, "active": {}}},
        }
        found = [one.partition(":")[0] for one in status_problems("", "Node", old, new)]
        spec, assigned = "spec.configSource.configMap", "status.config.assigned.configMap"
        rest = ["namespace", "kubeletConfigKey"]
        self.assertEqual(
            found,
            [
                f"{spec}.uid",
                *(f"{spec}.{name}" for name in rest),
                f"{assigned}.resourceVersion",
                *(f"{assigned}.{name}" for name in rest),
                "status.config.active",
            ],
        )
        self.assertEqual(
            status_problems("", "Node", old, {"spec": {"configSource": {}}}),
            ['spec.configSource: Invalid value: {"ConfigMap":null}: exactly one reference subfield must be non-nil'],
        )

    def test_warnings(self) -> None:
        """Clients are told of what has no effect any more."""
        gone = "spec.externalID: this field is deprecated, and is unused by Kubernetes"
        self.assertEqual(told("", "Node", spec={"externalID": "x", "configSource": {}}), [gone])
        kept = strategy_for("", "Node").warnings({"spec": {"configSource": {}}}, None)
        self.assertEqual(kept, ["spec.configSource: the feature is removed"])


VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}


class VolumeTests(SynchronousTestCase):
    """Persistent volumes."""

    def volume(self, **spec: Any) -> list[str]:
        """The problems of a volume with this spec."""
        return problems("", "PersistentVolume", spec={**VOLUME, **spec})

    def test_sources(self) -> None:
        """Sources of volumes have rules of their own, which differ from those of pods."""
        self.assertEqual(self.volume(gcePersistentDisk={"pdName": ""}), ["spec.persistentDisk.pdName: Required value"])
        glusterfs = {"endpoints": "e", "path": "p", "endpointsNamespace": ""}
        self.assertEqual(
            self.volume(glusterfs=glusterfs),
            [
                'spec.glusterfs.endpointsNamespace: Invalid value: "": '
                "if the endpointnamespace is set, it must be a valid namespace name"
            ],
        )
        (found,) = self.volume(glusterfs={**glusterfs, "endpointsNamespace": "A"})
        self.assertTrue(found.startswith('spec.glusterfs.endpointsNamespace: Invalid value: "A": a lowercase'), found)
        self.assertEqual(
            self.volume(cinder={"volumeID": "", "secretRef": {}}),
            [
                "spec.cinder.volumeID: Required value",
                "spec.cinder.secretRef.name: Required value",
                "spec.cinder.secretRef.namespace: Required value",
            ],
        )
        self.assertEqual(
            self.volume(azureFile={"secretName": "s", "shareName": "s", "secretNamespace": ""}),
            ["spec.azureFile.secretNamespace: Required value"],
        )
        found = self.volume(storageos={"volumeName": "A", "volumeNamespace": "B", "secretRef": {}})
        self.assertEqual(
            [one.partition(":")[0].removeprefix("spec.storageos.") for one in found],
            ["volumeName", "volumeNamespace", "secretRef.name", "secretRef.namespace"],
        )

    def test_several_sources(self) -> None:
        """All but the first are too many, in the reference's order; of one kind it forgets that."""
        found = self.volume(
            hostPath={"path": "/x"}, cephfs={}, flexVolume={"driver": "d"}, local={"path": "/x"}, storageos={}
        )
        text = "Forbidden: may not specify more than 1 volume type"
        self.assertEqual(found, [f"spec.{name}: {text}" for name in ("cephFS", "local", "storageos")])

    def test_iscsi(self) -> None:
        """Initiators and targets have names of one of three forms."""
        good = {"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:storage", "lun": 0}
        path, form = "spec.iscsi", "must be valid format"
        for name in ("eui.0123456789abcdef", f"naa.{'0' * 32}", "iqn.x:iqn.2001-04.com.example:storage:a"):
            self.assertEqual(self.volume(iscsi={**good, "iqn": name, "initiatorName": name}), [], name)
        for name in ("iqn.2001-04.com.example", "iqn.2001-04.com.example:", "iqn.2001-04.com:a b", "eui.0", "x"):
            self.assertEqual(
                self.volume(iscsi={**good, "iqn": name}), [f'{path}.iqn: Invalid value: "{name}": {form}'], name
            )
        self.assertEqual(
            self.volume(iscsi={"lun": 256, "chapAuthSession": True, "initiatorName": "x"}),
            [
                f"{path}.targetPortal: Required value",
                f"{path}.iqn: Required value",
                f"{path}.lun: Invalid value: 256: must be between 0 and 255, inclusive",
                f"{path}.secretRef: Required value",
                f'{path}.initiatorname: Invalid value: "x": {form}',
            ],
        )
        self.assertEqual(self.volume(iscsi={**good, "secretRef": {}}), [f"{path}.secretRef.name: Required value"])
        portal = "p" * 63
        (found,) = self.volume(iscsi={**good, "targetPortal": portal, "initiatorName": good["iqn"]})
        self.assertTrue(found.startswith(f'{path}.targetportal: Invalid value: "{portal}": Total length of'), found)

    def test_csi(self) -> None:
        """Secrets are named in full, but nobody looks at that for staging."""
        csi = {"driver": "d", "volumeHandle": "h"}
        self.assertEqual(self.volume(csi={**csi, "nodeStageSecretRef": {}}), [])
        references = {f"{name}SecretRef": {"name": "A"} for name in ("nodeExpand", "nodePublish", "controllerExpand")}
        found = self.volume(csi={**csi, **references})
        self.assertEqual(
            [one.partition(":")[0].removeprefix("spec.csi.") for one in found],
            [
                f"{name}SecretRef.{part}"
                for name in ("controllerExpand", "nodePublish", "nodeExpand")
                for part in ("name", "namespace")
            ],
        )

    def test_capacity(self) -> None:
        """Whatever the capacity is of, there is some."""
        found = self.volume(hostPath={"path": "/x"}, capacity={"cpu": "-1"})
        self.assertEqual([one.partition(":")[0] for one in found], ["spec.capacity", *["spec.capacity[cpu]"] * 2])

    def test_local(self) -> None:
        """A node affinity without constraints is one, though a wrong one."""
        self.assertEqual(
            self.volume(local={"path": "/x"}, nodeAffinity={}),
            ["spec.nodeAffinity.required: Required value: must specify required node constraints"],
        )

    def test_root(self) -> None:
        """The root of a host is not scrubbed, however it is written."""
        for path in ("/", "//", "/a/..", "/."):
            found = self.volume(hostPath={"path": path}, persistentVolumeReclaimPolicy="Recycle")
            wanted = "Forbidden: may not be 'recycle' for a hostPath mount of '/'"
            self.assertEqual(found[-1:], [f"spec.persistentVolumeReclaimPolicy: {wanted}"], path)

    def test_attributes(self) -> None:
        """Attributes are for CSI."""
        self.assertEqual(
            self.volume(hostPath={"path": "/x"}, volumeAttributesClassName=""),
            [
                "spec.volumeAttributesClassName: Required value: an empty string is disallowed",
                "spec.csi: Required value: has to be specified when using volumeAttributesClassName",
            ],
        )
        csi = {"driver": "d", "volumeHandle": "h"}
        self.assertEqual(self.volume(csi=csi, volumeAttributesClassName="a"), [])
        self.assertEqual(len(self.volume(csi=csi, volumeAttributesClassName="A")), 1)

    def test_mount_options(self) -> None:
        """By annotation, options are for mounts over a network."""
        metadata = {"name": "x", "annotations": {"volume.beta.kubernetes.io/mount-options": "ro"}}

        def found(**source: Any) -> list[str]:
            return problems("", "PersistentVolume", metadata=metadata, spec={**VOLUME, **source})

        self.assertEqual(found(nfs={"server": "s", "path": "/x"}), [])
        self.assertEqual(
            found(hostPath={"path": "/x"}),
            [
                "metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: "
                "may not specify mount options for this volume type"
            ],
        )

    def change(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        """The problems of a change of a volume by CSI."""
        csi = {"csi": {"driver": "d", "volumeHandle": "h"}}
        specs = [{"spec": {**VOLUME, **csi, **spec}} for spec in (old, new)]
        return change_problems("", "PersistentVolume", specs[0], specs[1])

    def test_affinity(self) -> None:
        """Only the names of labels that have new ones change."""

        def affinity(*keys: str) -> dict[str, Any]:
            expressions = [{"key": key, "operator": "In", "values": ["a"]} for key in keys]
            return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}

        old, new = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"
        self.assertEqual(self.change(affinity(old, "a"), affinity(new, "a")), [])
        self.assertEqual(self.change({}, affinity(old)), [])
        for one, other in (((new,), (old,)), ((old,), ("topology.kubernetes.io/region",)), ((old,), (new, new))):
            (found,) = self.change(affinity(*one), affinity(*other))
            self.assertTrue(found.endswith("field is immutable, except for updating from beta label to GA"), found)

    def test_change(self) -> None:
        """Attributes stay, others are told twice of, and what changes is shown from old to new."""
        self.assertEqual(
            self.change({"volumeAttributesClassName": "a"}, {}),
            ["spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden"],
        )
        self.assertEqual(self.change({}, {"accessModes": []}), ["spec.accessModes: Required value"] * 2)
        (found,) = self.change({}, {"csi": {"driver": "d", "volumeHandle": "other"}})
        self.assertLess(found.index('"VolumeHandle": "h"'), found.index('"VolumeHandle": "other"'))

    def test_warnings(self) -> None:
        """Clients are told of what is not done that way any more."""
        annotations = {"volume.beta.kubernetes.io/mount-options": "", "volume.beta.kubernetes.io/storage-class": ""}
        expression = {"key": "beta.kubernetes.io/os", "operator": "Exists"}
        spec = {
            **VOLUME,
            "persistentVolumeReclaimPolicy": "Recycle",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
            "storageos": {},
            "rbd": {},
        }
        where = "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key"
        self.assertEqual(
            told("", "PersistentVolume", metadata={"name": "x", "annotations": annotations}, spec=spec),
            [
                "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; "
                'use "storageClassName" attribute instead',
                "metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since v1.31; "
                'use "mountOptions" attribute instead',
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the "
                "recommended approach is to use dynamic provisioning.",
                f'{where}: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead',
                "spec.storageOS: deprecated in v1.22, non-functional in v1.25+",
                "spec.rbd: deprecated in v1.28, non-functional in v1.31+",
            ],
        )


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
ANNOTATION = "volume.beta.kubernetes.io/storage-class"


class ClaimTests(SynchronousTestCase):
    """Claims of persistent volumes."""

    def change(self, old: dict[str, Any], new: dict[str, Any], status: dict[str, Any] | None = None) -> list[str]:
        """The problems of a change of a claim with a status, of metadata and spec."""
        objects = []
        for parts in (old, new):
            metadata = {"name": "x", "namespace": "ns", "annotations": parts.get("annotations", {})}
            spec = {**CLAIM, **{name: part for name, part in parts.items() if name != "annotations"}}
            obj = made("", "PersistentVolumeClaim", metadata=metadata, spec=spec)
            obj["status"] = status or {"phase": "Pending"}
            objects.append(obj)
        causes = strategy_for("", "PersistentVolumeClaim").validate_update(objects[1], objects[0])
        return [str(cause).partition("\n")[0] for cause in causes]

    def test_other_namespaces(self) -> None:
        """Data do not come from elsewhere, unless they already do."""
        strategy = strategy_for("", "PersistentVolumeClaim")
        reference = {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "other"}
        self.assertNotIn("dataSourceRef", made("", "PersistentVolumeClaim", spec={"dataSourceRef": reference})["spec"])
        old = made("", "PersistentVolumeClaim", spec=CLAIM)
        old["spec"]["dataSourceRef"] = reference
        new = copy(old)
        strategy.prepare_for_update(new, copy(old))
        self.assertEqual(new["spec"]["dataSourceRef"], reference)
        new["spec"]["dataSource"] = {"kind": "PersistentVolumeClaim", "name": "a"}
        new["spec"]["dataSourceRef"]["namespace"] = "A"
        found = [str(cause) for cause in strategy.validate(new)]
        self.assertTrue(found[0].startswith('spec.dataSourceRef.namespace: Invalid value: "A": a lowercase'), found)
        self.assertEqual(
            found[1:], ["spec: Invalid value: {}: may not be specified when dataSourceRef.namespace is specified"]
        )

    def test_garbage(self) -> None:
        """The older field for data sources is for claims and snapshots; all else was never told of."""
        snapshot = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
        for source, kept in ((snapshot, True), ({**snapshot, "kind": "X"}, False), ({"kind": "Secret"}, False)):
            spec = made("", "PersistentVolumeClaim", spec={**CLAIM, "dataSource": source})["spec"]
            self.assertEqual(("dataSource" in spec, "dataSourceRef" in spec), (kept, kept), source)
        named = {"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "c", "namespace": ""}
        claim = made("", "PersistentVolumeClaim", spec={**CLAIM, "dataSourceRef": named})
        self.assertNotIn("namespace", claim["spec"]["dataSource"])
        both = {"dataSource": {"kind": "Secret"}, "dataSourceRef": {"kind": "Secret"}}
        self.assertIn("dataSource", made("", "PersistentVolumeClaim", spec={**CLAIM, **both})["spec"])

    def test_let_through(self) -> None:
        """What an older server let through may stay."""
        selector = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}
        source = {"apiGroup": "A B", "kind": "K", "name": "n"}
        old = {"selector": selector, "dataSource": source, "dataSourceRef": source}
        self.assertEqual(self.change(old, old), [])
        self.assertEqual(len(self.change({"dataSourceRef": {**source, "apiGroup": "a"}}, old)), 2)

    def test_told_once(self) -> None:
        """What is wrong with the new claim by itself is told before what may not change."""
        found = self.change({}, {"accessModes": []})
        self.assertEqual(found[0], "spec.accessModes: Required value: at least 1 access mode is required")
        self.assertTrue(found[1].startswith("spec: Forbidden: spec is immutable"), found)

    def test_fractions(self) -> None:
        """Parts of a byte are warned of in requests and in limits."""
        amounts = {"requests": {"storage": "1500m"}, "limits": {"storage": "2500m", "cpu": "100m"}}
        found = told("", "PersistentVolumeClaim", spec={**CLAIM, "resources": amounts})
        self.assertEqual(
            found,
            [
                f'spec.resources.{part}[storage]: fractional byte value "{amount}" is invalid, must be an integer'
                for part, amount in (("requests", "1500m"), ("limits", "2500m"))
            ],
        )

    def test_modes(self) -> None:
        """A mode that is none is no other mode beside the one for a single pod."""
        found = problems("", "PersistentVolumeClaim", spec={**CLAIM, "accessModes": ["ReadWriteOncePod", "x"]})
        self.assertEqual([text.partition(": ")[2][:17] for text in found], ["Unsupported value"])

    def test_thousandths(self) -> None:
        """Nothing is counted in less than thousandths, wherever it stands."""
        amounts = {"storage": "100u"}
        claim = made("", "PersistentVolumeClaim", spec={**CLAIM, "resources": {"requests": dict(amounts)}})
        self.assertEqual(claim["spec"]["resources"]["requests"], {"storage": "1m"})
        volume = made("", "PersistentVolume", spec={"capacity": dict(amounts)})
        self.assertEqual(volume["spec"]["capacity"], {"storage": "1m"})
        quota = made("", "ResourceQuota", spec={"hard": dict(amounts)})
        self.assertEqual(quota["spec"]["hard"], {"storage": "1m"})
        ranges = made("", "LimitRange", spec={"limits": [{"type": "Pod", "min": dict(amounts)}]})
        self.assertEqual(ranges["spec"]["limits"][0]["min"], {"storage": "1m"})
        node = made("", "Node", status={"capacity": dict(amounts)})
        self.assertEqual(node["status"]["allocatable"], {"storage": "1m"})
        pod = made(
            "", "Pod", spec={"containers": [], "overhead": {"cpu": "1n"}, "resources": {"limits": {"cpu": "1n"}}}
        )
        self.assertEqual((pod["spec"]["overhead"], pod["spec"]["resources"]["limits"]), ({"cpu": "1m"},) * 2)

    def test_class(self) -> None:
        """A class by annotation stays, but may move into the field; a claim without a class may get one."""
        slow = {"annotations": {ANNOTATION: "slow"}}
        self.assertEqual(self.change({}, {"storageClassName": "fast"}), [])
        self.assertEqual(self.change(slow, {"storageClassName": "slow"}), [])
        self.assertEqual(self.change(slow, {**slow, "storageClassName": "slow"}), [])
        stays = f'metadata.annotations.{ANNOTATION}: Invalid value: "": field is immutable'
        self.assertEqual(self.change(slow, {}), [stays])
        found = self.change(slow, {**slow, "storageClassName": "fast"})
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("spec: Forbidden: spec is immutable after creation"), found)

    def test_attributes(self) -> None:
        """Bound claims change their attributes, and give up what was not given to them."""
        gold: dict[str, Any] = {"volumeAttributesClassName": "gold"}
        bound = {"phase": "Bound", "currentVolumeAttributesClassName": "gold"}
        self.assertEqual(self.change(gold, {"volumeAttributesClassName": "tin"}, bound), [])
        self.assertEqual(self.change(gold, {}, {"phase": "Bound"}), [])
        self.assertEqual(len(self.change(gold, {})), 1)
        where, when = "spec.volumeAttributesClassName: Forbidden: update to", "status.currentVolumeAttributesClassName"
        for new, what in (({}, "nil"), ({"volumeAttributesClassName": ""}, "empty string")):
            self.assertEqual(
                self.change(gold, new, bound), [f"{where} {what} is forbidden when {when} is not nil"], what
            )

    def test_status(self) -> None:
        """Nobody asks whether what was given is whole; a bad word is told of whatever it is about."""
        given = {"example.com/iops": "1500m"}
        claim = {"spec": CLAIM, "status": {"allocatedResources": given, "allocatedResourceStatuses": {"cpu": "Odd"}}}
        found = [str(cause) for cause in validate_claim_status_update(claim, claim)]
        self.assertEqual([one.partition(":")[0] for one in found], ["status.allocatedResourceStatuses"] * 2)

    def test_warnings(self) -> None:
        """The class by annotation is on its way out."""
        metadata = {"name": "x", "namespace": "ns", "annotations": {ANNOTATION: "slow"}}
        self.assertEqual(
            told("", "PersistentVolumeClaim", metadata=metadata, spec=CLAIM),
            [f'metadata.annotations[{ANNOTATION}]: deprecated since v1.8; use "storageClassName" attribute instead'],
        )


class ServiceTests(SynchronousTestCase):
    """Services, their addresses and what changes of them."""

    def service(self, **spec: Any) -> list[str]:
        """The problems of a service with this spec."""
        return problems("", "Service", spec={"ports": [{"port": 80}], **spec})

    def change(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        """The problems of a change of a service."""
        objects = []
        for spec in (old, new):
            parts = {"spec": {"ports": [{"port": 80}], **{k: v for k, v in spec.items() if k != "annotations"}}}
            metadata = {"name": "x", "namespace": "ns", "annotations": spec.get("annotations", {})}
            objects.append({**parts, "metadata": metadata})
        return change_problems("", "Service", objects[0], objects[1])

    def test_addresses_first(self) -> None:
        """Wrong addresses are all that the client is told of."""
        self.assertEqual(
            self.service(ports=[], clusterIP="10.0.0.4", clusterIPs=["10.0.0.5"]),
            ['spec.clusterIPs: Invalid value: ["10.0.0.5"]: first value must match `clusterIP`'],
        )

    def test_addresses(self) -> None:
        """Families are looked at when all addresses are some."""
        many = ["10.0.0.4", "x", "10.0.0.5"]
        found = self.service(clusterIP="10.0.0.4", clusterIPs=many, ipFamilies=["IPv6"])
        self.assertEqual([one.partition(":")[0] for one in found], ["spec.clusterIPs[1]", "spec.clusterIPs"])
        self.assertIn("may only hold up to 2 values", found[1])
        found = self.service(clusterIP="10.0.0.4", clusterIPs=["10.0.0.4", "10.0.0.5"], ipFamilies=["IPv6"])
        self.assertIn("may specify no more than one IP for each IP family", found[0])
        self.assertIn("expected an IPv6 value as indicated by `ipFamilies[0]`", found[1])
        self.assertIn('Unsupported value: "": supported values', self.service(ipFamilyPolicy="")[0])

    def test_second_address(self) -> None:
        """The second address and family may come, and go on request."""
        one = {"clusterIP": "10.0.0.4", "clusterIPs": ["10.0.0.4"], "ipFamilies": ["IPv4"]}
        two = {**one, "clusterIPs": ["10.0.0.4", "fd00::4"], "ipFamilies": ["IPv4", "IPv6"]}
        self.assertEqual(self.change(one, {**two, "ipFamilyPolicy": "PreferDualStack"}), [])
        self.assertEqual(self.change(two, {**one, "ipFamilyPolicy": "SingleStack"}), [])
        other = {"clusterIP": "fd00::4", "clusterIPs": ["fd00::4"], "ipFamilies": ["IPv6"]}
        found = self.change({**two, "ipFamilyPolicy": "SingleStack"}, {**other, "ipFamilyPolicy": "SingleStack"})
        self.assertEqual(
            found,
            [
                'spec.clusterIPs[0]: Invalid value: ["fd00::4"]: may not change once set',
                'spec.ipFamilies[0]: Invalid value: ["fd00::4"]: may not change once set',
            ],
        )
        self.assertEqual(
            self.change(one, other),
            [
                'spec.clusterIPs[0]: Invalid value: ["fd00::4"]: may not change once set',
                'spec.ipFamilies[0]: Invalid value: ["IPv6"]: may not change once set',
            ],
        )

    def test_headless_families(self) -> None:
        """A headless service may have other families, and one that is not has addresses."""
        headless = {"clusterIP": "None", "clusterIPs": ["None"], "ipFamilies": ["IPv4"]}
        self.assertEqual(self.change(headless, {**headless, "ipFamilies": ["IPv6"]}), [])
        held = {"clusterIP": "10.0.0.4", "clusterIPs": ["10.0.0.4"], "ipFamilies": ["IPv4"]}
        self.assertEqual(
            self.change(held, {}),
            [
                "spec.clusterIPs[0]: Invalid value: null: primary clusterIP can not be unset",
                "spec.ipFamilies[0]: Invalid value: null: primary ipFamily can not be unset",
            ],
        )

    def test_health_port(self) -> None:
        """Where balancers ask for health stays."""
        local = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
        self.assertEqual(
            self.change({**local, "healthCheckNodePort": 30001}, {**local, "healthCheckNodePort": 30002}),
            ["spec.healthCheckNodePort: Forbidden: field is immutable"],
        )
        cluster = {**local, "externalTrafficPolicy": "Cluster"}
        self.assertEqual(self.change(cluster, {**local, "healthCheckNodePort": 30002}), [])

    def test_node_ports(self) -> None:
        """A node port belongs to one port per protocol."""
        ports = [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30001}]
        spec = {"type": "NodePort", "ports": ports}
        self.assertEqual(self.change(spec, spec), ["spec.ports[1].nodePort: Duplicate value: 30001"])
        self.assertEqual(self.service(**spec), ["spec.ports[1].nodePort: Duplicate value: 30001"])
        ports[1]["protocol"] = "UDP"
        self.assertEqual(self.service(**spec), [])

    def test_class(self) -> None:
        """The class of a balancer has a proper name where there is one, of which updates tell twice."""
        balancer = {"type": "LoadBalancer", "loadBalancerClass": "a b"}
        self.assertEqual(
            self.service(loadBalancerClass="a b"),
            ["spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"],
        )
        self.assertEqual(len(self.service(**balancer)), 1)
        self.assertEqual(len(self.change(balancer, balancer)), 2)

    def test_external_addresses(self) -> None:
        """New addresses are ones that everybody reads alike; old ones may stay."""
        self.assertEqual(
            self.service(externalIPs=["192.0.2.01"]),
            ['spec.externalIPs[0]: Invalid value: "192.0.2.01": must not have leading 0s'],
        )
        odd = {"externalIPs": ["192.0.2.01"]}
        self.assertEqual(self.change(odd, odd), [])
        held = {"clusterIP": "10.0.0.04", "clusterIPs": ["10.0.0.04"]}
        self.assertEqual(self.change(held, held), [])
        ranges = {"type": "LoadBalancer", "loadBalancerSourceRanges": [" 10.0.0.1/8"]}
        self.assertEqual(self.change(ranges, ranges), [])
        self.assertEqual(len(self.service(**ranges)), 1)
        annotations = {"service.beta.kubernetes.io/load-balancer-source-ranges": "junk"}
        told_by = {"type": "LoadBalancer", "annotations": annotations}
        self.assertEqual(self.change(told_by, told_by), [])
        self.assertEqual(len(self.change({"type": "LoadBalancer"}, told_by)), 1)

    def test_balancer(self) -> None:
        """So may those of a balancer, and an address is no name, however it is written."""
        old = made("", "Service", spec={"type": "LoadBalancer", "ports": [{"port": 80}]})
        old["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.01", "ipMode": "VIP"}]}}
        self.assertEqual(status_problems("", "Service", old, old), [])
        new = copy(old)
        new["status"]["loadBalancer"]["ingress"].append({"ip": "192.0.2.02", "ipMode": "VIP", "hostname": "1.2.3.04"})
        path = "status.loadBalancer.ingress[1]"
        self.assertEqual(
            status_problems("", "Service", old, new),
            [
                f'{path}.ip: Invalid value: "192.0.2.02": must not have leading 0s',
                f'{path}.hostname: Invalid value: "1.2.3.04": must be a DNS name, not an IP address',
            ],
        )

    def test_traffic(self) -> None:
        """Where traffic goes is told in known words, of names of other services too."""
        self.assertEqual(
            self.service(trafficDistribution="Near"),
            [
                'spec.trafficDistribution: Unsupported value: "Near": supported values: "PreferClose", '
                '"PreferSameZone", "PreferSameNode"'
            ],
        )
        name = {"type": "ExternalName", "externalName": "a.b"}
        self.assertEqual(
            self.service(**name, internalTrafficPolicy="Far"),
            ['spec.internalTrafficPolicy: Unsupported value: "Far": supported values: "Cluster", "Local"'],
        )

    def test_name_left(self) -> None:
        """The name of a service that was another's stays when it gets addresses of its own."""
        old: dict[str, Any] = {"spec": {"type": "ExternalName", "externalName": "a.b"}}
        new: dict[str, Any] = {"spec": {"type": "ClusterIP", "externalName": "a.b"}}
        drop_type_dependent_fields(new, old)
        self.assertEqual(new["spec"]["externalName"], "a.b")

    def test_topology(self) -> None:
        """The two names of one annotation agree."""
        hints, mode = (f"service.kubernetes.io/topology-{name}" for name in ("aware-hints", "mode"))
        metadata = {"name": "x", "namespace": "ns", "annotations": {hints: "Auto", mode: "Off"}}
        spec = {"ports": [{"port": 80}]}
        self.assertEqual(
            problems("", "Service", metadata=metadata, spec=spec),
            [
                f'metadata.annotations[{mode}]: Invalid value: "Off": '
                f"must match annotations[{hints}] when both are specified"
            ],
        )
        text = f"annotation {hints} is deprecated, please use {mode} instead"
        self.assertEqual(told("", "Service", metadata=metadata, spec=spec), [text])

    def test_warnings(self) -> None:
        """Clients are told of what has no effect, or is not written as it should be."""
        ranges = ["192.012.2.8/24", "2001:db8:0:0::/64", "::ffff:192.12.2.0/120", "10.0.0.0/8", "junk"]
        spec = {
            "clusterIP": "2001:db8:0::2",
            "clusterIPs": ["2001:db8:0::2"],
            "externalIPs": ["192.0.2.01"],
            "loadBalancerIP": "192.0.2.02",
            "loadBalancerSourceRanges": ranges,
            "externalName": "a.b",
            "trafficDistribution": "PreferClose",
        }
        path, later = "spec.loadBalancerSourceRanges", "is invalid: use"
        self.assertEqual(
            told("", "Service", spec=spec),
            [
                'spec.clusterIPs[0]: IPv6 address "2001:db8:0::2" should be in RFC 5952 canonical format '
                '("2001:db8::2")',
                f'spec.externalIPs[0]: non-standard IP address "192.0.2.01" {later} "192.0.2.1"',
                "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
                f'spec.loadBalancerIP: non-standard IP address "192.0.2.02" {later} "192.0.2.2"',
                f'{path}[0]: CIDR value "192.012.2.8/24" is ambiguous in this context '
                '(should be "192.12.2.0/24" or "192.12.2.8/32"?)',
                f'{path}[0]: non-standard CIDR value "192.012.2.8/24" {later} "192.12.2.0/24"',
                f'{path}[1]: IPv6 CIDR value "2001:db8:0:0::/64" should be in RFC 5952 canonical format '
                '("2001:db8::/64")',
                f'{path}[2]: non-standard CIDR value "::ffff:192.12.2.0/120" {later} "192.12.2.0/24"',
                'spec.externalName is ignored when spec.type is not "ExternalName"',
                'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
            ],
        )
        old = "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
        self.assertEqual(told("", "Service", spec={"externalIPs": ["192.0.2.1"]}), [old])
        name = {"type": "ExternalName", "externalName": "a.b", "externalIPs": ["192.0.2.1"]}
        text = 'spec.externalIPs is ignored when spec.type is "ExternalName"'
        self.assertEqual(told("", "Service", spec=name), [text])


class EndpointTests(SynchronousTestCase):
    """Endpoints and EndpointSlices."""

    def test_let_through(self) -> None:
        """Endpoints that an older server let through may stay, as long as none changes."""
        old: dict[str, Any] = {"subsets": [{}]}
        self.assertEqual(change_problems("", "Endpoints", old, old), [])
        self.assertEqual(len(change_problems("", "Endpoints", old, {"subsets": [{}, {}]})), 2)

    def test_too_many(self) -> None:
        """Where there are too many of anything, nobody looks on."""

        def found(**parts: Any) -> list[str]:
            return problems("discovery.k8s.io", "EndpointSlice", addressType="IPv4", **parts)

        self.assertEqual(found(endpoints=[{}] * 1001), ["endpoints: Too many: 1001: must have at most 1000 items"])
        self.assertEqual(
            found(ports=[{"protocol": "X"}] * 20001), ["ports: Too many: 20001: must have at most 20000 items"]
        )
        names = [{"name": "a"}] * 9
        hints = {"forZones": names, "forNodes": names}
        self.assertEqual(
            found(endpoints=[{"addresses": ["192.0.2.1"], "hints": hints}]),
            ["endpoints[0].hints.forZones: Too many: 9: must have at most 8 items"],
        )

    def test_domains(self) -> None:
        """Names of hosts have a domain, which may end with a dot."""

        def found(*addresses: str) -> list[str]:
            endpoints = [{"addresses": list(addresses)}]
            return problems("discovery.k8s.io", "EndpointSlice", addressType="FQDN", endpoints=endpoints)

        self.assertEqual(found("a.b", "a.b."), [])
        path = "endpoints[0].addresses[0]"
        segments = "should be a domain with at least two segments separated by dots"
        self.assertEqual(found("host"), [f'{path}: Invalid value: "host": {segments}'])
        self.assertEqual(found(""), [f"{path}: Required value"])
        self.assertTrue(found("A.b")[0].startswith(f'{path}: Invalid value: "A.b": a lowercase RFC 1123 subdomain'))
        self.assertTrue(found("a." + "b" * 64)[0].startswith(f'{path}: Invalid value: "bbb'))

    def test_slices_that_change(self) -> None:
        """All is looked at, but for endpoints that stay."""
        old = {"addressType": "IPv4", "endpoints": [{"addresses": ["bad"]}]}
        self.assertEqual(change_problems("discovery.k8s.io", "EndpointSlice", old, old), [])
        found = change_problems("discovery.k8s.io", "EndpointSlice", old, {**old, "addressType": "x"})
        self.assertEqual(
            [text[:32] for text in found], ["addressType: Unsupported value: ", 'addressType: Invalid value: "x":']
        )
        other = {"addressType": "IPv6", "endpoints": [{"addresses": ["192.0.2.1"]}]}
        found = change_problems("discovery.k8s.io", "EndpointSlice", old, other)
        self.assertEqual([text.partition(":")[0] for text in found], ["endpoints[0].addresses", "addressType"])

    def test_hinted_nodes(self) -> None:
        """Nodes have longer names than zones."""
        long = "a" * 100
        hints = {"forZones": [{"name": long}], "forNodes": [{"name": long}, {"name": "A"}]}
        endpoint = {"addresses": ["192.0.2.1"], "hints": hints}
        found = problems("discovery.k8s.io", "EndpointSlice", addressType="IPv4", endpoints=[endpoint])
        self.assertEqual(
            [one.partition(":")[0] for one in found],
            ["endpoints[0].hints.forZones[0].name", "endpoints[0].hints.forNodes[1].name"],
        )


class MetadataTests(SynchronousTestCase):
    """How often the metadata of updates are looked at."""

    def test_update(self) -> None:
        """The registry looks at it in two ways, and the kinds once, twice or three times more."""
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
            causes = update_causes(new, old, True, strategy.name_problems, rules=strategy.metadata_update_rules)
            self.assertEqual([cause.field for cause in causes], ["metadata.labels"] * times, kind)

    def test_generated_names(self) -> None:
        """Kinds that look at their changes as new objects look at what a name could be made from."""
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
            causes = update_causes(new, old, False, strategy.name_problems, rules=strategy.metadata_update_rules)
            self.assertEqual([cause.field for cause in causes], ["metadata.generateName"] * times, kind)

    def test_finalizers(self) -> None:
        """Some kinds take any finalizer."""
        for group, kind, standard in (
            ("coordination.k8s.io", "Lease", False),
            ("node.k8s.io", "RuntimeClass", False),
            ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", False),
            ("storage.k8s.io", "CSINode", True),
        ):
            self.assertEqual(strategy_for(group, kind).standard_finalizers, standard, kind)

    def test_names_in_order(self) -> None:
        """What a name should be is told with the name, before labels."""
        strategy = strategy_for("apiregistration.k8s.io", "APIService")
        obj = {"metadata": {"name": "x", "labels": {"a b": ""}}, "spec": {"version": "v1", "group": "g"}}
        causes = creation_causes(obj["metadata"], False, strategy.names_for(obj))
        self.assertEqual([cause.field for cause in causes], ["metadata.name", "metadata.labels"])

    def test_status(self) -> None:
        """Most kinds compare the metadata of a status that is written, some do not look at all."""
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
        """Some kinds leave metadata to the registry, which is not asked when they have found something."""
        for group, kind, told in (
            ("", "Event", False),
            ("events.k8s.io", "Event", True),
            ("policy", "PodDisruptionBudget", False),
        ):
            self.assertEqual(strategy_for(group, kind).checks_metadata, told, kind)


class AccountTests(SynchronousTestCase):
    """ServiceAccounts."""

    def test_secrets(self) -> None:
        """Of secrets, only the name stays."""
        strategy = strategy_for("", "ServiceAccount")
        written = {"secrets": [{"name": "a", "namespace": "other", "kind": "Secret"}, {"kind": "Secret"}]}
        account = made("", "ServiceAccount", **written)
        self.assertEqual(account["secrets"], [{"name": "a"}, {}])
        changed = {**account, **copy(written)}
        strategy.prepare_for_update(changed, account)
        self.assertEqual(changed["secrets"], [{"name": "a"}, {}])


class FinalizeTests(SynchronousTestCase):
    """C{namespaces/finalize}."""

    def test_finalizers(self) -> None:
        """It tells which finalizer is wrong; the creation of a namespace does not."""
        obj = {"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes", "bare"]}}
        text = 'Invalid value: "bare": name is neither a standard finalizer name nor is it fully qualified'
        self.assertEqual([str(one) for one in validate_namespace_finalize(obj)], [f"spec.finalizers[1]: {text}"])
        self.assertEqual([str(one) for one in validate_namespace(obj)], [f"spec.finalizers: {text}"])
