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


async def admit_service_account_token(attributes: AdmissionAttributes, request: JSONObject, node: str) -> None:
    """
    Check a token request of a node: the token must be bound to a pod on the node, for audiences that the pod needs.

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
    await _check_audience(attributes, spec.get("audiences") or [], pod)


async def _check_audience(attributes: AdmissionAttributes, audiences: list[str], pod: JSONObject) -> None:
    if len(audiences) > 1:
        raise attributes.forbidden("node may only request 0 or 1 audiences")
    audience = audiences[0] if audiences else ""
    problems: list[str] = []
    if _needs_audience(attributes, pod, audience, problems):
        return
    if problems:
        why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise attributes.forbidden(f"error validating audience {quoted(audience)}: {why}")
    asked = await authorize(
        attributes,
        _AUDIENCE_VERB,
        version="v1",
        resource=audience,
        namespace=attributes.namespace,
        name=attributes.name,
    )
    if asked.decision is not Decision.ALLOW:
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
            found = _existing(attributes, "storage.k8s.io", "csidrivers", "", driver)
        except _Missing as missing:
            problems.append(str(missing))
            continue
        requests = (found.get("spec") or {}).get("tokenRequests") or ()
        if any((one.get("audience") or "") == audience for one in requests):
            return True
    return False


def _driver_of(attributes: AdmissionAttributes, pod: JSONObject, volume: JSONObject) -> str:
    """
    Return the CSI driver that provides a volume; C{""} when it is another volume, or not bound yet.

    @raise _Missing: The claim or the volume behind it is not there.
    """
    name = claim_of(pod, volume)
    if not name:
        return (volume.get("csi") or {}).get("driver") or ""
    claim = _existing(attributes, "", "persistentvolumeclaims", attributes.namespace, name)
    bound = claim["spec"].get("volumeName")
    if not bound:
        return ""
    found = _existing(attributes, "", "persistentvolumes", "", bound)
    return (found["spec"].get("csi") or {}).get("driver") or ""


class _Missing(Exception):
    """An object that is looked for is not there."""


def _existing(attributes: AdmissionAttributes, group: str, resource: str, namespace: str, name: str) -> JSONObject:
    found = attributes.context.get_decoded(group, resource, namespace, name)
    if found is None:
        # The reference's listers use the singular in this error text.
        raise _Missing(f"{GroupResource(group, resource.removesuffix('s'))} {quoted(name)} not found")
    return found


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
    wanted, pod_name = spec.get("nodeName", ""), spec.get("podName", "")
    if wanted != node:
        raise attributes.forbidden(
            f"PodCertificateRequest.Spec.NodeName={quoted(wanted)}, which is not the requesting node {quoted(node)}"
        )
    namespace = attributes.namespace
    shown = quoted(f"{namespace}/{pod_name}")
    whose = f"PodCertificateRequest for pod {shown}"
    found = _named(attributes, "nodes", "", node, f"node {quoted(node)}")
    uid = found["metadata"].get("uid", "")
    if uid != spec.get("nodeUID"):
        raise APIStatusError.unknown(
            f"{whose} names node UID {quoted(spec.get('nodeUID', ''))},"
            f" inconsistent with the running node ({quoted(uid)})"
        )
    pod = _named(attributes, "pods", namespace, pod_name, f"pod {shown}")
    uid = pod["metadata"].get("uid", "")
    if uid != spec.get("podUID"):
        raise APIStatusError.unknown(
            f"{whose} contains pod UID ({quoted(spec.get('podUID', ''))}) which differs from running pod {quoted(uid)}"
        )
    if pod["spec"].get("nodeName") != node:
        why = f"pod {shown} is not running on node {quoted(node)} named in the PodCertificateRequest"
        raise attributes.forbidden(why)
    if MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {}):
        raise attributes.forbidden(f"pod {shown} is a mirror pod")
    account, running = spec.get("serviceAccountName", ""), pod["spec"].get("serviceAccountName", "")
    if account != running:
        raise attributes.forbidden(
            f"{whose} contains serviceAccountName ({quoted(account)}) that differs from running pod ({quoted(running)})"
        )
    which = f"service account {quoted(f'{namespace}/{account}')}"
    uid = _named(attributes, "serviceaccounts", namespace, account, which)["metadata"].get("uid", "")
    if uid != spec.get("serviceAccountUID"):
        raise APIStatusError.unknown(
            f"{whose} names service account UID {quoted(spec.get('serviceAccountUID', ''))},"
            f" which differs from the running service account ({quoted(uid)})"
        )


def _named(attributes: AdmissionAttributes, resource: str, namespace: str, name: str, shown: str) -> JSONObject:
    try:
        return _existing(attributes, "", resource, namespace, name)
    except _Missing as missing:
        text = f"while retrieving {shown} named in the PodCertificateRequest: {missing}"
        raise APIStatusError.unknown(text) from None


def admit_csr(attributes: AdmissionAttributes, node: str) -> None:
    """
    Check a CertificateSigningRequest of a node: kubelet certificates must be for its own name.

    @raise APIStatusError: The certificate is for another name (403).
    """
    if attributes.operation != CREATE or attributes.subresource:
        return
    assert attributes.object is not None
    spec = attributes.object.get("spec") or {}
    if spec.get("signerName") not in _KUBELET_SIGNERS:
        return
    try:
        request = _parsed(spec.get("request") or "")
    except ValueError as error:
        raise attributes.forbidden(f"unable to parse csr: {error}") from None
    from cryptography.x509.oid import NameOID

    names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    # The last common name is used, as in Go.
    if not names or names[-1].value != f"system:node:{node}":
        raise attributes.forbidden(f"can only create a node CSR with CN=system:node:{node}")


def _parsed(text: str) -> CertificateSigningRequest:
    """
    Parse a certificate request in base64-encoded PEM.

    @raise ValueError: The value is invalid.
    """
    from cryptography.x509 import load_pem_x509_csr

    pem = b64decode(text)
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in pem:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    return load_pem_x509_csr(pem)
