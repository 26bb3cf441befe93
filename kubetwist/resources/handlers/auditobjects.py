"""Logs the objects in requests to the audit trail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ..encoding import JSONEncoder

if TYPE_CHECKING:
    from ...api.jsontypes import JSONValue
    from ...api.resource import JSONObject
    from ...http.collaborators import AuditTrail
    from ..endpoint import Endpoint

_DELETE_OPTIONS = (
    "gracePeriodSeconds",
    "preconditions",
    "orphanDependents",
    "propagationPolicy",
    "dryRun",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
)


def log_request_object(trail: AuditTrail, endpoint: Endpoint, obj: JSONObject) -> None:
    """Log the object of a request as the reference does: after decoding, with its defaults."""

    def encode() -> bytes:
        encoder = endpoint.encoders.get(log_request_object)
        if encoder is None:
            encoder = endpoint.encoders[log_request_object] = JSONEncoder(endpoint)
        encoded: bytes = encoder.encode_object(endpoint.default(orjson.loads(orjson.dumps(obj))))
        return encoded

    trail.log_request_object(obj["metadata"], encode)


def log_delete_options(trail: AuditTrail, body: JSONValue) -> None:
    """Log the body of a DELETE in the version that the reference logs, regardless of the client's."""
    if not trail.wants_request_object:
        return
    options = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal"}
    if isinstance(body, dict):
        options.update({name: body[name] for name in _DELETE_OPTIONS if body.get(name) is not None})
    trail.log_request_patch(orjson.dumps(options))
