"""Objects that pods and persistent volumes refer to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ....api.podspecs import containers
from ....api.resource import JSONObject

#: The annotation of mirror pods, which a kubelet creates for its static pods.
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"

#: Sources of volumes that name a secret, and the field with a reference to it.
_WITH_SECRET: Final = (
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("flexVolume", "secretRef"),
    ("rbd", "secretRef"),
    ("scaleIO", "secretRef"),
    ("iscsi", "secretRef"),
    ("storageos", "secretRef"),
    ("csi", "nodePublishSecretRef"),
)
#: The same for PersistentVolumes, only of the secrets that kubelets use.
_VOLUME_SECRETS: Final = {
    "cephfs": ("secretRef",),
    "cinder": ("secretRef",),
    "flexVolume": ("secretRef",),
    "rbd": ("secretRef",),
    "scaleIO": ("secretRef",),
    "iscsi": ("secretRef",),
    "storageos": ("secretRef",),
    "csi": ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"),
}
#: Volume types whose secret reference needs a namespace; the default for other types is the namespace of the claim.
_OWN_NAMESPACE: Final = frozenset(("cinder", "storageos", "csi"))

#: Volume sources that refer to an object, with the resource of the object.
_OBJECT_VOLUMES: Final = (
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
)
_OBJECT_PROJECTIONS: Final = (
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
)


def secret_names(pod: JSONObject) -> Iterator[str]:
    """Return the names of the secrets that a pod refers to, in its namespace; names may be repeated."""
    spec = pod.get("spec") or {}
    for reference in spec.get("imagePullSecrets") or ():
        yield from _name(reference)
    yield from _from_containers(spec, "secretRef", "secretKeyRef")
    for volume in spec.get("volumes") or ():
        secret = volume.get("secret")
        if secret and secret.get("secretName"):
            yield secret["secretName"]
        for source in _projections(volume):
            yield from _name(source.get("secret"))
        azure = volume.get("azureFile")
        if azure and azure.get("secretName"):
            yield azure["secretName"]
        for kind, field in _WITH_SECRET:
            yield from _name((volume.get(kind) or {}).get(field))


def config_map_names(pod: JSONObject) -> Iterator[str]:
    """Return the names of the ConfigMaps that a pod refers to, in its namespace; names may be repeated."""
    spec = pod.get("spec") or {}
    yield from _from_containers(spec, "configMapRef", "configMapKeyRef")
    for volume in spec.get("volumes") or ():
        yield from _name(volume.get("configMap"))
        for source in _projections(volume):
            yield from _name(source.get("configMap"))


def claim_names(pod: JSONObject) -> Iterator[str]:
    """Return the names of the PersistentVolumeClaims of a pod, including those of ephemeral volumes."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        claim = claim_of(pod, volume)
        if claim:
            yield claim


def claim_of(pod: JSONObject, volume: JSONObject) -> str:
    """Return the name of the PersistentVolumeClaim of a volume; C{""} if it has none."""
    if volume.get("persistentVolumeClaim") is not None:
        name: str = volume["persistentVolumeClaim"].get("claimName", "")
        return name
    if volume.get("ephemeral") is not None:
        return f"{pod['metadata']['name']}-{volume['name']}"
    return ""


def resource_claim_names(pod: JSONObject) -> Iterator[str]:
    """Return the names of the ResourceClaims of a pod; those from templates are read from its status."""
    status = pod.get("status") or {}
    generated = {
        claim_status.get("name"): claim_status.get("resourceClaimName")
        for claim_status in status.get("resourceClaimStatuses") or ()
    }
    for claim in (pod.get("spec") or {}).get("resourceClaims") or ():
        name = claim.get("resourceClaimName")
        if not name and claim.get("resourceClaimTemplateName"):
            name = generated.get(claim.get("name"))
        if name:
            yield name
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    if extended:
        yield extended


def object_reference(pod: JSONObject) -> str:
    """
    Return the resource of the first object that a pod refers to; C{""} if there is none.

    @see: kubernetes, C{HasAPIObjectReference} in C{pkg/api/pod/util.go}.
    """
    spec = pod.get("spec") or {}
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    if next(secret_names(pod), None):
        return "secrets"
    if next(config_map_names(pod), None):
        return "configmaps"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    for volume in spec.get("volumes") or ():
        for field, resource in _OBJECT_VOLUMES:
            if volume.get(field) is not None:
                return resource
        for source in _projections(volume):
            for field, resource in _OBJECT_PROJECTIONS:
                if source.get(field) is not None:
                    return resource
    return ""


def volume_secrets(volume: JSONObject) -> Iterator[tuple[str, str]]:
    """Return the secrets, by namespace and name, that a kubelet needs for a bound PersistentVolume."""
    spec = volume.get("spec") or {}
    claim_namespace = (spec.get("claimRef") or {}).get("namespace", "")
    azure = spec.get("azureFile")
    if azure and azure.get("secretName"):
        yield azure.get("secretNamespace") or claim_namespace, azure["secretName"]
    for source, fields in _VOLUME_SECRETS.items():
        for field in fields:
            reference = (spec.get(source) or {}).get(field)
            if reference and reference.get("name"):
                default = "" if source in _OWN_NAMESPACE else claim_namespace
                yield reference.get("namespace") or default, reference["name"]


def _from_containers(spec: JSONObject, whole: str, key: str) -> Iterator[str]:
    for container, _, _ in containers(spec):
        for source in container.get("envFrom") or ():
            yield from _name(source.get(whole))
        for variable in container.get("env") or ():
            yield from _name((variable.get("valueFrom") or {}).get(key))


def _projections(volume: JSONObject) -> Iterator[JSONObject]:
    yield from (volume.get("projected") or {}).get("sources") or ()


def _name(reference: JSONObject | None) -> Iterator[str]:
    if reference and reference.get("name"):
        yield reference["name"]
