"""Gives every new pod a service account, that account's pull secrets, and a volume with its token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..admission.attributes import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.names import generate_name
from ..api.resource import GroupResource, JSONObject
from ..interfaces import IMutatingAdmission

#: Where containers find the token.
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME: Final = "kube-api-access-"
#: An hour and seven seconds: kubelets renew such tokens after some of that time.
_SECONDS: Final = 3607
_MIRROR: Final = "kubernetes.io/config.mirror"
_ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"


@implementer(IMutatingAdmission)
@frozen
class ServiceAccount:
    """See kubernetes, C{plugin/pkg/admission/serviceaccount/admission.go}."""

    name: ClassVar[str] = "ServiceAccount"

    def handles(self, operation: str) -> bool:
        """Creating; what an update may change does not concern the account."""
        return operation == "CREATE"

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        pod = attributes.object
        if attributes.resource != "pods" or attributes.group or attributes.subresource or pod is None:
            return
        spec = pod["spec"]
        if _MIRROR in (pod["metadata"].get("annotations") or {}):
            _check_mirror(spec, attributes)
            return
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec["serviceAccount"] = "default"
        name = spec["serviceAccountName"]
        account = attributes.context.lookup("", "serviceaccounts", attributes.namespace, name)
        if account is None:
            why = f'error looking up service account {attributes.namespace}/{name}: serviceaccount "{name}" not found'
            raise _forbidden(attributes, why)
        if (account["metadata"].get("annotations") or {}).get(_ENFORCE) == "true":
            _check_secrets(spec, account, attributes)
        if _wants_token(spec, account):
            _mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": one.get("name", "")} for one in account["imagePullSecrets"]]


def _forbidden(attributes: AdmissionAttributes, why: str) -> APIStatusError:
    return APIStatusError.forbidden(GroupResource(attributes.group, attributes.resource), attributes.name, why)


def _wants_token(spec: JSONObject, account: JSONObject) -> bool:
    for one in (spec, account):
        wanted = one.get("automountServiceAccountToken")
        if wanted is not None:
            return bool(wanted)
    return True


def _mount_token(spec: JSONObject) -> None:
    volumes = spec.get("volumes") or []
    held = next((one["name"] for one in volumes if (one.get("name") or "").startswith(_VOLUME)), None)
    name = held or generate_name(_VOLUME)
    mounted = False
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            mounts = container.get("volumeMounts") or []
            if any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
                continue
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
            mounted = True
    if mounted and held is None:
        spec["volumes"] = [*volumes, {"name": name, "projected": token_volume()}]


def token_volume() -> JSONObject:
    """What the volume holds: a token, the certificate to check the server by, the namespace."""
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                    ]
                }
            },
        ],
        "defaultMode": 420,
    }


def _check_mirror(spec: JSONObject, attributes: AdmissionAttributes) -> None:
    """What a kubelet shows of pods that it runs by itself can not use what only the server has."""
    if spec.get("serviceAccountName"):
        raise _forbidden(attributes, "a mirror pod may not reference service accounts")
    for volume in spec.get("volumes") or ():
        if volume.get("secret") is not None:
            raise _forbidden(attributes, "a mirror pod may not reference secrets")
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                raise _forbidden(attributes, "a mirror pod may not use ServiceAccountToken volume projections")
    if any(True for _ in _secret_variables(spec)):
        raise _forbidden(attributes, "a mirror pod may not reference secrets")


def _secret_variables(spec: JSONObject) -> Iterator[tuple[str, str, str]]:
    """Container, variable and secret of every variable that comes from a secret; no variable where all come from it."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            for variable in container.get("env") or ():
                reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
                if reference is not None:
                    yield container.get("name", ""), variable.get("name", ""), reference.get("name", "")
            for source in container.get("envFrom") or ():
                reference = source.get("secretRef")
                if reference is not None:
                    yield container.get("name", ""), "", reference.get("name", "")


def _check_secrets(spec: JSONObject, account: JSONObject, attributes: AdmissionAttributes) -> None:
    """An account may name the only secrets that its pods may use."""
    name = account["metadata"]["name"]
    allowed = {one.get("name") for one in account.get("secrets") or ()}
    for volume in spec.get("volumes") or ():
        secret = (volume.get("secret") or {}).get("secretName")
        if volume.get("secret") is not None and secret not in allowed:
            why = (
                f'volume with secret.secretName="{secret}" is not allowed because service account {name} '
                "does not reference that secret"
            )
            raise _forbidden(attributes, why)
    for container, variable, secret in _secret_variables(spec):
        if secret not in allowed:
            what = f"with envVar {variable} " if variable else "with envFrom "
            why = (
                f'container {container} {what}referencing secret.secretName="{secret}" is not allowed because '
                f"service account {name} does not reference that secret"
            )
            raise _forbidden(attributes, why)
    pulled = {one.get("name") for one in account.get("imagePullSecrets") or ()}
    for index, reference in enumerate(spec.get("imagePullSecrets") or ()):
        if reference.get("name") not in pulled:
            why = (
                f'imagePullSecrets[{index}].name="{reference.get("name", "")}" is not allowed because service account '
                f"{name} does not reference that imagePullSecret"
            )
            raise _forbidden(attributes, why)
