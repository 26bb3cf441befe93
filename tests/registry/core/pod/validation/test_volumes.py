"""Tests of L{kubetwist.registry.core.pod.validation.volumes}, through the strategy of pods."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.strategies import strategy_for
from tests.registry.pods import (
    in_volume,
    pod,
    problems,
)


class VolumeTests(SynchronousTestCase):
    """Tests of rare volume sources."""

    def test_claims_to_be_made(self) -> None:
        """A claim that is generated for an ephemeral volume cannot be referred to by another."""
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
        volumes = [
            {"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "x-a"}},
        ]
        self.assertEqual(
            problems(volumes=volumes),
            [
                'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "x-a": '
                "must not reference a PVC that gets created for an ephemeral volume"
            ],
        )
        metadata = {"name": "n", "labels": {"a b": ""}, "annotations": {"c d": ""}}
        volumes[0]["ephemeral"] = {"volumeClaimTemplate": {"metadata": metadata, "spec": spec}}
        found = problems(volumes=volumes[:1])
        self.assertEqual(
            [one.partition(": ")[0].rpartition("metadata.")[2] for one in found], ["annotations", "labels", "name"]
        )
        self.assertTrue(found[2].endswith("Forbidden: cannot be set"))

    def test_paths(self) -> None:
        """Some field paths differ from the names of fields, as in the reference."""
        self.assertEqual(in_volume(gcePersistentDisk={}), ["persistentDisk.pdName: Required value"])
        found = in_volume(emptyDir={}, cephfs={"monitors": ["a"]}, downwardAPI={})
        self.assertEqual([one.partition(":")[0] for one in found], ["cephFS", "downwarAPI"])

    def test_projected(self) -> None:
        """Projected files have unique paths; each source has one type."""
        item = [{"key": "k", "path": "p"}]
        sources = [
            {"secret": {"name": "s", "items": item}, "configMap": {"name": "m", "items": item}},
            {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"serviceAccountToken": {"path": "p"}},
            {"serviceAccountToken": {"path": "/q", "expirationSeconds": 0}},
        ]
        self.assertEqual(
            in_volume(projected={"sources": sources}),
            [
                'projected: Invalid value: "m": conflicting duplicate paths',
                "projected.sources[0]: Forbidden: may not specify more than 1 volume type per source",
                'projected: Invalid value: "p": conflicting duplicate paths',
                "projected.sources[3].serviceAccountToken.expirationSeconds: Invalid value: 0: "
                "may not specify a duration less than 10 minutes",
                'projected.path: Invalid value: "/q": must be a relative path',
            ],
        )

    def test_pod_certificates(self) -> None:
        """A projected certificate has a key type, a lifetime and files, if the gate is enabled."""

        def in_volume(**source: Any) -> list[str]:
            strategy = strategy_for("", "Pod").with_features(FeatureGates(settings={"PodCertificateRequest": True}))
            obj = pod(serviceAccountName="a")
            obj["spec"]["volumes"] = [{"name": "v", **source}]
            strategy.default(obj)
            strategy.prepare_for_create(obj)
            return [str(one).removeprefix("spec.volumes[0].") for one in strategy.validate(obj)]

        def with_certificate(**source: Any) -> list[str]:
            found = in_volume(projected={"sources": [{"podCertificate": source}]})
            return [one.removeprefix("projected.sources[0].podCertificate") for one in found]

        good = {"signerName": "example.com/a", "keyType": "ED25519", "keyPath": "k"}
        self.assertEqual(with_certificate(**good), [])
        self.assertEqual(
            with_certificate(),
            [
                ".signerName: Required value",
                '.keyType: Unsupported value: "": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", '
                '"ECDSAP521", "ED25519"',
                ": Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath",
            ],
        )
        for seconds, signer, limit in (
            (3599, "example.com/a", ">= 3600"),
            (7862401, "example.com/a", "<= 7862400"),
            (86401, "kubernetes.io/a", "<= 86400"),
        ):
            self.assertEqual(
                with_certificate(**{**good, "signerName": signer, "maxExpirationSeconds": seconds}),
                [f".maxExpirationSeconds: Invalid value: {seconds}: if provided, maxExpirationSeconds must be {limit}"],
            )
        self.assertEqual(
            in_volume(projected={"sources": [{"podCertificate": {**good, "certificateChainPath": "k"}}]}),
            ['projected: Invalid value: "k": conflicting duplicate paths'],
        )

    def test_rare_sources(self) -> None:
        """Required fields of rare sources are reported."""
        long = "a" * 65
        for source, wrong in (
            ({"nfs": {"server": "s"}}, ["nfs.path", "nfs.path"]),
            (
                {"iscsi": {"targetPortal": "p", "iqn": "iqn.odd", "chapAuthSession": True}},
                ["iscsi.iqn", "iscsi.secretRef"],
            ),
            (
                {"iscsi": {"targetPortal": long, "iqn": "iqn.2001-04.com.example:d", "initiatorName": "odd"}},
                ["iscsi.initiatorname", "name"],
            ),
            ({"fc": {"targetWWNs": ["a"], "wwids": ["b"], "lun": 1}}, ["fc.targetWWNs"]),
            ({"quobyte": {"registry": "a,b:1,c", "volume": "v"}}, ["quobyte.registry", "quobyte.registry"]),
            ({"quobyte": {"registry": "[::1]:1", "volume": "v", "tenant": long}}, ["quobyte.tenant"]),
            ({"flocker": {}}, ["flocker"]),
            ({"flocker": {"datasetName": "a/b", "datasetUUID": "u"}}, ["flocker", "flocker.datasetName"]),
            ({"cinder": {"volumeID": "i", "secretRef": {}}}, ["cinder.secretRef.name"]),
            (
                {"storageos": {"volumeName": "A", "volumeNamespace": "B", "secretRef": {}}},
                ["storageos.volumeName", "storageos.volumeNamespace", "storageos.secretRef.name"],
            ),
            (
                {"flexVolume": {"driver": "d", "options": {"a.K8s.io/b": "", "kubernetes.io": "", "c": ""}}},
                ["flexVolume.options[a.K8s.io/b]", "flexVolume.options[kubernetes.io]"],
            ),
            ({"azureDisk": {"diskName": "d"}}, ["azureDisk.diskURI", "azureDisk.diskURI"]),
            ({"azureDisk": {"diskName": "d", "diskURI": "https:x"}}, ["azureDisk.diskURI"]),
        ):
            self.assertEqual([one.partition(": ")[0] for one in in_volume(**source)], wrong)
