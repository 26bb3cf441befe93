"""Every request has an id, the client's or one of ours, and every answer tells it."""

from __future__ import annotations

from os import urandom
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..server.site import Handler, KubeRequest


def with_audit_id(handler: Handler) -> Handler:
    """Name requests."""

    def audit_id(request: KubeRequest) -> None:
        given = request.fields.get(b"audit-id")
        request.audit_id = (given[0].decode("latin-1") if given is not None else "") or random_uuid()
        handler(request)

    return audit_id


def random_uuid() -> str:
    """As C{str(uuid.uuid4())}, in a fraction of the time."""
    digits = urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
