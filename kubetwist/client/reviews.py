"""Reviews in the responses of webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from ..api.resource import JSONObject
    from .httpclient import Response


def review_status(response: Response, kind: str, api_version: str) -> JSONObject:
    """
    Return the status of a review from the response of a webhook.

    @raise ValueError: It is no such review. The text does not quote it, as the error gets into the log.
    """
    if not response.body:
        raise ValueError(f"0-length response with status code: {response.code}")
    try:
        review = orjson.loads(response.body)
    except ValueError:
        raise ValueError(f"the answer of the webhook is no {kind}: it is no JSON") from None
    if not isinstance(review, dict):
        raise ValueError(f"the answer of the webhook is no {kind}")
    if (review.get("kind", kind), review.get("apiVersion", api_version)) != (kind, api_version):
        raise ValueError(f"the answer of the webhook should be {kind} in {api_version}, and is something else")
    status = review.get("status")
    if status is None:
        return {}
    if not isinstance(status, dict):
        raise ValueError(f"the answer of the webhook is no {kind}: its status is no object")
    return status
