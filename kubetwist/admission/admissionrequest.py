"""The C{AdmissionRequest} of a write, for C{AdmissionReview}s and for the variable C{request} of expressions."""

from __future__ import annotations

from ..api.admission import AdmissionAttributes
from ..api.resource import GroupVersionKind, GroupVersionResource, JSONObject
from ..api.users import user_object
from .matching.equivalents import EquivalentResource


def _kind(kind: GroupVersionKind) -> JSONObject:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(resource: GroupVersionResource) -> JSONObject:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}


def admission_request(attributes: AdmissionAttributes, equivalent: EquivalentResource) -> JSONObject:
    """
    Return an C{AdmissionRequest} without its uid and objects.

    @param equivalent: The resource and kind to which the objects are converted.
    """
    request: JSONObject = {"kind": _kind(equivalent.kind), "resource": _resource(equivalent.resource)}
    if attributes.subresource:
        request["subResource"] = attributes.subresource
    request["requestKind"] = _kind(attributes.request_kind)
    request["requestResource"] = _resource(attributes.request_resource)
    if attributes.subresource:
        request["requestSubResource"] = attributes.subresource
    if attributes.name:
        request["name"] = attributes.name
    if attributes.namespace:
        request["namespace"] = attributes.namespace
    request["operation"] = attributes.operation
    request["userInfo"] = user_object(attributes.user)
    return request
