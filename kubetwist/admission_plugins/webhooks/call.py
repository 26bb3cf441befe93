"""Calls one webhook with an AdmissionReview."""

from __future__ import annotations

import uuid
from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING

import orjson

from twisted.logger import Logger

from ...admission.matching.equivalents import EquivalentResource
from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.jsontypes import JSONValue
from ...api.latency import MUTATING_WEBHOOK, VALIDATING_WEBHOOK, LatencyTracker
from ...client.errors import CallError, InvalidRESTConfig
from ...client.responses import raise_for_status
from ...tracing.spans import current_span
from .review import VERSIONS, InvalidAdmissionResponse, Response, decode_response, encode_review, to_status_error

if TYPE_CHECKING:
    from .metrics import WebhookMetrics
    from .webhook import Webhook

_log = Logger()


class WebhookCallError(Exception):
    """
    A call failed; the failure policy of the webhook applies. The text is the reference's.

    @ivar logged: The text for the log, without the response: a user who configures webhooks and reads the log could
        otherwise read responses of servers that only this server can reach.
    """

    def __init__(self, webhook: Webhook, reason: object, response_detail: object = "", separator: str = ": ") -> None:
        """
        @param webhook: The webhook.
        @param reason: The reason of the failure.
        @param response_detail: Text from the response, which is not logged.
        @param separator: The text between both.
        """
        self.logged = f"failed calling webhook {quoted(webhook.name)}: {reason}"
        super().__init__(f"{self.logged}{separator}{response_detail}" if response_detail else self.logged)
        if response_detail:
            self.logged += ": invalid response"


async def call_webhook(
    webhook: Webhook,
    attributes: AdmissionAttributes,
    equivalent: EquivalentResource,
    obj: orjson.Fragment,
    old: orjson.Fragment,
    *,
    mutating: bool,
    metrics: WebhookMetrics,
) -> Response:
    """
    Call a webhook and record metrics.

    @param webhook: The webhook.
    @param attributes: The admission request.
    @param equivalent: The resource and kind of the objects in the review.
    @param obj: The object as JSON.
    @param old: The old object as JSON.
    @param mutating: Whether patches are accepted.
    @param metrics: The metrics of the plugin.
    @raise APIStatusError: The webhook denied the request or does not support dry run.
    @raise WebhookCallError: The call failed.
    """
    began = perf_counter()
    code, error = 200, "apiserver_internal_error"
    try:
        response = await _call_webhook(webhook, attributes, equivalent, obj, old, mutating=mutating)
        error = ""
        return response
    except WebhookCallError:
        code, error = 0, "" if webhook.ignore_failures else "calling_webhook_error"
        raise
    except APIStatusError as denial:
        code, error = denial.code, "no_error"
        raise
    finally:
        metrics.observe(webhook.name, attributes.operation, perf_counter() - began, code, error)


async def _call_webhook(
    webhook: Webhook,
    attributes: AdmissionAttributes,
    equivalent: EquivalentResource,
    obj: orjson.Fragment,
    old: orjson.Fragment,
    *,
    mutating: bool,
) -> Response:
    """
    Call a webhook; add its warnings to the response and its annotations to the audit event.

    @return: The response, which allows the request.
    @raise APIStatusError: The webhook denied the request or does not support dry run.
    @raise WebhookCallError: The call failed.
    """
    if attributes.dry_run and not webhook.supports_dry_run:
        raise APIStatusError.bad_request(f"admission webhook {quoted(webhook.name)} does not support dry run")
    version = next((one for one in webhook.review_versions if one in VERSIONS), None)
    if version is None:
        reason = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        raise WebhookCallError(webhook, f"could not create admission objects: {reason}")
    uid = str(uuid.uuid4())
    body = encode_review(version, uid, attributes, equivalent, obj, old)
    try:
        client = webhook.client()
    except InvalidRESTConfig as error:
        raise WebhookCallError(webhook, f"could not get REST client: {error}") from None
    try:
        with current_span().child(*_span_attributes(webhook, attributes, uid, mutating)) as span:
            with LatencyTracker(MUTATING_WEBHOOK) if mutating else LatencyTracker(VALIDATING_WEBHOOK, concurrent=True):
                http_response = await client.post(body, timeout=_seconds(webhook, attributes))
            raise_for_status(http_response)
            span.add_event("Request completed")
            response = decode_response(http_response.body, version, uid, mutating)
    except CallError as error:
        raise WebhookCallError(webhook, f"failed to call webhook: {error}") from None
    except ValueError as error:
        raise WebhookCallError(webhook, "failed to call webhook", error) from None
    except APIStatusError as error:
        raise WebhookCallError(webhook, "failed to call webhook", error.message) from None
    except InvalidAdmissionResponse as error:
        raise WebhookCallError(webhook, "received invalid webhook response", error) from None
    for key, value in response.annotations.items():
        annotate_audit_event(attributes, f"{webhook.name}/{key}", value)
    for text in response.warnings:
        attributes.warn(text)
    if not response.allowed:
        raise to_status_error(webhook.name, response.status)
    return response


def _span_attributes(
    webhook: Webhook, attributes: AdmissionAttributes, uid: str, mutating: bool
) -> tuple[str, dict[str, str]]:
    """Return the name and the attributes of the span of a call."""
    return (
        "Call mutating webhook" if mutating else "Call validating webhook",
        {
            "configuration": webhook.configuration,
            "webhook": webhook.name,
            "resource": f"{attributes.group}/{attributes.version}, Resource={attributes.resource}",
            "subresource": attributes.subresource,
            "operation": attributes.operation,
            "UID": uid,
        },
    )


def _seconds(webhook: Webhook, attributes: AdmissionAttributes) -> float:
    """Return the timeout of a call in seconds, limited by the deadline of the request."""
    if attributes.deadline is None:
        return webhook.timeout
    remaining = attributes.deadline - attributes.context.reactor.seconds()
    return min(webhook.timeout, float(max(ceil(remaining), 1)))


def annotate_audit_event(attributes: AdmissionAttributes, key: str, value: str, level: str = "Metadata") -> None:
    """
    Add an audit annotation; an invalid annotation is logged instead.

    @param attributes: The admission request.
    @param key: The key of the annotation.
    @param value: The value of the annotation.
    @param level: The lowest audit level of events with the annotation.
    """
    try:
        attributes.annotate(key, value, level)
    except ValueError as error:
        _log.warn("invalid audit annotation of a webhook omitted: key={key} error={error}", key=key, error=error)


def json_fragment(obj: JSONValue) -> orjson.Fragment:
    """Encode an object for embedding in a JSON document."""
    return orjson.Fragment(orjson.dumps(obj))
