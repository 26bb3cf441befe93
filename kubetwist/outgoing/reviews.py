"""Reviews that a webhook has answered."""

from __future__ import annotations

import orjson

from ..api.resource import JSONObject
from .client import Answer


def review_status(answer: Answer, kind: str, api_version: str) -> JSONObject:
    """
    The status in a review that a webhook has answered.

    @raise ValueError: It is none.
    """
    if not answer.body:
        content_type = answer.headers.get("content-type", "")
        raise ValueError(f"0-length response with status code: {answer.code} and content type: {content_type}")
    try:
        review = orjson.loads(answer.body)
    except ValueError:
        raise ValueError(f"the answer of the webhook is no {kind}: it is no JSON") from None
    if not isinstance(review, dict):
        raise ValueError(f"the answer of the webhook is no {kind}")
    found = review.get("kind", kind), review.get("apiVersion", api_version)
    if found != (kind, api_version):
        raise ValueError(f"the answer of the webhook should be {kind} in {api_version}, not {found[0]} in {found[1]}")
    status = review.get("status")
    if status is None:
        return {}
    if not isinstance(status, dict):
        raise ValueError(f"the answer of the webhook is no {kind}: its status is no object")
    return status
