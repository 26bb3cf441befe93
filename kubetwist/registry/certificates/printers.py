"""Table rows of CertificateSigningRequests, ClusterTrustBundles and PodCertificateRequests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age, human_duration
from ..generic.printers.columns import AGE, NAME, Column, Field, Rows
from ..generic.printers.texts import NONE, labels_cell, name_of, spec_of, status_of


def certificate_signing_request(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a CertificateSigningRequest: signer, requestor and condition."""
    spec, status = spec_of(obj), status_of(obj)
    seconds = spec.get("expirationSeconds")
    types = {one.get("type") for one in status.get("conditions") or ()}
    states = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    if "Failed" in types:
        states.append("Failed")
    if status.get("certificate"):
        states.append("Issued")
    yield name_of(obj)
    yield age(obj)
    yield spec.get("signerName") or NONE
    yield spec.get("username", "")
    yield NONE if seconds is None else human_duration(seconds)
    yield ",".join(states)


def cluster_trust_bundle(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a ClusterTrustBundle: its signer; it has no age."""
    yield name_of(obj)
    yield spec_of(obj).get("signerName") or NONE


def pod_certificate_request(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a PodCertificateRequest: pod, state and annotations; it has no age."""
    spec = spec_of(obj)
    state = "Pending"
    for one in status_of(obj).get("conditions") or ():
        if one.get("type") in ("Issued", "Denied", "Failed"):
            state = one["type"]
    yield name_of(obj)
    for name in ("podName", "serviceAccountName", "nodeName", "signerName"):
        yield spec.get(name, "")
    yield state
    yield labels_cell(spec.get("unverifiedUserAnnotations"))


def pod_certificate_request_before(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a PodCertificateRequest before 1.35, without annotations."""
    yield from islice(pod_certificate_request(obj), 6)


_SIGNER_NAME: Final = (
    "Requested signer for the request. It is a qualified name in the form: `scope-hostname.io/name`. "
    "If empty, it will be defaulted:\n"
    " 1. If it's a kubelet client certificate, it is assigned\n"
    '    "kubernetes.io/kube-apiserver-client-kubelet".\n'
    " 2. If it's a kubelet serving certificate, it is assigned\n"
    '    "kubernetes.io/kubelet-serving".\n'
    ' 3. Otherwise, it is assigned "kubernetes.io/legacy-unknown".\n'
    "Distribution of trust for signers happens out of band. You can select on this field using `spec.signerName`."
)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "CertificateSigningRequest": (
        NAME,
        AGE,
        Column("SignerName", _SIGNER_NAME),
        Column("Requestor", "Base64-encoded PKCS#10 CSR data"),
        Column("RequestedDuration", Field("api.certificates.v1.CertificateSigningRequestSpec", "expirationSeconds")),
        Column("Condition", "Conditions applied to the request, such as approval or denial."),
    ),
    "ClusterTrustBundle": (
        NAME,
        Column("SignerName", Field("api.certificates.v1beta1.ClusterTrustBundleSpec", "signerName")),
    ),
    "PodCertificateRequest": (
        NAME,
        *(
            Column(name, Field("api.certificates.v1beta1.PodCertificateRequestSpec", name[0].lower() + name[1:]))
            for name in ("PodName", "ServiceAccountName", "NodeName", "SignerName")
        ),
        Column("State", "Is the request Pending, Issued, Denied, or Failed?"),
        Column(
            "UnverifiedUserAnnotations",
            Field("api.certificates.v1beta1.PodCertificateRequestSpec", "unverifiedUserAnnotations"),
            when=">=1.35",
        ),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Rows]] = {
    "CertificateSigningRequest": certificate_signing_request,
    "ClusterTrustBundle": cluster_trust_bundle,
    "PodCertificateRequest": {"<1.35": pod_certificate_request_before, "": pod_certificate_request},
}
