"""Whether the sender may do what the request asks for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ..api.authorization import AuthorizerAttributes, Decision, Verdict
from ..api.errors import APIStatusError
from ..api.goquote import quoted
from ..api.rbacrules import quoted_list
from ..api.resource import GroupResource
from ..interfaces import IAuthorizer
from .requestinfo import sanitized

if TYPE_CHECKING:
    from ..server.site import Handler, KubeRequest

_log = Logger()
_ALLOW = Decision.ALLOW


def with_authorization(handler: Handler, authorizer: IAuthorizer) -> Handler:
    """Answer 403 to what nobody allows."""
    authorize = authorizer.authorize

    def authorization(request: KubeRequest) -> None:
        attributes = attributes_of(request)
        verdict = authorize(attributes)
        if isinstance(verdict, Deferred):
            verdict.addCallback(_decided, request, attributes).addErrback(request.crashed)
        elif verdict.decision is _ALLOW:
            handler(request)
        else:
            forbid(request, attributes, verdict)

    def _decided(verdict: Verdict, request: KubeRequest, attributes: AuthorizerAttributes) -> None:
        if request.finished or request._disconnected:
            return
        if verdict.decision is _ALLOW:
            handler(request)
        else:
            forbid(request, attributes, verdict)

    return authorization


def attributes_of(request: KubeRequest) -> AuthorizerAttributes:
    """What an authorizer is asked about a request."""
    info = request.info
    user = request.user
    assert user is not None, "authentication comes before authorization"
    return AuthorizerAttributes(
        user,
        info.verb,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        info.namespace,
        info.name,
        info.path,
        info.is_resource_request,
    )


def forbid(request: KubeRequest, attributes: AuthorizerAttributes, verdict: Verdict) -> None:
    """Tell a client that it may not, and the log what was looked for."""
    user = attributes.user
    _log.info(
        "forbidden ({audit_id}): nothing allows user {user} with groups {groups} to {sought}{reason}",
        audit_id=request.audit_id,
        user=quoted(user.name),
        groups=quoted_list(user.groups),
        sought=sought(attributes),
        reason=f" ({verdict.reason})" if verdict.reason else "",
    )
    request.setHeader(b"x-content-type-options", b"nosniff")
    request.fail(forbidden(attributes, verdict.reason))


def forbidden(attributes: AuthorizerAttributes, reason: str = "") -> APIStatusError:
    """The error for what nobody allows; C{reason} is the authorizer's."""
    user = _quoted(attributes.user.name)
    if not attributes.is_resource_request:
        why = f"User {user} cannot {attributes.verb} path {_quoted(attributes.path)}"
    else:
        resource = attributes.resource
        if attributes.subresource:
            resource += f"/{attributes.subresource}"
        where = f"in the namespace {_quoted(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
        why = (
            f"User {user} cannot {attributes.verb} resource {_quoted(resource)}"
            f" in API group {_quoted(attributes.group)} {where}"
        )
    why = sanitized(why)
    if reason:
        why += f": {reason}"
    return APIStatusError.forbidden(GroupResource(attributes.group, attributes.resource), attributes.name, why)


def sought(attributes: AuthorizerAttributes) -> str:
    """What somebody wanted to do: with subresource, name and scope, or the path."""
    if not attributes.is_resource_request:
        return f"{quoted(attributes.verb)} the path {quoted(attributes.path)}"
    resource = str(GroupResource(attributes.group, attributes.resource))
    if attributes.subresource:
        resource += f"/{attributes.subresource}"
    name = f" named {quoted(attributes.name)}" if attributes.name else ""
    where = f"in the namespace {quoted(attributes.namespace)}" if attributes.namespace else "cluster-wide"
    return f"{quoted(attributes.verb)} the resource {quoted(resource)}{name} {where}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
