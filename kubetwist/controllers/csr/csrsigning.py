"""
Signs approved CertificateSigningRequests with the server's CA.

@see: kubernetes, C{pkg/controller/certificates/signer/signer.go}, C{authority}.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool

from ...api.resource import JSONObject
from ...api.times import format_time
from ...registry.stores import decoded_object
from ..machinery.controller import Controller
from .requests import (
    CLIENT,
    GROUP,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    LEGACY,
    REQUESTS,
    InvalidCSR,
    check_client,
    check_kubelet_client,
    check_kubelet_serving,
    has_certificate,
    has_condition,
    parse_request,
    subject_alternative_names,
)

if TYPE_CHECKING:
    from cryptography import x509

    from ..machinery.config import CertificateAuthority

#: Maximum and minimum validity of certificates.
CLUSTER_SIGNING_DURATION: Final = timedelta(days=365)
_MIN_DURATION: Final = timedelta(minutes=10)
#: The validity starts earlier because clocks differ. Certificates with a short duration do not end earlier in return.
_BACKDATE: Final = timedelta(minutes=5)
_SHORT_DURATION: Final = timedelta(hours=8)

_CHECKS: Final[dict[str, Callable[[Any, Collection[str]], None]]] = {
    KUBELET_CLIENT: check_kubelet_client,
    KUBELET_SERVING: check_kubelet_serving,
    CLIENT: check_client,
    LEGACY: lambda request, usages: None,
}
_KEY_USAGES: Final = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
#: Object identifiers of extended key usages, in the order of the extension.
_EXTENDED_KEY_USAGES: Final = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}
_Result = TypeVar("_Result")


class CSRSigningController(Controller[str]):
    """Signs CSRs of the kubernetes.io signers. Keys are the names of CSRs."""

    name: ClassVar[str] = "certificatesigningrequest-signing-controller"
    service_account: ClassVar[str] = "certificate-controller"
    workers: ClassVar[int] = 5

    def register_handlers(self) -> None:
        """Register a handler for CSRs."""
        self._requests = self.watch(GROUP, REQUESTS)

    def in_thread(self, call: Callable[[], _Result]) -> Deferred[_Result]:
        """Call a blocking function in a thread."""
        reactor: Any = self.clock
        return deferToThreadPool(reactor, reactor.getThreadPool(), call)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._requests.by_key(key)
        if record is None:
            return
        obj = decoded_object(record)
        check = _CHECKS.get(obj["spec"].get("signerName") or "")
        if check is None or has_certificate(obj) or has_condition(obj, "Failed"):
            return
        if not has_condition(obj, "Approved") or has_condition(obj, "Denied"):
            return
        now = self.context.now()
        authority = self.context.config.data.authority

        def sign() -> bytes:
            request = parse_request(obj)
            check(request, obj["spec"].get("usages") or ())
            return sign_request(authority(), request, obj["spec"], now)

        certificate, error_message = b"", ""
        try:
            certificate = await self.in_thread(sign)
        except InvalidCSR as error:
            error_message = str(error)
        except ValueError as error:
            self._log.warn("cannot sign CertificateSigningRequest: name={name} error={error}", name=key, error=error)
            return

        def change(new: JSONObject) -> None:
            status = new.setdefault("status", {})
            if certificate:
                status["certificate"] = b64encode(certificate).decode()
                return
            status.setdefault("conditions", []).append(
                {
                    "type": "Failed",
                    "status": "True",
                    "reason": "SignerValidationFailure",
                    "message": error_message,
                    "lastUpdateTime": format_time(self.clock.seconds()),
                }
            )

        await self.client.update_status(GROUP, REQUESTS, "", key, change, revision=record.revision)


def sign_request(
    authority: CertificateAuthority, request: x509.CertificateSigningRequest, spec: JSONObject, now: datetime
) -> bytes:
    """
    Return the certificate for a CSR.

    @raise ValueError: The request is malformed, or not signed with its key.
    """
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    seconds = spec.get("expirationSeconds")
    duration = (
        CLUSTER_SIGNING_DURATION
        if seconds is None
        else max(_MIN_DURATION, min(CLUSTER_SIGNING_DURATION, timedelta(seconds=seconds)))
    )
    end = now + duration if duration < _SHORT_DURATION else now + duration - _BACKDATE
    try:
        if not request.is_signature_valid:
            raise ValueError("unable to verify certificate request signature")
        # All further requested extensions are ignored.
        names = subject_alternative_names(
            request, (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)
        )
        extensions = usage_extensions(spec.get("usages") or ())
        if names:
            extensions.append((x509.SubjectAlternativeName(names), not list(request.subject)))
        pem = authority.certify(request, extensions, now - _BACKDATE, end)
    except (UnsupportedAlgorithm, TypeError, x509.DuplicateExtension) as error:
        raise ValueError(str(error)) from error
    return pem


def usage_extensions(usages: Collection[str]) -> list[tuple[x509.ExtensionType, bool]]:
    """Return the extensions KeyUsage and ExtendedKeyUsage, and whether they are critical."""
    from cryptography import x509

    allowed = dict.fromkeys(_KEY_USAGES.values(), False)
    allowed.update((_KEY_USAGES[usage], True) for usage in usages if usage in _KEY_USAGES)
    if not allowed["key_agreement"]:
        # These are meaningful only together with key agreement.
        allowed["encipher_only"] = allowed["decipher_only"] = False
    extensions: list[tuple[x509.ExtensionType, bool]] = []
    if any(allowed.values()):
        extensions.append((x509.KeyUsage(**allowed), True))
    oids = dict.fromkeys(oid for usage, oid in _EXTENDED_KEY_USAGES.items() if usage in usages)
    if oids:
        extensions.append((x509.ExtendedKeyUsage([x509.ObjectIdentifier(oid) for oid in oids]), False))
    return extensions
