"""
Parses and checks CertificateSigningRequests for signing and approval.

@see: kubernetes, C{pkg/apis/certificates/helpers.go}; C{pkg/controller/certificates/certificate_controller_utils.go}.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from ...api.resource import JSONObject

if TYPE_CHECKING:
    from cryptography import x509

GROUP: Final = "certificates.k8s.io"
REQUESTS: Final = "certificatesigningrequests"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
CLIENT: Final = "kubernetes.io/kube-apiserver-client"
LEGACY: Final = "kubernetes.io/legacy-unknown"

_NODES: Final = "system:nodes"
_NODE: Final = "system:node:"


class InvalidCSR(ValueError):
    """A CSR does not meet the requirements of its signer. The message is kube-controller-manager's."""


_Name = TypeVar("_Name", bound="x509.GeneralName")


def conditions_of(obj: JSONObject) -> Sequence[JSONObject]:
    """Return the conditions of a CSR."""
    conditions: Sequence[JSONObject] = (obj.get("status") or {}).get("conditions") or ()
    return conditions


def has_condition(obj: JSONObject, kind: str) -> bool:
    """Return whether a CSR has a condition of a type."""
    return any(one.get("type") == kind and one.get("status") in (None, "", "True") for one in conditions_of(obj))


def has_certificate(obj: JSONObject) -> bool:
    """Return whether a CSR has an issued certificate."""
    return bool((obj.get("status") or {}).get("certificate"))


def parse_request(obj: JSONObject) -> x509.CertificateSigningRequest:
    """
    Return the parsed X.509 request of a CSR.

    @raise ValueError: The request is malformed.
    """
    from cryptography import x509

    return x509.load_pem_x509_csr(b64decode(obj["spec"].get("request") or ""))


def subject_alternative_names(
    request: x509.CertificateSigningRequest, kind: type[_Name] | tuple[type[_Name], ...]
) -> list[_Name]:
    """
    Return the subject alternative names of a kind: C{x509.DNSName}, C{x509.IPAddress}, ...

    @raise ValueError: The extensions are malformed.
    """
    from cryptography import x509

    try:
        extension = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [one for one in extension if isinstance(one, kind)]


def _subject(request: x509.CertificateSigningRequest) -> tuple[list[str | bytes], str]:
    """Return the organizations and the common name of the subject."""
    from cryptography.x509.oid import NameOID

    organizations = [one.value for one in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    common = [one.value for one in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return organizations, str(common[-1]) if common else ""


def common_name(request: x509.CertificateSigningRequest) -> str:
    """Return the common name of the subject."""
    return _subject(request)[1]


def check_kubelet_client(request: x509.CertificateSigningRequest, usages: Collection[str]) -> None:
    """
    Check that a request is for a kubelet client certificate.

    @raise InvalidCSR: It is not.
    """
    from cryptography import x509

    organizations, common = _subject(request)
    if organizations != [_NODES]:
        raise InvalidCSR("subject organization is not system:nodes")
    for kind, name in (
        (x509.DNSName, "DNS"),
        (x509.RFC822Name, "Email"),
        (x509.IPAddress, "IP"),
        (x509.UniformResourceIdentifier, "URI"),
    ):
        if subject_alternative_names(request, kind):
            raise InvalidCSR(f"{name} subjectAltNames are not allowed")
    if not common.startswith(_NODE):
        raise InvalidCSR("subject common name does not begin with system:node:")
    _check_usages(usages, "client auth")


def check_kubelet_serving(request: x509.CertificateSigningRequest, usages: Collection[str]) -> None:
    """
    Check that a request is for a kubelet serving certificate.

    @raise InvalidCSR: It is not.
    """
    from cryptography import x509

    organizations, common = _subject(request)
    if organizations != [_NODES]:
        raise InvalidCSR("subject organization is not system:nodes")
    if not subject_alternative_names(request, (x509.DNSName, x509.IPAddress)):
        raise InvalidCSR("DNS or IP subjectAltName is required")
    if subject_alternative_names(request, x509.RFC822Name):
        raise InvalidCSR("Email subjectAltNames are not allowed")
    if subject_alternative_names(request, x509.UniformResourceIdentifier):
        raise InvalidCSR("URI subjectAltNames are not allowed")
    _check_usages(usages, "server auth")
    if not common.startswith(_NODE):
        raise InvalidCSR("subject common name does not begin with system:node:")


def _check_usages(usages: Collection[str], purpose: str) -> None:
    required = {"digital signature", purpose}
    if set(usages) not in (required, required | {"key encipherment"}):
        raise InvalidCSR(f"usages did not match [{' '.join(sorted(required | {'key encipherment'}))}]")


def check_client(request: x509.CertificateSigningRequest, usages: Collection[str]) -> None:
    """
    Check that a request is for a client certificate.

    @raise InvalidCSR: It is not.
    """
    for usage in usages:
        if usage not in ("digital signature", "key encipherment", "client auth"):
            raise InvalidCSR(f"invalid usage for client certificate: {usage}")
    if "client auth" not in usages:
        raise InvalidCSR("missing required usage for client certificate: client auth")
