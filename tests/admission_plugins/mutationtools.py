"""JSON patches of policies and webhooks."""

from __future__ import annotations

OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


MERGE = "application/merge-patch+json"
