"""Requests of kubelets for credentials of their node and its pods: service account tokens and certificates."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Final

from ..api.admission import (
    CREATE,
    AdmissionAttributes,
)
from ..api.authorization import Decision
from ..api.errors import APIStatusError
from ..api.go.quote import quoted
from ..api.resource import (
    GroupResource,
    JSONObject,
)
from ..registry.core.pod.references import (
    MIRROR_ANNOTATION,
    claim_of,
)
from .authorization import authorize

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest

#: The signers of kubelet certificates.
_KUBELET_SIGNERS: Final = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
#: The verb that allows tokens for audiences that the pod does not name; the resource is the audience.
_AUDIENCE_VERB: Final = "request-serviceaccounts-token-audience"


async def admit_service_account_token(
    attributes: AdmissionAttributes, request: JSONObject, node: str, *, audiences: bool = True
) -> None:
    """
    Check a token request of a node: the token must be bound to a pod on the node, for audiences that the pod needs.

    @param audiences: Whether audiences are checked: the feature gate ServiceAccountNodeAudienceRestriction.
    @raise APIStatusError: The token is not allowed (403), or the pod does not exist (404).
    """
    spec = request.get("spec") or {}
    reference = spec.get("boundObjectRef") or {}
    if (reference.get("apiVersion"), reference.get("kind")) != ("v1", "Pod") or not reference.get("name"):
        raise attributes.forbidden("node requested token not bound to a pod")
    uid = reference.get("uid")
    if not uid:
        raise attributes.forbidden("node requested token with a pod binding without a uid")
    pod = attributes.context.get_decoded("", "pods", attributes.namespace, reference["name"])
    if pod is None:
        raise APIStatusError.not_found(GroupResource("", "pod"), reference["name"])
    if uid != pod["metadata"].get("uid"):
        raise attributes.forbidden(
            f"the UID in the bound object reference ({uid}) does not match the UID in record."
            " The object might have been deleted and then recreated"
        )
    if pod["spec"].get("nodeName") != node:
        raise attributes.forbidden("node requested token bound to a pod scheduled on a different node")
    if audiences:
        await _check_audience(attributes, spec.get("audiences") or [], pod)


async def _check_audience(attributes: AdmissionAttributes, audiences: list[str], pod: JSONObject) -> None:
    if len(audiences) > 1:
        raise attributes.forbidden("node may only request 0 or 1 audiences")
    audience = audiences[0] if audiences else ""
    problems: list[str] = []
    if _needs_audience(attributes, pod, audience, problems):
        return
    if problems:
        message = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise attributes.forbidden(f"error validating audience {quoted(audience)}: {message}")
    verdict = await authorize(
        attributes,
        _AUDIENCE_VERB,
        version="v1",
        resource=audience,
        namespace=attributes.namespace,
        name=attributes.name,
    )
    if verdict.decision is not Decision.ALLOW:
        raise attributes.forbidden(
            f"audience {quoted(audience)} not found in pod spec volume,"
            f" {attributes.user.name} is not authorized to request tokens for this audience"
        )


def _needs_audience(attributes: AdmissionAttributes, pod: JSONObject, audience: str, problems: list[str]) -> bool:
    """
    Return whether a volume of a pod needs tokens for an audience.

    @param problems: Receives the error texts for missing objects.
    """
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            token = source.get("serviceAccountToken")
            if token is not None and (token.get("audience") or "") == audience:
                return True
        try:
            driver = _driver_of(attributes, pod, volume)
            if not driver:
                continue
            csi_driver = _get(attributes, "storage.k8s.io", "csidrivers", "", driver)
        except _NotFound as not_found:
            problems.append(str(not_found))
            continue
        requests = (csi_driver.get("spec") or {}).get("tokenRequests") or ()
        if any((one.get("audience") or "") == audience for one in requests):
            return True
    return False


def _driver_of(attributes: AdmissionAttributes, pod: JSONObject, volume: JSONObject) -> str:
    """
    Return the CSI driver that provides a volume; C{""} for other volumes and for claims that are not bound.

    @raise _NotFound: The claim or its volume does not exist.
    """
    name = claim_of(pod, volume)
    if not name:
        return (volume.get("csi") or {}).get("driver") or ""
    claim = _get(attributes, "", "persistentvolumeclaims", attributes.namespace, name)
    volume_name = claim["spec"].get("volumeName")
    if not volume_name:
        return ""
    persistent_volume = _get(attributes, "", "persistentvolumes", "", volume_name)
    return (persistent_volume["spec"].get("csi") or {}).get("driver") or ""


class _NotFound(Exception):
    """An object does not exist."""


def _get(attributes: AdmissionAttributes, group: str, resource: str, namespace: str, name: str) -> JSONObject:
    obj = attributes.context.get_decoded(group, resource, namespace, name)
    if obj is None:
        # The reference's listers use the singular in this error text.
        raise _NotFound(f"{GroupResource(group, resource.removesuffix('s'))} {quoted(name)} not found")
    return obj


def admit_pod_certificate_request(attributes: AdmissionAttributes, node: str) -> None:
    """
    Check a PodCertificateRequest of a node: the pod must run on the node and match the request.

    A mismatch that may come from a stale cache is a 500, after which clients retry.

    @raise APIStatusError: The request is not allowed.
    """
    if attributes.operation != CREATE:
        raise attributes.forbidden(f"unexpected operation {attributes.operation}")
    if attributes.subresource:
        raise attributes.forbidden(f"unexpected subresource {attributes.subresource}")
    assert attributes.object is not None
    spec = attributes.object.get("spec") or {}
    node_name, pod_name = spec.get("nodeName", ""), spec.get("podName", "")
    if node_name != node:
        raise attributes.forbidden(
            f"PodCertificateRequest.Spec.NodeName={quoted(node_name)}, which is not the requesting node {quoted(node)}"
        )
    namespace = attributes.namespace
    pod_key = quoted(f"{namespace}/{pod_name}")
    prefix = f"PodCertificateRequest for pod {pod_key}"
    uid = _get_named(attributes, "nodes", "", node, f"node {quoted(node)}")["metadata"].get("uid", "")
    if uid != spec.get("nodeUID"):
        raise APIStatusError.unknown(
            f"{prefix} names node UID {quoted(spec.get('nodeUID', ''))},"
            f" inconsistent with the running node ({quoted(uid)})"
        )
    pod = _get_named(attributes, "pods", namespace, pod_name, f"pod {pod_key}")
    uid = pod["metadata"].get("uid", "")
    if uid != spec.get("podUID"):
        raise APIStatusError.unknown(
            f"{prefix} contains pod UID ({quoted(spec.get('podUID', ''))}) which differs from running pod {quoted(uid)}"
        )
    if pod["spec"].get("nodeName") != node:
        message = f"pod {pod_key} is not running on node {quoted(node)} named in the PodCertificateRequest"
        raise attributes.forbidden(message)
    if MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {}):
        raise attributes.forbidden(f"pod {pod_key} is a mirror pod")
    account, running = spec.get("serviceAccountName", ""), pod["spec"].get("serviceAccountName", "")
    if account != running:
        raise attributes.forbidden(
            f"{prefix} contains serviceAccountName ({quoted(account)})"
            f" that differs from running pod ({quoted(running)})"
        )
    account_text = f"service account {quoted(f'{namespace}/{account}')}"
    uid = _get_named(attributes, "serviceaccounts", namespace, account, account_text)["metadata"].get("uid", "")
    if uid != spec.get("serviceAccountUID"):
        raise APIStatusError.unknown(
            f"{prefix} names service account UID {quoted(spec.get('serviceAccountUID', ''))},"
            f" which differs from the running service account ({quoted(uid)})"
        )


def _get_named(
    attributes: AdmissionAttributes, resource: str, namespace: str, name: str, description: str
) -> JSONObject:
    """
    Return an object that the request names.

    @param description: The kind and name of the object, for the error text.
    @raise APIStatusError: The object does not exist (500).
    """
    try:
        return _get(attributes, "", resource, namespace, name)
    except _NotFound as not_found:
        text = f"while retrieving {description} named in the PodCertificateRequest: {not_found}"
        raise APIStatusError.unknown(text) from None


def admit_csr(attributes: AdmissionAttributes, node: str) -> None:
    """
    Check a CertificateSigningRequest of a node: kubelet certificates must have the name of the node.

    @raise APIStatusError: The certificate is for another name (403).
    """
    if attributes.operation != CREATE or attributes.subresource:
        return
    assert attributes.object is not None
    spec = attributes.object.get("spec") or {}
    if spec.get("signerName") not in _KUBELET_SIGNERS:
        return
    try:
        request = _parse_csr(spec.get("request") or "")
    except ValueError as error:
        raise attributes.forbidden(f"unable to parse csr: {error}") from None
    from cryptography.x509.oid import NameOID

    names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    # The last common name is used, as in Go.
    if not names or names[-1].value != f"system:node:{node}":
        raise attributes.forbidden(f"can only create a node CSR with CN=system:node:{node}")


def _parse_csr(text: str) -> CertificateSigningRequest:
    """
    Parse a certificate request in base64-encoded PEM.

    @raise ValueError: The text is not a certificate request.
    """
    from cryptography.x509 import load_pem_x509_csr

    pem = b64decode(text)
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in pem:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    return load_pem_x509_csr(pem)
