"""Encodes and decodes C{AdmissionReview}s. No I/O."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Final

import orjson
from attrs import field, frozen

from ...admission.admissionrequest import admission_request
from ...admission.matching.equivalents import EquivalentResource
from ...api.admission import AdmissionAttributes
from ...api.decoding import BodyError, decode_json, json_type
from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject

GROUP: Final = "admission.k8s.io"
#: The supported versions of C{AdmissionReview}; the first one that a webhook accepts is used.
VERSIONS: Final = ("v1", "v1beta1")
JSON_PATCH: Final = "JSONPatch"
NULL: Final = orjson.Fragment(b"null")


class InvalidAdmissionResponse(Exception):
    """The response of a webhook is invalid; the text is the reference's."""


def encode_review(
    version: str,
    uid: str,
    attributes: AdmissionAttributes,
    equivalent: EquivalentResource,
    obj: orjson.Fragment,
    old: orjson.Fragment,
) -> bytes:
    """
    Return the request body of a call.

    @param version: The version of the review.
    @param uid: The uid of the review.
    @param attributes: The admission request.
    @param equivalent: The resource and kind of the objects.
    @param obj: The object as JSON, or L{NULL}.
    @param old: The old object as JSON, or L{NULL}.
    """
    request = {
        "uid": uid,
        **admission_request(attributes, equivalent),
        "object": obj,
        "oldObject": old,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }
    review = {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": request}
    return orjson.dumps(review)


@frozen
class Response:
    """
    The decoded response of a webhook.

    @ivar patch: The encoded patch; C{b""} for none.
    @ivar status: The C{Status} of a denial, possibly incomplete.
    """

    allowed: bool
    patch: bytes = b""
    patch_type: str = JSON_PATCH
    status: JSONObject | None = None
    warnings: Sequence[str] = ()
    annotations: Mapping[str, str] = field(factory=dict)


def decode_response(body: bytes, version: str, uid: str, mutating: bool) -> Response:
    """
    Decode the response of a webhook.

    @param body: The body of the response.
    @param version: The version of the review in the request.
    @param uid: The uid of the review.
    @param mutating: Whether patches are accepted.
    @raise ValueError: The body is not an AdmissionReview.
    @raise InvalidAdmissionResponse: The response does not match the request.
    """
    review = _review(body, version)
    response = _typed_field(review, "response", dict, "AdmissionReview")
    if response is None:
        raise InvalidAdmissionResponse("webhook response was absent")
    fields = {
        name: _typed_field(response, name, kind, "AdmissionResponse.response")
        for name, kind in (
            ("uid", str),
            ("allowed", bool),
            ("status", dict),
            ("patch", str),
            ("patchType", str),
            ("auditAnnotations", dict),
            ("warnings", list),
        )
    }
    try:
        patch = base64.b64decode(fields["patch"] or "", validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("illegal base64 data in response.patch") from None
    patch_type = fields["patchType"]
    if version == "v1":
        _check_v1(review, fields["uid"] or "", uid, patch, patch_type, mutating)
    if not mutating:
        patch = b""
    annotations = fields["auditAnnotations"] or {}
    warnings = fields["warnings"] or []
    for value in (*annotations.values(), *warnings):
        if not isinstance(value, str):
            field = "Go struct field AdmissionResponse.response"
            raise ValueError(f"json: cannot unmarshal {json_type(value)} into {field} of type string")
    # v1beta1 ignores the patch type.
    if version != "v1" or not patch_type:
        patch_type = JSON_PATCH
    return Response(bool(fields["allowed"]), patch, patch_type, fields["status"], warnings, annotations)


def _review(body: bytes, version: str) -> JSONObject:
    try:
        review = decode_json(body).value
    except BodyError as error:
        raise ValueError(error.as_body_of_object()) from None
    if not isinstance(review, dict):
        raise ValueError(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {json_type(review)} into Go value of "
            'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
    for name in ("apiVersion", "kind"):
        if not isinstance(review.get(name) or "", str):
            raise ValueError(
                "couldn't get version/kind; json parse error: json: cannot unmarshal "
                f"{json_type(review[name])} into Go struct field .{name} of type string"
            )
    kind, api_version = review.get("kind") or "AdmissionReview", review.get("apiVersion") or f"{GROUP}/{version}"
    group, _, review_version = api_version.rpartition("/")
    if kind != "AdmissionReview" or group != GROUP or review_version not in VERSIONS:
        raise ValueError(
            f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:110"'
        )
    if review_version != version:
        raise ValueError(
            f"converting ({review_version}.AdmissionReview) to ({version}.AdmissionReview): unknown conversion"
        )
    return review


def _check_v1(
    review: JSONObject, response_uid: str, uid: str, patch: bytes, patch_type: str | None, mutating: bool
) -> None:
    """
    Check a response in v1.

    @param review: The decoded review.
    @param response_uid: The uid in the response.
    @param uid: The uid of the request.
    @param patch: The decoded patch; C{b""} for none.
    @param patch_type: The type of the patch; L{None} if it is absent.
    @param mutating: Whether patches are accepted.
    @raise InvalidAdmissionResponse: The response is invalid.
    """
    if response_uid != uid:
        raise InvalidAdmissionResponse(f"expected response.uid={quoted(uid)}, got {quoted(response_uid)}")
    api_version, kind = review.get("apiVersion") or "", review.get("kind") or ""
    if not api_version or not kind:
        group, _, version = api_version.rpartition("/")
        raise InvalidAdmissionResponse(
            f"expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
        )
    if not mutating:
        if patch:
            raise InvalidAdmissionResponse("validating webhook may not return response.patch")
        if patch_type is not None:
            raise InvalidAdmissionResponse("validating webhook may not return response.patchType")
        return
    if patch and patch_type is None:
        raise InvalidAdmissionResponse("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise InvalidAdmissionResponse("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise InvalidAdmissionResponse('webhook returned invalid response.patchType of ""')


def _typed_field(obj: JSONObject, name: str, kind: type, struct: str) -> JSONValue:
    """
    Return a field of an object; L{None} if it is absent.

    @param obj: The object.
    @param name: The name of the field.
    @param kind: The expected type.
    @param struct: The name of the Go struct for the error text.
    @raise ValueError: The field has another type.
    """
    value = obj.get(name)
    if value is not None and not isinstance(value, kind):
        go_type = {str: "string", bool: "bool", dict: "map[string]string", list: "[]string"}[kind]
        raise ValueError(
            f"json: cannot unmarshal {json_type(value)} into Go struct field {struct}.{name} of type {go_type}"
        )
    return value


def to_status_error(webhook: str, status: JSONObject | None) -> APIStatusError:
    """Return the error for a request that a webhook denied (C{ToStatusErr})."""
    status = status or {}
    code, message, reason = status.get("code"), status.get("message"), status.get("reason")
    details = status.get("details")
    code = code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else 400
    reason = reason if isinstance(reason, str) else ""
    text = f"admission webhook {quoted(webhook)} denied the request"
    if isinstance(message, str) and message:
        text += f": {message}"
    elif reason:
        text += f": {reason}"
    else:
        text += " without explanation"
    retry = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return APIStatusError(
        code,
        reason,
        text,
        details if isinstance(details, dict) else None,
        retry if isinstance(retry, int) and retry > 0 else None,
    )
