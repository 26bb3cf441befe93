"""
Impersonation filter: authorized clients act as another user.

@see: kubernetes, C{apiserver/pkg/endpoints/filters/impersonation}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from twisted.internet.defer import Deferred

from ..api.errors import APIStatusError
from ..api.go.quote import quoted
from ..api.identityheaders import AmbiguousHeaderError, check_names, decode_field_value, extra_key, optional_field
from ..api.resource import UserInfo
from ..http.request import Handler, KubeRequest
from ..interfaces import IAuthorizer
from .authorization import authorizer_attributes, forbid
from .denials import DenialLog
from .impersonationmodes import ImpersonationDenied, ImpersonationModesTracker

#: Prefixes of the headers; gateways replace dashes by underscores, and vice versa.
_PREFIXES: Final = (b"impersonate-", b"impersonate_")
_USER: Final = b"impersonate-user"
_UID: Final = b"impersonate-uid"
_GROUP: Final = b"impersonate-group"
_EXTRA: Final = b"impersonate-extra-"
_EXACT: Final = frozenset((_USER, _UID, _GROUP))


def with_impersonation(handler: Handler, authorizer: IAuthorizer, constrained: bool, denials: DenialLog) -> Handler:
    """
    Set the user of a request to the one in its C{Impersonate-} headers, if the client may impersonate that user.

    Answer 400 to headers without a user or with several meanings, and 403 without permission. Later filters find the
    impersonated user in C{request.user} and the client in C{request.impersonator}; the headers are removed.

    @param handler: The next handler.
    @param authorizer: Decides whether the client may impersonate.
    @param constrained: Whether constrained impersonation is enabled.
    @param denials: Logs refused impersonations.
    """
    modes = ImpersonationModesTracker(authorizer, constrained)

    def impersonation(request: KubeRequest) -> None:
        for name in request.fields:
            if name.startswith(_PREFIXES):
                break
        else:
            handler(request)
            return
        try:
            target = process_impersonation_headers(request.fields)
        except APIStatusError as error:
            request.setHeader(b"x-content-type-options", b"nosniff")
            request.fail(error)
            return
        if target is None:
            handler(request)
        else:
            Deferred.fromCoroutine(_impersonate(request, target)).addErrback(request.handle_failure)

    async def _impersonate(request: KubeRequest, target: UserInfo) -> None:
        try:
            impersonated = await modes.get_impersonated_user(authorizer_attributes(request), target)
        except ImpersonationDenied as denied:
            if not request.is_done:
                forbid(request, denied.attributes, denied.verdict, denials)
            return
        if request.is_done:
            return
        request.impersonator, request.user = request.user, impersonated.user
        request.impersonation_constraint = impersonated.constraint
        request.fields = {name: values for name, values in request.fields.items() if not name.startswith(_PREFIXES)}
        handler(request)

    return impersonation


def process_impersonation_headers(fields: Mapping[bytes, Sequence[bytes]]) -> UserInfo | None:
    """
    Return the user that impersonation headers name; L{None} without any (Go: C{processImpersonationHeaders}).

    @param fields: Header fields by lower-case name.
    @raise APIStatusError: 400. The headers name no user but groups, a UID or extra values; or they are ambiguous. Of
        two user names the reference takes the first, but a proxy before it may have checked the last.
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
        raise APIStatusError.bad_request(f"requested {_in_go(user)} without impersonating a user name")
    return None


def _in_go(user: UserInfo) -> str:
    groups = f"[]string{_listed(user.groups)}" if user.groups else "[]string(nil)"
    extra = ", ".join(f"{quoted(key)}:[]string{_listed(values)}" for key, values in sorted(user.extra.items()))
    extra = f"map[string][]string{{{extra}}}" if extra else "map[string][]string(nil)"
    return f"&user.DefaultInfo{{Name:{quoted(user.name)}, UID:{quoted(user.uid)}, Groups:{groups}, Extra:{extra}}}"


def _listed(values: Sequence[str]) -> str:
    return "{" + ", ".join(map(quoted, values)) + "}"
