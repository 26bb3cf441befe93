"""
Deletes old CertificateSigningRequests.

@see: kubernetes, C{pkg/controller/certificates/cleaner/cleaner.go}.
"""

from __future__ import annotations

from base64 import b64decode
from typing import ClassVar, Final

from ...api.resource import JSONObject
from ...api.times import seconds_since_epoch
from ...registry.stores import decoded_object
from ..machinery.controller import Controller
from .requests import (
    GROUP,
    REQUESTS,
    conditions_of,
    has_certificate,
)

#: Seconds that decided and pending CSRs are kept.
DECIDED: Final = 3600.0
PENDING: Final = 24 * 3600.0


class CSRCleaner(Controller[str]):
    """Deletes old CSRs. Keys are the names of CSRs."""

    name: ClassVar[str] = "certificatesigningrequest-cleaner-controller"
    service_account: ClassVar[str] = "certificate-controller"

    def register_handlers(self) -> None:
        """Register a handler for CSRs."""
        self._requests = self.watch(GROUP, REQUESTS)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._requests.by_key(key)
        if record is None:
            return
        obj = decoded_object(record)
        end = cleanup_time(obj)
        if end is None:
            return
        remaining = end - self.clock.seconds()
        if remaining > 0:
            self.queue.add_after(key, remaining)
        else:
            await self.client.delete(GROUP, REQUESTS, "", key, uid=obj["metadata"]["uid"], revision=record.revision)


def cleanup_time(obj: JSONObject) -> float | None:
    """Return when a CSR can be deleted as a POSIX time, or L{None} if unknown."""
    conditions = conditions_of(obj)
    if not conditions:
        return seconds_since_epoch(obj["metadata"]["creationTimestamp"]) + PENDING
    ends = []
    for condition in conditions:
        kind, since = condition.get("type"), condition.get("lastUpdateTime")
        if kind in ("Denied", "Failed") or (kind == "Approved" and has_certificate(obj)):
            if since:
                ends.append(seconds_since_epoch(since) + DECIDED)
            if kind == "Approved":
                expires = _expires(obj)
                if expires is not None:
                    ends.append(expires)
    return min(ends, default=None)


def _expires(obj: JSONObject) -> float | None:
    """Return when the certificate expires as a POSIX time, or L{None} if there is no valid certificate."""
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(b64decode(obj["status"]["certificate"]))
    except ValueError:
        return None
    return certificate.not_valid_after_utc.timestamp()
