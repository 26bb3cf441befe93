"""Audit ids: each request has one, from the client or from the server, and its response contains it."""

from __future__ import annotations

from ..api.uuids import random_uuid
from ..http.request import Handler, KubeRequest


def with_audit_id(handler: Handler) -> Handler:
    """Set C{request.audit_id} from the header C{Audit-Id}, or to a new UUID."""

    def audit_id(request: KubeRequest) -> None:
        header_values = request.fields.get(b"audit-id")
        request.audit_id = (header_values[0].decode("latin-1") if header_values is not None else "") or random_uuid()
        handler(request)

    return audit_id
