"""ServiceAccount: sets the service account of new pods, its imagePullSecrets, and a volume with its token."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.names import generate_name
from ..api.podspecs import DEBUGGING, containers, declared_containers
from ..api.resource import JSONObject
from ..interfaces import IMutatingAdmission, IValidatingAdmission
from ..registry.core.pod.references import MIRROR_ANNOTATION, secret_names

#: The path at which the token is mounted in containers.
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME: Final = "kube-api-access-"
#: An hour and seven seconds, which marks injected tokens; kubelets renew them before they expire.
_TOKEN_EXPIRATION_SECONDS: Final = 3607
#: Seconds to wait for an account that does not exist: the reference makes ten attempts, 0.1 to 0.2 s apart.
_SERVICE_ACCOUNT_WAIT: Final = 1.5
_ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"
#: The values that Go's C{strconv.ParseBool} parses as true.
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class ServiceAccount:
    """See kubernetes, C{plugin/pkg/admission/serviceaccount/admission.go}."""

    name: ClassVar[str] = "ServiceAccount"
    resources: ClassVar[tuple[str, ...]] = ("pods", "pods/ephemeralcontainers")

    def handles(self, operation: str) -> bool:
        """Return true for CREATE, and for UPDATE of ephemeral containers; other updates do not affect the account."""
        return operation in ("CREATE", "UPDATE")

    def admit(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IMutatingAdmission.admit}."""
        if attributes.operation != "CREATE" or attributes.subresource:
            return None
        pod = attributes.object
        assert pod is not None
        if MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {}):
            _check_mirror(pod, attributes)
            return None
        spec = pod["spec"]
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec["serviceAccount"] = "default"
        name = spec["serviceAccountName"]
        account = attributes.context.get_decoded("", "serviceaccounts", attributes.namespace, name)
        if account is None:
            return self._admit_when_account_exists(spec, attributes)
        return self._apply_account_async(spec, account, attributes)

    async def _admit_when_account_exists(self, spec: JSONObject, attributes: AdmissionAttributes) -> None:
        """Run L{admit} when the account exists, which is created shortly after its namespace."""
        name = spec["serviceAccountName"]
        account = await attributes.context.wait_for_object(
            "", "serviceaccounts", attributes.namespace, name, _SERVICE_ACCOUNT_WAIT
        )
        applying = self._apply_account_async(spec, account or _get_service_account(spec, attributes), attributes)
        if applying is not None:
            await applying

    def _apply_account_async(
        self, spec: JSONObject, account: JSONObject, attributes: AdmissionAttributes
    ) -> Awaitable[None] | None:
        """Apply the ServiceAccount to a pod, in the computation thread if the pod is large."""
        if attributes.computing is not None:
            return attributes.computing(_apply_account, spec, account, attributes)
        _apply_account(spec, account, attributes)
        return None

    def validate(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IValidatingAdmission.validate}: other plugins may have changed the pod."""
        pod = attributes.object
        assert pod is not None
        ephemeral = attributes.subresource == "ephemeralcontainers" and attributes.operation == "UPDATE"
        if attributes.operation != "CREATE" and not ephemeral:
            return None
        if not ephemeral and MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {}):
            _check_mirror(pod, attributes)
            return None
        spec = pod["spec"]
        if not spec.get("serviceAccountName"):
            name = pod["metadata"].get("name") or ""
            raise attributes.forbidden(f"no service account specified for pod {attributes.namespace}/{name}")
        account = _get_service_account(spec, attributes)
        if enforces_mountable_secrets(account):
            if ephemeral:
                _check_containers(spec, account, attributes, DEBUGGING)
            elif attributes.computing is not None:
                return attributes.computing(_limit_secret_references, spec, account, attributes)
            else:
                _limit_secret_references(spec, account, attributes)
        return None


def _apply_account(spec: JSONObject, account: JSONObject, attributes: AdmissionAttributes) -> None:
    """Add the token volume and imagePullSecrets of the ServiceAccount, and check the pod's secrets."""
    if _should_automount(spec, account):
        _mount_token(spec)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [{"name": one.get("name", "")} for one in account["imagePullSecrets"]]
    if enforces_mountable_secrets(account):
        _limit_secret_references(spec, account, attributes)


def _get_service_account(spec: JSONObject, attributes: AdmissionAttributes) -> JSONObject:
    """
    Return the account of a pod.

    @raise APIStatusError: The account does not exist (403).
    """
    name = spec["serviceAccountName"]
    account = attributes.context.get_decoded("", "serviceaccounts", attributes.namespace, name)
    if account is None:
        message = f'error looking up service account {attributes.namespace}/{name}: serviceaccount "{name}" not found'
        raise attributes.forbidden(message)
    return account


def enforces_mountable_secrets(account: JSONObject) -> bool:
    """Return whether pods of an account may refer only to secrets that the account lists."""
    return (account["metadata"].get("annotations") or {}).get(_ENFORCE) in _TRUE


def _should_automount(spec: JSONObject, account: JSONObject) -> bool:
    for one in (spec, account):
        automount = one.get("automountServiceAccountToken")
        if automount is not None:
            return bool(automount)
    return True


def _mount_token(spec: JSONObject) -> None:
    volumes = spec.get("volumes") or []
    existing = next((one["name"] for one in volumes if (one.get("name") or "").startswith(_VOLUME)), None)
    name = existing or generate_name(_VOLUME)
    mounted = False
    for container, _, _ in declared_containers(spec):
        mounts = container.get("volumeMounts") or []
        if any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
            continue
        container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
        mounted = True
    if mounted and existing is None:
        spec["volumes"] = [*volumes, {"name": name, "projected": token_volume()}]


def token_volume() -> JSONObject:
    """Return the volume source: a token, the certificate of the server's CA, and the namespace."""
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_EXPIRATION_SECONDS, "path": "token"}},
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


def _check_mirror(pod: JSONObject, attributes: AdmissionAttributes) -> None:
    """Reject mirror pods that refer to service accounts, secrets or tokens."""
    spec = pod["spec"]
    if spec.get("serviceAccountName"):
        raise attributes.forbidden("a mirror pod may not reference service accounts")
    if any(True for _ in secret_names(pod)):
        raise attributes.forbidden("a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                raise attributes.forbidden("a mirror pod may not use ServiceAccountToken volume projections")


def _secret_variables(container: JSONObject) -> Iterator[tuple[str, str]]:
    """Yield the secrets of environment variables, each with the name of the variable; C{""} for C{envFrom}."""
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
        if reference is not None:
            yield variable.get("name") or "", reference.get("name") or ""
    for source in container.get("envFrom") or ():
        reference = source.get("secretRef")
        if reference is not None:
            yield "", reference.get("name") or ""


def _limit_secret_references(spec: JSONObject, account: JSONObject, attributes: AdmissionAttributes) -> None:
    """
    Check that a pod refers only to secrets that its account lists.

    @raise APIStatusError: The pod refers to another secret (403).
    """
    name = account["metadata"]["name"]
    allowed = {one.get("name") for one in account.get("secrets") or ()}
    for volume in spec.get("volumes") or ():
        if volume.get("secret") is None:
            continue
        secret = volume["secret"].get("secretName") or ""
        if secret not in allowed:
            message = (
                f'volume with secret.secretName="{secret}" is not allowed because service account {name} '
                "does not reference that secret"
            )
            raise attributes.forbidden(message)
    _check_containers(spec, account, attributes)
    pull_secrets = {one.get("name") for one in account.get("imagePullSecrets") or ()}
    for index, reference in enumerate(spec.get("imagePullSecrets") or ()):
        if reference.get("name") not in pull_secrets:
            message = (
                f'imagePullSecrets[{index}].name="{reference.get("name", "")}" is not allowed because service account '
                f"{name} does not reference that imagePullSecret"
            )
            raise attributes.forbidden(message)


def _check_containers(
    spec: JSONObject, account: JSONObject, attributes: AdmissionAttributes, only: str | None = None
) -> None:
    """
    Check that environment variables of containers refer only to secrets that the account lists.

    @param spec: The spec of the pod.
    @param account: The service account.
    @param attributes: The request.
    @param only: The kind of containers to check; L{None} for all containers.
    @raise APIStatusError: A variable refers to another secret: 403; with C{only}, 500 without the usual prefix.
    """
    name = account["metadata"]["name"]
    allowed = {one.get("name") for one in account.get("secrets") or ()}
    for container, _, kind in containers(spec):
        if only not in (None, kind):
            continue
        for variable, secret in _secret_variables(container):
            if secret not in allowed:
                source = f"with envVar {variable}" if variable else "with envFrom"
                message = (
                    f'{kind} {container.get("name", "")} {source} referencing secret.secretName="{secret}" is not '
                    f"allowed because service account {name} does not reference that secret"
                )
                # The reference reports only the problem, without the prefix of a forbidden request.
                raise attributes.forbidden(message) if only is None else APIStatusError.unknown(message)
