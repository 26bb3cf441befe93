"""
Unsuccessful responses as errors.

@see: kubernetes/client-go, C{rest/request.go}; kubernetes/apimachinery, C{pkg/api/errors}: C{NewGenericServerResponse}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from ..api.errors import (
    APIStatusError,
    named,
)
from ..api.go.quote import quoted

if TYPE_CHECKING:
    from ..api.jsontypes import JSONObject, JSONValue
    from ..api.resource import GroupResource
    from .httpclient import Response

#: Maximum bytes of a response's text in an error message.
_MAX_QUOTED_BYTES: Final = 2048
_NOT_MORE: Final = "the server responded with the status code {} but did not return more information"
#: Reason and message by code; L{None} for the server's text.
_GENERIC: Final[dict[int, tuple[str, str | None]]] = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    403: ("Forbidden", None),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", None),
    409: ("AlreadyExists", "the server reported a conflict"),
    415: ("UnsupportedMediaType", None),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}
_REASONS: Final = frozenset((*(reason for reason, _ in _GENERIC.values()), "InternalError"))
_NOTHING: Final = "unknown"
_NOTHING_ACCEPTABLE: Final = "the server was unable to respond with a content type that the client supports"


def raise_for_status(response: Response, *, quote: bool = True) -> None:
    """
    Raise an error for an unsuccessful response.

    @param quote: Whether the error may quote the response: not where it gets into the log, or to clients without
        a part in the call (CVE-2020-8561).
    @raise APIStatusError: The C{Status} in the response, or client-go's error for a response without one.
    """
    if 200 <= response.code <= 206:
        return
    error = _status_error(response) or _generic_error(response)
    raise error if quote else _unquoted(error)


def _unquoted(error: APIStatusError) -> APIStatusError:
    """Return the error without the server's text; its C{retryAfterSeconds} is kept."""
    reason, message = _reason_and_message(error.code, _NOTHING)
    if message == _NOTHING:
        message = f"the other side answered {error.code}"
    if error.reason in _REASONS:
        reason = error.reason
    seconds = error.retry_after or (error.details or {}).get("retryAfterSeconds")
    details = {"retryAfterSeconds": seconds} if isinstance(seconds, int) else None
    return APIStatusError(error.code, reason, message, details, error.retry_after)


def _status_error(response: Response) -> APIStatusError | None:
    """Return the C{Status} error in the response."""
    try:
        status: JSONValue = orjson.loads(response.body)
    except ValueError:
        return None
    if not isinstance(status, dict) or status.get("kind") != "Status" or status.get("apiVersion") != "v1":
        return None
    if status.get("status") == "Success":
        return None
    details = status.get("details")
    code, reason, message = (status.get(name) for name in ("code", "reason", "message"))
    return APIStatusError(
        code if isinstance(code, int) and not isinstance(code, bool) else response.code,
        reason if isinstance(reason, str) else "",
        message if isinstance(message, str) else "",
        details if isinstance(details, dict) else None,
        retry_after(response),
    )


def _generic_error(response: Response) -> APIStatusError:
    media_type = response.headers.get("content-type", "text/").strip().lower()
    text = _NOTHING
    if media_type.startswith("text/"):
        text = response.body[:_MAX_QUOTED_BYTES].decode("utf-8", "replace").strip()
    reason, message = _reason_and_message(response.code, text)
    seconds = retry_after(response)
    details: JSONObject = {"causes": [{"reason": "UnexpectedServerResponse", "message": text}]}
    if seconds:
        details["retryAfterSeconds"] = seconds
    return APIStatusError(response.code, reason, message, details, seconds)


def generic_server_error(code: int, text: str, resource: GroupResource, name: str) -> APIStatusError:
    """
    Return the reference's error for a server's refusal of a request on behalf of a client.

    @param text: The text of the response.
    @param resource: The resource that the client requests.
    """
    reason, message = _reason_and_message(code, text)
    if code == 409:
        reason = "Conflict"
    return APIStatusError(code, reason, f"{message} ( {resource} {name})", named(resource, name))


def _reason_and_message(code: int, text: str) -> tuple[str, str]:
    reason, message = _GENERIC.get(code, ("", _NOT_MORE.format(code)))
    if message is None:
        message = _NOTHING_ACCEPTABLE if code == 406 and text in ("", _NOTHING) else text
    if not reason and code >= 500:
        reason = "InternalError"
        message = f"an error on the server ({quoted(text)}) has prevented the request from succeeding"
    return reason, message


def retry_after(response: Response) -> int | None:
    """Return the seconds in C{Retry-After}; L{None} without the field."""
    text = response.headers.get("retry-after", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
