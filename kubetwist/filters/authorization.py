"""Authorization filter: answers 403 to requests that the authorizer does not allow."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

from attrs import evolve

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from ..api.authorization import AuthorizerAttributes, Decision, Verdict
from ..api.errors import APIStatusError
from ..api.go.quote import quoted
from ..api.resource import GroupResource, UserInfo
from ..api.selectors import ParsedLater, Requirement, parse_field_selector, parse_label_selector
from ..api.targets import clean_path
from ..http.request import Handler, KubeRequest
from ..interfaces import IAuthorizer
from .denials import DenialLog, describe_attributes
from .requestinfo import escape_html

_log = Logger()
_ALLOW = Decision.ALLOW

#: Path that explains authorization decisions, for clients that may create SubjectAccessReviews.
WHY: Final = "/kubetwist/v1/why"
#: Path of the metrics of the last hour, for users who may read C{/metrics}.
HISTORY: Final = "/ui/history"
#: Paths that are authorized as other requests.
_WITH_OTHER_PERMISSIONS: Final = frozenset((WHY, HISTORY))
#: Subresources that run commands in a pod, with any HTTP method: a WebSocket begins with GET. The second set has
#: the kubelet's names, below the proxy subresource of nodes.
_STREAMS: Final = frozenset(("exec", "attach", "portforward"))
_KUBELET_STREAMS: Final = frozenset(("exec", "attach", "portForward", "run", "cri"))


def with_authorization(
    handler: Handler, authorizer: IAuthorizer, denials: DenialLog, *, creates_streams: bool = True
) -> Handler:
    """
    Answer 403 to requests that C{authorizer} does not allow, and log them to C{denials}.

    @param creates_streams: Whether streams of pods need the verb create, also if they begin with a GET: the feature
        gate AuthorizePodWebsocketUpgradeCreatePermission.
    """
    authorize = authorizer.authorize
    streams = _STREAMS if creates_streams else frozenset()

    def authorization(request: KubeRequest) -> None:
        authorize_attributes(request, authorizer_attributes(request))

    def authorize_attributes(request: KubeRequest, attributes: AuthorizerAttributes) -> None:
        verdict = authorize(attributes)
        if type(verdict) is not Verdict and isinstance(verdict, Deferred):
            verdict.addCallback(handle_deferred_verdict, request, attributes).addErrback(request.handle_failure)
        else:
            handle_verdict(verdict, request, attributes)

    def handle_deferred_verdict(verdict: Verdict, request: KubeRequest, attributes: AuthorizerAttributes) -> None:
        if not request.is_done:
            handle_verdict(verdict, request, attributes)

    def handle_verdict(verdict: Verdict, request: KubeRequest, attributes: AuthorizerAttributes) -> None:
        if verdict.decision is not _ALLOW:
            if request.audit is not None:
                request.audit.refused_by(verdict)
            if verdict.error:
                _fail(request, attributes, verdict)
            elif attributes.verb != request.info.verb and attributes.resource == "pods":
                # The second check; its message in the reference does not name the request.
                denials.log(request, attributes, verdict)
                resource = GroupResource(attributes.group, attributes.resource)
                request.fail(APIStatusError.forbidden(resource, attributes.name, verdict.reason))
            else:
                forbid(request, attributes, verdict, denials)
        elif (
            attributes.subresource and attributes.verb != "create" and _needs_create_check(request, attributes, streams)
        ):
            authorize_attributes(request, evolve(attributes, verb="create"))
        else:
            if request.audit is not None:
                request.audit.allowed_by(verdict)
            handler(request)

    return authorization


def _needs_create_check(request: KubeRequest, attributes: AuthorizerAttributes, streams: Collection[str]) -> bool:
    """
    Return whether a subresource runs commands in a pod, which needs the verb create too.

    @param streams: These subresources of pods.
    """
    if attributes.resource == "pods":
        return attributes.subresource in streams
    if attributes.resource != "nodes" or attributes.subresource != "proxy":
        return False
    # The path as the kubelet receives it, without dot segments.
    return clean_path("/" + "/".join(request.info.parts[3:])).split("/")[1] in _KUBELET_STREAMS


def authorizer_attributes(request: KubeRequest) -> AuthorizerAttributes:
    """Return the attributes of a request that the authorizer decides on (Go: C{GetAuthorizerAttributes})."""
    info = request.info
    user = request.user
    assert user is not None, "authentication comes before authorization"
    # They are immutable, and most requests come from the same user as the last one of this kind.
    last: AuthorizerAttributes | None = info.attributes
    if last is not None and last.user is user:
        return last
    if info.path in _WITH_OTHER_PERMISSIONS:
        return _attributes_of_path(user, info.verb, info.path)
    info.attributes = attributes = AuthorizerAttributes(
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
        ParsedLater(info.field_selector, parse_field_selector) if info.field_selector else (),
        ParsedLater(info.label_selector, _label_terms) if info.label_selector else (),
    )
    return attributes


def _attributes_of_path(user: UserInfo, verb: str, path: str) -> AuthorizerAttributes:
    """Return the attributes of the request whose permission a path needs."""
    if path == WHY:
        return AuthorizerAttributes(user, "create", "authorization.k8s.io", "v1", "subjectaccessreviews")
    return AuthorizerAttributes(user, verb, path="/metrics", is_resource_request=False)


def _label_terms(text: str) -> tuple[Requirement, ...]:
    return parse_label_selector(text).requirements


def _fail(request: KubeRequest, attributes: AuthorizerAttributes, verdict: Verdict) -> None:
    """Answer 500 because an authorizer returned an error, and log it."""
    _log.error(
        "authorization failed ({audit_id}) for user {user} who wants to {target}: {error}",
        audit_id=request.audit_id,
        user=quoted(attributes.user.name),
        target=describe_attributes(attributes),
        error=verdict.error,
    )
    uri = quoted(request.uri.decode("utf-8", "replace"))
    request.respond_text(500, escape_html(f"Internal Server Error: {uri}: {verdict.error}") + "\n")


def forbid(request: KubeRequest, attributes: AuthorizerAttributes, verdict: Verdict, denials: DenialLog) -> None:
    """
    Answer 403, and log the denied request.

    @param request: The denied request.
    @param attributes: The attributes that were authorized.
    @param verdict: The decision, whose reason is part of the response.
    @param denials: The log of denials.
    """
    denials.log(request, attributes, verdict)
    request.setHeader(b"x-content-type-options", b"nosniff")
    request.fail(forbidden(attributes, verdict.reason))


def forbidden(attributes: AuthorizerAttributes, reason: str = "") -> APIStatusError:
    """
    Return the 403 for attributes that no authorizer allows.

    @param reason: The reason of the authorizer; part of the message.
    """
    user = _quoted(attributes.user.name)
    if not attributes.is_resource_request:
        message = f"User {user} cannot {attributes.verb} path {_quoted(attributes.path)}"
    else:
        resource = attributes.resource
        if attributes.subresource:
            resource += f"/{attributes.subresource}"
        scope = f"in the namespace {_quoted(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
        message = (
            f"User {user} cannot {attributes.verb} resource {_quoted(resource)}"
            f" in API group {_quoted(attributes.group)} {scope}"
        )
    message = escape_html(message)
    if reason:
        message += f": {reason}"
    return APIStatusError.forbidden(GroupResource(attributes.group, attributes.resource), attributes.name, message)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
