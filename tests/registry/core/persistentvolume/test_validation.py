"""Tests of L{kubetwist.registry.core.persistentvolume.validation}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import change_problems, problems, warnings_for

VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}


class VolumeTests(SynchronousTestCase):
    """Tests of PersistentVolumes."""

    def volume(self, **spec: Any) -> list[str]:
        """Return the validation errors of a volume with a spec."""
        return problems("", "PersistentVolume", spec={**VOLUME, **spec})

    def test_sources(self) -> None:
        """Sources of volumes have other rules than those of pods."""
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
        """All sources but the first are errors, in the order of the reference, which accepts one type."""
        found = self.volume(
            hostPath={"path": "/x"}, cephfs={}, flexVolume={"driver": "d"}, local={"path": "/x"}, storageos={}
        )
        text = "Forbidden: may not specify more than 1 volume type"
        self.assertEqual(found, [f"spec.{name}: {text}" for name in ("cephFS", "local", "storageos")])

    def test_iscsi(self) -> None:
        """Initiators and targets have names in one of three formats."""
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
        """References to secrets need a name and a namespace, except for staging."""
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
        """The capacity of any resource must be positive."""
        found = self.volume(hostPath={"path": "/x"}, capacity={"cpu": "-1"})
        self.assertEqual([one.partition(":")[0] for one in found], ["spec.capacity", *["spec.capacity[cpu]"] * 2])

    def test_local(self) -> None:
        """A node affinity without constraints is invalid."""
        self.assertEqual(
            self.volume(local={"path": "/x"}, nodeAffinity={}),
            ["spec.nodeAffinity.required: Required value: must specify required node constraints"],
        )

    def test_root(self) -> None:
        """The root directory of a host cannot be recycled, in any notation."""
        for path in ("/", "//", "/a/..", "/."):
            found = self.volume(hostPath={"path": path}, persistentVolumeReclaimPolicy="Recycle")
            message = "Forbidden: may not be 'recycle' for a hostPath mount of '/'"
            self.assertEqual(found[-1:], [f"spec.persistentVolumeReclaimPolicy: {message}"], path)

    def test_attributes(self) -> None:
        """Attributes classes are for CSI volumes only."""
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
        """The annotation with mount options is for network volumes."""
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
        """Return the validation errors of an update of a CSI volume."""
        csi = {"csi": {"driver": "d", "volumeHandle": "h"}}
        specs = [{"spec": {**VOLUME, **csi, **spec}} for spec in (old, new)]
        return change_problems("", "PersistentVolume", specs[0], specs[1])

    def test_affinity(self) -> None:
        """Only deprecated labels in the node affinity can be changed, to their new names."""

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
        """Attributes are immutable; errors of the new volume occur twice, and the error contains the difference."""
        self.assertEqual(
            self.change({"volumeAttributesClassName": "a"}, {}),
            ["spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden"],
        )
        self.assertEqual(self.change({}, {"accessModes": []}), ["spec.accessModes: Required value"] * 2)
        (found,) = self.change({}, {"csi": {"driver": "d", "volumeHandle": "other"}})
        self.assertLess(found.index('"VolumeHandle": "h"'), found.index('"VolumeHandle": "other"'))

    def test_warnings(self) -> None:
        """Deprecated fields and types cause warnings."""
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
            warnings_for("", "PersistentVolume", metadata={"name": "x", "annotations": annotations}, spec=spec),
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
