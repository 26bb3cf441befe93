"""
Impersonation filter: authorized clients act as another user.

@see: kubernetes, C{apiserver/pkg/endpoints/filters/impersonation}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Final

from twisted.internet.defer import Deferred

from ..api.errors import APIStatusError
from ..api.featuregates import FeatureGates
from ..api.go.quote import quoted
from ..api.identityheaders import AmbiguousHeaderError, check_names, decode_field_value, extra_key, optional_field
from ..api.resource import UserInfo
from ..http.request import Handler, KubeRequest
from ..interfaces import IAuthorizer
from ..metrics.impersonation import ImpersonationMetrics
from .authorization import authorizer_attributes, forbid
from .denials import DenialLog
from .impersonationmodes import ImpersonationDenied, ImpersonationModesTracker
from .requestinfo import escape_html

#: Prefixes of the headers; gateways replace dashes by underscores, and vice versa.
_PREFIXES: Final = (b"impersonate-", b"impersonate_")
_USER: Final = b"impersonate-user"
_UID: Final = b"impersonate-uid"
_GROUP: Final = b"impersonate-group"
_EXTRA: Final = b"impersonate-extra-"
_AUTHENTICATION: Final = "authentication.k8s.io/v1"
_EXACT: Final = frozenset((_USER, _UID, _GROUP))


def with_impersonation(
    handler: Handler,
    authorizer: IAuthorizer,
    features: FeatureGates,
    denials: DenialLog,
    metrics: ImpersonationMetrics | None = None,
) -> Handler:
    """
    Set the user of a request to the one in its C{Impersonate-} headers, if the client may impersonate that user.

    Answer 400 to headers without a user (500 in plain text before 1.35) or with several meanings, and 403 without
    permission. Later filters find the impersonated user in C{request.user} and the client in C{request.impersonator};
    the headers are removed.

    @param handler: The next handler.
    @param authorizer: Decides whether the client may impersonate.
    @param features: The feature gates and the release of the server; C{ConstrainedImpersonation} enables modes.
    @param denials: Logs refused impersonations.
    @param metrics: Counts impersonations, as the reference does with C{ConstrainedImpersonation} only.
    """
    constrained = features.enabled("ConstrainedImpersonation")
    counted = metrics if constrained else None
    modes = ImpersonationModesTracker(authorizer, constrained, counted)
    in_plain_text = not features.since(1, 35)

    def impersonation(request: KubeRequest) -> None:
        for name in request.fields:
            if name.startswith(_PREFIXES):
                break
        else:
            handler(request)
            return
        try:
            target = process_impersonation_headers(request.fields, constrained)
        except MissingUserError as error:
            if in_plain_text:
                uri = quoted(request.uri.decode("utf-8", "replace"))
                request.respond_text(500, escape_html(f"Internal Server Error: {uri}: {error.message}") + "\n")
                return
            request.setHeader(b"x-content-type-options", b"nosniff")
            request.fail(error)
            return
        except APIStatusError as error:
            request.setHeader(b"x-content-type-options", b"nosniff")
            request.fail(error)
            return
        if target is None:
            handler(request)
        else:
            Deferred.fromCoroutine(_impersonate(request, target)).addErrback(request.handle_failure)

    async def _impersonate(request: KubeRequest, target: UserInfo) -> None:
        began = perf_counter()
        try:
            impersonated = await modes.get_impersonated_user(authorizer_attributes(request), target)
        except ImpersonationDenied as denied:
            if counted is not None:
                counted.denied(perf_counter() - began)
            if not request.is_done:
                forbid(request, denied.attributes, denied.verdict, denials)
            return
        if counted is not None:
            counted.allowed(impersonated.mode, perf_counter() - began)
        if request.is_done:
            return
        request.impersonator, request.user = request.user, impersonated.user
        request.impersonation_constraint = impersonated.constraint
        request.fields = {name: values for name, values in request.fields.items() if not name.startswith(_PREFIXES)}
        handler(request)

    return impersonation


class MissingUserError(APIStatusError):
    """The error for impersonation headers that name groups, a UID or extra values, but no user: a 400."""


def process_impersonation_headers(fields: Mapping[bytes, Sequence[bytes]], constrained: bool = True) -> UserInfo | None:
    """
    Return the user that impersonation headers name; L{None} without any (Go: C{processImpersonationHeaders}).

    @param fields: Header fields by lower-case name.
    @param constrained: Whether constrained impersonation is enabled, which has another text of the error.
    @raise MissingUserError: The headers name no user but groups, a UID or extra values.
    @raise APIStatusError: 400. The headers are ambiguous. Of two user names the reference takes the first, but a proxy
        before it may have checked the last.
    """
    extra: dict[str, tuple[str, ...]] = {}
    try:
        check_names(fields, _EXACT, (_EXTRA,))
        for field, values in fields.items():
            if field.startswith(_EXTRA):
                key = extra_key(field, _EXTRA)
                extra[key] = (*extra.get(key, ()), *(decode_field_value(field, value) for value in values))
        groups = tuple(decode_field_value(_GROUP, value) for value in fields.get(_GROUP, ()))
        user = UserInfo(optional_field(fields, _USER), optional_field(fields, _UID), groups, extra)
    except AmbiguousHeaderError as error:
        raise APIStatusError.bad_request(str(error)) from error
    if user.name:
        return user
    if user.uid or user.groups or extra:
        if constrained:
            text = f"requested {_in_go(user)} without impersonating a user name"
        else:
            text = f"requested {_references(user)} without impersonating a user"
        raise MissingUserError.bad_request(text)
    return None


def _in_go(user: UserInfo) -> str:
    groups = f"[]string{_listed(user.groups)}" if user.groups else "[]string(nil)"
    extra = ", ".join(f"{quoted(key)}:[]string{_listed(values)}" for key, values in sorted(user.extra.items()))
    extra = f"map[string][]string{{{extra}}}" if extra else "map[string][]string(nil)"
    return f"&user.DefaultInfo{{Name:{quoted(user.name)}, UID:{quoted(user.uid)}, Groups:{groups}, Extra:{extra}}}"


def _references(user: UserInfo) -> str:
    """Return what is impersonated as Go prints a list of C{ObjectReference}s."""
    references = [f"{{Group  {group}    }}" for group in user.groups]
    for key, values in user.extra.items():
        references += [f"{{UserExtra  {value}  {_AUTHENTICATION}  {key}}}" for value in values]
    if user.uid:
        references.append(f"{{UID  {user.uid}  {_AUTHENTICATION}  }}")
    return f"[{' '.join(references)}]"


def _listed(values: Sequence[str]) -> str:
    return "{" + ", ".join(map(quoted, values)) + "}"
