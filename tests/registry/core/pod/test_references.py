"""Tests of L{kubetwist.registry.core.pod.references}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.pod.references import (
    claim_names,
    config_map_names,
    object_reference,
    resource_claim_names,
    secret_names,
    volume_secrets,
)


def pod(**spec: Any) -> dict[str, Any]:
    """Return a pod."""
    return {"metadata": {"name": "p"}, "spec": spec}


class PodTests(SynchronousTestCase):
    """Tests of references of pods."""

    def test_containers(self) -> None:
        """Containers of all types refer to secrets and ConfigMaps in variables, as a whole or by key."""
        for field in ("containers", "initContainers", "ephemeralContainers"):
            one = {
                "envFrom": [{"secretRef": {"name": "s1"}}, {"configMapRef": {"name": "c1"}}],
                "env": [
                    {"valueFrom": {"secretKeyRef": {"name": "s2"}}},
                    {"valueFrom": {"configMapKeyRef": {"name": "c2"}}},
                    {"value": "x"},
                ],
            }
            named = pod(**{field: [one]})
            self.assertEqual((list(secret_names(named)), list(config_map_names(named))), (["s1", "s2"], ["c1", "c2"]))

    def test_volumes(self) -> None:
        """Volumes refer to secrets in many fields; a reference without a name is ignored."""
        volumes = [
            {"name": "a", "secret": {"secretName": "s1"}},
            {"name": "b", "projected": {"sources": [{"secret": {"name": "s2"}}, {"configMap": {"name": "c1"}}]}},
            {"name": "c", "azureFile": {"secretName": "s3"}},
            {"name": "d", "csi": {"nodePublishSecretRef": {"name": "s4"}}},
            {"name": "e", "rbd": {"secretRef": {"name": ""}}},
            {"name": "f", "configMap": {"name": "c2"}},
        ]
        named = pod(volumes=volumes, imagePullSecrets=[{"name": "s0"}, {}])
        self.assertEqual(list(secret_names(named)), ["s0", "s1", "s2", "s3", "s4"])
        self.assertEqual(list(config_map_names(named)), ["c1", "c2"])

    def test_claims(self) -> None:
        """The name of an ephemeral claim contains the pod's; resource claims are in the status."""
        volumes = [
            {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "b", "ephemeral": {}},
            {"name": "d", "emptyDir": {}},
        ]
        claims = [{"name": "x", "resourceClaimName": "r"}] + [
            {"name": name, "resourceClaimTemplateName": "t"} for name in ("y", "z")
        ]
        named = pod(volumes=volumes, resourceClaims=claims)
        self.assertEqual(list(claim_names(named)), ["c", "p-b"])
        self.assertEqual(list(resource_claim_names(named)), ["r"])
        named["status"] = {
            "resourceClaimStatuses": [{"name": "y", "resourceClaimName": "made"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "more"},
        }
        self.assertEqual(list(resource_claim_names(named)), ["r", "made", "more"])

    def test_first(self) -> None:
        """object_reference returns the first reference, if there is one."""
        token = {"name": "t", "projected": {"sources": [{"downwardAPI": {}}, {"serviceAccountToken": {}}]}}
        for spec, expected in (
            ({"volumes": [{"name": "e", "emptyDir": {}}]}, ""),
            ({"volumes": [token]}, "serviceaccounts (via projected volumes)"),
            ({"volumes": [{"name": "e", "ephemeral": {}}]}, "persistentvolumeclaims (via ephemeral volumes)"),
            ({"volumes": [token], "resourceClaims": [{"name": "r"}]}, "resourceclaims"),
            ({"volumes": [token], "imagePullSecrets": [{"name": "s"}]}, "secrets"),
            ({"serviceAccountName": "a", "imagePullSecrets": [{"name": "s"}]}, "serviceaccounts"),
        ):
            self.assertEqual(object_reference(pod(**spec)), expected, spec)


class VolumeTests(SynchronousTestCase):
    """Tests of L{volume_secrets}."""

    def test_namespaces(self) -> None:
        """The default namespace of a secret is that of the claim, for sources that allow it."""
        for source, expected in (
            ({"azureFile": {"secretName": "s"}}, [("ns", "s")]),
            ({"azureFile": {"secretName": "s", "secretNamespace": "o"}}, [("o", "s")]),
            ({"rbd": {"secretRef": {"name": "s"}}}, [("ns", "s")]),
            ({"cinder": {"secretRef": {"name": "s"}}}, [("", "s")]),
            ({"csi": {"controllerPublishSecretRef": {"name": "s", "namespace": "o"}}}, []),
            ({"csi": {"nodeStageSecretRef": {"name": "s", "namespace": "o"}}}, [("o", "s")]),
        ):
            volume = {"spec": {"claimRef": {"namespace": "ns"}, **source}}
            self.assertEqual(list(volume_secrets(volume)), expected, source)
